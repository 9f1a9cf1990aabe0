"""The paragraph of giccs compare has the numbers of its JSON."""

import json
import re

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs.cli.reporting import compare_models
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    sample = read_benchmark("giccs-sample")
    for name in ("baseline:char-ngram", "baseline:chance"):
        for history in ("with", "without"):
            Store(path).add(
                evaluate_task(PairwiseSTS(history, resamples=10), open_model(name), sample)
            )
    return path


def run(folder, *options, code=0):
    done = CliRunner().invoke(compare_models, [str(folder), *options])
    assert done.exit_code == code, done.output
    return done


def test_the_best_model_and_the_tests_are_those_of_the_json(folder):
    document = json.loads(run(folder, "--json").stdout)
    text = " ".join(run(folder, "--paragraph").stdout.partition("\n\n")[0].split())
    boards = [board for board in document["comparisons"] if board["metric"] == "spearman"]
    assert len(boards) == 2
    assert text.count("paired t-tests over 60 dialogues") == 1
    for board in boards:
        best, pair = board["models"][0], board["pairs"][0]
        value = f"{best['value']:.3f} [{best['low']:.3f}, {best['high']:.3f}]"
        assert f"{best['model']} has the highest Spearman ρ, {value}" in text
        assert f", {board['history']} history." in text
        assert f"a difference of {pair['detectable']:.3f}" in text
        other = board["models"][1]["model"]
        if pair["p_holm"] < 0.05:
            assert "All others are significantly worse (1; Holm, 5 %)." in text.replace("\xa0", " ")
        else:
            assert f"Not significantly different at 5 %: {other}." in text.replace("\xa0", " ")
    german = run(folder, "--paragraph", "de").stdout
    assert all(f", {word} Verlauf." in " ".join(german.split()) for word in ("mit", "ohne"))
    assert "history" not in german
    assert re.search(r"über\s60\sDialoge\sverglichen", german)
    assert f"{boards[0]['models'][0]['value']:.3f}".replace(".", ",") in german


def test_without_a_comparison_there_is_no_paragraph(folder):
    done = run(folder, "--model", "baseline:chance", "--history", "with", "--paragraph", code=2)
    assert "there is nothing to compare: " in done.stderr


def test_the_number_of_dialogues_is_not_that_of_domains(folder):
    text = " ".join(run(folder, "--cluster", "domain", "--paragraph").stdout.split())
    assert "paired t-tests over the domains of 60 dialogues" in text
    german = " ".join(run(folder, "--cluster", "domain", "--paragraph", "de").stdout.split())
    assert "über die Domänen von 60 Dialogen" in german


def test_a_value_without_an_interval_is_not_said_to_have_one(folder):
    text = " ".join(run(folder, "--cluster", "source", "--paragraph").stdout.split())
    assert "has the highest" in text
    assert ("95 % interval" in text.replace("\xa0", " ")) == ("[" in text.partition("@")[0])
