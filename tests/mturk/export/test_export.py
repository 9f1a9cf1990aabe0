"""Projects of other tools are complete, escaped, and their results are read with the ids of the study.

The results are written here by hand. Those of Potato have the form of files that potato-annotation 2.12
wrote, those of Label Studio the form of exports of label-studio 1.23; those of Qualtrics follow its manual.
"""

import csv
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from click.testing import CliRunner

pytest.importorskip("jinja2", reason="the extra giccs[study] is not installed")

from bws.base.problems import InputError
from bws.files import read_judgments
from mturk.cli import main
from mturk.cli.publish import plan_of
from mturk.export import TOOLS, exported_study
from mturk.export.label_studio import files as label_studio_files
from mturk.export.qualtrics import files as qualtrics_files
from mturk.kinds.texts import read_built_in_file

FIRST_TURN = "When <b>does</b> it ${e://Field/x} open? [[PageBreak]]"
TEXTS = {
    "d1-a": "The doors <i>open</i> at 9.",
    "d1-b": 'It should "open" soon & early.',
    "d1:c;]": "It closes at nine, it costs $5.",
    "d1-d": "The tram is late.",
}
TUPLES = {"t1": ("d1-a", "d1-b", "d1:c;]"), "t2": ("d1-b", "d1:c;]", "d1-d")}


@pytest.fixture
def study_files(tmp_path):
    dialogue = {
        "dialogue_id": "d1",
        "source": "",
        "domain": "",
        "language": "en",
        "turns": [
            {"speaker": "user", "text": FIRST_TURN},
            {"speaker": "system", "text": "At nine."},
        ],
        "candidates": [{"utterance_id": name, "text": text} for name, text in TEXTS.items()],
    }
    (tmp_path / "dialogues.jsonl").write_text(json.dumps(dialogue) + "\n")
    rows = "".join(f"{name},d1,{','.join(items)}\n" for name, items in TUPLES.items())
    (tmp_path / "tuples.csv").write_text(f"tuple_id,group,item1,item2,item3\n{rows}")
    return [str(tmp_path / "tuples.csv"), "--dialogues", str(tmp_path / "dialogues.jsonl")]


@pytest.fixture
def export(study_files, tmp_path):
    def call(tool, *more):
        folder = tmp_path / tool
        arguments = ["export", *study_files, "--to", tool, "-o", str(folder), *more]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        return folder

    return call


@pytest.fixture
def study(study_files):
    tuples, _, dialogues = study_files
    return exported_study(plan_of(tuples, dialogues, None, None))


def check(judgments, n_annotators=1):
    """All tuples are there, the item shown second is best, the first one worst."""
    assert {j.tuple_id: sorted(j.items) for j in judgments.records()} == {
        name: sorted(items) for name, items in TUPLES.items()
    }
    assert judgments.tuples.groups.tolist() == ["d1"]
    assert len(judgments.annotators) == n_annotators
    items = judgments.tuples.items[judgments.tuples.members[judgments.tuple_of]]
    for row, order in enumerate(judgments.shown):
        assert judgments.tuples.items[judgments.best_item[row]] == items[row][order[1]]
        assert judgments.tuples.items[judgments.worst_item[row]] == items[row][order[0]]


def shown_orders(judgments):
    members = judgments.tuples.members[judgments.tuple_of]
    ids = judgments.tuples.ids[judgments.tuple_of]
    return {
        name: tuple(judgments.tuples.items[members[row][order]])
        for row, (name, order) in enumerate(zip(ids, judgments.shown, strict=True))
    }


def test_the_order_of_items_is_random_stored_and_the_same_again(study, study_files):
    orders = {exported.tuple_id: tuple(exported.item_ids) for exported in study.tuples}
    assert {name: sorted(order) for name, order in orders.items()} == {
        name: sorted(items) for name, items in TUPLES.items()
    }
    tuples, _, dialogues = study_files
    planned = plan_of(tuples, dialogues, None, None)
    assert exported_study(planned) == study
    seeds = [replace(planned, settings=replace(planned.settings, seed=seed)) for seed in range(30)]
    firsts = {
        next(t for t in exported_study(s).tuples if t.tuple_id == "t1").item_ids[0] for s in seeds
    }
    assert firsts == set(TUPLES["t1"])


def test_the_last_turn_is_named(study):
    assert [speaker for speaker, _ in study.tuples[0].turns] == [
        "Person",
        "Last utterance (Assistant)",
    ]


def label_studio_result(task, number, **changes):
    result = [
        {"from_name": role, "to_name": "task", "type": "choices", "value": {"choices": [letter]}}
        for role, letter in (("best", "B"), ("worst", "A"))
    ]
    annotation = {"id": number, "completed_by": 7, "result": result, "was_cancelled": False}
    annotation |= {"lead_time": 3.5} | changes
    return {"id": number, "annotations": [annotation], **task}


def test_label_studio_and_back(export, tmp_path):
    folder = export("label-studio")
    config = ET.fromstring((folder / "config.xml").read_text())
    choices = [[(c.get("value"), c.get("alias")) for c in one] for one in config.findall("Choices")]
    assert choices == [[("$text1", "A"), ("$text2", "B"), ("$text3", "C")]] * 2
    tasks = json.loads((folder / "tasks.json").read_text())
    for task in tasks:
        data = task["data"]
        assert [data[f"text{n}"] for n in (1, 2, 3)] == [TEXTS[data[f"item{n}"]] for n in (1, 2, 3)]
        assert data["dialogue"][0] == {"speaker": "Person", "text": FIRST_TURN}
    exported = [label_studio_result(task, number) for number, task in enumerate(tasks, start=1)]
    (tmp_path / "export.json").write_text(json.dumps(exported))
    judgments = read_judgments(tmp_path / "export.json")
    check(judgments)
    assert judgments.source.endswith("(label-studio)")
    assert judgments.columns["seconds"].tolist() == ["3.5", "3.5"]

    with (tmp_path / "export.csv").open("w", newline="") as file:
        answer = {"annotator": 7, "best": "B", "worst": "A", "lead_time": 3.5}
        rows = [
            task["data"]
            | {"dialogue": json.dumps(task["data"]["dialogue"]), "annotation_id": number}
            | answer
            for number, task in enumerate(tasks, start=1)
        ]
        writer = csv.DictWriter(file, sorted(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    from_csv = read_judgments(tmp_path / "export.csv")
    check(from_csv)
    assert list(from_csv.records()) == list(judgments.records())
    assert set(from_csv.columns) == {"seconds"}


def test_faults_of_label_studio_name_task_and_annotation(export, tmp_path):
    task = json.loads((export("label-studio") / "tasks.json").read_text())[0]
    results = label_studio_result(task, 1)["annotations"][0]["result"]
    two = [results[0] | {"value": {"choices": ["A", "B"]}}, results[1]]
    exported = [
        label_studio_result(task, 1),
        label_studio_result(task, 2, was_cancelled=True, result=[]),
        label_studio_result(task, 3, result=results[:1]),
        label_studio_result(task, 4, result=two),
    ]
    (tmp_path / "export.json").write_text(json.dumps(exported))
    with pytest.raises(InputError) as caught:
        read_judgments(tmp_path / "export.json")
    assert [problem.message for problem in caught.value.problems] == [
        "task 2, annotation 2: the annotator skipped the task; skip invalid rows to ignore it",
        "task 3, annotation 3: worst is missing; expected one letter from A to C or the text of an item",
        "task 4, annotation 4: best is 'A, B'; expected one letter from A to C or the text of an item",
    ]
    judgments = read_judgments(tmp_path / "export.json", on_invalid="skip")
    assert (len(judgments), judgments.n_left_out) == (1, 3)


@pytest.mark.parametrize(
    "task",
    [
        {"annotations": [5], "data": {}},
        {"annotations": [{"result": [3]}], "data": {"item1": "a", "item2": "b"}},
        {
            "annotations": [{"result": [{"from_name": "best", "value": 7}]}],
            "data": {"item1": "a", "item2": "b"},
        },
        {"annotations": [{"result": {}}], "data": None},
        {"annotations": [{"completed_by": {"email": "x"}, "result": None}], "data": [1]},
    ],
)
def test_damaged_exports_of_label_studio_are_faults(task, tmp_path):
    (tmp_path / "export.json").write_text(json.dumps([task, 4]))
    with pytest.raises(InputError, match=r"task no\. 1, annotation no\. 1: "):
        read_judgments(tmp_path / "export.json")


def test_a_dollar_in_a_page_text_is_refused_for_label_studio(study):
    with pytest.raises(InputError, match=r"contains a \$"):
        label_studio_files(replace(study, best="Which costs $5?"))


def test_potato_and_back(export):
    yaml = pytest.importorskip("yaml")
    folder = export("potato")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert [scheme["name"] for scheme in config["annotation_schemes"]] == ["best", "worst"]
    instances = [json.loads(line) for line in (folder / "tuples.jsonl").read_text().splitlines()]
    keys = [field["key"] for field in config["instance_display"]["fields"]]
    assert all(set(keys) <= instance.keys() for instance in instances)
    answer_potato(folder, "ann", "bob")
    judgments = read_judgments(folder)
    check(judgments, 2)
    assert judgments.source.endswith("(potato)")


def answer_potato(folder, *users):
    ids = [json.loads(line)["id"] for line in (folder / "tuples.jsonl").read_text().splitlines()]
    labels = [[{"schema": "best", "name": "B"}, "B"], [{"schema": "worst", "name": "A"}, "A"]]
    for user in users or ["ann"]:
        state = {"user_id": user, "instance_id_to_label_to_value": dict.fromkeys(ids, labels)}
        (folder / "annotation_output" / user).mkdir(parents=True)
        (folder / "annotation_output" / user / "user_state.json").write_text(json.dumps(state))


def qualtrics_csv(columns, *, header_rows=True, **row):
    """An export with three header rows, as in the manual, and two responses."""
    names = ["StartDate", "Status", "Finished", "ResponseId", *columns]
    head = [names, [f"text of {name}" for name in names[:3]] + ["Response ID", *columns.keys()]]
    head += [[json.dumps({"ImportId": name}) for name in names]] if header_rows else []
    responses = [
        ["2026-11-01", row.get("status", "0"), "1", f"R_{person}", *columns.values()]
        for person in ("one", "two")
    ]
    return head + responses


def write_rows(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def qualtrics_columns(survey):
    """The columns of a response that chooses the second choice as best and the first as worst."""
    tags = [line[2:-2].split(":", 2) for line in survey.splitlines() if line.startswith("[[ED:")]
    columns = {name: value for _, name, value in tags}
    for line in survey.splitlines():
        if line.startswith("[[ID:giccs_") and line.endswith(("_best]]", "_worst]]")):
            columns[line[5:-2]] = "2" if line.endswith("_best]]") else "1"
    return columns


@pytest.mark.parametrize("header_rows", [True, False])
def test_qualtrics_and_back(export, tmp_path, header_rows):
    survey = (export("qualtrics") / "survey.txt").read_text()
    assert survey.startswith("[[AdvancedFormat]]\n")
    assert survey.count("[[Block:") == 1 + len(TUPLES)
    assert "${" not in survey
    assert "[[PageBreak]]" not in survey
    assert "<b>" not in survey
    columns = qualtrics_columns(survey)
    path = write_rows(tmp_path / "q.csv", qualtrics_csv(columns, header_rows=header_rows))
    judgments = read_judgments(path)
    check(judgments, 2)
    assert judgments.annotators.tolist() == ["R_one", "R_two"]
    assert judgments.source.endswith("(qualtrics)")


def test_the_texts_of_the_survey_are_in_the_stored_order(export, study):
    survey = (export("qualtrics") / "survey.txt").read_text()
    choices = [block.split("\n")[1] for block in survey.split("[[Choice:")[1:]]
    shown = [text for t in study.tuples for _ in range(2) for _, text in t.items]
    assert [
        c.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for c in choices
    ] == shown


def test_faults_of_qualtrics(export, tmp_path):
    columns = qualtrics_columns((export("qualtrics") / "survey.txt").read_text())
    unanswered = columns | {"giccs_2_best": "", "giccs_2_worst": ""}
    judgments = read_judgments(write_rows(tmp_path / "q.csv", qualtrics_csv(unanswered)))
    assert len(judgments) == 2  # the second tuple was not shown

    half = columns | {"giccs_2_best": ""}
    with pytest.raises(InputError, match=r"q\.csv:4: best is empty; it must be a position"):
        read_judgments(write_rows(tmp_path / "q.csv", qualtrics_csv(half)))

    text = columns | {"giccs_1_best": "It should open"}
    with pytest.raises(InputError, match=r"q\.csv:4: .*Use numeric values"):
        read_judgments(write_rows(tmp_path / "q.csv", qualtrics_csv(text)))

    with pytest.raises(InputError, match=r"q\.csv:4: the response has the status 'Survey Preview'"):
        read_judgments(
            write_rows(tmp_path / "q.csv", qualtrics_csv(columns, status="Survey Preview"))
        )

    del columns["giccs_1_tuple"]
    with pytest.raises(
        InputError, match="no column giccs_1_tuple; export all questions and embedded"
    ):
        read_judgments(write_rows(tmp_path / "q.csv", qualtrics_csv(columns)))


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["giccs_3_tuple"], "giccs_3_worst; export all questions"),
        ([], "giccs_3_worst, ...; export all questions"),
    ],
)
def test_the_first_five_missing_columns_of_qualtrics_are_named(tmp_path, more, named):
    present = ["ResponseId", "giccs_1_best", "giccs_2_best", "giccs_3_best", *more]
    rows = [present, ["1"] * len(present)]
    (tmp_path / "q.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))
    first = "no column giccs_1_worst, giccs_1_tuple, giccs_2_worst, giccs_2_tuple, "
    with pytest.raises(InputError, match=re.escape(first + named)):
        read_judgments(tmp_path / "q.csv", "qualtrics")


def test_a_long_study_is_several_surveys(study):
    many = tuple(replace(study.tuples[0], tuple_id=f"t{number}") for number in range(301))
    surveys = qualtrics_files(replace(study, tuples=many))
    assert [survey.count("[[ED:") for survey in surveys.values()] == [300, 1]
    assert list(surveys) == ["survey-1.txt", "survey-2.txt"]


def test_a_completed_table_is_read(export, study):
    folder = export("csv")
    first = next(csv.DictReader((folder / "tuples.csv").open(newline="")))
    assert first["dialogue"] == f"Person: {FIRST_TURN}\nLast utterance (Assistant): At nine."
    judgments = read_judgments(answered("csv", folder))
    check(judgments)
    assert shown_orders(judgments) == {t.tuple_id: tuple(t.item_ids) for t in study.tuples}


def test_plain_items_and_pairs(tmp_path):
    (tmp_path / "items.csv").write_text("item,sentence1,sentence2\na,A1,A2\nb,B1,B2\nc,C1,C2\n")
    (tmp_path / "tuples.csv").write_text("tuple_id,item1,item2,item3\nt1,a,b,c\n")
    arguments = ["export", str(tmp_path / "tuples.csv"), "--items", str(tmp_path / "items.csv")]
    texts = read_built_in_file("mturk.kinds.items", "en", "relatedness")
    (tmp_path / "texts.toml").write_text(texts)
    (tmp_path / "hits.toml").write_text(
        'kind = "items"\nitem_language = "en"\ntexts = "texts.toml"\n'
    )
    arguments += [
        "--config",
        str(tmp_path / "hits.toml"),
        "--to",
        "label-studio",
        "-o",
        str(tmp_path / "ls"),
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    (task,) = json.loads((tmp_path / "ls" / "tasks.json").read_text())
    assert sorted(task["data"][f"text{n}"] for n in (1, 2, 3)) == ["A1\nA2", "B1\nB2", "C1\nC2"]
    assert "Paragraphs" not in (tmp_path / "ls" / "config.xml").read_text()

    (tmp_path / "items.csv").write_text(
        "item,image,text\n" + "".join(f"{i},https://x.org/{i}.png,{i}\n" for i in "abc")
    )
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "has images, which only the worker page can show; expected texts" in done.output


@pytest.mark.parametrize("tool", TOOLS)
def test_rounds_of_adaptive_studies_are_not_lost(study_files, tmp_path, tool):
    rows = [line.split(",") for line in (tmp_path / "tuples.csv").read_text().splitlines()]
    values = [["round", "purpose", "seed"], ["1", "warmup", "0"], ["2", "adaptive", "0"]]
    write_rows(
        tmp_path / "tuples.csv", [row + more for row, more in zip(rows, values, strict=True)]
    )
    arguments = ["export", *study_files, "--to", tool, "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    judgments = read_judgments(answered(tool, tmp_path / "out"))
    assert dict(
        zip(judgments.tuples.ids[judgments.tuple_of], judgments.columns["round"], strict=True)
    ) == {
        "t1": "1",
        "t2": "2",
    }
    assert judgments.is_adaptive


def answered(tool, folder):
    """The results of an exported project: the second item is best, the first one worst."""
    if tool == "label-studio":
        tasks = json.loads((folder / "tasks.json").read_text())
        exported = [label_studio_result(task, number) for number, task in enumerate(tasks, start=1)]
        (folder / "export.json").write_text(json.dumps(exported))
        return folder / "export.json"
    if tool == "potato":
        answer_potato(folder)
        return folder
    if tool == "qualtrics":
        columns = qualtrics_columns((folder / "survey.txt").read_text())
        return write_rows(folder / "q.csv", qualtrics_csv(columns)[:-1])
    rows = list(csv.DictReader((folder / "tuples.csv").open(newline="")))
    for row in rows:
        row |= {"best": row["item2"], "worst": row["item1"], "annotator": "ann"}
    return write_rows(folder / "tuples.csv", [list(rows[0]), *(list(row.values()) for row in rows)])


def test_the_option_names_every_tool():
    (option,) = (p for p in main.get_command(None, "export").params if p.name == "tool")
    assert set(option.type.choices) == set(TOOLS)
