"""Absolute scores of a benchmark: read, written, joined, published, and compared with predictions."""

import json

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import check_benchmark, read_benchmark, write_benchmark
from giccs.cli.building import build
from giccs.cli.evaluation import evaluate
from giccs.description.card.tables import items_table

from ..conftest import rows, write


def with_absolute(lines):
    """Return the lines with absolute scores that order the dialogues."""
    dialogues = list(dict.fromkeys(line["dialogue_id"] for line in lines))
    return [
        line | {"absolute_score": (line["score"] + dialogues.index(line["dialogue_id"])) / 10}
        for line in lines
    ]


@pytest.fixture
def lines():
    return with_absolute(list(rows()))


def problems_of(tmp_path, lines):
    _, problems = check_benchmark(write(tmp_path / "b.jsonl", lines))
    return [f"{problem.line}: {problem.message}" for problem in problems]


def test_absolute_scores_are_read_and_written(tmp_path, lines):
    benchmark = read_benchmark(write(tmp_path / "b.jsonl", lines))
    write_benchmark(benchmark.items, tmp_path / "again.jsonl")
    again = read_benchmark(tmp_path / "again.jsonl")
    assert [item.absolute_score for item in again.items] == [
        line["absolute_score"] for line in lines
    ]
    assert again.to_frame("polars")["absolute_score"].to_list() == [
        line["absolute_score"] for line in lines
    ]
    assert items_table(again.items).frame["absolute_score"].to_list() == [
        line["absolute_score"] for line in lines
    ]


def test_results_on_scores_do_not_depend_on_absolute_ones(tmp_path, lines, benchmark_file):
    benchmark = read_benchmark(write(tmp_path / "b.jsonl", lines))
    known = read_benchmark(benchmark_file)
    assert benchmark.fingerprint == known.fingerprint
    assert benchmark.with_target("score") == benchmark
    assert benchmark.with_target("absolute_score").fingerprint != known.fingerprint


def test_some_absolute_scores_or_copies_are_refused(tmp_path, lines):
    del lines[3]["absolute_score"]
    lines[5]["absolute_score"] = None
    message = "no absolute_score; expected one for all items or for none"
    assert problems_of(tmp_path, lines) == [f"4: {message}", f"6: {message}"]
    copies = [line | {"absolute_score": line["score"]} for line in rows()]
    (problem,) = problems_of(tmp_path, copies)
    assert problem.startswith("None: absolute_score is score in all items")
    high = [line | {"absolute_score": 1.5} for line in lines[:1]]
    assert problems_of(tmp_path, high) == [
        "1: absolute_score is 1.5; expected a number from 0 to 1"
    ]


def test_other_targets_are_refused(benchmark_file):
    benchmark = read_benchmark(benchmark_file)
    with pytest.raises(InputError, match="no absolute_score"):
        benchmark.with_target("absolute_score")
    with pytest.raises(ValueError, match="unknown target 'rating'"):
        benchmark.with_target("rating")


def test_eval_compares_with_absolute_scores(tmp_path, lines):
    """The metrics are those of a benchmark whose scores are the absolute ones."""
    own = write(tmp_path / "own.jsonl", lines)
    replaced = [dict(line, score=line["absolute_score"]) for line in lines]
    for line in replaced:
        del line["absolute_score"]
    plain = write(tmp_path / "plain.jsonl", replaced)

    def metrics(data, *options):
        call = ["baseline:char-ngram", "--data", str(data), "--json", "-o", str(tmp_path / "r")]
        done = CliRunner().invoke(evaluate, [*call, *options])
        assert done.exit_code == 0, done.stderr
        (result,) = json.loads(done.stdout)["results"]
        return result["metrics"]

    absolute = metrics(own, "--target", "absolute_score")
    assert absolute == metrics(plain)
    assert absolute["pearson"] != metrics(own)["pearson"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "sentence-similarity"), "--target requires a benchmark of dialogues"),
        (("--data", "benchmark.jsonl"), "no absolute_score"),
        (
            ("--judgments", "judgments.csv"),
            "--judgments requires --absolute with --target absolute_score",
        ),
    ],
)
def test_eval_refuses_absolute_scores_where_there_are_none(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "benchmark.jsonl", rows())
    (tmp_path / "judgments.csv").write_text("")
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,score\na,b,1\nc,d,2\n")
    data = () if "--task" not in options else ("--data", "pairs.csv")
    done = CliRunner().invoke(
        evaluate, ["baseline:char-ngram", "--target", "absolute_score", *options, *data]
    )
    assert done.exit_code == 2
    assert message in done.stderr


def test_build_joins_absolute_scores(tmp_path):
    dialogue = {
        "dialogue_id": "d", "source": "s", "domain": "food",
        "turns": [{"speaker": "user", "text": "Hi."}, {"speaker": "system", "text": "Hello."}],
        "candidates": [{"utterance_id": name, "text": name} for name in "abcde"],
    }  # fmt: skip
    dialogues = write(tmp_path / "dialogues.jsonl", [dialogue])
    scores, benchmark = tmp_path / "scores.csv", tmp_path / "benchmark.jsonl"

    def built(absolute):
        rows = zip("abcde", (0, 0.25, 0.5, 0.75, 1), absolute, strict=True)
        lines = [f"{name},d,{score},{value}" for name, score, value in rows]
        scores.write_text("\n".join(["item,group,score,absolute_score", *lines]))
        return CliRunner().invoke(
            build, ["--dialogues", str(dialogues), "--scores", str(scores), "-o", str(benchmark)]
        )

    done = built([0.5, 0.6, 0.7, 0.8, 0.9])
    assert done.exit_code == 0, done.stderr
    assert [item.absolute_score for item in read_benchmark(benchmark).items] == [
        0.5, 0.6, 0.7, 0.8, 0.9
    ]  # fmt: skip
    done = built([0.5, "", 0.7, 0.8, 0.9])
    assert done.exit_code == 2
    assert "d, b: no absolute score for this candidate" in done.stderr
