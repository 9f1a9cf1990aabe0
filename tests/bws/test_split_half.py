"""Split-half reliability against slow programs, known answers, and the Hindi judgments of SemRel-2024."""

import ast
import csv
import itertools
import math
import os
import random
import statistics
import unicodedata
from collections import defaultdict
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.base.problems import InputError
from bws.components import components
from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment
from bws.scoring import score
from bws.simulation import simulate
from bws.split_half import (
    JudgmentRounds,
    reliability,
    run_trials,
    spearman_brown,
    split_by_annotation,
    split_by_annotator,
    split_by_tuple,
)

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[3] / "shared"))
HINDI = SHARED / "data" / "semrel2024" / "hi_dev.csv"


def simulated(
    n_items: int, n_tuples: int, annotations: int, noise: float, seed: int = 0
) -> list[Judgment]:
    """Annotators w0, w1, ... who each judge every tuple of 4 items by noisy true scores."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    tuples: dict[frozenset[int], np.ndarray] = {}
    while len(tuples) < n_tuples:
        members = rng.choice(n_items, 4, replace=False)
        tuples[frozenset(members.tolist())] = members
    rows = []
    for members in tuples.values():
        for w in range(annotations):
            order = members[np.argsort(truth[members] + noise * rng.normal(size=4))]
            ids = tuple(f"i{i}" for i in members)
            rows.append(Judgment(ids, f"i{order[-1]}", f"i{order[0]}", f"w{w}"))
    return rows


def whole(rows, split="annotation", **options):
    return reliability(judgments_from_records(rows), split=split, **options).groups[0]


def deck_of(rows) -> JudgmentRounds:
    return JudgmentRounds.from_judgments(judgments_from_records(rows).canonical)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


# A slow program, written from the definition ------------------------------------------------------


def slow_scores(rows) -> dict[str, float]:
    seen, best, worst = defaultdict(int), defaultdict(int), defaultdict(int)
    for row in rows:
        for item in row.items:
            seen[item] += 1
        best[row.best] += 1
        worst[row.worst] += 1
    return {item: (best[item] - worst[item]) / n for item, n in seen.items()}


def slow_correlations(first, second, missing="drop") -> tuple[float, float]:
    one, two = slow_scores(first), slow_scores(second)
    items = sorted(one.keys() & two.keys() if missing == "drop" else one.keys() | two.keys())
    x, y = ([scores.get(item, 0.0) for item in items] for scores in (one, two))
    return statistics.correlation(x, y), scipy.stats.spearmanr(x, y).statistic


def slow_reliability(rows, trials: int, odd: str, seed: int) -> np.ndarray:
    """(trials, 2) correlations: shuffle each tuple's annotations, deal them to two halves."""
    draw = random.Random(seed)
    tuples = defaultdict(list)
    for row in rows:
        tuples[frozenset(row.items)].append(row)
    result = []
    for _ in range(trials):
        halves = [], []
        for annotations in tuples.values():
            draw.shuffle(annotations)
            more = len(annotations) % 2 if odd == "coin" and draw.random() < 0.5 else 0
            cut = len(annotations) // 2 + more
            halves[0].extend(annotations[:cut])
            halves[1].extend(annotations[cut:])
        result.append(slow_correlations(*halves))
    return np.array(result)


@pytest.mark.parametrize(
    ("annotations", "odd"), [(4, "coin"), (5, "coin"), (5, "second"), (3, "coin")]
)
def test_the_slow_program_finds_the_same(annotations, odd):
    rows = simulated(30, 60, annotations, noise=1.0)
    slow = slow_reliability(rows, 300, odd, seed=1)
    result = whole(rows, trials=300, odd=odd)
    # Two means of 300 independent trials each: they differ by less than 4 standard errors of the
    # difference, and the standard deviations by less than a fifth.
    for coefficient, values in ((result.pearson, slow[:, 0]), (result.spearman, slow[:, 1])):
        allowed = 4 * values.std() * math.sqrt(2 / 300)
        assert coefficient.mean == pytest.approx(values.mean(), abs=allowed)
        assert coefficient.sd == pytest.approx(values.std(), rel=0.2)


def test_each_trial_is_what_the_definition_says_of_its_halves():
    rows = simulated(20, 40, 5, noise=1.0)
    answers = judgments_from_records(rows).canonical
    deck = JudgmentRounds.from_judgments(answers)
    result = run_trials(deck, partial(split_by_annotation, odd="coin"), 10, "drop", seed=7)
    rng = generator(7)
    for trial in range(10):
        halves = [
            [
                Judgment(
                    tuple(answers.items[i] for i in deck.members[deck.tuple_of[j]]),
                    answers.items[deck.best[j]],
                    answers.items[deck.worst[j]],
                )
                for j in np.flatnonzero(half)
            ]
            for half in split_by_annotation(deck, rng, "coin")
        ]
        pearson, spearman = slow_correlations(*halves)
        assert result.pearson[trial] == pytest.approx(pearson, abs=1e-12)
        assert result.spearman[trial] == pytest.approx(spearman, abs=1e-12)


def test_mean_over_all_splits_of_a_small_example():
    rows = [
        Judgment(items, best, worst)
        for items, best, worst in [
            (("a", "b", "c"), "a", "c"), (("a", "b", "c"), "b", "c"),
            (("b", "c", "d"), "b", "d"), (("b", "c", "d"), "c", "b"),
            (("a", "c", "d"), "a", "d"), (("a", "c", "d"), "a", "c"),
        ]
    ]  # fmt: skip
    every = [
        slow_correlations(first, [row for row in rows if row not in first])
        for first in (list(chosen) for chosen in itertools.product(rows[:2], rows[2:4], rows[4:]))
    ]
    result = whole(rows, trials=4000)
    assert result.pearson.mean == pytest.approx(np.mean([r for r, _ in every]), abs=0.02)
    assert result.spearman.mean == pytest.approx(np.mean([r for _, r in every]), abs=0.02)


# Halves -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("drawn", "kinds"), [(None, 10), (3, 30), (2, 20)])
def test_every_way_to_split_is_as_likely(drawn, kinds):
    # 5 annotations, 2 against 3: 10 ways. 3 of 5, 1 against 2: 5 * C(4, 2) = 30. 2 of 5: 5 * 4 = 20.
    deck = deck_of(simulated(4, 1, 5, noise=3.0))
    rng, seen = generator(), defaultdict(int)
    for _ in range(6000):
        seen[
            b"".join(half.tobytes() for half in split_by_annotation(deck, rng, "second", drawn))
        ] += 1
    assert len(seen) == kinds
    assert scipy.stats.chisquare(list(seen.values())).pvalue > 0.001


def test_five_go_two_against_three_with_second_and_by_coin_either_way():
    deck = deck_of(simulated(30, 200, 5, noise=1.0))
    sizes = {
        odd: np.bincount(deck.tuple_of[split_by_annotation(deck, generator(), odd)[0]])
        for odd in ("second", "coin")
    }
    assert set(sizes["second"]) == {2}
    assert set(sizes["coin"]) == {2, 3}
    assert sizes["coin"].mean() == pytest.approx(2.5, abs=0.15)  # 4 * 0.5 / sqrt(200) = 0.14


def test_the_halves_share_nothing_and_leave_nothing():
    rows = [row for n, row in enumerate(simulated(30, 40, 4, noise=1.0)) if n % 7]  # 4 or 3 each
    deck = deck_of(rows)
    first, second = split_by_annotation(deck, generator(), "coin")
    assert not (first & second).any()
    assert (first | second).all()


def test_annotators_go_to_one_half_whole():
    rows = simulated(30, 40, 7, noise=1.0)
    deck = deck_of([*rows, Judgment(("i0", "i1", "i2", "i3"), "i0", "i1")])  # by nobody
    first, second = split_by_annotator(deck, generator(), "second")
    one, two = (set(deck.annotator_of[half].tolist()) for half in (first, second))
    assert (len(one), len(two)) == (3, 4)
    assert not one & two
    assert -1 not in one | two


@pytest.mark.parametrize("factor", [1, 2, 10])
def test_tuples_go_to_one_half_and_items_to_both(factor):
    design = make_tuples([f"i{n}" for n in range(60)], 4, factor=factor)
    answers = simulate(design, np.linspace(-1, 1, 60), annotators=3).canonical
    deck, rng, worst = JudgmentRounds.from_judgments(answers), generator(), []
    lacking = []
    for _ in range(30):
        first, second = split_by_tuple(deck, rng, "coin")
        assert (first ^ second).all()
        assert not set(deck.tuple_of[first]) & set(deck.tuple_of[second])
        shown = np.bincount(deck.members[np.unique(deck.tuple_of[first])].ravel(), minlength=60)
        worst.append(np.abs(shown - 2 * factor).mean())  # an item is in 4 * factor tuples
        lacking.append(np.count_nonzero((shown == 0) | (shown == 4 * factor)))
    assert np.mean(lacking) < 0.3  # of 60
    # halves at random differ by sqrt(4 * factor) / 2 * sqrt(2 / pi) from half of an item's tuples
    assert np.mean(worst) < 0.6 * math.sqrt(4 * factor) / 2 * math.sqrt(2 / math.pi)


def test_the_second_half_of_the_tuples_has_more_where_that_is_chosen():
    deck = deck_of(simulated(20, 41, 3, noise=1.0))
    for _ in range(10):
        first, second = split_by_tuple(deck, generator(), "second")
        assert np.count_nonzero(first) < np.count_nonzero(second)


# Splits side by side ------------------------------------------------------------------------------


def scores_of(judgments):
    scores = score(judgments)
    return dict(zip(scores.items, scores.score, strict=True))


def test_halves_of_tuples_have_the_reliability_that_another_design_finds():
    items, by_split, actual = [f"i{n}" for n in range(150)], [], []
    for seed in range(12):
        truth = np.random.default_rng(seed).normal(size=150)
        studies = [
            simulate(design, truth[[int(item[1:]) for item in design.items]], 4, noise=0.4, seed=n)
            for n in (seed, 100 + seed)
            for design in [make_tuples(items, 4, factor=2, seed=n)]
        ]
        one, two = map(scores_of, studies)
        actual.append(statistics.correlation(*([each[i] for i in items] for each in (one, two))))
        result = reliability(studies[0], trials=10)
        by_split.append(
            [
                group.pearson.spearman_brown
                for group in (result.groups[0], result.splits["tuple"][0])
            ]
        )
    annotation, by_tuples = np.mean(by_split, axis=0)
    # the standard error of the mean of twelve is about .004
    assert by_tuples == pytest.approx(np.mean(actual), abs=0.015)
    assert annotation > np.mean(actual) + 0.03


def test_each_split_that_asks_something_is_in_the_table():
    items = [f"i{n}" for n in range(30)]
    groups = [f"g{n // 5}" for n in range(30)]
    complete = make_tuples(items, 3, groups=groups, count=10)
    partial_design = make_tuples(items, 3, groups=groups, count=5)
    truth = np.linspace(-1, 1, 30)
    result = reliability(simulate(complete, truth, 4), trials=5)
    assert list(result.splits) == ["annotator"]
    result = reliability(simulate(partial_design, truth, 4), trials=5)
    assert list(result.splits) == ["tuple", "annotator"]
    assert [group.by for group in result.splits["tuple"]] == [{}]
    for split in ("annotation", "tuple", "annotator"):
        alone = reliability(simulate(partial_design, truth, 4), trials=5, split=split)
        group = alone.groups[0]
        every = result.groups if split == "annotation" else result.splits[split]
        assert str(group.document()) == str(every[0].document())
        assert alone.splits == {}
        assert f"all  {split}" in result.table()
        assert f"\n{split}: reproducibility with other" in result.table()
        assert f"\n{split}: reproducibility with other" in alone.table()
        assert alone.table().count("reproducibility with other") == 1
    document = result.document()
    assert document["signature"]["split"] == "annotation"
    assert document["splits"].keys() == {"tuple", "annotator"}
    assert document["splits"]["tuple"][0].keys() == document["groups"][0].keys()


def test_no_split_by_annotators_who_are_unknown_or_judge_too_little():
    rows = simulated(20, 40, 4, noise=1.0)
    unknown = [Judgment(row.items, row.best, row.worst) for row in rows]
    assert list(reliability(judgments_from_records(unknown), trials=2).splits) == ["tuple"]
    # every annotator judges other items, so that no item is in both halves
    own = [
        Judgment(tuple(f"{who}{n}" for n in items), f"{who}{items[0]}", f"{who}{items[2]}", who)
        for who in ("v", "w")
        for items in itertools.combinations("abcdefg", 3)
    ]
    result = reliability(judgments_from_records(own), trials=3)
    assert "annotator" not in result.splits
    assert result.notes == (
        "no split by annotator: both halves score only 0.0 of 14 items on average",
    )
    assert result.notes[0] in result.table()


def test_numbers_of_a_seed_stay():
    rows = simulated(20, 40, 5, noise=1.0)
    result = whole(rows, trials=10, seed=3)
    assert result.pearson.mean == pytest.approx(0.8548514011607059, abs=1e-12)
    result = whole(rows, split="annotator", trials=10, seed=3)
    assert result.pearson.mean == pytest.approx(0.8544118953176376, abs=1e-12)


# Known answers ------------------------------------------------------------------------------------


def test_annotators_who_agree_are_reliable():
    judgments = judgments_from_records(simulated(20, 40, 4, noise=0.0))
    result = reliability(replace(judgments, allow_copies=True), trials=20).groups[0]
    for coefficient in (result.pearson, result.spearman):
        assert coefficient.mean == pytest.approx(1.0)
        assert coefficient.sd == pytest.approx(0.0, abs=1e-12)
        assert coefficient.spearman_brown == pytest.approx(1.0)
    assert result.notes == ()


def test_guessing_is_not_reliable():
    assert abs(whole(simulated(400, 800, 4, noise=1e6), trials=20).spearman.mean) < 0.1


def test_spearman_brown_is_of_the_mean():
    result = whole(simulated(30, 60, 4, noise=1.0))
    document = result.document()
    for name in ("pearson", "spearman"):
        r = document[name]["mean"]
        assert document["spearman_brown"][name] == pytest.approx(2 * r / (1 + r))
    assert math.isnan(spearman_brown(-0.2))


def test_spearman_brown_foretells_twice_the_annotations():
    rows = simulated(200, 400, 8, noise=1.0)
    four = [row for row in rows if row.annotator in {"w0", "w1", "w2", "w3"}]
    # Halves of 4 estimate what halves of 8 give: r(8) = 2 r(4) / (1 + r(4)).
    assert whole(rows).pearson.mean == pytest.approx(whole(four).pearson.spearman_brown, abs=0.02)


def hindi_records():
    if not HINDI.is_file():
        pytest.skip(f"{HINDI} is not there; set GICCS_SHARED to the folder with data/semrel2024")
    with HINDI.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    records = []
    for row in rows:
        items = tuple(
            " / ".join(
                " ".join(unicodedata.normalize("NFC", s).split())
                for s in ast.literal_eval(row[f"pair_{p}"])
            )
            for p in range(1, 5)
        )
        best, worst = (items[int(row[name]) - 1] for name in ("Most_Related", "Least_Related"))
        records.append(Judgment(items, best, worst))
    return records


def test_hindi_judgments_have_the_known_reliability():
    result = whole(hindi_records())
    assert (result.items, result.tuples, result.annotations) == (300, 600, 2400)
    assert result.missing_items == 0
    assert result.spearman.mean == pytest.approx(0.954, abs=0.005)
    assert result.pearson.mean == pytest.approx(0.959, abs=0.005)
    assert result.pearson.spearman_brown == pytest.approx(0.979, abs=0.003)


def test_hindi_judgments_of_other_tuples_agree_less():
    answers = judgments_from_records(hindi_records()).canonical

    def unbalanced(deck, rng):
        in_first = rng.random(len(deck.sizes)) < 0.5
        return in_first[deck.tuple_of], ~in_first[deck.tuple_of]

    # halves of the tuples at random, as an independent program makes them
    known = run_trials(JudgmentRounds.from_judgments(answers), unbalanced, 100, "zero", 0)
    assert known.pearson.mean() == pytest.approx(0.845, abs=0.01)
    # balanced halves judge each item as often, as Spearman-Brown assumes
    result = whole(hindi_records(), split="tuple")
    assert result.missing_items == 0
    assert result.pearson.mean == pytest.approx(0.870, abs=0.005)
    assert result.pearson.spearman_brown == pytest.approx(
        components(answers).reliability, abs=0.005
    )


# What is missing, and what is not defined ---------------------------------------------------------

TWO_ANNOTATORS = [
    Judgment(("a", "b", "c"), "a", "c", "w1"),
    Judgment(("b", "c", "d"), "b", "d", "w1"),
    Judgment(("b", "c", "d"), "b", "c", "w2"),
    Judgment(("c", "d", "e"), "e", "d", "w2"),
]
# Scores from w1: a 1, b 1/2, c -1/2, d -1; from w2: b 1, c -1/2, d -1/2, e 1.


def test_an_item_missing_from_a_half_is_left_out_and_counted():
    result = whole(TWO_ANNOTATORS, split="annotator", trials=5)
    expected = statistics.correlation([0.5, -0.5, -1.0], [1.0, -0.5, -0.5])
    assert result.pearson.trials == pytest.approx([expected] * 5)
    assert (result.items, result.missing_items) == (5, 2)
    assert any("2 items have no score in a half" in note for note in result.notes)


def test_an_item_missing_from_a_half_can_be_zero():
    result = whole(TWO_ANNOTATORS, split="annotator", trials=5, missing="zero")
    expected = statistics.correlation([1.0, 0.5, -0.5, -1.0, 0.0], [0.0, 1.0, -0.5, -0.5, 1.0])
    assert result.pearson.trials == pytest.approx([expected] * 5)
    assert result.missing_items == 2


def test_a_tuple_with_one_judgment_is_not_split():
    rows = simulated(20, 40, 4, noise=1.0)
    extra = Judgment(("i0", "new1", "new2", "new3"), "new1", "new2")
    plain, result = whole(rows), whole([*rows, extra])
    assert result.pearson.mean == pytest.approx(plain.pearson.mean, abs=0.02)
    assert (result.items, result.tuples, result.annotations) == (23, plain.tuples + 1, 161)
    assert result.missing_items == 3  # new1, new2 and new3 are in no half
    assert (
        result.notes[0] == f"1 of {result.tuples} tuples have one judgment, which cannot be split"
    )


def test_only_single_judgments_give_no_number():
    result = whole(simulated(20, 40, 1, noise=1.0), trials=3)
    assert all(map(math.isnan, (result.pearson.mean, result.pearson.sd, result.spearman.mean)))
    assert any("3 of 3 trials have no correlation" in note for note in result.notes)


def test_a_half_that_does_not_vary_gives_no_number():
    # Each annotator chooses each item once best and once worst: all scores are 0.
    circle = [("a", "c"), ("b", "a"), ("c", "b")]
    rows = [
        Judgment(("a", "b", "c"), best, worst, who, tuple_id=f"t{t}")
        for who in ("w1", "w2")
        for t, (best, worst) in enumerate(circle)
    ]
    result = whole(rows, split="annotator", trials=4)
    assert np.isnan(result.pearson.trials).all()
    assert math.isnan(result.spearman.mean)
    assert math.isnan(result.document()["spearman_brown"]["spearman"])
    assert any("4 of 4 trials have no correlation" in note for note in result.notes)


def test_one_annotator_cannot_be_halved_but_says_so():
    rows = [row for row in simulated(20, 40, 2, noise=1.0) if row.annotator == "w0"]
    result = whole(rows, split="annotator", trials=2)
    assert math.isnan(result.pearson.mean)
    assert result.missing_items == result.items


def test_one_trial_has_no_spread():
    result = whole(simulated(20, 40, 4, noise=1.0), trials=1)
    assert not math.isnan(result.pearson.mean)
    assert math.isnan(result.pearson.sd)


def test_opposite_annotators_have_no_spearman_brown():
    rows = [
        Judgment(("a", "b", "c", "d"), best, worst, who)
        for who, best, worst in [("w1", "a", "d"), ("w2", "d", "a")]
    ]
    result = whole(rows, split="annotator", trials=2)
    assert result.pearson.mean == pytest.approx(-1.0)
    assert math.isnan(result.pearson.spearman_brown)
    assert any("negative" in note for note in result.notes)


# Parts, order, arguments --------------------------------------------------------------------------


def test_parts_come_sorted_after_the_whole_and_are_what_they_would_be_alone():
    rows = simulated(20, 40, 4, noise=1.0)
    judgments = judgments_from_records(rows)
    source = np.array(["y", "x"] * (len(judgments.tuples) // 2), dtype=object)
    turns = np.array(["3", "3", "5", "5"] * (len(judgments.tuples) // 4), dtype=object)
    result = reliability(judgments, by={"source": source, "turns": turns}, trials=10)
    assert [dict(group.by) for group in result.groups] == [
        {},
        *({"source": s, "turns": t} for s in "xy" for t in "35"),
    ]
    alone = judgments.select(
        (source == "x")[judgments.tuple_of] & (turns == "5")[judgments.tuple_of]
    )
    assert result.groups[2].pearson.mean == reliability(alone, trials=10).groups[0].pearson.mean
    assert sum(group.annotations for group in result.groups[1:]) == result.groups[0].annotations
    with pytest.raises(ValueError, match="source has 3 values; expected one for each of 40 tuples"):
        reliability(judgments, by={"source": source[:3]})


def test_the_document_is_the_contract():
    result = reliability(judgments_from_records(simulated(20, 40, 4, noise=1.0)), trials=7, seed=3)
    document = result.document()
    assert document["groups"][0].keys() >= {
        "by", "items", "tuples", "annotations", "trials", "missing_items", "pearson", "spearman",
        "spearman_brown",
    }  # fmt: skip
    assert document["groups"][0]["trials"] == 7
    assert document["groups"][0]["pearson"].keys() == {"mean", "sd"}
    assert document["signature"]["seed"] == 3
    assert "Spearman" in result.table()


def test_the_seed_decides():
    rows = simulated(20, 40, 4, noise=1.0)
    assert whole(rows, seed=1).pearson.mean == whole(rows, seed=1).pearson.mean
    assert whole(rows, seed=1).pearson.mean != whole(rows, seed=2).pearson.mean


@pytest.mark.parametrize("split", ["annotation", "tuple", "annotator"])
@settings(deadline=None)
@given(draw=st.builds(random.Random, st.integers(0, 2**32)))
def test_order_changes_nothing(split, draw):
    rows = small_study()
    shuffled = [
        Judgment(tuple(draw.sample(row.items, 4)), row.best, row.worst, row.annotator)
        for row in draw.sample(rows, len(rows))
    ]
    assert reliability_text(shuffled, split) == small_study_text(split)


@cache
def small_study():
    return simulated(8, 12, 3, noise=1.0)


@cache
def small_study_text(split):
    return reliability_text(small_study(), split)


def reliability_text(rows, split):
    """Return the document as text, since NaN is not NaN."""
    result = reliability(judgments_from_records(rows), split=split, trials=3)
    return str(result.document())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials is 0; it must be at least 1"),
        ({"split": "item"}, "split is 'item'; it must be one of annotation, tuple, annotator"),
        ({"odd": "first"}, "odd is 'first'; it must be one of coin, second"),
        ({"missing": "mean"}, "missing is 'mean'; it must be one of drop, zero"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        whole(TWO_ANNOTATORS, **options)


def test_no_judgments_and_no_annotators_are_input_errors():
    judgments = judgments_from_records(TWO_ANNOTATORS)
    with pytest.raises(InputError, match="no judgments"):
        reliability(judgments.select(np.zeros(4, dtype=bool)))
    nobody = [Judgment(row.items, row.best, row.worst) for row in TWO_ANNOTATORS]
    with pytest.raises(InputError, match="no judgment names its annotator"):
        whole(nobody, split="annotator")
