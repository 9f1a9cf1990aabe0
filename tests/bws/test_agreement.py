"""Agreement against statsmodels, the krippendorff package, a slow program, and known answers."""

import itertools
import math
import random
import re
from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import t as student
from statsmodels.stats.inter_rater import fleiss_kappa

from bws.base.problems import InputError
from bws.chance_agreement import agreement
from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment, Judgments
from bws.simulation import simulate


def judgments_of(answers, k=3, groups=None) -> Judgments:
    """Judgments from one list of (best place, worst place) a tuple, each by another annotator."""
    return judgments_from_records(
        Judgment(
            tuple(f"t{t}i{place}" for place in range(k)),
            f"t{t}i{best}",
            f"t{t}i{worst}",
            annotator=f"w{w}",
            group=groups[t] if groups else "",
            tuple_id=f"t{t}",
        )
        for t, given_answers in enumerate(answers)
        for w, (best, worst) in enumerate(given_answers)
    )


def whole(answers, k=3, groups=None, **options):
    return agreement(judgments_of(answers, k, groups), **options).groups[0]


def values(estimates) -> dict[str, float]:
    return {name: estimate.value for name, estimate in estimates.items()}


def guesses(tuples: int, annotations: int, k: int, sure: float = 0.0, seed: int = 0):
    """Answers that are (0, 1), (1, 2), ... by tuple with probability `sure`, else guessed."""
    rng = np.random.default_rng(seed)
    return [
        [
            (t % k, (t + 1) % k)
            if rng.random() < sure
            else tuple(rng.choice(k, 2, replace=False).tolist())
            for _ in range(annotations)
        ]
        for t in range(tuples)
    ]


@st.composite
def any_answers(draw):
    k = draw(st.integers(2, 5))
    answer = st.permutations(range(k)).map(lambda order: tuple(order[:2]))
    return k, draw(st.lists(st.lists(answer, min_size=1, max_size=6), min_size=1, max_size=6))


# Oracles ------------------------------------------------------------------------------------------


def units_of(answers) -> dict[str, list[list[int]]]:
    best = [[b for b, _ in unit] for unit in answers]
    worst = [[w for _, w in unit] for unit in answers]
    number = {pair: n for n, pair in enumerate(itertools.permutations(range(8), 2))}
    joint = [[number[tuple(answer)] for answer in unit] for unit in answers]
    return {"best": best, "worst": worst, "both": best + worst, "joint": joint}


def equal_pairs(units) -> float:
    """The share of equal pairs of answers to one question; each unit weighs as many as it has answers."""
    units = [unit for unit in units if len(unit) > 1]
    agreeing = sum(
        (x == y) / (len(unit) - 1) for unit in units for x, y in itertools.permutations(unit, 2)
    )
    return agreeing / sum(map(len, units))


def slow_alpha(units, categories) -> float:
    """alpha from every pair of answers, and from every pair of answers that are possible."""
    possible = [x == y for x in range(categories) for y in range(categories)]
    return 1 - (1 - equal_pairs(units)) / (1 - sum(possible) / len(possible))


def slow_alpha_positions(units) -> float:
    """alpha from every pair of answers, one at a time."""
    pooled = [answer for unit in units if len(unit) > 1 for answer in unit]
    pairs = [x == y for x, y in itertools.permutations(pooled, 2)]
    return 1 - (1 - equal_pairs(units)) / (1 - sum(pairs) / len(pairs))


def n_categories(k) -> dict[str, int]:
    return {"best": k, "worst": k, "both": k, "joint": k * (k - 1)}


@settings(deadline=None)
@given(any_answers())
def test_alpha_is_that_of_every_pair_of_answers(case):
    k, answers = case
    assume(any(len(unit) > 1 for unit in answers))
    result = values(whole(answers, k).alpha)
    for name, units in units_of(answers).items():
        assert result[name] == pytest.approx(slow_alpha(units, n_categories(k)[name]), abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_alpha_is_the_free_marginal_kappa_of_statsmodels(k):
    # Randolph's kappa, of the same number of judgments of every tuple.
    answers = guesses(40, 5, k, sure=0.5)
    result = values(whole(answers, k).alpha)
    codes = {pair: n for n, pair in enumerate(itertools.permutations(range(k), 2))}
    coded = units_of(answers) | {"joint": [[codes[answer] for answer in unit] for unit in answers]}
    for name, units in coded.items():
        counts = np.array([np.bincount(unit, minlength=n_categories(k)[name]) for unit in units])
        assert result[name] == pytest.approx(fleiss_kappa(counts, method="randolph"), abs=1e-9)


@settings(deadline=None)
@given(any_answers())
def test_alpha_over_positions_is_that_of_the_krippendorff_package(case):
    k, answers = case
    assume(any(len(unit) > 1 for unit in answers))
    result = whole(answers, k).alpha_positions
    for name, units in units_of(answers).items():
        if math.isnan(result[name]):
            assert len({answer for unit in units if len(unit) > 1 for answer in unit}) == 1
            continue
        counts = [np.bincount(unit, minlength=8 * 7) for unit in units]
        package = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
        assert result[name] == pytest.approx(package, abs=1e-9)
        assert result[name] == pytest.approx(slow_alpha_positions(units), abs=1e-9)


def test_both_alphas_are_the_same_if_items_are_in_random_positions():
    # As in Table 1 of GiCCS: 60 dialogues of five candidates, all ten 3-tuples, five annotators.
    groups = [f"d{n // 5}" for n in range(300)]
    items = [f"u{n % 5}" for n in range(300)]
    tuples = make_tuples(items, 3, groups=groups, count=10, seed=1)
    truth = np.tile(np.linspace(-1, 1, 5), 60)
    judgments = simulate(tuples, truth, 5, noise=0.4, seed=2)
    assert (len(tuples), len(judgments)) == (600, 3000)
    result = agreement(judgments).groups[0]
    assert 0.4 < result.alpha["joint"].value < 0.9
    for name, value in values(result.alpha).items():
        assert result.alpha_positions[name] == pytest.approx(value, abs=0.003)
    assert not any("alpha_positions" in note for note in result.notes)


def test_both_alphas_differ_by_1_in_n_if_positions_are_balanced():
    # Every tuple six times, once in each order of its items, so that every position is chosen equally often:
    # D_e = 1 - (n / K - 1) / (n - 1) = (1 - 1 / K) n / (n - 1) among n answers.
    answers = guesses(20, 4, 3, sure=0.5)
    balanced = [
        [(order[best], order[worst]) for best, worst in unit]
        for order in itertools.permutations(range(3))
        for unit in answers
    ]
    result = whole(balanced)
    assert values(result.alpha) == pytest.approx(values(whole(answers).alpha))
    for name, value in values(result.alpha).items():
        n = 6 * 20 * 4 * (2 if name == "both" else 1)
        assert 1 - result.alpha_positions[name] == pytest.approx((1 - value) * (n - 1) / n)


@settings(deadline=None)
@given(any_answers(), st.sampled_from([0.5, 0.6, 0.8, 1.0]))
def test_strong_agreement_is_counted_tuple_by_tuple(case, share):
    k, answers = case
    result = whole(answers, k, strong=share)
    units = units_of([unit for unit in answers if len(unit) > 1])
    for name in ("best", "worst"):
        strong = [
            max(map(unit.count, unit)) >= math.ceil(round(share * len(unit), 6))
            for unit in units[name]
        ]
        expected = 100 * sum(strong) / len(strong) if strong else math.nan
        assert result.strong[name].value == pytest.approx(expected, nan_ok=True)


# Known answers ------------------------------------------------------------------------------------


def test_an_example_by_hand():
    # Best: tuple 1 has 0, 0, 1 and tuple 2 has 2, 2, 2.
    # Agreeing pairs: 2 of 6, and 6 of 6; D_o = 1 - (2/2 + 6/2) / 6 = 1/3. D_e = 2/3 of three items.
    # Among the six answers 0, 0, 1, 2, 2, 2: 2 + 0 + 6 of 30 ordered pairs agree; D_e = 22/30.
    result = whole([[(0, 2), (0, 2), (1, 2)], [(2, 1), (2, 1), (2, 0)]])
    assert result.observed["best"].value == pytest.approx(2 / 3)
    assert result.alpha["best"].value == pytest.approx(1 - (1 / 3) / (2 / 3))
    assert result.alpha_positions["best"] == pytest.approx(1 - (1 / 3) / (22 / 30))
    assert (result.tuples, result.annotations) == (2, 6)


def test_joint_alpha_by_hand():
    # Answers (0, 2), (0, 2), (1, 2) and (2, 1), (2, 1), (2, 0): 2 of 6 ordered pairs agree in either tuple;
    # D_o = 1 - (2/2 + 2/2) / 6 = 2/3. D_e = 5/6 of six possible pairs. Among all six, 2 + 2 of 30 ordered
    # pairs agree; D_e = 26/30.
    result = whole([[(0, 2), (0, 2), (1, 2)], [(2, 1), (2, 1), (2, 0)]])
    assert result.observed["joint"].value == pytest.approx(1 / 3)
    assert result.alpha["joint"].value == pytest.approx(1 - (2 / 3) / (5 / 6))
    assert result.alpha_positions["joint"] == pytest.approx(1 - (2 / 3) / (26 / 30))
    assert result.observed["worst"].value == pytest.approx(2 / 3)  # agreeing on one is not enough


def test_unanimous_annotators_have_alpha_1():
    result = whole([[(0, 1)] * 4, [(1, 2)] * 3, [(2, 0)] * 2])
    assert values(result.alpha) == dict.fromkeys(["both", "best", "worst", "joint"], 1.0)
    assert values(result.strong) == {"best": 100.0, "worst": 100.0}


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_guessing_annotators_have_alpha_near_0(k):
    answers = guesses(3000, 4, k)
    result = values(whole(answers, k).alpha)
    # 3000 * 6 pairs: the standard error of the observed agreement is below 0.5 / sqrt(18000) = 0.004.
    assert all(abs(alpha) < 0.02 for alpha in result.values())
    # Why D_e is not that of all items: among these, guessing seems to be agreement of 1 / K.
    items = [[k * t + best for best, _ in unit] for t, unit in enumerate(answers)]
    assert slow_alpha_positions(items[:60]) == pytest.approx(1 / k, abs=0.15)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_mean_alpha_of_all_pairs_of_answers_is_0(k):
    possible = list(itertools.permutations(range(k), 2))
    results = [
        values(whole([[first, second]], k).alpha) for first in possible for second in possible
    ]
    for name in ("both", "best", "worst", "joint"):
        assert np.mean([result[name] for result in results]) == pytest.approx(0, abs=1e-12)


def test_opposite_annotators_have_alpha_below_0():
    assert whole([[(0, 1), (1, 0)]] * 5, k=2).alpha["best"].value < -0.5


@pytest.mark.parametrize(
    ("agreeing", "of", "share", "strong"),
    [
        (4, 5, 0.8, True), (3, 5, 0.8, False), (4, 4, 0.8, True), (3, 4, 0.8, False),
        (2, 2, 0.8, True), (3, 5, 0.6, True), (7, 10, 0.7, True), (6, 10, 0.7, False),
    ],
)  # fmt: skip
def test_at_least_four_of_five_is_strong(agreeing, of, share, strong):
    result = whole([[(0, 1)] * agreeing + [(1, 2)] * (of - agreeing)], strong=share)
    assert result.strong["best"].value == (100.0 if strong else 0.0)


# What is not defined ------------------------------------------------------------------------------


def test_single_judgments_count_nowhere_and_are_counted():
    paired = [[(0, 1), (0, 2)], [(1, 0), (2, 0)]]
    result, without = whole([*paired, [(0, 1)]]), whole(paired)
    assert values(result.alpha) == values(without.alpha)
    assert values(result.strong) == values(without.strong)
    assert result.alpha_positions == without.alpha_positions
    assert (result.tuples, result.annotations) == (3, 5)
    assert result.notes[0] == "1 of 3 tuples have one judgment and count in no measure"
    assert result.notes[1:] == without.notes


def test_single_judgments_only_give_no_number():
    result = whole([[(0, 1)], [(1, 2)]], intervals=True)
    for estimates in (result.alpha, result.observed, result.strong):
        assert all(math.isnan(value) for value in values(estimates).values())
    assert all(map(math.isnan, result.alpha_positions.values()))
    assert "no agreement: no tuple has two judgments" in result.notes


def test_answers_at_one_position_have_no_alpha_over_positions_and_a_note():
    result = whole([[(0, 1), (0, 2)], [(0, 1), (0, 2)]])
    assert result.alpha["best"].value == result.observed["best"].value == 1.0
    assert math.isnan(result.alpha_positions["best"])
    assert not math.isnan(result.alpha_positions["worst"])
    assert "with positions in the row as answers, alpha is both" in result.notes[0]
    assert "best nan" in result.notes[0]


# Intervals ----------------------------------------------------------------------------------------


def alpha_of_rows(rows) -> float:
    """Alpha of (tuple, annotator, best place, worst place) rows of 3-tuples, by another program."""
    tuples = sorted({row[0] for row in rows})
    answers = [[row[2:] for row in rows if row[0] == t] for t in tuples]
    return slow_alpha(units_of(answers)["both"], 3)


def slow_variance(rows, key) -> tuple[float, int]:
    """The jackknife variance, and the number of clusters."""
    clusters = sorted({key(row) for row in rows})
    values = [alpha_of_rows([row for row in rows if key(row) != cluster]) for cluster in clusters]
    c = len(clusters)
    return (c - 1) / c * sum((value - np.mean(values)) ** 2 for value in values), c


@pytest.mark.parametrize("annotators", [4, 6])
def test_intervals_are_those_of_a_slow_jackknife(annotators):
    answers = guesses(20, annotators, 3, sure=0.7)
    result = whole(answers, intervals=True).alpha["both"]
    rows = [(t, w, *answer) for t, given in enumerate(answers) for w, answer in enumerate(given)]
    tuples, n_tuples = slow_variance(rows, lambda row: row[0])
    variance, df = tuples, n_tuples - 1
    if annotators >= 5:
        people, n_people = slow_variance(rows, lambda row: row[1])
        cells, _ = slow_variance(rows, lambda row: row[:2])
        between = max(tuples - cells, 0)
        variance = people + between
        df = variance**2 / (people**2 / (n_people - 1) + between**2 / (n_tuples - 1))
    reach = student.ppf(0.975, df) * math.sqrt(variance)
    assert (result.low, result.high) == pytest.approx((result.value - reach, result.value + reach))


def test_annotators_count():
    # Four annotators always agree, two always answer otherwise: what six others would do is uncertain.
    answers = [[(0, 1)] * 4 + [(1, 0)] * 2, [(1, 2)] * 4 + [(2, 1)] * 2] * 30
    judgments = replace(judgments_of(answers), allow_copies=True)
    result = agreement(judgments, intervals=True).groups[0].alpha["both"]
    assert result.high - result.low > 0.5


def test_groups_are_left_out_whole():
    # Ten dialogues of twenty tuples; in half of them all agree, in the others all guess. Leaving out
    # tuples overlooks that the tuples of a dialogue are alike.
    answers = [*guesses(100, 4, 3, sure=1.0), *guesses(100, 4, 3)]
    groups = [f"d{t // 20}" for t in range(200)]
    by_tuple = whole(answers, intervals=True).alpha["both"]
    by_group = whole(answers, groups=groups, intervals=True).alpha["both"]
    assert by_group.value == by_tuple.value
    assert by_group.high - by_group.low > 2 * (by_tuple.high - by_tuple.low)


def test_one_group_has_no_interval_but_a_reason():
    answers = guesses(20, 4, 3, sure=0.5)
    judgments = judgments_of(answers, groups=["d1"] * 15 + ["d2"] * 5)
    dialogue = np.array(["one"] * 15 + ["two"] * 5, dtype=object)
    part = agreement(judgments, intervals=True, by={"dialogue": dialogue}).groups[1]
    assert math.isnan(part.alpha["both"].low)
    assert part.document()["intervals"]["alpha"] == {}
    assert part.notes[0] == "1 groups: no interval, which needs 5"


@pytest.mark.parametrize(("tuples", "shown"), [(4, r"\[–\]"), (5, r"\[-?\d")])
def test_fewer_than_five_tuples_have_no_interval(tuples, shown):
    result = agreement(judgments_of(guesses(tuples, 4, 3, sure=0.5)), intervals=True)
    assert math.isnan(result.groups[0].strong["best"].low) == (tuples < 5)
    assert re.search(shown, result.table())
    note = "4 tuples: no interval, which needs 5"
    assert (note in result.groups[0].notes) == (tuples < 5)


def test_agreement_that_needs_a_cluster_has_no_interval():
    # One annotator judged every tuple, each with another of five: without that annotator there are no pairs.
    rows = [
        Judgment(("a", "b", f"c{t}"), best, "a", annotator=annotator)
        for t in range(20)
        for annotator, best in (("w", "b"), (f"w{t % 5}", ("b", f"c{t}")[t % 2]))
    ]
    result = agreement(judgments_from_records(rows), intervals=True).groups[0]
    for estimates in (result.alpha, result.observed, result.strong):
        assert not math.isnan(estimates["best"].value)
        assert math.isnan(estimates["best"].low)
    assert "no intervals: no tuple has two judgments without one of the clusters" in result.notes


def test_intervals_of_alpha_are_those_of_observed_agreement_corrected_for_chance():
    result = whole(guesses(20, 6, 4, sure=0.5), 4, intervals=True)
    for name, chance in {"best": 1 / 4, "both": 1 / 4, "joint": 1 / 12}.items():
        observed, alpha = result.observed[name], result.alpha[name]
        assert (alpha.value, alpha.low, alpha.high) == pytest.approx(
            [(x - chance) / (1 - chance) for x in (observed.value, observed.low, observed.high)]
        )


def test_annotators_that_are_few_have_a_note():
    few = "fewer than 5 annotators, or judgments without annotator: the intervals do not generalise to other"
    for annotators in (4, 5):
        notes = whole(guesses(20, annotators, 3, sure=0.5), intervals=True).notes
        assert any(note.startswith(few) for note in notes) == (annotators < 5)


def test_no_intervals_unless_asked_for():
    result = whole(guesses(20, 4, 3, sure=0.5))
    assert result.document()["intervals"] == {"alpha": {}, "observed": {}, "strong": {}}
    assert not any("interval" in note for note in result.notes)


# Parts, order, arguments --------------------------------------------------------------------------


def without_positions(result) -> str:
    """The document without what depends on the order of the items in a row; as text, since NaN is not NaN."""
    document = result.groups[0].document()
    del document["alpha_positions"]
    document["notes"] = [note for note in document["notes"] if "alpha_positions" not in note]
    return str(document)


@settings(deadline=None)
@given(any_answers(), st.builds(random.Random, st.integers(0, 2**32)))
def test_order_of_rows_and_of_items_and_names_change_nothing(case, draw):
    k, answers = case
    rows = list(judgments_of(answers, k).records())
    people, items, ids = (
        dict(zip(names, draw.sample([f"{name}x" for name in names], len(names)), strict=True))
        for names in (
            sorted({row.annotator for row in rows}),
            sorted({item for row in rows for item in row.items}),
            sorted({row.tuple_id for row in rows}),
        )
    )
    changed = [
        Judgment(
            tuple(items[item] for item in draw.sample(row.items, k)),
            items[row.best],
            items[row.worst],
            people[row.annotator],
            tuple_id=ids[row.tuple_id],
        )
        for row in draw.sample(rows, len(rows))
    ]
    before, after = (
        without_positions(agreement(judgments_from_records(r), intervals=True))
        for r in (rows, changed)
    )
    assert before == after


def test_the_best_item_first_changes_only_alpha_over_positions():
    rows = list(judgments_of(guesses(100, 3, 3, sure=0.3)).records())
    ordered = []
    for row in rows:
        most = (
            f"{row.tuple_id}i{int(row.tuple_id[1:]) % 3}"  # the item that annotators choose if sure
        )
        items = (most, *(item for item in row.items if item != most))
        ordered.append(replace(row, items=items))
    before, after = (agreement(judgments_from_records(r)) for r in (rows, ordered))
    assert without_positions(before) == without_positions(after)
    whole_group = after.groups[0]
    assert whole_group.alpha_positions["best"] < whole_group.alpha["best"].value - 0.05
    note = next(note for note in whole_group.notes if "alpha_positions" in note)
    assert f"best {whole_group.alpha_positions['best']:.3f}" in note
    assert not any("alpha_positions" in note for note in before.groups[0].notes)


def test_swapping_best_and_worst_swaps_their_numbers():
    answers = guesses(30, 5, 4, sure=0.5)
    result = whole(answers, 4)
    swapped = whole([[(w, b) for b, w in unit] for unit in answers], 4)
    assert result.alpha["best"] == swapped.alpha["worst"]
    assert result.strong["worst"] == swapped.strong["best"]
    assert result.alpha["both"].value == pytest.approx(swapped.alpha["both"].value, abs=1e-12)


def test_parts_come_sorted_after_the_whole_and_are_what_they_would_be_alone():
    answers = guesses(30, 5, 3, sure=0.5)
    turns = np.array(["5", "3", "5"] * 10, dtype=object)
    result = agreement(judgments_of(answers), by={"turns": turns}).groups
    assert [dict(group.by) for group in result] == [{}, {"turns": "3"}, {"turns": "5"}]
    assert [group.tuples for group in result] == [30, 10, 20]
    assert result[1].alpha == whole(answers[1::3]).alpha


def test_the_document_is_the_contract():
    result = agreement(judgments_of(guesses(30, 5, 3, sure=0.5)), intervals=True)
    document = result.document()
    group = document["groups"][0]
    assert group.keys() >= {"by", "tuples", "annotations", "alpha", "strong"}
    assert group["alpha"].keys() == {"both", "best", "worst", "joint"}
    assert group["strong"].keys() == {"best", "worst"}
    assert group["alpha_positions"].keys() == group["alpha"].keys()
    assert group["intervals"]["alpha"]["both"].keys() == {"low", "high"}
    assert document["signature"]["interval"] == "jackknife"
    assert "[" in result.table()


def test_wrong_arguments():
    judgments = judgments_of([[(0, 1), (0, 1)]])
    with pytest.raises(ValueError, match="strong is 4; expected a share"):
        agreement(judgments, strong=4)
    with pytest.raises(InputError, match="no judgments"):
        agreement(judgments.select(np.zeros(2, dtype=bool)))


def test_pairs_are_counted_in_tuples_of_any_size():
    # A tuple with n answers weighs n: (2 of 2 agree) * 2 and (0 of 3) * 3 give 2 / 5.
    result = whole([[(0, 1), (0, 1)], [(0, 1), (1, 2), (2, 0)]])
    assert result.observed["best"].value == pytest.approx(2 / 5)
