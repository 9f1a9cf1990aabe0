"""Batch files in which an assignment judges several tuples: one judgment for each part."""

import pytest

from bws.base.problems import InputError
from bws.files import read_judgments

ITEMS = ("tuple_id", "group", "item1", "item2", "item3")
SAID = ("best", "worst", "shown", "seconds")
HEADER = [
    "AssignmentId", "WorkerId", "AssignmentStatus", "WorkTimeInSeconds",
    *(f"Input.{part}.{name}" for part in (1, 2) for name in ITEMS),
    *(f"Answer.{part}.{name}" for part in (1, 2) for name in SAID),
    "Answer.comment", "Approve", "Reject",
]  # fmt: skip
FIRST = "t1,d1,a,b,c"
SECOND = "t2,d2,a,x,y"


def line(worker, said1, said2, status="Approved", second=SECOND, comment=""):
    start = f"as-{worker},{worker},{status},99"
    return f"{start},{FIRST},{second},{','.join(said1)},{','.join(said2)},{comment},,"


def read(tmp_path, *lines, header=HEADER, **options):
    (tmp_path / "b.csv").write_text("\n".join([",".join(header), *lines, ""]), encoding="utf-8")
    return read_judgments(tmp_path / "b.csv", **options)


def test_each_part_is_a_judgment(tmp_path):
    result = read(
        tmp_path,
        line("w1", ("a", "c", "c;b;a", "7.5"), ("y", "a", "a;x;y", "3")),
        line("w2", ("b", "c", "a;b;c", ""), ("x", "y", "y;x;a", "4"), comment="hm"),
    )
    assert result.source == f"{tmp_path / 'b.csv'} (mturk-batch)"
    tuples = result.tuples
    assert [
        (tuples.ids[t], tuples.groups[tuples.group_of_tuple[t]], record.items, record.best, record.worst,
         record.annotator)
        for t, record in zip(result.tuple_of, result.records(), strict=True)
    ] == [
        ("t1", "d1", ("c", "b", "a"), "a", "c", "w1"),
        ("t2", "d2", ("a", "x", "y"), "y", "a", "w1"),
        ("t1", "d1", ("a", "b", "c"), "b", "c", "w2"),
        ("t2", "d2", ("y", "x", "a"), "x", "y", "w2"),
    ]  # fmt: skip
    assert {name: column.tolist() for name, column in result.columns.items()} == {
        "assignment_id": ["as-w1", "as-w1", "as-w2", "as-w2"],
        "seconds": ["7.5", "3", "", "4"],  # never WorkTimeInSeconds: that is of both tuples
        "comment": ["", "", "hm", "hm"],
    }


def test_a_hit_with_fewer_parts_has_fewer_judgments(tmp_path):
    result = read(
        tmp_path,
        line("w1", ("a", "c", "a;b;c", ""), ("",) * 4, second=",,,,"),
        line("w2", ("a", "c", "a;b;c", ""), ("x", "y", "y;x;a", "")),
    )
    assert result.tuples.ids[result.tuple_of].tolist() == ["t1", "t1", "t2"]


def test_faults_name_the_line_of_the_assignment(tmp_path):
    lines = [
        line("w1", ("a", "a", "a;b;c", ""), ("x", "", "y;x;a", "")),
        line("w2", ("a", "c", "a;b;c", ""), ("x", "y", "y;x;a", ""), status="Rejected"),
        line("w3", ("a", "c", "a;b;c", ""), ("x", "y", "y;x;a", "")),
    ]
    with pytest.raises(InputError) as caught:
        read(tmp_path, *lines)
    assert [f"{p.line}: {p.message}" for p in caught.value.problems] == [
        "2: worst is empty; it must be one of the row's items",
        "2: best and worst are both 'a'; expected different items",
        "3: the assignment was rejected; skip invalid rows to ignore it",
    ]
    result = read(tmp_path, *lines, on_invalid="skip")
    assert result.annotators[result.annotator_of].tolist() == ["w3", "w3"]


@pytest.mark.parametrize(
    ("best", "worst"),
    [("1", "3"), ("A", "C"), ("item1", "item3")],
    ids=["place", "letter", "button"],
)
def test_answers_of_parts_have_all_the_shapes_of_answers(tmp_path, best, worst):
    result = read(tmp_path, line("w1", (best, worst, "a;b;c", ""), (best, worst, "a;x;y", "")))
    assert [(r.best, r.worst) for r in result.records()] == [("a", "c"), ("a", "y")]


def test_radio_buttons_of_parts_are_read(tmp_path):
    buttons = [f"Answer.{part}.{which}.{n}" for part in (1, 2) for which in ("best", "worst")
               for n in (1, 2, 3)]  # fmt: skip
    header = [*HEADER[:14], *buttons]
    chosen = "true,false,false,false,true,false,false,false,true,true,false,false"
    result = read(tmp_path, f"as,w1,Approved,9,{FIRST},{SECOND},{chosen}", header=header)
    assert [(r.best, r.worst) for r in result.records()] == [("a", "b"), ("y", "a")]


def test_the_one_answer_of_a_crowd_form_may_hold_the_parts(tmp_path):
    header = [*HEADER[:14], "Answer.taskAnswers"]
    answer = (
        '"[{""1.best"":{""1"":true},""1.worst"":{""3"":true},""2.best"":""2"",""2.worst"":""1""}]"'
    )
    result = read(tmp_path, f"as,w1,Approved,9,{FIRST},{SECOND},{answer}", header=header)
    assert [(r.best, r.worst) for r in result.records()] == [("a", "c"), ("x", "a")]


def test_columns_that_are_named_are_taken_as_they_are(tmp_path):
    parts = {"items": "Input.2.item1,Input.2.item2,Input.2.item3", "best": "Answer.2.best",
             "worst": "Answer.2.worst", "tuple_id": "Input.2.tuple_id"}  # fmt: skip
    result = read(
        tmp_path, line("w1", ("a", "c", "a;b;c", ""), ("x", "y", "a;x;y", "")),
        form="mturk-batch", parts=parts,
    )  # fmt: skip
    assert [(r.tuple_id, r.best, r.worst) for r in result.records()] == [("t2", "x", "y")]


def test_a_parts_own_column_counts_before_one_of_the_same_name_without_number(tmp_path):
    said = ("a", "c", "a;b;c", ""), ("x", "y", "a;x;y", "")
    header = [*HEADER, "Answer.best", "Input.item1"]
    result = read(tmp_path, f"{line('w1', *said)},other,other", header=header)
    assert [(r.items[0], r.best) for r in result.records()] == [("a", "a"), ("a", "x")]


def test_numbers_without_names_are_items_still(tmp_path):
    (tmp_path / "b.csv").write_text(
        "WorkerId,Input.1,Input.2,Answer.best,Answer.worst\nw,a,b,a,b\n"
    )
    result = read_judgments(tmp_path / "b.csv")
    assert [(r.items, r.best) for r in result.records()] == [(("a", "b"), "a")]
