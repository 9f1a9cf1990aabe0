"""One difference has one interval and one p-value, on all routes through the product."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import giccs
from giccs.cli.reporting import compare_models, report
from giccs.measures.comparison import paired_correlations
from giccs.report.figures.differences import difference_frame
from giccs.report.model_comparison import compare
from giccs.report.setting_effects import paired_difference

DIALOGUES = 8
"""Few, where the correction of the jackknife matters."""
NUMBERS = ("value", "low", "high", "p")


def overlap(left, right):
    """Return the number of common characters of each pair; not symmetric, with history or without."""
    return [len(set(a) & set(b)) + len(a) / 50 for a, b in zip(left, right, strict=True)]


def length(left, right):
    """Return numbers that depend on the lengths in a way that the history changes."""
    return [len(b) % 23 - len(a) % 7 * len(b) % 11 for a, b in zip(left, right, strict=True)]


class Letters:
    """Prefers options with many e's; with history, those with many n's."""

    revision = "1"

    def __call__(self, prompts, options):
        rows = []
        for prompt, answers in zip(prompts, options, strict=True):
            letter = "e" if len(prompt) % 3 else "n"
            rows.append([answer.count(letter) - len(answer) for answer in answers])
        return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for function in (overlap, length):
        results = giccs.evaluate(
            function, "giccs-sample", "pairwise-sts", history="both", limit=DIALOGUES
        )
        results.save(folder)
    choices = giccs.evaluate(
        Letters(), "giccs-sample", "multiple-choice-sts", name="letters", limit=DIALOGUES
    )
    choices.save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def results(folder):
    return list(giccs.Results.load(folder))


def spearman(results, history):
    return [r for r in results if r.task == "pairwise-sts" and r.signature["history"] == history]


def direct(first, second):
    """The library's function, on the predictions as they are stored."""
    one, other = (each.predictions.sort("item_id") for each in (first, second))
    _, dialogue = np.unique(one["dialogue_id"].to_numpy(), return_inverse=True)
    arrays = one["prediction"].to_numpy(), other["prediction"].to_numpy(), one["score"].to_numpy()
    return paired_correlations(*arrays, dialogue)


def numbers(source):
    get = source.get if isinstance(source, dict) else lambda name: getattr(source, name)
    return [get(name) for name in NUMBERS]


def estimate_numbers(estimate):
    return [estimate.value, estimate.low, estimate.high, estimate.extra["p"]]


@pytest.mark.parametrize("metric", ["spearman", "rank_spearman"])
@pytest.mark.parametrize("history", ["with", "without"])
def test_the_difference_of_two_models(folder, results, metric, history):
    rows = spearman(results, history)
    first, second = sorted(rows, key=lambda result: -result.metrics[metric].value)
    expected = estimate_numbers(direct(first, second)[metric])
    assert not any(map(math.isnan, expected))
    turned = direct(second, first)[metric]
    assert [-turned.value, -turned.high, -turned.low, turned.extra["p"]] == pytest.approx(expected)
    (board,) = [
        each
        for each in compare(results).leaderboards
        if (each.metric, each.history) == (metric, history)
    ]
    (pair,) = board.pairs
    assert numbers(pair) == pytest.approx(expected)
    assert pair.p_holm == pair.p
    assert (pair.p < 0.05) == (pair.low > 0 or pair.high < 0)
    half = (pair.high - pair.low) / 2
    assert half / pair.stderr == pytest.approx(stats.t.ppf(0.975, pair.n - 1))
    assert numbers(difference_frame(board).row(0, named=True)) == pytest.approx(expected)
    frame = giccs.compare(results).to_frame("polars")
    (row,) = [
        row
        for row in frame.iter_rows(named=True)
        if (row["metric"], row["history"], row["kind"]) == (metric, history, "pair")
    ]
    assert numbers(row) == pytest.approx(expected)
    for command, options in ((compare_models, []), (report, ["--compare"])):
        call = [folder, *options, "--json", "--history", history, "--task", "pairwise-sts"]
        done = CliRunner().invoke(command, call)
        (printed,) = [b for b in json.loads(done.stdout)["comparisons"] if b["metric"] == metric]
        assert numbers(printed["pairs"][0]) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["spearman", "rank_spearman"])
def test_the_effect_of_the_history(folder, results, metric):
    comparison = compare(results)
    (family,) = [f for f in comparison.history_effects if f.metric == metric]
    printed = json.loads(CliRunner().invoke(report, [folder, "--json"]).stdout)
    name = {"spearman": "difference", "rank_spearman": "within_difference"}[metric]
    for effect in family.effects:
        pair = [
            next(r for r in spearman(results, history) if r.model == effect.model)
            for history in ("with", "without")
        ]
        expected = estimate_numbers(direct(*pair)[metric])
        assert numbers(effect.difference) == pytest.approx(expected)
        assert estimate_numbers(paired_difference(*pair)[metric]) == pytest.approx(expected)
        (row,) = [r for r in printed["history_effects"] if r["model"] == effect.model]
        assert numbers(row[name]) == pytest.approx(expected)


def test_the_effect_of_the_history_on_an_accuracy(results):
    (result,) = [r for r in results if r.task == "multiple-choice-sts"]
    (family,) = [f for f in compare(results).history_effects if f.metric == "accuracy"]
    stored = result.metrics["accuracy_difference"]
    assert numbers(family.effects[0].difference) == pytest.approx(estimate_numbers(stored))
