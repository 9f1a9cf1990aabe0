"""Designs: what each promises, counted by hand, and the canonical algorithm written out again."""

import hashlib
from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.design import audit, extend_tuples, make_tuples


def names(n):
    return [f"item {number}" for number in range(n)]


def counted(design):
    """Appearances, pair counts and position counts, by plain loops."""
    appearances, pairs, positions = Counter(), Counter(), Counter()
    for row in design.members.tolist():
        for place, item in enumerate(row):
            appearances[item] += 1
            positions[item, place] += 1
        pairs.update(frozenset(pair) for pair in combinations(row, 2))
    return appearances, pairs, positions


def spread(counts, keys):
    values = [counts[key] for key in keys]
    return max(values) - min(values)


@st.composite
def sizes(draw):
    k = draw(st.integers(2, 12))
    n = draw(st.integers(k, k + 12))
    return n, k, draw(st.integers(1, 2 * n))


@given(sizes(), st.integers(0, 100))
def test_what_every_design_promises(size, seed):
    n, k, count = size
    design = make_tuples(names(n), k, count=count, seed=seed, allow_repeats=True)
    appearances, _, positions = counted(design)
    rows = [frozenset(row) for row in design.members.tolist()]
    assert len(rows) == count
    assert all(len(row) == k for row in rows)  # distinct items
    assert spread(appearances, range(n)) <= 1
    assert all(spread(positions, [(item, place) for place in range(k)]) <= 1 for item in range(n))
    times = Counter(rows).values()
    whole, rest = divmod(count, comb(n, k))
    assert max(times) == whole + (rest > 0)  # no tuple again before all have been used as often
    if count >= comb(n, k):
        assert len(times) == comb(n, k)


def test_the_papers_design():
    """N = 5, 2N = 10 3-tuples: all that exist, each item in six, each pair in three (section 3.2)."""
    design = make_tuples(names(5), 3)
    appearances, pairs, _ = counted(design)
    assert {frozenset(row) for row in design.members.tolist()} == set(
        map(frozenset, combinations(range(5), 3))
    )
    assert set(appearances.values()) == {6}
    assert set(pairs.values()) == {3}


@pytest.mark.parametrize(
    ("n", "k", "factor"),
    [
        (1000, 4, 2),
        (500, 6, 1.5),
        pytest.param(3000, 4, 2, marks=pytest.mark.nightly),
        pytest.param(200, 4, 10, marks=pytest.mark.nightly),
    ],
)
def test_no_pair_meets_twice_where_that_can_be(n, k, factor):
    design = make_tuples(names(n), k, factor=factor)
    appearances, pairs, _ = counted(design)
    assert len(design) == int(0.5 + factor * n)
    assert max(pairs.values()) == 1
    assert spread(appearances, range(n)) <= 1


@pytest.mark.parametrize(
    ("n", "k", "count", "low", "high"), [(7, 3, 7, 1, 1), (9, 3, 12, 1, 1), (20, 4, 40, 1, 2)]
)
def test_pairs_are_level_where_that_is_known_to_be_possible(n, k, count, low, high):
    """The planes of order 2 (7 points, 7 lines) and 3 (9 points, 12 lines) exist; one seed finds each."""
    best = min(
        (counted(make_tuples(names(n), k, count=count, seed=seed))[1] for seed in range(40)),
        key=lambda pairs: sum(c * c for c in pairs.values()),
    )
    values = [best[frozenset(pair)] for pair in combinations(range(n), 2)]
    assert (min(values), max(values)) == (low, high)


def repeated(design):
    """Tuples whose items are those of an earlier tuple, by plain sets."""
    rows = [frozenset(row) for row in design.members.tolist()]
    return len(rows) - len(set(rows))


@pytest.mark.parametrize(
    ("n", "k", "options", "message"),
    [
        (5, 3, {"count": 11}, "10 distinct tuples exist, so 1 of 11 would repeat others; ask for at most 10"),
        (4, 4, {"factor": 2}, "1 distinct tuple exists, so 7 of 8 would repeat it; ask for 1 or allow"),
        (4, 4, {"compat": "km"}, "1 distinct tuple exists, so 7 of 8 would repeat it"),
        (5, 3, {"count": 10**20}, "is too large; at most 10000000 are supported"),
        (8, 4, {"groups": ["a"] * 4 + ["b"] * 4, "count": 2}, "groups 'a', 'b': 4 items, tuples of 4"),
    ],
)  # fmt: skip
def test_repeated_tuples_are_an_error_unless_they_are_allowed(n, k, options, message):
    with pytest.raises(ValueError, match=message):
        make_tuples(names(n), k, **options)
    if options.get("count", 0) < 100:
        design = make_tuples(names(n), k, **options, allow_repeats=True)
        assert design.n_repeated == repeated(design) > 0


def test_without_a_number_a_group_gets_at_most_all_distinct_tuples():
    groups = ["a"] * 4 + ["b"] * 9 + ["c"] * 4
    design = make_tuples(names(17), 4, groups=groups)
    assert np.bincount(design.group_of_tuple).tolist() == [1, 18, 1]
    assert design.n_repeated == repeated(design) == 0
    assert design.notes == (
        "2 groups of 4 items: all 1 distinct tuples of 4 are used; 2 per item would be 8",
    )
    repeats = make_tuples(names(17), 4, groups=groups, allow_repeats=True)
    assert (np.bincount(repeats.group_of_tuple).tolist(), repeats.notes) == ([8, 18, 8], ())


@pytest.mark.parametrize("n", [7, 8, 11, 18])
def test_tuples_are_distinct_under_constraints_as_well(n):
    for seed in range(5):
        rules = {"keep_apart": [["item 0", "item 1"]], "keep_together": [["item 2", "item 3"]]}
        design = make_tuples(names(n), 3, seed=seed, **rules)
        appearances, pairs, _ = counted(design)
        assert design.n_repeated == repeated(design) == 0
        assert (pairs[frozenset({0, 1})], pairs[frozenset({2, 3})] > 0) == (0, True)
        assert spread(appearances, range(n)) <= 1
    with pytest.raises(ValueError, match=r"under these constraints .* tuples of 3 repeat others"):
        make_tuples(
            names(6), 3, count=20, keep_apart=[["item 0", "item 1"]]
        )  # 16 of 20 keep them apart


def test_canonical_designs_count_the_tuples_that_repeat_by_chance():
    """The canonical scripts do not rule out repeats: fourteen of the 35 triples of seven items."""
    designs = [make_tuples(names(7), 3, seed=seed, compat="km") for seed in range(4)]
    assert any(design.n_repeated for design in designs)
    assert [design.n_repeated for design in designs] == [repeated(design) for design in designs]


def test_groups_have_designs_of_their_own():
    groups = [f"d{number // 5}" for number in range(60 * 5)]
    items = ["abcde"[number % 5] for number in range(60 * 5)]  # the same ids in every group
    design = make_tuples(items, 3, groups=groups)
    assert len(design) == 600
    orders = set()
    for group in range(60):
        rows = design.members[design.group_of_tuple == group] - 5 * group
        assert {frozenset(row) for row in rows.tolist()} == set(
            map(frozenset, combinations(range(5), 3))
        )
        orders.add(rows.tobytes())
    assert len(orders) > 50  # each group has a draw of its own


def test_groups_of_different_sizes():
    groups = ["a"] * 5 + ["b"] * 9 + ["c"] * 5
    design = make_tuples(names(19), 3, factor=2, groups=groups)
    assert np.bincount(design.group_of_tuple).tolist() == [10, 18, 10]
    appearances, _, _ = counted(design)
    assert set(appearances.values()) == {6}


GOLDEN = {
    (50, 4, 0): "c7962bf7f61b97f7",
    (50, 4, 1): "06124b0eb296b4ac",
    (3000, 5, 0): "3cb0bc48b4a5c5a3",
}


@pytest.mark.parametrize("case", GOLDEN)
def test_a_seed_makes_the_same_design_everywhere(case):
    n, k, seed = case
    members = make_tuples(names(n), k, seed=seed).members.astype("<i4")
    assert hashlib.sha256(members.tobytes()).hexdigest()[:16] == GOLDEN[case]


def slow_canonical(n, k, count, rng):
    """The canonical algorithm once more, from its description, with standard deviations."""
    best = None
    for _ in range(100):
        stock = list(rng.permutation(n))
        tuples = []
        while len(tuples) < count:
            row = []
            while len(row) < k and stock:
                row.append(stock.pop(0))
            if len(row) < k:
                stock = list(rng.permutation(n))
                while len(row) < k:
                    place = next(p for p, item in enumerate(stock) if item not in row)
                    row.append(stock.pop(place))
            tuples.append(row)
        pairs = Counter(frozenset(pair) for row in tuples for pair in combinations(row, 2))
        deviation = np.std([pairs[frozenset(pair)] for pair in combinations(range(n), 2)], ddof=1)
        if best is None or deviation < best[0] - 1e-12:
            best = deviation, tuples
    return best[1]


@pytest.mark.parametrize(("n", "k", "factor"), [(10, 4, 2), (11, 3, 1.5), (23, 5, 2)])
def test_compat_km_is_the_canonical_algorithm(n, k, factor):
    design = make_tuples(names(n), k, factor=factor, seed=7, compat="km")
    rng = np.random.Generator(np.random.PCG64(7))
    assert design.members.tolist() == slow_canonical(n, k, int(0.5 + factor * n), rng)


def test_items_are_kept_apart_and_together():
    apart = [["item 0", "item 1", "item 2"], ["item 3", "item 4"]]
    together = [["item 5", "item 6"], ["item 0", "item 7", "item 8"]]
    design = make_tuples(names(24), 4, keep_apart=apart, keep_together=together)
    appearances, pairs, positions = counted(design)
    for chosen in apart:
        numbers = [int(item.split()[1]) for item in chosen]
        assert not any(pairs[frozenset(pair)] for pair in combinations(numbers, 2))
    rows = [set(row) for row in design.members.tolist()]
    assert any({5, 6} <= row for row in rows)
    assert any({0, 7, 8} <= row for row in rows)
    assert spread(appearances, range(24)) <= 1
    assert all(spread(positions, [(item, place) for place in range(4)]) <= 1 for item in range(24))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 1}, "k is 1; it must be between 2 and 12"),
        ({"k": 13}, "k is 13; it must be between 2 and 12"),
        ({"factor": 0}, "factor is 0; it must be above 0"),
        ({"count": 0}, "count is 0; it must be 1 or more"),
        ({"factor": 0.01}, "factor 0.01 gives no tuple of 8 items"),
        ({"groups": ["a"] * 6 + ["b"] * 2}, "group 'b' has 2 items; tuples of 4 need 4 or more"),
        ({"groups": ["a"]}, "1 groups for 8 items"),
        ({"keep_apart": [names(3)]}, "3 items are to be kept apart; .* at most 2 can be"),
        ({"keep_apart": [["x", "y"]]}, "unknown item 'x'"),
        ({"keep_together": [names(5)]}, "a set of `keep_together` has 5 items; 2 to 4 are allowed"),
        (
            {"keep_together": [names(2)], "keep_apart": [names(2)]},
            "both in `keep_apart` and in `keep_together`",
        ),
        ({"compat": "km", "keep_apart": [names(2)]}, "compat='km' does not support constraints"),
        ({"compat": "other"}, "compat is 'other'; expected 'km'"),
    ],
)
def test_invalid_arguments_are_value_errors(options, message):
    with pytest.raises(ValueError, match=message):
        make_tuples(names(8), **({"k": 4} | options))


@pytest.mark.parametrize(
    "items", [["a", "b", "a", "c"], ["a", " a", "b", "c"], ["", "a", "b", "c"], []]
)
def test_items_must_be_unique(items):
    with pytest.raises(ValueError, match=r"repeated in its group|there are 0 items"):
        make_tuples(items, 2)


@pytest.mark.parametrize(("old", "new", "k"), [(40, 20, 4), (10, 1, 4), (12, 5, 5), (6, 3, 2)])
def test_an_extension_links_new_items_to_old_ones(old, new, k):
    design = make_tuples(names(old), k)
    fresh = [f"new {number}" for number in range(new)]
    both = extend_tuples(design, fresh)
    assert both.members[: len(design)].tolist() == design.members.tolist()
    assert both.ids[: len(design)].tolist() == design.ids.tolist()
    assert len(set(both.ids)) == len(both)
    added = both.members[len(design) :].tolist()
    for row in added:
        assert len(set(row)) == k
        assert any(item < old for item in row)
        assert any(item >= old for item in row)
    appearances = Counter(item for row in added for item in row)
    assert spread(appearances, range(old)) <= 1
    assert {appearances[old + number] for number in range(new)} <= {2 * k, 2 * k + 1}
    assert audit(both).components == 1


@pytest.mark.parametrize("old", [4, 5, 8])
@pytest.mark.parametrize("new", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_an_extension_repeats_no_tuple(old, new, k):
    design = make_tuples(names(old), k)
    for seed in range(3):
        both = extend_tuples(design, [f"new {n}" for n in range(new)], seed=seed)
        assert both.n_repeated == repeated(both) == 0
        appearances, _, _ = counted(both)
        assert spread(appearances, range(old, old + new)) <= 1


def test_an_extension_takes_all_distinct_tuples_where_there_are_fewer():
    design = make_tuples(names(3), 3)  # of 3 old items with 1 new: 3 tuples, where 2 per item are 6
    both = extend_tuples(design, ["new"])
    assert len(both) - len(design) == 3
    assert both.notes == (
        "1 new items beside 3 old ones: all 3 distinct tuples of 3 are used; there would be 6",
    )
    with pytest.raises(ValueError, match="3 distinct tuples exist, so 3 of 6 would repeat others"):
        extend_tuples(design, ["new"], factor=2)
    assert extend_tuples(design, ["new"], factor=2, allow_repeats=True).n_repeated >= 3


def test_an_extension_inside_groups():
    design = make_tuples(["a", "b", "c", "d"] * 2, 3, groups=["x"] * 4 + ["y"] * 4)
    both = extend_tuples(design, ["e", "e"], groups=["x", "y"])
    assert (both.group_of_item[both.members] == both.group_of_tuple[:, None]).all()
    with pytest.raises(ValueError, match="unknown group 'z'"):
        extend_tuples(design, ["e"], groups=["z"])
    with pytest.raises(ValueError, match="item 'a' is empty or already in the design"):
        extend_tuples(design, ["a"], groups=["x"])


def made(*rows):
    """A design as given, good or bad."""
    from bws.records import Tuples

    members = np.array(rows, np.int32)
    n = int(members.max()) + 1
    return Tuples(
        np.array([f"t{number}" for number in range(len(rows))], dtype=object),
        np.array(names(n), dtype=object),
        np.zeros(n, np.int32),
        np.array([""], dtype=object),
        members,
    )


@given(st.lists(st.permutations(range(6)).map(lambda order: order[:3]), min_size=1, max_size=12))
@settings(deadline=None)
def test_the_audit_counts_what_is_there(rows):
    design = made(*rows)
    appearances, pairs, positions = counted(design)
    result = audit(design)
    n = len(design.items)
    assert (result.appearances_min, result.appearances_max) == (
        min(appearances[item] for item in range(n)), max(appearances.values()),
    )  # fmt: skip
    values = [pairs[frozenset(pair)] for pair in combinations(range(n), 2)]
    assert (result.pair_min, result.pair_max) == (min(values), max(values))
    assert result.pairs_met == sum(value > 0 for value in values)
    assert result.pairs_repeated == sum(value > 1 for value in values)
    sets = Counter(map(frozenset, rows))
    assert result.duplicate_tuples == len(rows) - len(sets)
    assert result.triples_repeated == sum(times > 1 for times in sets.values())
    assert result.position_spread == max(
        spread(positions, [(item, place) for place in range(3)]) for item in range(n)
    )
    linked = [set(row) for row in rows]
    for _ in rows:
        linked = [set().union(*(other for other in linked if other & row)) for row in linked]
    alone = sum(item not in appearances for item in range(n))
    assert result.components == len(set(map(frozenset, linked))) + alone


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        ([(0, 1, 2), (0, 1, 3), (0, 2, 3), (0, 1, 4)], "appearances are uneven: 1 to 4 per item"),
        (
            [(0, 1, 2), (2, 1, 0), (3, 4, 5), (0, 3, 5)],
            "1 tuples repeat another although unused tuples exist",
        ),
        ([(0, 1, 2), (3, 4, 5)], "some items are not comparable, not even indirectly"),
        ([(0, 1, 2), (0, 3, 4)], "positions are uneven: counts of an item differ by 2"),
        ([(0, 1, 3), (3, 0, 1)], "1 items are in no tuple and will have no score"),
    ],
)
def test_findings_say_what_is_wrong(rows, finding):
    assert any(finding in message for message in audit(made(*rows)).findings)


def test_a_good_design_has_no_findings():
    result = audit(make_tuples(names(100), 4))
    assert result.findings == ()
    assert "2 of 4 items" not in result.table()
    assert result.document()["pairs_repeated"] == 0
