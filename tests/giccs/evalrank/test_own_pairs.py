"""Own labelled pairs: two texts and a score, in a file or data frame, as rated pairs or as a benchmark."""

import json
import random

import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import giccs
from bws.base.file_kinds import PAIR_SCORES, TEXT_PAIRS
from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.evalrank.similarity_data import read_similarity

WORDS = ["kite", "bus", "tram", "rain", "film", "door", "museum", "pizza", "doctor", "ticket"]
DRAW = random.Random(3)
TEXTS = [(" ".join(DRAW.sample(WORDS, 4)), " ".join(DRAW.sample(WORDS, 4))) for _ in range(12)]
ROWS = [
    {
        "sentence1": a,
        "sentence2": b,
        "score": round(len(set(a.split()) & set(b.split())) / 4 + n / 100, 2),
    }
    for n, (a, b) in enumerate(TEXTS)
]
TASK = "sentence-similarity"
MODEL = "baseline:char-ngram"


def write(path, form, rows=ROWS):
    frame = pd.DataFrame(rows)
    if form in ("csv", "tsv", "semicolon"):
        separator = {"csv": ",", "tsv": "\t", "semicolon": ";"}[form]
        path = path / f"pairs.{'tsv' if form == 'tsv' else 'csv'}"
        frame.to_csv(path, index=False, sep=separator)
    elif form == "array":
        path = path / "pairs.json"
        frame.to_json(path, orient="records", indent=2)
    else:
        path = path / "pairs.jsonl"
        frame.to_json(path, orient="records", lines=True)
    return str(path)


def spearman(results):
    return results[0].metrics["spearman"].value


@pytest.fixture(scope="module")
def expected():
    value = spearman(giccs.evaluate(MODEL, ROWS, task=TASK))
    assert 0.3 < value < 1
    return value


@pytest.mark.parametrize("form", ["csv", "tsv", "semicolon", "jsonl", "array"])
def test_a_file_of_pairs_has_the_result_of_its_rows(tmp_path, form, expected):
    path = write(tmp_path, form)
    assert spearman(giccs.evaluate(MODEL, path, task=TASK)) == expected
    assert read_similarity(path).fingerprint == read_similarity(ROWS).fingerprint


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_of_pairs_has_the_result_of_its_rows(library, expected):
    frame = library.DataFrame([{"idx": n, **row} for n, row in enumerate(ROWS)])
    assert spearman(giccs.evaluate(MODEL, frame, task=TASK)) == expected


@pytest.mark.parametrize("score", PAIR_SCORES)
@pytest.mark.parametrize("texts", TEXT_PAIRS)
def test_columns_of_published_pairs_are_known_in_any_spelling(texts, score):
    spellings = zip(texts, (str.upper, lambda name: f"{name[:-1]}_{name[-1]}"), strict=True)
    first, second = (change(name) for name, change in spellings)
    rows = [{first: "a kite", second: "a bus", score: 3.5}]
    assert read_similarity(rows).sets[0].pairs[0] == ("a kite", "a bus", 3.5)


def test_scores_are_used_as_they_are_and_their_range_is_told():
    warnings = [w.message for w in giccs.tasks.open_tasks(TASK)[0].read(ROWS).warnings]
    assert warnings == [
        "data: scores from 0.25 to 0.61 are used as they are; the scale is unknown; levels are omitted"
    ]


def test_labels_of_classes_are_warned_of():
    rows = [{"text1": a, "text2": b, "label": n % 2} for n, (a, b) in enumerate(TEXTS)]
    warnings = [w.message for w in giccs.tasks.open_tasks(TASK)[0].read(rows).warnings]
    assert warnings[0] == "data: the only scores are 0, 1; labels of classes are no similarities"


def test_every_invalid_row_is_named():
    rows = [
        *ROWS[:2],
        {**ROWS[2], "score": None},
        {**ROWS[3], "sentence2": " "},
        {**ROWS[4], "score": "high"},
    ]
    with pytest.raises(InputError) as caught:
        read_similarity(rows)
    assert [str(problem).partition(";")[0] for problem in caught.value.problems] == [
        "<data>:4: the score is ''", "<data>:5: empty text", "<data>:6: the score is 'high'",
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "tsv", "semicolon"])
def test_repeated_headers_are_counted(tmp_path, form):
    path = write(tmp_path, form)
    with open(path, "r+", encoding="utf-8") as file:
        file.write(file.read().partition("\n")[0] + "\n")
    data = read_similarity(path)
    assert len(data.sets[0].pairs) == len(ROWS)
    assert [warning.message for warning in data.warnings] == [
        f"pairs: 1 lines repeat the header; skipped (first: {path}:{len(ROWS) + 2})"
    ]


COMMAS = [{**row, "score": f"{row['score']:.2f}".replace(".", ",")} for row in ROWS]


@pytest.mark.parametrize("form", ["csv", "tsv", "semicolon", "jsonl", "array", "frame"])
def test_decimal_commas_are_read_in_any_form(tmp_path, form):
    data = pd.DataFrame(COMMAS) if form == "frame" else write(tmp_path, form, COMMAS)
    assert read_similarity(data).sets[0].pairs == read_similarity(ROWS).sets[0].pairs


@pytest.mark.parametrize(("score", "other"), [("1,234", "0,5"), ("4,5", "3.5")])
def test_ambiguous_commas_are_errors(tmp_path, score, other):
    rows = [{**row, "score": score if n else other} for n, row in enumerate(ROWS)]
    for data in (rows, write(tmp_path, "csv", rows), write(tmp_path, "tsv", rows)):
        with pytest.raises(InputError, match=r"the score is '\d,\d+'; expected a number"):
            read_similarity(data)


def test_repeated_columns_of_a_frame_are_an_error():
    frame = pd.DataFrame(ROWS)
    with pytest.raises(InputError, match="the header repeats score; expected unique names"):
        read_similarity(pd.concat([frame, -frame[["score"]]], axis=1))


def test_unknown_columns_and_other_files_are_named():
    with pytest.raises(
        InputError, match=r"first line: a, b, c\); expected a header with text1, text2"
    ):
        read_similarity([{"a": "x", "b": "y", "c": 1}])
    with pytest.raises(InputError, match="this is a C-STS file"):
        read_similarity([{"sentence1": "x", "sentence2": "y", "condition": "z", "label": 1}])
    with pytest.raises(InputError, match="first line: premise, hypothesis, label"):
        read_similarity([{"premise": "x", "hypothesis": "y", "label": 1}])


@pytest.mark.parametrize("task", [t for t in giccs.tasks.TASKS if not t.endswith("similarity")])
@pytest.mark.parametrize("form", ["csv", "jsonl", "array"])
def test_another_task_names_the_task_that_reads_pairs(tmp_path, task, form):
    with pytest.raises(InputError) as caught:
        giccs.tasks.open_tasks(task)[0].read(write(tmp_path, form))
    message = str(caught.value).replace("pairs (CSV)", "pairs")
    assert "this is a file of rated pairs; the task sentence-similarity reads it" in message


def test_the_command_names_the_task_that_reads_pairs(tmp_path):
    path = write(tmp_path, "csv")
    done = CliRunner().invoke(evaluate, [MODEL, "--data", path, "-o", str(tmp_path / "r")])
    assert done.exit_code == 2
    assert done.stderr == (
        f"{path}: this is a file of rated pairs (CSV); the task sentence-similarity "
        'reads it (--task sentence-similarity; task="sentence-similarity")\n'
    )


def test_a_frame_of_pairs_names_the_task_in_python():
    for call in (giccs.load_benchmark, lambda data: giccs.evaluate(MODEL, data)):
        with pytest.raises(InputError, match=r'task="sentence-similarity"'):
            call(pd.DataFrame(ROWS))


def test_the_command_reads_pairs(tmp_path):
    path = write(tmp_path, "csv")
    done = CliRunner().invoke(
        evaluate, [MODEL, "--task", TASK, "--data", path, "-o", str(tmp_path / "r")]
    )
    assert done.exit_code == 0, done.output
    assert "the scale is unknown" in done.stderr
    assert "sentence-similarity on" in done.stdout


ITEMS = [
    {"turns": ["Hi.", f"Is the {word} here?"], "utterance": f"{start} {word}?", "score": score}
    for word in ("bus", "tram", "doctor")
    for start, score in (("Where is the", 0.75), ("Is there a", 0.5), ("Why the", 0.0))
]


def as_files(tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    return str(path)


@pytest.mark.parametrize("source", [pd.DataFrame, pl.DataFrame, list, as_files])
def test_ids_and_numbers_of_turns_are_derived(tmp_path, source):
    data = source(tmp_path) if source is as_files else source(ITEMS)
    benchmark = giccs.load_benchmark(data)
    assert [
        len({getattr(i, key) for i in benchmark.items}) for key in ("item_id", "dialogue_id")
    ] == [9, 3]
    assert {item.n_turns for item in benchmark.items} == {2}
    assert {(item.source, item.domain) for item in benchmark.items} == {("", "")}
    assert [turn.text for turn in benchmark.items[0].turns] == ["Hi.", "Is the bus here?"]
    messages = [warning.message for warning in benchmark.warnings]
    assert messages[0] == "no item_id, dialogue_id, utterance_id; derived from the texts"
    results = giccs.evaluate(MODEL, data, task="pairwise-sts")
    assert results[0].metrics["spearman"].n == 9


def test_derived_ids_do_not_depend_on_the_order_of_rows():
    one, other = giccs.load_benchmark(ITEMS), giccs.load_benchmark(ITEMS[::-1])
    assert one.fingerprint == other.fingerprint
    assert {i.item_id for i in one.items} == {i.item_id for i in other.items}


def test_ids_may_be_integers_and_the_others_follow_them():
    frame = pd.DataFrame(
        [{"item_id": n, "dialogue_id": n // 3, **item} for n, item in enumerate(ITEMS)]
    )
    items = giccs.load_benchmark(frame).items
    assert [(i.item_id, i.dialogue_id, i.utterance_id) for i in items[2:4]] == [
        ("2", "0", "2"),
        ("3", "1", "3"),
    ]


def test_an_id_that_some_items_lack_is_an_error():
    rows = [{**item, "dialogue_id": f"d{n // 3}"} for n, item in enumerate(ITEMS)]
    del rows[4]["dialogue_id"]
    with pytest.raises(InputError, match="<data>:5: dialogue_id is missing"):
        giccs.load_benchmark(rows)


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        (["Hi."], "there is one turn; expected two or more"),
        (["Hi.", " "], "turn 2 is .*; expected"),
        (["Hi.", {"text": "Hello."}], "expected a list of objects"),
        ("Hi.", "turns is 'Hi.'; expected a list"),
    ],
)
def test_turns_that_are_no_strings_or_objects_are_errors(turns, message):
    with pytest.raises(InputError, match=message):
        giccs.load_benchmark([{"turns": turns, "utterance": "x", "score": 0.5}])
