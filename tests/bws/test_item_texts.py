"""Texts of items beside their scores: giccs score --items, --sort and --top."""

import csv
import io
import json

import numpy as np
import pytest

import bws
from bws.base.problems import InputError
from bws.files.item_texts import read_item_texts
from tests import in_process

TABLE = 'item,text,score\na,"an apple, red",0.9\nb,a pear,0.5\nc,a stone,0.1\nd,a river,0.3\n'
DIALOGUE = {
    "dialogue_id": "d1",
    "turns": [{"speaker": "user", "text": "Hello"}],
    "candidates": [{"utterance_id": "a", "text": "Hi"}, {"utterance_id": "b", "text": "Bye"}],
}


@pytest.fixture
def study(tmp_path):
    design = bws.make_tuples(list("abcd"), 3, count=4)
    bws.write_judgments(
        bws.simulate(design, np.array([0.9, 0.5, 0.1, 0.3]), 4), tmp_path / "judgments.csv"
    )
    (tmp_path / "items.csv").write_text(TABLE, "utf-8")
    return tmp_path


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_texts_are_a_column_and_the_highest_score_is_first(study):
    done = in_process.run("bws-score", "judgments.csv", "--items", "items.csv", "--sort", cwd=study)
    assert done.returncode == 0, done.stderr
    scores = rows(done.stdout)
    texts = {row["item"]: row["text"] for row in rows(TABLE)}
    assert {row["item"]: row["text"] for row in scores} == texts
    values = [float(row["score"]) for row in scores]
    assert values == sorted(values, reverse=True)
    plain = rows(in_process.run("bws-score", "judgments.csv", cwd=study).stdout)
    assert {row["item"]: row["score"] for row in plain} == {
        row["item"]: row["score"] for row in scores
    }
    top = in_process.run("bws-score", "judgments.csv", "--top", "2", "--json", cwd=study)
    assert [row["item"] for row in json.loads(top.stdout)["scores"]] == [
        row["item"] for row in scores[:2]
    ]


def test_files_with_texts_are_scores_again(study):
    run = ("bws-score", "judgments.csv", "--items", "items.csv", "-o", "scores.csv")
    assert in_process.run(*run, cwd=study).returncode == 0
    assert bws.read_scores(study / "scores.csv").score.tolist() == pytest.approx(
        bws.score(study / "judgments.csv").score.tolist()
    )


def test_tables_without_groups_have_no_empty_column(study):
    table = bws.score(study / "judgments.csv").result_table()
    assert "group" not in str(table).partition("\n")[0]
    assert "group" in table.to_frame("polars").columns


def test_scores_without_a_value_are_last():
    scores = bws.Scores(
        np.array(["x", "y", "z"], object), np.array(["", "", ""], object),
        np.array([np.nan, 0.1, 0.7]), *np.zeros((3, 3), int),
    )  # fmt: skip
    assert scores.highest_first().items.tolist() == ["z", "y", "x"]
    assert scores.highest_first(1).score.tolist() == [0.7]


@pytest.mark.parametrize("benchmark", [False, True])
def test_texts_of_dialogues_and_of_a_benchmark(tmp_path, benchmark):
    path = tmp_path / "items.jsonl"
    objects = [DIALOGUE]
    if benchmark:
        objects = [
            {"dialogue_id": "d1", "utterance_id": each["utterance_id"], "utterance": each["text"]}
            for each in DIALOGUE["candidates"]
        ]
    path.write_text("".join(json.dumps(each) + "\n" for each in objects), "utf-8")
    assert read_item_texts(path) == {("d1", "a"): "Hi", ("d1", "b"): "Bye"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "item,score\na,1\n",
            "no texts of items; expected the columns item and text, found item, score",
        ),
        ("item,text\na,x\na,y\n", r"items.csv:3: item 'a' has another text in an earlier line"),
    ],
)
def test_files_without_texts_are_refused(tmp_path, content, message):
    path = tmp_path / "items.csv"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=message):
        read_item_texts(path)


def test_missing_texts_are_reported_and_other_items_refused(study):
    (study / "items.csv").write_text("item,text\na,x\n", "utf-8")
    done = in_process.run("bws-score", "judgments.csv", "--items", "items.csv", cwd=study)
    assert "no text of 3 items, the first is 'd'" in done.stderr
    (study / "items.csv").write_text("item,text\nq,x\n", "utf-8")
    done = in_process.run("bws-score", "judgments.csv", "--items", "items.csv", cwd=study)
    assert done.returncode == 2
    assert "texts of none of the items" in done.stderr
