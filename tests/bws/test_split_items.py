"""Split items: no false alarms without tastes, planted ones found, and what is not available is said."""

import json
import math
from collections import defaultdict
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

from bws.cli import agreement
from bws.design import make_tuples
from bws.files import write_judgments
from bws.records import Judgments
from bws.simulation import simulate
from bws.split_items import split_items

PLANTED = 6


def study(
    seed, planted=PLANTED, annotators=20, n_items=60, k=4, disagreement=0.0, guessers=0
) -> Judgments:
    """Best–worst logit judgments of utilities with SD 1.5.

    The first `planted` items have utility 1.5 for half of the annotators and -1.5 for the others.
    """
    rng = np.random.default_rng(seed)
    design = make_tuples([f"i{n:02}" for n in range(n_items)], k, factor=2, seed=seed)
    truth = rng.normal(0, 1.5, n_items)
    halves = np.argsort(rng.random((planted, annotators)), axis=1) < annotators // 2
    judgments = simulate(design, truth, annotators, noise=1.0, seed=seed)
    best, worst = judgments.best.copy(), judgments.worst.copy()
    for annotator in range(annotators):
        taste = disagreement * rng.normal(size=n_items)
        utility = truth + taste
        utility[:planted] = np.where(halves[:, annotator], 1.5, -1.5)
        careless = float(annotator < guessers)
        own = simulate(
            design, utility, 1, noise=1.0, careless=careless, seed=1000 * seed + annotator
        )
        rows = judgments.annotator_of == annotator
        best[rows], worst[rows] = own.best, own.worst
    return replace(judgments, best=best, worst=worst, shown=None)


def is_planted(item) -> bool:
    return int(item.item[1:]) < PLANTED


def middling(seeds, **options):
    """The planted and the other items with a middling score."""
    items = [
        item
        for seed in range(seeds)
        for item in split_items(study(seed, **options)).items
        if abs(item.score) <= 1 / 3
    ]
    return [i for i in items if is_planted(i)], [i for i in items if not is_planted(i)]


# Calibration and power ----------------------------------------------------------------------------


def test_items_without_tastes_are_not_split():
    others = [item for items in middling(10, planted=0) for item in items]
    p = np.array([item.p for item in others])
    print(f"\n{len(p)} items without tastes: p < .05 {np.mean(p < 0.05):.3f}, ", end="")
    print(f"split {np.mean([item.split for item in others]):.3f}")
    assert np.mean(p < 0.05) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(p))
    assert 0.45 < np.mean(p) < 0.55
    assert np.mean([item.split for item in others]) <= 0.01


def test_planted_items_are_found_and_ordinary_tastes_are_not():
    planted, others = middling(5, disagreement=0.5)
    print(f"\nsplit: planted {np.mean([i.split for i in planted]):.3f}, ", end="")
    print(f"tastes with SD 0.5 {np.mean([i.split for i in others]):.3f}")
    assert np.mean([item.split for item in planted]) >= 0.9
    assert np.mean([item.split for item in others]) <= 0.05
    assert min(item.annotators_for for item in planted if item.split) >= 5
    assert min(item.annotators_against for item in planted if item.split) >= 5


def test_annotators_who_guess_do_not_split_items():
    others = [item for items in middling(4, planted=0, guessers=4) for item in items]
    assert np.mean([item.split for item in others]) <= 0.01
    assert np.mean([item.p < 0.05 for item in others]) <= 0.12


# The numbers --------------------------------------------------------------------------------------


def slow_components(judgments, item) -> tuple[float, float]:
    """Annotator and residual components of one item, from all pairs of its values."""
    values = [
        ((row.best == item) - (row.worst == item), row.tuple_id, row.annotator)
        for row in judgments.records()
        if item in row.items
    ]
    halves = defaultdict(list)
    for (x, tuple_x, who_x), (y, tuple_y, who_y) in combinations(values, 2):
        halves[tuple_x == tuple_y, who_x == who_y].append((x - y) ** 2 / 2)
    mean = {key: float(np.mean(each)) for key, each in halves.items()}
    annotator = mean[False, False] - mean[False, True]
    return annotator, mean[True, False] + mean[False, True] - mean[False, False]


def test_shares_and_counts_are_those_of_a_slow_program():
    judgments = study(0, n_items=12, annotators=6, planted=2)
    for item in split_items(judgments).items:
        annotator, residual = slow_components(judgments, item.item)
        assert item.share == pytest.approx(annotator / (annotator + residual))
        sums = defaultdict(int)
        for row in judgments.records():
            sums[row.annotator] += (row.best == item.item) - (row.worst == item.item)
        assert item.annotators_for == sum(value > 0 for value in sums.values())
        assert item.annotators_against == sum(value < 0 for value in sums.values())
        n = sum(item.item in row.items for row in judgments.records())
        assert (item.judgments, item.annotators) == (n, 6)
        assert item.score == pytest.approx(sum(sums.values()) / n)


def test_only_middling_items_are_candidates_and_q_is_benjamini_hochbergs():
    items = split_items(study(1)).items
    assert all((item.split is None) == (abs(item.score) > 1 / 3) for item in items)
    tested = sorted((i for i in items if i.split is not None), key=lambda i: i.p)
    least = math.inf
    for rank, item in reversed(list(enumerate(tested, start=1))):
        least = min(least, item.p * len(tested) / rank)
        assert item.q == pytest.approx(min(least, 1))


def test_the_order_of_rows_changes_nothing():
    judgments = study(2, n_items=20, annotators=6)
    shuffled = judgments.select(np.random.default_rng(0).permutation(len(judgments)))
    first, again = (split_items(data).document() for data in (judgments, shuffled))
    assert json.dumps(first) == json.dumps(again)


# What is not available ----------------------------------------------------------------------------


def test_without_names_a_note_says_that_nothing_is_available():
    judgments = study(0, n_items=12, annotators=6, planted=2)
    nobody = replace(judgments, annotator_of=np.full_like(judgments.annotator_of, -1))
    result = split_items(nobody)
    assert result.items == ()
    assert result.table() == ("split items: not available (judgments without annotators)")


def test_too_few_annotators_with_two_tuples_are_not_tested():
    judgments = study(0, n_items=12, annotators=6, planted=2)
    result = split_items(judgments.select(judgments.annotator_of < 4))
    assert all(math.isnan(item.p) and item.split is None for item in result.items)
    assert result.notes[0].startswith("split items: 12 of 12 items are not tested: fewer than 5")


def test_tuples_that_one_annotator_judged_tell_nothing():
    judgments = study(0, n_items=12, annotators=6, planted=2)
    fresh = judgments.select(judgments.annotator_of == judgments.tuple_of % 6)
    assert all(math.isnan(item.p) for item in split_items(fresh).items)


def test_judgments_without_a_name_do_not_count():
    judgments = study(0, n_items=12, annotators=6, planted=2)
    annotator_of = judgments.annotator_of.copy()
    annotator_of[::10] = -1
    result = split_items(replace(judgments, annotator_of=annotator_of))
    named = split_items(judgments.select(annotator_of >= 0))
    assert str(result.items) == str(named.items)
    assert "judgments without annotator are ignored" in result.notes[0]


# The command --------------------------------------------------------------------------------------


def test_the_command_names_split_items(tmp_path):
    write_judgments(study(0), tmp_path / "j.csv")
    call = CliRunner().invoke(agreement, [str(tmp_path / "j.csv"), "--items"])
    assert call.exit_code == 0
    assert (
        " items with an intermediate score (-1/3 to 1/3) are split: some annotators" in call.stdout
    )
    call = CliRunner().invoke(agreement, [str(tmp_path / "j.csv"), "--items", "--json"])
    document = json.loads(call.stdout)["items"]
    assert len(document["items"]) == 60
    assert {"item", "group", "score", "share", "p", "q", "split"} <= set(document["items"][0])
    assert [["", item["item"]] for item in document["items"] if item["split"]] == sorted(
        document["split"]
    )
