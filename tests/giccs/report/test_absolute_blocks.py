"""Results on both kinds of scores have two blocks: within dialogues, and over all items."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark, sample_file
from giccs.cli.evaluation import evaluate
from giccs.cli.reporting import report
from giccs.measures import absolute_ceiling
from giccs.measures.absolute_ceiling import (
    absolute_limits,
    cached_limits,
    load_anchors,
    stored_limits,
)
from giccs.measures.ceiling import load_judgments

SAMPLE = "giccs-sample"
FILES = ("judgments.csv", "anchors.csv", "benchmark.jsonl")
LIMITS = {"absolute_ceiling", "ipsative_limit", "within_ceiling"}


def call(command, *arguments):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    return done


def evaluated(folder, data, *options):
    models = ("baseline:char-ngram", "baseline:chance", "--task", "pairwise-sts")
    return call(evaluate, *models, "--data", data, "-o", folder, *options)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a folder with results on both kinds of scores of the sample."""
    folder = tmp_path_factory.mktemp("results")
    evaluated(folder, SAMPLE)
    evaluated(folder, SAMPLE, "--target", "absolute_score")
    return folder


@pytest.fixture(scope="module")
def document(results):
    return json.loads(call(report, results, "--json").stdout)


def test_there_are_two_blocks_with_a_ceiling_each(results):
    text = call(report, results).stdout
    within, over_all = text.split(
        "Over all items: pairwise-sts on giccs-sample (absolute scores)\n"
    )
    assert within.startswith("Within dialogues: pairwise-sts on giccs-sample\n")
    for block, n_limits in ((within, 1), (over_all, 0)):
        table = block.partition("\n\nSpearman ρ by group")[0]
        assert table.count("\nnoise ceiling ") == 1
        assert table.count("\nipsative limit ") == n_limits
    joined = " ".join(within.split())
    assert "The ipsative limit is what a model reaches over all items" in joined
    assert "model of the anchors" in over_all


def test_the_numbers_are_those_of_the_study(document):
    """The ceiling of the published scores is unchanged by that within dialogues."""
    ceiling, limit = document["ceiling"], document["ipsative_limit"]
    assert ceiling["pearson"]["value"] == pytest.approx(0.9929, abs=1e-4)
    assert ceiling["rank_spearman"] == document["within_ceiling"]["rank_spearman"]
    assert ceiling["rank_spearman"]["n"] == 60
    assert document["absolute_ceiling"]["pearson"]["value"] == pytest.approx(0.976, abs=0.001)
    assert limit["pearson"]["value"] == pytest.approx(0.792, abs=0.001)
    assert "rank_spearman" not in limit
    data = {name: document[name]["spearman"]["data"] for name in ("ceiling", "ipsative_limit")}
    assert {*data.values()} == {read_benchmark(SAMPLE).fingerprint}


@pytest.mark.parametrize(
    ("form", "text"), [("markdown", "| ipsative limit"), ("latex", "ipsative limit &")]
)
def test_all_formats_have_the_limit(results, form, text):
    assert text in call(report, results, "--format", form).stdout


def test_csv_has_a_row_per_limit(results):
    lines = call(report, results, "--format", "csv").stdout.splitlines()
    assert sum(line.startswith("ipsative limit,pairwise-sts,giccs-sample,") for line in lines) == 2
    absolute = "noise ceiling,pairwise-sts,giccs-sample (absolute scores),"
    assert sum(line.startswith(absolute) for line in lines) == 3


def test_without_anchors_a_sentence_says_why_the_ceiling_cannot_be_reached(tmp_path):
    text = " ".join(evaluated(tmp_path, SAMPLE).stdout.split())
    assert "ipsative limit" not in text
    assert "stay below the ceiling over all items, even without noise" in text


def test_own_judgments_and_anchors_give_the_same_numbers(tmp_path, document):
    for name in FILES:
        with sample_file(SAMPLE, name) as path:
            shutil.copy(path, tmp_path)
    judgments, anchors, data = (tmp_path / name for name in FILES)
    options = ("--judgments", judgments, "--absolute", anchors, "--json")
    folder = tmp_path / "results"
    found = [
        json.loads(evaluated(folder, data, *options, "--target", target).stdout)
        for target in ("score", "absolute_score")
    ]
    found.append(json.loads(call(report, folder, "--data", data, *options).stdout))
    for each in found:
        assert {name: each[name] for name in LIMITS} == {name: document[name] for name in LIMITS}


def test_limits_are_computed_once_and_of_one_study(tmp_path, results, monkeypatch):
    sample = read_benchmark(SAMPLE)
    shutil.copytree(results / "ceiling", tmp_path / "ceiling")
    monkeypatch.setattr(absolute_ceiling, "absolute_limits", None)  # a call fails
    judgments, anchors = load_judgments(sample), load_anchors(sample)
    assert {*cached_limits(tmp_path, judgments, anchors, sample)} == LIMITS
    assert {*stored_limits(tmp_path, [sample.fingerprint])} == LIMITS
    assert stored_limits(tmp_path, ["0" * 64]) == {}
    (path,) = (tmp_path / "ceiling").glob("*-absolute.json")
    path.write_text("{", "utf-8")
    notes = []
    assert stored_limits(tmp_path, [sample.fingerprint], notes.append) == {}
    assert notes == [f"{path} is damaged and ignored"]


def test_a_benchmark_of_fewer_items_is_refused():
    sample = read_benchmark(SAMPLE)
    with pytest.raises(InputError, match="no score of 10 of 300 items of the judgments"):
        absolute_limits(load_judgments(sample), load_anchors(sample), sample.first(58))


def test_absolute_scores_of_other_names_are_accepted_and_those_of_fewer_people_refused():
    sample = read_benchmark(SAMPLE)
    judgments, anchors = load_judgments(sample), load_anchors(sample)
    names = dict(
        zip(judgments.annotators.tolist(), ["W5XQ", "AB12", "ZZTOP", "M001", "K77"], strict=True)
    )
    renamed = replace(judgments, annotators=np.array([*names.values()], dtype=object))
    rows = tuple(replace(row, annotator=names[row.annotator]) for row in anchors.rows)
    limits = absolute_limits(renamed, replace(anchors, rows=rows), sample)
    assert limits["absolute_ceiling"]["pearson"].value == pytest.approx(0.976, abs=0.002)
    fewer = replace(
        anchors, rows=tuple(row for row in anchors.rows if row.annotator != "simulated-1")
    )
    with pytest.raises(InputError, match="absolute scores differ from those of"):
        absolute_limits(judgments, fewer, sample)
