"""The numbers of C-STS: as SciPy has them, by sentence pairs, and with a reason where there are none."""

import math

import numpy as np
import pytest

from giccs.csts.data import INVALID, Instance, read_csts
from giccs.csts.measures import csts_metrics

SAMPLE = read_csts("csts-sample", "validation").instances


def rows(*labels):
    return [Instance(str(n), "a", "b", "c", label, n // 2) for n, label in enumerate(labels)]


def test_correlations_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    prediction = np.random.default_rng(1).integers(1, 6, len(SAMPLE)).astype(float)  # with ties
    labels = [one.label for one in SAMPLE]
    result = csts_metrics(prediction, SAMPLE, resamples=20)
    assert result["spearman"].value == pytest.approx(stats.spearmanr(prediction, labels)[0])
    assert result["pearson"].value == pytest.approx(stats.pearsonr(prediction, labels)[0])
    assert [result[name].n for name in result] == [120, 120, 60]


def test_pair_accuracy_counts_by_hand():
    instances = rows(5, 1, 2, 4, 3, 3, 4, 1)
    prediction = np.array(
        [0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.5, 0.5]
    )  # right, wrong, equal labels, tie
    result = csts_metrics(prediction, instances, resamples=20)["pair_accuracy"]
    assert (result.value, result.n) == (0.5, 3)
    assert {name: result.extra[name] for name in ("ties", "equal_labels", "not_two_rows")} == {
        "ties": 1, "equal_labels": 1, "not_two_rows": 0,
    }  # fmt: skip


def test_rows_without_a_label_do_not_count():
    labels = [5, 1, 2, None, INVALID, 4, 3, 1]
    prediction = np.arange(8.0)
    result = csts_metrics(prediction, rows(*labels), resamples=20)
    kept = [0, 1, 2, 5, 6, 7]
    alone = csts_metrics(prediction[kept], [rows(*labels)[row] for row in kept], resamples=20)
    assert result == alone
    assert result["spearman"].n == 6
    assert result["pair_accuracy"].n == 2
    assert result["pair_accuracy"].extra["not_two_rows"] == 2


def test_intervals_are_over_sentence_pairs():
    # The rows of a pair say the same: their interval is that of half as many rows, so a wider one.
    draw = np.random.default_rng(0)
    label, noise = draw.integers(1, 6, 100), draw.normal(size=100)
    twice = [Instance(f"{n}-{side}", "a", "b", "c", int(one), n)
             for n, one in enumerate(label) for side in range(2)]  # fmt: skip
    apart = [Instance(one.uid, "a", "b", "c", one.label, n) for n, one in enumerate(twice)]
    prediction = np.repeat(label + 3 * noise, 2)
    widths = [
        result.high - result.low
        for result in (csts_metrics(prediction, one)["spearman"] for one in (twice, apart))
    ]
    assert widths[0] / widths[1] == pytest.approx(math.sqrt(2), rel=0.15)


@pytest.mark.parametrize(
    ("prediction", "labels", "reason", "of_pairs"),
    [
        ([], [], "0 items; a correlation requires two", "no sentence pair has two different labels"),
        ([1, 1, 1, 1], [5, 1, 4, 2], "all predictions are equal",
         "2 sentence pairs: no interval, which needs 5"),
        ([1, 2, 3, 4], [3, 3, 3, 3], "all scores are equal",
         "no sentence pair has two different labels"),
        ([1, math.nan, 3, 4], [5, 1, 4, 2], "1 predictions are NaN",
         "1 sentence pairs have predictions of NaN"),
    ],
)  # fmt: skip
def test_what_is_not_defined_has_a_reason(prediction, labels, reason, of_pairs):
    result = csts_metrics(np.array(prediction, dtype=float), rows(*labels), resamples=10)
    assert math.isnan(result["spearman"].value)
    assert result["spearman"].reason == result["pearson"].reason == reason
    assert result["pair_accuracy"].reason == of_pairs
    assert math.isnan(result["pair_accuracy"].low)
    assert math.isnan(result["pair_accuracy"].value) == ("no interval" not in of_pairs)


def test_one_sentence_pair_has_no_interval():
    result = csts_metrics(np.array([2.0, 1.0]), rows(5, 1), resamples=10)
    assert {one.value for one in result.values()} == {1.0}
    assert {one.reason for one in result.values()} == {
        "1 sentence pairs: no interval, which needs 5"
    }
