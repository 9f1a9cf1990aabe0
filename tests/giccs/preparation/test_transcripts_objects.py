"""Import of whole dialogues with their candidates: spreadsheets with one row per dialogue, JSON Lines."""

import csv
import json

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from bws.cli import make_tuples
from bws.files import read_tuples
from giccs.benchmark import read_benchmark
from giccs.benchmark.assemble import read_dialogues
from giccs.cli.building import build
from giccs.preparation.transcripts.importing import import_transcripts
from giccs.preparation.transcripts.objects import DialogueColumns
from mturk.cli import main as hits

SHEET = DialogueColumns(("context",), "target", ("cand1", "cand2"), "\n")


def call(command, *arguments, code=0):
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def table(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def objects(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def turns(dialogue):
    return [(turn.speaker, turn.text) for turn in dialogue.turns]


def candidates(dialogue):
    return [(candidate.utterance_id, candidate.text) for candidate in dialogue.candidates]


def messages(problems):
    return [f"{problem.line}: {problem.message}" for problem in problems]


def test_a_spreadsheet_goes_to_tuples_hits_and_a_benchmark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header = ["nr", "before", "last", "c1", "c2", "c3", "remarks", "done"]
    rows = [
        [f"e{n}", f"User: Hi {n}.\nSystem: Yes?", f"User: Film {n}?", f"Movie {n}?", "Bye.", "No.",
         "" if n else "check", ""]
        for n in range(6)
    ]  # fmt: skip
    table(tmp_path / "sheet.csv", [header, *rows])
    result = call(
        build, "import", "sheet.csv", "--id", "nr", "--context", "before", "--target", "last",
        "--candidates", "c1,c2,c3", "--domain", "cinema", "--language", "en",
        "-o", "dialogues.jsonl", "--json",
    )  # fmt: skip
    document = json.loads(result.stdout)
    assert document["counts"] == {
        "files": 1, "dialogues": 6, "turns": 18, "candidates": 18, "dialogues_left_out": 0,
    }  # fmt: skip
    assert document["unused"] == {"remarks": 1}
    warning = "sheet.csv: columns ignored: remarks (cells: 1)"
    assert document["warnings"] == [warning]
    assert document["notes"] == ["18 speakers taken from the labels before turns", warning]
    first = read_dialogues("dialogues.jsonl")[0]
    assert turns(first) == [("user", "Hi 0."), ("system", "Yes?"), ("user", "Film 0?")]
    assert candidates(first) == [("e0-a", "Movie 0?"), ("e0-b", "Bye."), ("e0-c", "No.")]
    call(make_tuples, "dialogues.jsonl", "-k", 3, "--tuples", 1, "-o", "tuples.csv")
    assert set(read_tuples("tuples.csv").groups) == {f"e{n}" for n in range(6)}
    call(hits, "estimate", "tuples.csv", "--dialogues", "dialogues.jsonl")
    scores = [["item", "group", "score", "appearances", "best", "worst"]]
    scores += [
        [f"e{n}-{x}", f"e{n}", s, 2, 1, 1]
        for n in range(6)
        for x, s in zip("abc", (1, 0, 0.5), strict=True)
    ]
    table(tmp_path / "scores.csv", scores)
    call(
        build, "--dialogues", "dialogues.jsonl", "--scores", "scores.csv", "--candidates", 3,
        "-o", "benchmark.jsonl",
    )  # fmt: skip
    assert len(read_benchmark("benchmark.jsonl").items) == 18


def test_turn_columns_may_be_padded_but_a_gap_is_reported(tmp_path):
    path = table(tmp_path / "t.csv", [
        ["ID", "Turn 1", "Turn 2", "Turn 3", "Turn 4", "candidates"],
        ["a", "one", "two", "", "", "x\ny\n\nz"],
        ["b", "", "", "one", "four", "x"],
        ["c", "one", "", "three", "", "x | y"],
    ])  # fmt: skip
    layout = DialogueColumns(("turn_1", "turn_2", "turn_3", "turn_4"), "", ("Candidates",), "\n")
    result = import_transcripts([path], layout=layout)
    assert [[text for _, text in turns(dialogue)] for dialogue in result.dialogues] == [
        ["one", "two"], ["one", "four"], ["one", "three"],
    ]  # fmt: skip
    assert [candidates(dialogue) for dialogue in result.dialogues] == [
        [("a-a", "x"), ("a-b", "y"), ("a-c", "z")], [("b-a", "x")], [("c-a", "x | y")],
    ]  # fmt: skip
    assert messages(result.warnings) == [
        "None: 1 cells contain ' | ' and are not split; use --separator ' | ' to split them",
        "7: turn without text skipped",
    ]


def test_json_lines_keep_ids_and_candidates(tmp_path):
    path = objects(tmp_path / "d.jsonl", [
        {"id": "q7", "turns": ["Hi.", "Which film?"], "candidates": ["What film?", "Bye."], "note": "n"},
        {"dialogue_id": "q8", "turns": ["Hi.", "When?"],
         "candidates": [{"utterance_id": "u1", "text": "At what time?", "intended": 5, "writer": "w"},
                        {"text": "Bye."}]},
    ])  # fmt: skip
    result = import_transcripts([path])
    assert [dialogue.dialogue_id for dialogue in result.dialogues] == ["q7", "q8"]
    assert [candidates(dialogue) for dialogue in result.dialogues] == [
        [("q7-a", "What film?"), ("q7-b", "Bye.")],
        [("u1", "At what time?"), ("q8-b", "Bye.")],
    ]
    assert result.dialogues[1].candidates[0].intended == 5
    assert result.unused == {"note": 1, "candidates.writer": 1}
    assert messages(result.warnings) == [
        "None: key 'candidates.writer' ignored in 1 objects",
        "None: key 'note' ignored in 1 objects",
    ]


def test_json_lines_with_other_keys(tmp_path):
    path = objects(tmp_path / "d.jsonl", [
        {"id": "a", "context": ["Hi.", "Yes?"], "target": "Film?", "c": ["Movie?", "No."]},
        {"id": "b", "context": "Hi.\nYes?", "target": "When?", "c": "At what time?\nNo."},
    ])  # fmt: skip
    layout = DialogueColumns(("context",), "target", ("c",), "\n")
    result = import_transcripts([path], layout=layout)
    assert [[text for _, text in turns(dialogue)] for dialogue in result.dialogues] == [
        ["Hi.", "Yes?", "Film?"], ["Hi.", "Yes?", "When?"],
    ]  # fmt: skip
    assert [len(dialogue.candidates) for dialogue in result.dialogues] == [2, 2]
    assert not result.warnings


def test_what_may_have_been_misread_is_reported(tmp_path):
    path = table(tmp_path / "t.csv", [
        ["id", "context", "target", "cand1", "cand2"],
        ["a", "Anna: Hi.\nBen: Yes?", "Film?", "", "Bye."],
        ["b", "Hello.\nFilm?", "Film?", " film? ", "No."],
        ["c", "Hello.\nFilm?", "Film?", "Movie?", "Yes."],
    ])  # fmt: skip
    result = import_transcripts([path], layout=SHEET)
    assert messages(result.warnings) == [
        "2: dialogue a: no text for cand1",
        "4: the last turn of the context is identical to the target utterance",
        "6: the last turn of the context is identical to the target utterance",
        "None: labels of unknown speakers before turns are kept (Anna, Ben); "
        "use --user and --system to name the speakers",
        "4: dialogue b: candidate b-a has the same text as the last turn",
        "6: dialogue c repeats b; skipped with 2 candidates",
    ]
    assert candidates(result.dialogues[0]) == [("a-b", "Bye.")]
    named = import_transcripts([path], layout=SHEET, user=["Anna"], system=["Ben"])
    assert turns(named.dialogues[0]) == [("user", "Hi."), ("system", "Yes?"), ("", "Film?")]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["id", "context", "target"], ["a", "x", "y"]], "1: no column cand1, cand2; existing"),
        ([["id", "context", "target", "cand1", "cand2"], ["a", "x", "", "y", "z"]],
         "2: target is empty; expected the target utterance"),
        ([["id", "context", "target", "cand1", "cand2"], ["", "x", "y", "z", "w"]],
         "2: empty dialogue id"),
        ([["id", "context", "target", "cand1", "cand2"], ["a", "x", "y", "z", "w"],
          ["a", "x", "y", "v", "u"]], "3: repeats the dialogue 'a' of line 2"),
        ([["id", "context", "target", "cand1", "cand2"], ["a", "x", "y", "z", " z"]],
         "2: cand2 repeats the text of cand1; expected different values"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_an_error_with_its_line(tmp_path, rows, expected):
    path = table(tmp_path / "t.csv", rows)
    with pytest.raises(InputError) as caught:
        import_transcripts([path], layout=SHEET)
    assert str(caught.value).startswith(f"{path}:{expected}")


def test_an_id_that_was_named_must_exist(tmp_path):
    path = objects(tmp_path / "d.jsonl", [{"turns": ["x", "y"]}])
    with pytest.raises(InputError, match=r"d\.jsonl:1: no key nr; existing keys are turns"):
        import_transcripts([path], columns={"dialogue": "nr"})


def test_a_table_of_turns_without_dialogues_is_reported(tmp_path):
    path = table(tmp_path / "t.csv", [["id", "text"], ["a", "x"], ["b", "y"]])
    result = import_transcripts([path])
    assert "1: no dialogue column; all 2 rows are one dialogue (--id sets the column)" in messages(
        result.warnings
    )


def test_options_that_do_not_fit(tmp_path):
    path = table(tmp_path / "t.csv", [["dialogue", "text"], ["a", "x"], ["a", "y"]])
    result = call(build, "import", path, "--separator", "|", "-o", "-", code=2)
    assert "--separator requires --context" in result.stderr
    result = call(
        build, "import", path, "--from", "crowdss", "--context", "text", "-o", "-", code=2
    )
    assert "format crowdss has no columns for dialogues" in result.stderr
