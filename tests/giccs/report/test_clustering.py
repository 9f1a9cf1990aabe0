"""Intervals over domains in the tables of results, and the notes on what intervals generalise to."""

import json
import math
from dataclasses import replace
from importlib import resources

import numpy as np
import polars
import pytest
from click.testing import CliRunner

import giccs
from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.cli.reporting import compare_models, report
from giccs.evaluation.recipe import PublishedNumber, Recipe, Run
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.clusters import CLUSTER_COLUMNS
from giccs.measures.metrics import correlations
from giccs.measures.results import Result, Store
from giccs.models import open_model
from giccs.report.chosen_options import dialogue_values
from giccs.report.clustering import (
    clusters_of,
    domain_notes,
    over_clusters,
    population_note,
)
from giccs.report.published import compare_with_published
from giccs.tasks.pairwise import PairwiseSTS

SAME = "Intervals and tests generalise to other dialogues of the same domains."
OTHER = "Intervals and tests generalise to other domains"


@pytest.fixture(scope="module")
def sample():
    return giccs.load_benchmark("giccs-sample")


@pytest.fixture(scope="module")
def results(sample):
    models = map(open_model, ("baseline:char-ngram", "baseline:chance"))
    return [evaluate_task(PairwiseSTS(), model, sample) for model in models]


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("results"))
    for result in results:
        store.add(result)
    return str(store.folder)


def run(command, *arguments):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_predictions_have_the_clusters_of_the_dialogue(results, sample):
    table = results[0].predictions
    expected = {
        name: [getattr(item, name) or "" for item in sample.items] for name in CLUSTER_COLUMNS
    }
    assert table.select(CLUSTER_COLUMNS).to_dict(as_series=False) == expected


def test_intervals_are_those_of_correlations_over_domains(results):
    (clustered,) = over_clusters(results[:1], "domain")
    table = results[0].predictions
    ids, dialogue = np.unique(table["dialogue_id"].to_numpy(), return_inverse=True)
    clusters = clusters_of(clustered, ids.tolist())
    assert (clusters.unit, clusters.count) == ("domains", 6)
    prediction, score = (table[name].to_numpy() for name in ("prediction", "score"))
    assert clustered.metrics == pytest.approx(
        correlations(prediction, score, dialogue, clusters=clusters)
    )
    for name, estimate in clustered.metrics.items():
        assert estimate.value == pytest.approx(results[0].metrics[name].value, abs=1e-12)
        assert estimate.low != results[0].metrics[name].low
    assert over_clusters(results, "dialogue") == results


def test_all_commands_state_the_population_and_have_the_option(folder):
    for command, arguments in (
        (report, [folder]),
        (report, [folder, "--compare"]),
        (compare_models, [folder]),
        (evaluate, ["baseline:chance", "--task", "pairwise-sts", "-o", folder]),
    ):
        assert SAME in run(command, *arguments)
        text = run(command, *arguments, "--cluster", "domain")
        assert OTHER in text
        assert "6 domains: the interval is approximate below 20" in text


def test_the_comparison_over_domains_is_a_t_test_with_their_degrees_of_freedom(folder, results):
    document = json.loads(run(compare_models, folder, "--cluster", "domain", "--json"))
    board = document["comparisons"][0]
    assert (board["clusters"], board["dialogues"]) == ("domains", 60)
    (pair,) = board["pairs"]
    (over_dialogues,) = giccs.compare(results).leaderboards[0].pairs
    assert pair["value"] == pytest.approx(over_dialogues.value)
    assert pair["low"] != pytest.approx(over_dialogues.low)
    assert pair["needed"] is None
    assert "paired t-test over domains" in " ".join(board["notes"])
    by_python = giccs.compare(results, cluster="domain").leaderboards[0].pairs[0]
    assert by_python.p == pytest.approx(pair["p"])


def test_sources_are_too_few_and_have_dashes(folder):
    text = run(report, folder, "--cluster", "source")
    assert "[–]: 2 sources: no interval, which needs 6" in text
    pairs = json.loads(run(compare_models, folder, "--cluster", "source", "--json"))
    assert pairs["comparisons"][0]["pairs"][0]["p"] is None


def test_published_numbers_are_compared_with_intervals_over_domains(results, folder):
    by = dict(results[0].groups[0].by)
    numbers = (PublishedNumber("spearman", 0.3), PublishedNumber("spearman", 0.3, by))
    run_of_paper = Run("baseline:char-ngram", None, "pairwise-sts", {}, numbers)
    recipe = Recipe("r.toml", "", "", "giccs-sample", (run_of_paper,))
    (clustered,) = over_clusters(results[:1], "domain")
    comparison = compare_with_published(results[:1], recipe, cluster="domain")
    whole, part = (line.ours for line in comparison.lines)
    assert whole == clustered.metrics["spearman"]
    assert part.value == results[0].groups[0].metrics["spearman"].value
    assert part.reason == "no interval over domains for a part of the items"
    assert [line.verdict for line in comparison.lines][1] == "no interval"
    assert "which is over domains or pairs" in " ".join(comparison.notes())
    assert "published" in run(report, folder, "--against", "giccs-paper", "--cluster", "domain")


def test_intervals_over_domains_and_annotators(folder):
    judgments = resources.files("giccs.data") / "judgments.csv"
    text = run(report, folder, "--judgments", judgments, "--cluster", "domain")
    assert "Intervals over domains and annotators" in text
    assert f"{OTHER}; those over annotators, also to other annotators; that of the noise" in text
    over_domains, over_dialogues = (
        json.loads(run(report, folder, "--judgments", judgments, "--cluster", column, "--json"))
        for column in ("domain", "dialogue")
    )
    for one, other in zip(
        over_domains["over_annotators"], over_dialogues["over_annotators"], strict=True
    ):
        for name, estimate in one["metrics"].items():
            assert estimate["value"] == pytest.approx(other["metrics"][name]["value"])
            assert estimate["low"] != pytest.approx(other["metrics"][name]["low"])


def test_predictions_without_the_column_name_the_remedy(results):
    old = replace(results[0], predictions=results[0].predictions.drop("domain"))
    with pytest.raises(
        InputError, match="no column domain; compute it again with giccs eval --force"
    ):
        over_clusters([old], "domain")
    with pytest.raises(InputError, match="its predictions are missing"):
        over_clusters([replace(old, predictions=None)], "domain")
    with pytest.raises(ValueError, match="expected one of dialogue, domain"):
        over_clusters(results, "colour")
    assert domain_notes([old]) == domain_notes([replace(old, predictions=None)]) == []


def test_different_domains_are_noted(results):
    assert domain_notes(results) == []
    table = results[0].predictions
    is_good = table["domain"].is_in(["find_cinema", "find_hotel", "find_tvProgram"]).to_numpy()
    score = table["score"].to_numpy()
    prediction = np.where(is_good, score, 1 - score)
    uneven = replace(
        results[0], predictions=table.with_columns(prediction=polars.Series(prediction))
    )
    note, *others = domain_notes([uneven, results[1]])
    assert note.startswith(
        "baseline:char-ngram, without history: Spearman ρ differs between domains (permutation test, p = 0.00"
    )
    assert "--cluster domain gives those for others" in note
    assert all("between sources" in each for each in others)
    assert domain_notes(over_clusters([uneven], "domain")) == []
    assert population_note([uneven]) == SAME


@pytest.fixture(scope="module")
def choices(sample, tmp_path_factory):
    """Multiple choice by a random scorer, with two cyclic orders."""

    def likelihoods(prompts, options):
        random = np.random.default_rng(1)
        return [(-random.exponential(size=len(each))).tolist() for each in options]

    likelihoods.revision = "1"
    (result,) = giccs.evaluate(
        likelihoods, sample, task="multiple-choice-sts", permutations=2, name="m", progress=False
    )
    return result


def test_multiple_choice_over_domains_keeps_its_values(choices):
    (clustered,) = over_clusters([choices], "domain")
    assert isinstance(clustered, Result)
    histories = [group.by["history"] for group in clustered.groups]
    assert histories == ["with", "without"]
    for group in clustered.groups:
        values = dialogue_values(choices, group.by["history"]).values
        for name, estimate in group.metrics.items():
            before = next(g for g in choices.groups if g.by == group.by).metrics[name]
            assert estimate.value == before.value == pytest.approx(np.nanmean(values[name]))
            assert estimate.low < estimate.value < estimate.high
            assert "6 domains" in estimate.reason
    difference = clustered.metrics["accuracy_difference"]
    assert difference.extra["test"] == "t"
    assert 0 < difference.extra["p"] <= 1
    assert not math.isnan(clustered.metrics["rank_spearman_difference"].low)
    text = giccs.Results([clustered]).report()
    assert OTHER in text
    assert "paired t-test p" in text
