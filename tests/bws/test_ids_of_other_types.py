"""Ids that are no text, ids joined with themselves, and locations in files without lines."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bws
from bws.base.problems import InputError

NUMBERS = [1, 2, 3, 4, 5]
TEXTS = [str(number) for number in NUMBERS]
HEADER = "item1,item2,item3,best,worst,annotator\n"


@pytest.mark.parametrize(
    "items",
    [NUMBERS, tuple(NUMBERS), range(1, 6), np.array(NUMBERS), pd.Series(NUMBERS), pl.Series(NUMBERS),
     pa.array(NUMBERS), pa.chunked_array([NUMBERS])],
)  # fmt: skip
def test_integers_are_ids(items):
    design, of_texts = bws.make_tuples(items, 4), bws.make_tuples(TEXTS, 4)
    assert sorted(design.items.tolist()) == TEXTS
    assert design.members.tolist() == of_texts.members.tolist()
    assert "ids of items are text: integers were converted" in design.notes
    assert "ids of items are text: integers were converted" not in of_texts.notes


@pytest.mark.parametrize(
    "items", [pl.Series(TEXTS), pd.Series(TEXTS), np.array(TEXTS), pa.array(TEXTS)]
)
def test_columns_of_text_are_ids(items):
    assert bws.make_tuples(items, 4).members.tolist() == bws.make_tuples(TEXTS, 4).members.tolist()


@pytest.mark.parametrize("item", [None, float("nan"), 1.0, True, b"a", ("a",)])
def test_other_values_are_no_ids(item):
    with pytest.raises(TypeError, match=r"an id is .*; expected text or an integer"):
        bws.make_tuples(["a", "b", "c", "d", item], 4)


@pytest.mark.parametrize(("items", "kind"), [(set(TEXTS), "set"), ({"g": TEXTS}, "dict")])
def test_ids_have_an_order(items, kind):
    with pytest.raises(TypeError, match=f"items are a {kind}; expected a list of ids"):
        bws.make_tuples(items, 4)


def test_groups_and_constraints_may_be_integers():
    design = bws.make_tuples(
        range(1, 13), 3, groups=[7] * 6 + [8] * 6, count=4, keep_apart=[[1, 2]]
    )
    assert set(design.groups.tolist()) == {"7", "8"}
    apart = [{"1", "2"} <= {*design.items[members]} for members in design.members]
    assert not any(apart)


def test_records_have_integers_as_ids():
    rows = [(1, 3, 5), (2, 3, None)]
    judgments = bws.judgments_from_records(
        [bws.Judgment((1, 2, 3), best, worst, annotator=who) for best, worst, who in rows]
    )
    assert judgments.tuples.items.tolist() == ["1", "2", "3"]
    assert judgments.annotators.tolist() == ["5"]
    with pytest.raises(TypeError, match=r"an id is 1.5; expected text"):
        bws.judgments_from_records([bws.Judgment((1.5, 2, 3), 1.5, 3)])


def read(tmp_path, rows, **options):
    path = tmp_path / "j.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return bws.read_judgments(path, **options)


@pytest.mark.parametrize("joined", ['"W1,W1"', "W1;W1", "W1|W1|W1", '"W1, W1"'])
def test_an_id_joined_with_itself_is_this_annotator(tmp_path, joined):
    rows = ["a,b,c,a,c,W1", f"a,b,d,a,d,{joined}", "a,b,c,a,c,W2"]
    judgments = read(tmp_path, rows)
    assert judgments.annotators.tolist() == ["W1", "W2"]
    assert "1 annotators are an id joined with itself" in judgments.reading_notes[0]
    with pytest.raises(InputError, match="annotator 'W1' has judged this tuple in line 2"):
        read(tmp_path, [rows[0], f"a,b,c,b,c,{joined}"])


def test_ids_that_join_annotators_are_reported_and_kept(tmp_path):
    judgments = read(
        tmp_path, ["a,b,c,a,c,W1", "a,b,c,a,c,W2", 'a,b,c,a,c,"W1,W2"', 'a,b,c,a,c,"Doe, J."']
    )
    assert judgments.annotators.tolist() == ["W1", "W2", "W1,W2", "Doe, J."]
    assert judgments.reading_notes == (
        "1 annotators join the ids of others ('W1,W2'), read as one annotator each",
    )


def task(number, *annotations):
    return {
        "id": number, "data": {"tuple_id": f"t{number}", "item1": "a", "item2": "b", "item3": "c"},
        "annotations": [
            {"id": 10 * number + n, "completed_by": who, "result": [
                {"from_name": role, "value": {"choices": [choice]}}
                for role, choice in (("best", best), ("worst", worst))
            ]}
            for n, (who, best, worst) in enumerate(annotations)
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([task(1, (5, "A", "C")), task(2, (5, "B", "B"))],
         "task 2, annotation 20: best and worst are both 'B'"),
        ([task(1, (5, "A", "C"), (5, "A", "B"))],
         "task 1, annotation 11: annotator '5' has judged this tuple in task 1, annotation 10;"),
        ([task(1, (5, "A", "C")), {**task(2, (5, "A", "C")), "data": {**task(1)["data"], "item3": "x"}}],
         "task 2, annotation 20: this tuple_id has another group or other items in task 1, annotation 10;"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("indent", [None, 1])
def test_faults_of_label_studio_name_task_and_annotation(tmp_path, tasks, message, indent):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks, indent=indent))
    with pytest.raises(InputError) as caught:
        bws.read_judgments(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "line 0" not in str(caught.value)


def test_tasks_without_id_are_named_by_their_number(tmp_path):
    tasks = [task(1, (5, "A", "C")), task(2, (5, "A", "Z"))]
    del tasks[1]["id"], tasks[1]["annotations"][0]["id"]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with pytest.raises(InputError, match=r"task no. 2, annotation no. 1: worst is 'Z'"):
        bws.read_judgments(path)
