"""Every format that people bring gives the same judgments, and auto says which it took."""

import gzip
import io
import json

import pytest

from bws.base.problems import InputError
from bws.files import formats, read_judgments, write_judgments
from bws.files.qualtrics import encode_tuple
from bws.records import Judgment

A, B, C, D = ("a1 ||| a2", "b1 ||| b2", "c1 ||| c2", "d1 ||| d2")

# Two judgments of one 4-tuple in every format: best a then b, worst d both times.
PAIRS = {
    "csv": f"""item1,item2,item3,item4,best,worst
{A},{B},{C},{D},{A},{D}
{A},{B},{C},{D},{B},{D}
""",
    "km": f"""Item1,Item2,Item3,Item4,BestItem,WorstItem,Note
{A},{B},{C},{D},{A},{D},n
{A},{B},{C},{D},{B},{D},n
""",
    "hollis": f"""best,worst,option1,option2,option3,option4
{A},{D},{A},{B},{C},{D}
{B},{D},{A},{B},{C},{D}
""",
    "wide": f"""Word 1,Word 2,Word 3,Word 4,MOST,LEAST
{A},{B},{C},{D},{A},{D}
{A},{B},{C},{D},{B},{D}
""",
    "semrel": """pair1a,pair1b,pair2a,pair2b,pair3a,pair3b,pair4a,pair4b,best-pair,worst-pair
a1,a2,b1,b2,c1,c2,d1,d2,A,D
a1,a2,b1,b2,c1,c2,d1,d2,b, D
""",
    "semeval": """SentPair1,SentPair2,SentPair3,SemPair4,Best,Worst
"['a1', 'a2']","['b1', 'b2']","['c1', 'c2']","['d1', 'd2']",1,4
"['a1',  ' a2']","['b1', 'b2']","['c1', 'c2']","['d1', 'd2']",2.0,4
""",
    "long": "id,block,item,value\n"
    + "".join(
        f"{person},1,{item},{value}\n"
        for person, values in (("w1", (1, 0, 0, -1)), ("w2", (0, 1, 0, -1)))
        for item, value in zip((A, B, C, D), values, strict=True)
    ),
    "mturk-batch": "HITId,AssignmentId,WorkerId,AssignmentStatus,WorkTimeInSeconds,"
    "Input.item1,Input.item2,Input.item3,Input.item4,Answer.best,Answer.worst"
    f"""
h,x1,w1,Approved,12,{A},{B},{C},{D},{A},{D}
h,x2,w2,Submitted,9,{A},{B},{C},{D},{B},{D}
""",
    "label-studio": f"""annotation_id,annotator,best,item1,item2,item3,item4,lead_time,text1,worst
1,7,A,{A},{B},{C},{D},3.5,x,D
2,8,B,{A},{B},{C},{D},,x,D
""",
    "qualtrics": f"""Status,ResponseId,giccs_1_best,giccs_1_worst,giccs_1_tuple
Response Type,Response ID,Which is best?,Which is worst?,giccs_1_tuple
"{{""ImportId"":""status""}}","{{""ImportId"":""_recordId""}}","{{""ImportId"":""QID1""}}","{{}}","{{}}"
0,R_1,1,4,{encode_tuple("", "", (A, B, C, D))}
IP Address,R_2,2,4,{encode_tuple("", "", (A, B, C, D))}
""",
}


def read(tmp_path, text, form="auto", name="j.csv", **options):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_judgments(tmp_path / name, form, **options)


def said(judgments):
    return [(r.items, r.best, r.worst) for r in judgments.records()]


EXPECTED = [((A, B, C, D), A, D), ((A, B, C, D), B, D)]


@pytest.mark.parametrize("form", PAIRS)
def test_each_format_is_read_and_found(tmp_path, form):
    assert said(read(tmp_path, PAIRS[form], form)) == EXPECTED
    result = read(tmp_path, PAIRS[form])
    assert said(result) == EXPECTED
    assert result.source == f"{tmp_path / 'j.csv'} ({form})"


@pytest.mark.parametrize("form", PAIRS)
def test_each_format_is_read_however_it_was_saved(tmp_path, form, monkeypatch):
    saved = ("\ufeff" + PAIRS[form].replace("\n", "\r\n\r\n")).encode()
    (tmp_path / "j.csv.gz").write_bytes(gzip.compress(saved))
    assert said(read_judgments(tmp_path / "j.csv.gz")) == EXPECTED
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(saved)))
    result = read_judgments("-")
    assert said(result) == EXPECTED
    assert result.source == f"<stdin> ({form})"


def test_every_tabular_format_is_tried():
    assert PAIRS.keys() == formats().keys()


@pytest.mark.parametrize("form", ["csv", "km", "semrel"])
def test_what_is_written_is_read_again(tmp_path, form):
    judgments = read(tmp_path, PAIRS["long"])
    write_judgments(judgments, tmp_path / "out.csv", form)
    result = read_judgments(tmp_path / "out.csv")
    assert result.source.endswith(f"({form})")
    assert said(result) == EXPECTED
    assert result.annotators.tolist() == (["w1", "w2"] if form == "csv" else [])


def test_another_header_than_asked_for_is_named(tmp_path):
    with pytest.raises(InputError) as caught:
        read(tmp_path, PAIRS["hollis"], "km")
    assert str(caught.value) == (
        f"{tmp_path / 'j.csv'}: not in format km: it has the columns best, worst, option1, option2, "
        "option3, option4; expected Item1, Item2, ..., BestItem, WorstItem"
    )


def test_a_header_of_no_format_is_refused_with_what_is_known(tmp_path):
    with pytest.raises(InputError, match=r"the columns x, y match no format.*hollis: best"):
        read(tmp_path, "x,y\n1,2\n")


def test_a_file_of_two_formats_is_refused_with_both(tmp_path):
    # the items are called 1, 2, 3, so that answers are ids and positions alike
    text = "item1,item2,item3,best,worst\n3,1,2,1,2\n"
    with pytest.raises(
        InputError, match=r"j\.csv: ambiguous format: csv or semeval; specify one with --from"
    ):
        read(tmp_path, text)
    assert said(read(tmp_path, text, "csv")) == [(("3", "1", "2"), "1", "2")]
    assert said(read(tmp_path, text, "semeval")) == [(("3", "1", "2"), "3", "1")]


def test_numbers_as_ids_are_told_from_positions(tmp_path):
    header = "item1,item2,item3,best,worst\n"
    ids = read(tmp_path, header + "10,2,30,10,30\n1,2,40,1,40\n")  # 1 and 2 would be positions, too
    assert ids.source.endswith("(csv)")
    places = read(tmp_path, header + "10,2,30,1,3\n10,20,30,2,1\n")
    assert places.source.endswith("(semeval)")


def test_answers_decide_where_the_header_does_not(tmp_path):
    text = "item1,item2,best,worst\na,b,2,1\n"
    result = read(tmp_path, text)
    assert result.source.endswith("(semeval)")
    assert said(result) == [(("a", "b"), "b", "a")]


def test_a_file_of_our_own_without_a_right_answer_stays_ours(tmp_path):
    with pytest.raises(
        InputError, match=r"j\.csv:2: best is 'x'; it must be one of the row's items"
    ):
        read(tmp_path, "item1,item2,best,worst\na,b,x,a\n")


@pytest.mark.parametrize(
    ("form", "row", "message"),
    [
        ("semeval", "a,b,5,1", "best is '5'; it must be a position from 1 to 2"),
        ("semeval", "a,b,0,2", "best is '0'; it must be a position from 1 to 2"),
        ("semeval", "a,b,,1", "best is empty; it must be a position from 1 to 2"),
        ("semrel", "a,a,b,b,C,A", "best is 'C'; it must be a letter from A to B"),
    ],
)
def test_answers_that_are_no_place(tmp_path, form, row, message):
    header = {
        "semeval": "p1,p2,Best,Worst",
        "semrel": "pair1a,pair1b,pair2a,pair2b,best-pair,worst-pair",
    }
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"{header[form]}\n{row}\n", form)
    assert [p.message for p in caught.value.problems] == [message]


def test_a_pair_that_is_no_list_is_taken_as_it_is(tmp_path):
    text = "p1,p2,Best,Worst\n\"['x', 'y'\",\"['x',  'y']$\",1,2\n"
    assert said(read(tmp_path, text)) == [
        (("['x', 'y'", "['x', 'y']$"), "['x', 'y'", "['x', 'y']$")
    ]


def test_long_blocks_with_faults_are_named(tmp_path):
    text = (
        "id,block,item,value\n"
        "w1,1,a,1\nw1,1,b,-1\n"  # 2: right
        "w1,2,a,1\nw1,2,b,1\n"  # 4: two best, no worst
        "w1,3,a,1\nw1,3,b,-1\nw1,3,c,0\n"  # 6: three items
        "w2,1,a,1\nw2,1,b,2\n"  # 9: the value of line 10
        "w3,1,a,0\nw3,1,b,-1\n"  # 11: no best
    )
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert [f"{p.line}: {p.message}" for p in caught.value.problems] == [
        "4: 2 items of this block are best; expected one",
        "6: 3 items in this block; the first block has 2",
        "10: value is '2'; it must be 1 (best), -1 (worst) or 0",
        "11: best is empty; it must be one of the row's items",
    ]
    result = read(tmp_path, text, on_invalid="skip")
    assert (said(result), result.annotators.tolist()) == ([(("a", "b"), "a", "b")], ["w1"])


# MTurk


def test_what_a_batch_tells_besides(tmp_path):
    result = read(tmp_path, PAIRS["mturk-batch"])
    assert result.annotators.tolist() == ["w1", "w2"]
    assert {name: column.tolist() for name, column in result.columns.items()} == {
        "assignment_id": ["x1", "x2"],
        "seconds": ["12", "9"],
    }


def batch(answers, extra=""):
    return (
        f"HITId,WorkerId,AssignmentStatus,Input.id1,Input.id2,{extra}{','.join(answers)}\n"
        f"h,w1,Approved,a,b,{'z,' if extra else ''}{','.join(answers.values())}\n"
    )


@pytest.mark.parametrize(
    "answers",
    [
        {"Answer.best": "b", "Answer.worst": "a"},
        {"Answer.most_similar": "2", "Answer.least_similar": "1"},
        {"Answer.best": "item2", "Answer.worst": "item1"},
        {"Answer.best": "B", "Answer.worst": "A"},
        {
            "Answer.best.1": "false",
            "Answer.best.2": "true",
            "Answer.worst.1": "true",
            "Answer.worst.2": "false",
        },
        {"Answer.taskAnswers": '"[{""best"":{""1"":false,""2"":true},""worst"":""1""}]"'},
    ],
)
def test_answers_of_a_batch_in_all_their_shapes(tmp_path, answers):
    assert said(read(tmp_path, batch(answers))) == [(("a", "b"), "b", "a")]


def test_columns_of_a_batch_can_be_named(tmp_path):
    text = batch({"Answer.q1": "b", "Answer.q2": "a"}, extra="Input.set,")
    with pytest.raises(
        InputError, match=r"ambiguous column of the best item \(Answer.q1, Answer.q2"
    ):
        read(tmp_path, text)
    parts = {
        "best": "Answer.q1",
        "worst": "Answer.q2",
        "group": "Input.set",
        "items": "Input.id2,Input.id1",
    }
    result = read(tmp_path, text, "mturk-batch", parts=parts)
    assert said(result) == [(("b", "a"), "b", "a")]
    assert result.tuples.groups.tolist() == ["z"]
    with pytest.raises(InputError, match=r"expected .*Answer\.q9"):
        read(tmp_path, text, "mturk-batch", parts=parts | {"best": "Answer.q9"})


def test_input_columns_that_could_all_be_items_are_named(tmp_path):
    text = batch({"Answer.best": "b", "Answer.worst": "a"}, extra="Input.x1,Input.x2,")
    text = text.replace("z,", "y,z,")
    with pytest.raises(InputError, match=r"ambiguous item columns \(Input.u1"):
        read(tmp_path, text.replace("Input.id", "Input.u"))


def test_rejected_assignments_are_left_out_and_named(tmp_path):
    text = PAIRS["mturk-batch"].replace("Submitted", "Rejected")
    with pytest.raises(InputError, match=r"j\.csv:3: the assignment was rejected"):
        read(tmp_path, text)
    assert said(read(tmp_path, text, on_invalid="skip")) == EXPECTED[:1]


# Potato

TUPLES = [
    {
        "id": f"bws_tuple_000{n}",
        "_bws_items": [
            {"source_id": item, "text": f"text of {item}", "position": position}
            for item, position in zip(items, "AB", strict=True)
        ],
        "_bws_tuple_size": 2,
    }
    for n, items in ((1, "ab"), (2, "bc"))
]


def potato_folder(tmp_path, states):
    (tmp_path / "tuples.jsonl").write_text("".join(json.dumps(t) + "\n" for t in TUPLES))
    (tmp_path / "config.json").write_text('{"annotation_task_name": "x"}')
    for user, labels in states.items():
        (tmp_path / user).mkdir()
        state = {"user_id": user, "instance_id_to_label_to_value": labels}
        (tmp_path / user / "user_state.json").write_text(json.dumps(state))
    return tmp_path


def test_a_potato_folder_with_both_shapes_of_labels(tmp_path):
    pairs = [[{"schema": "bws", "name": "best"}, "B"], [{"schema": "bws", "name": "worst"}, "A"]]
    states = {
        "ann": {"bws_tuple_0001": {"bws": {"best": "A", "worst": "B"}}, "bws_tuple_0002": pairs},
        "bob": {"bws_tuple_0001": {"other": {"x": "y"}, "bws": {"best": "B", "worst": "A"}}},
    }
    result = read_judgments(potato_folder(tmp_path, states))
    assert result.source == f"{tmp_path} (potato)"
    assert list(result.records()) == [
        Judgment(("a", "b"), "a", "b", "ann", "", "bws_tuple_0001"),
        Judgment(("b", "c"), "c", "b", "ann", "", "bws_tuple_0002"),
        Judgment(("a", "b"), "b", "a", "bob", "", "bws_tuple_0001"),
    ]


def test_a_potato_file_with_items_and_annotations(tmp_path):
    lines = [tuple_ | {"annotation": {"bws": {"best": "A", "worst": "B"}}} for tuple_ in TUPLES]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    result = read(tmp_path, text, name="ann.jsonl")
    assert result.annotators.tolist() == ["ann"]
    assert said(result) == [(("a", "b"), "a", "b"), (("b", "c"), "b", "c")]


def test_a_potato_answer_that_is_missing_or_foreign_is_named(tmp_path):
    states = {
        "ann": {"bws_tuple_0001": {"bws": {"best": "C", "worst": ""}}, "t9": {"bws": {"best": "A"}}}
    }
    with pytest.raises(InputError) as caught:
        read_judgments(potato_folder(tmp_path, states))
    assert {p.message for p in caught.value.problems} == {
        "tuple bws_tuple_0001, annotator ann: best is 'C'; it must be one of the row's items",
        "tuple bws_tuple_0001, annotator ann: worst is empty; it must be one of the row's items",
        "tuple 't9' has no _bws_items",
    }


def test_a_state_without_tuples_asks_for_the_folder(tmp_path):
    states = {"ann": {"bws_tuple_0001": {"bws": {"best": "A", "worst": "B"}}}}
    potato_folder(tmp_path, states)
    with pytest.raises(
        InputError, match="has no _bws_items; specify the folder that also contains"
    ):
        read_judgments(tmp_path / "ann" / "user_state.json")


def test_json_without_answers_is_refused(tmp_path):
    with pytest.raises(InputError, match="no answers of Potato"):
        read(tmp_path, "[1, 2", name="x.json")


def test_responses_of_qualtrics_without_answers_are_counted(tmp_path):
    empty = f"0,R_3,,,\n0,R_4,,,{encode_tuple('', '', (A, B, C, D))}\n"
    result = read(tmp_path, PAIRS["qualtrics"] + empty)
    assert said(result) == EXPECTED
    assert result.notes == ["2 responses without answers were skipped (lines 6, 7)"]


def test_joined_exports_of_qualtrics_are_read(tmp_path):
    text = PAIRS["qualtrics"]
    second = text.replace("R_1", "R_3").replace("R_2", "R_4")
    assert said(read(tmp_path, text + second)) == EXPECTED * 2
    in_german = (text + second).replace("Response ID", "Antwort-ID")
    assert said(read(tmp_path, in_german)) == EXPECTED * 2


def label_studio_tasks(*choices):
    items = {"item1": "moon", "item2": "B", "item3": "sun"}
    tasks = []
    for best, worst in choices:
        values = {"best": best, "worst": worst}
        result = [{"from_name": r, "value": {"choices": [c]}} for r, c in values.items()]
        tasks.append({"data": items, "annotations": [{"completed_by": 1, "result": result}]})
    return [{**task, "id": n} for n, task in enumerate(tasks)]


def test_choices_of_label_studio_are_letters_or_texts_in_all_tasks(tmp_path):
    tasks = label_studio_tasks(("moon", "B"))
    assert said(read(tmp_path, json.dumps(tasks), name="j.json")) == [
        (("moon", "B", "sun"), "moon", "B")
    ]
    tasks = label_studio_tasks(("A", "B"))
    assert said(read(tmp_path, json.dumps(tasks), name="j.json")) == [
        (("moon", "B", "sun"), "moon", "B")
    ]
    tasks = label_studio_tasks(("moon", "B"), ("A", "sun"))
    with pytest.raises(
        InputError, match=r"task 1, annotation no\. 1: best is 'the text A'; expected"
    ):
        read(tmp_path, json.dumps(tasks), name="j.json")


def test_tasks_of_label_studio_without_annotations_are_counted(tmp_path):
    tasks = [*label_studio_tasks(("A", "C")), {"id": 7, "data": {}, "annotations": []}]
    judgments = read(tmp_path, json.dumps(tasks), name="j.json")
    assert judgments.notes == ["1 of 2 tasks have no annotations"]


def test_a_repeated_judgment_names_the_meaning_of_a_tuple(tmp_path):
    text = "item1,item2,best,worst,annotator,trial\na,b,a,b,w,1\nb,a,b,a,w,2\n"
    with pytest.raises(
        InputError, match=r"; without tuple ids, rows with the same items are one tuple$"
    ):
        read(tmp_path, text)
