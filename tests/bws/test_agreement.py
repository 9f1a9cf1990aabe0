"""Agreement against the krippendorff package, a slow program, and known answers."""

import itertools
import math
import re
from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from bws.chance_agreement import agreement
from bws.problems import InputError
from bws.records import Judgment, Judgments


def judgments_of(answers, k=3, groups=None) -> Judgments:
    """Judgments from one list of (best place, worst place) a tuple, each by another annotator."""
    return Judgments.from_records(
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


def slow_alpha(units) -> float:
    """alpha from every pair of answers, one at a time."""
    units = [unit for unit in units if len(unit) > 1]
    pooled = [answer for unit in units for answer in unit]
    disagreeing = sum(
        (x != y) / (len(unit) - 1) for unit in units for x, y in itertools.permutations(unit, 2)
    )
    at_random = sum(x != y for x, y in itertools.permutations(pooled, 2)) / (len(pooled) - 1)
    return 1 - disagreeing / at_random


@settings(deadline=None)
@given(any_answers())
def test_alpha_is_that_of_the_krippendorff_package(case):
    k, answers = case
    assume(any(len(unit) > 1 for unit in answers))
    result = values(whole(answers, k).alpha)
    for name, units in units_of(answers).items():
        if math.isnan(result[name]):
            assert len({answer for unit in units if len(unit) > 1 for answer in unit}) == 1
            continue
        counts = [np.bincount(unit, minlength=8 * 7) for unit in units]
        package = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
        assert result[name] == pytest.approx(package, abs=1e-9)
        assert result[name] == pytest.approx(slow_alpha(units), abs=1e-9)


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
    # Agreeing pairs: 2 of 6, and 6 of 6; D_o = 1 - (2/2 + 6/2) / 6 = 1/3.
    # Among the six answers 0, 0, 1, 2, 2, 2: 2 + 0 + 6 of 30 ordered pairs agree; D_e = 22/30.
    result = whole([[(0, 2), (0, 2), (1, 2)], [(2, 1), (2, 1), (2, 0)]])
    assert result.observed["best"].value == pytest.approx(2 / 3)
    assert result.alpha["best"].value == pytest.approx(1 - (1 / 3) / (22 / 30))
    assert (result.tuples, result.annotations) == (2, 6)


def test_joint_alpha_by_hand():
    # Answers (0, 2), (0, 2), (1, 2) and (2, 1), (2, 1), (2, 0): 2 of 6 ordered pairs agree in either tuple;
    # D_o = 1 - (2/2 + 2/2) / 6 = 2/3. Among all six, 2 + 2 of 30 ordered pairs agree; D_e = 26/30.
    result = whole([[(0, 2), (0, 2), (1, 2)], [(2, 1), (2, 1), (2, 0)]])
    assert result.observed["joint"].value == pytest.approx(1 / 3)
    assert result.alpha["joint"].value == pytest.approx(1 - (2 / 3) / (26 / 30))
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
    # Why answers are places: with the items as categories, guessing seems to be agreement of 1 / K.
    items = [[k * t + best for best, _ in unit] for t, unit in enumerate(answers)]
    assert slow_alpha(items[:60]) == pytest.approx(1 / k, abs=0.15)


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
    assert (result.tuples, result.annotations) == (3, 5)
    assert result.notes == ("1 of 3 tuples have one judgment and count in no measure",)


def test_single_judgments_only_give_no_number():
    result = whole([[(0, 1)], [(1, 2)]], intervals=True)
    for estimates in (result.alpha, result.observed, result.strong):
        assert all(math.isnan(value) for value in values(estimates).values())
    assert "no agreement: no tuple has two judgments" in result.notes


def test_answers_that_do_not_vary_give_no_alpha_but_a_reason():
    result = whole([[(0, 1), (0, 2)], [(0, 1), (0, 2)]])
    assert math.isnan(result.alpha["best"].value)
    assert result.observed["best"].value == 1.0
    assert not math.isnan(result.alpha["worst"].value)
    assert result.notes[0].startswith(
        "alpha (best) is undefined: all answers are at the same position"
    )


# Intervals ----------------------------------------------------------------------------------------


def alpha_of_rows(rows) -> float:
    """Alpha of (tuple, annotator, best place, worst place) rows of 3-tuples, by another program."""
    tuples = sorted({row[0] for row in rows})
    answers = [[row[2:] for row in rows if row[0] == t] for t in tuples]
    counts = [np.bincount(unit, minlength=3) for unit in units_of(answers)["both"]]
    return krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")


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


def test_alpha_that_needs_a_cluster_has_no_interval():
    result = whole([[(0, 1), (0, 2)], *[[(1, 0), (1, 0)]] * 4], intervals=True)
    assert not math.isnan(result.alpha["best"].value)
    assert math.isnan(result.alpha["best"].low)
    assert any(note.startswith("no interval of alpha (best") for note in result.notes)


def test_annotators_that_are_few_have_a_note():
    few = "fewer than 5 annotators, or judgments without annotator: the intervals do not generalise to other"
    for annotators in (4, 5):
        notes = whole(guesses(20, annotators, 3, sure=0.5), intervals=True).notes
        assert any(note.startswith(few) for note in notes) == (annotators < 5)


def test_no_intervals_unless_asked_for():
    result = whole(guesses(20, 4, 3, sure=0.5))
    assert result.document()["intervals"] == {"alpha": {}, "observed": {}, "strong": {}}
    assert result.notes == ()


# Parts, order, arguments --------------------------------------------------------------------------


@settings(deadline=None)
@given(any_answers(), st.randoms(use_true_random=False))
def test_order_of_rows_items_and_annotators_changes_nothing(case, draw):
    k, answers = case
    judgments = judgments_of(answers, k)
    rows = list(judgments.records())
    renamed = dict(zip("012345", draw.sample("012345", 6), strict=True))
    shuffled = [
        Judgment(row.items, row.best, row.worst, renamed[row.annotator[1:]], tuple_id=row.tuple_id)
        for row in draw.sample(rows, len(rows))
    ]
    before, after = (
        agreement(Judgments.from_records(r), intervals=True).groups[0].document()
        for r in (rows, shuffled)
    )
    assert str(before) == str(after)  # as text, since NaN is not NaN


@settings(deadline=None)
@given(any_answers(), st.randoms(use_true_random=False))
def test_the_order_inside_tuples_moves_only_the_expected_agreement(case, draw):
    k, answers = case
    orders = [draw.sample(range(k), k) for _ in answers]
    moved = [
        [(order[best], order[worst]) for best, worst in unit]
        for order, unit in zip(orders, answers, strict=True)
    ]
    before, after = whole(answers, k), whole(moved, k)
    assert str(values(before.observed)) == str(values(after.observed))
    assert str(values(before.strong)) == str(values(after.strong))


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
