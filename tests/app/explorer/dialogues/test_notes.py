"""Notes of the reader: the file, its checks, and the field in the app tester."""

import csv
import os
from datetime import datetime

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from bws.base.problems import InputError
from giccs_app.explorer.dialogues import notes as module
from giccs_app.explorer.dialogues.notes import ChangedNoteError, read_notes, write_note

HEADER = "dialogue_id,note,time\n"
TIME = "2026-01-31T12:00:00+00:00"
FIRST, SECOND = "restaurant-01", "restaurant-02"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "notes.csv"


@pytest.fixture
def opened(opened, file):
    def open_page(*arguments, **parameters):
        return opened("--notes", file, *arguments, **{"page": "dialogues"} | parameters)

    return open_page


def stored(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["dialogue_id"]: row["note"] for row in csv.DictReader(lines)}


def field(app):
    (result,) = app.text_area
    return result


def written(app, text):
    field(app).set_value(text).run()
    assert not app.exception


def texts(app, kind):
    return [one.value for one in app.get(kind)]


@pytest.mark.parametrize(
    "text", ['a "b", c', "eins\nzwei\n\ndrei", "שלום", "=1+1", " '", "dialogue_id"]
)
def test_a_note_is_read_as_it_was_written(file, text):
    write_note(str(file), "d, \n1", text, "")
    write_note(str(file), "e", "other", "")
    notes = read_notes(str(file))
    assert {note.dialogue_id: note.note for note in notes.values()} == {
        "d, \n1": text,
        "e": "other",
    }
    assert datetime.fromisoformat(notes["e"].time).utcoffset() is not None


def test_an_empty_note_is_removed_and_the_others_stay(file):
    file.write_text(f"{HEADER}gone,of other data,{TIME}\nd,x,{TIME}\n")
    write_note(str(file), "d", "", "x")
    assert file.read_text() == f"{HEADER}gone,of other data,{TIME}\n"


def test_a_note_that_has_changed_is_not_overwritten(file):
    write_note(str(file), "d", "mine", "")
    write_note(str(file), "d", "mine", "nothing of the kind")  # nothing changes
    before = file.read_bytes()
    for expected in ("", "older"):
        with pytest.raises(ChangedNoteError):
            write_note(str(file), "d", "new", expected)
    with pytest.raises(ChangedNoteError):
        write_note(str(file), "e", "new", "was removed")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("dialogue_id,note\na,x\n", "1: no column time"),
        ("dialogue_id,note,time,by\na,x,t,me\n", "1: unknown column by"),
        (f"{HEADER}a,x,{TIME}\na,y,{TIME}\n", "3: repeats the dialogue_id 'a' of line 2"),
        (f"{HEADER}a,x,yesterday\n", "2: time is 'yesterday'; expected a time like"),
        (f"{HEADER},x,{TIME}\n", "2: dialogue_id is empty"),
        (f"{HEADER}a,x\n", "2: "),
    ],
)
def test_problems_of_the_file_have_their_line_and_the_file_stays(file, opened, content, problem):
    file.write_text(content)
    with pytest.raises(InputError) as error:
        write_note(str(file), "d", "x", "")
    assert f"notes.csv:{problem}" in str(error.value)
    app = opened()
    assert not app.text_area
    assert f"notes.csv:{problem}" in app.error[0].value
    assert file.read_text() == content


def test_no_file_and_an_empty_file_have_no_notes(file):
    assert read_notes(str(file)) == {}
    file.touch()
    assert read_notes(str(file)) == {}


def test_the_field_stores_the_note_of_its_dialogue(opened, file):
    app = opened()
    assert field(app).value == ""
    written(app, " **gut** \n")
    assert stored(file) == {FIRST: "**gut**"}
    assert any(text.startswith("Last change: `20") for text in texts(app, "caption"))
    app.button(key="next").click().run()
    assert field(app).value == ""
    written(app, "second")
    app.button(key="previous").click().run()
    assert field(app).value == "**gut**"
    written(app, "")
    assert stored(file) == {SECOND: "second"}
    assert field(opened(dialogue=SECOND)).value == "second"


def test_a_note_of_another_program_appears_and_other_notes_are_kept(opened, file):
    app = opened()
    file.write_text(f"{HEADER}{FIRST},theirs,{TIME}\n")
    app.run()
    assert field(app).value == "theirs"
    file.write_text(f"{HEADER}{FIRST},theirs,{TIME}\n{SECOND},new,{TIME}\n")
    written(app, "theirs and mine")
    assert stored(file) == {FIRST: "theirs and mine", SECOND: "new"}


@pytest.mark.parametrize(("button", "result"), [("store note", "mine"), ("discard note", "theirs")])
def test_a_note_that_another_program_changed_meanwhile_needs_a_decision(
    opened, file, button, result
):
    app = opened()
    file.write_text(f"{HEADER}{FIRST},theirs,{TIME}\n")
    written(app, "mine")
    assert stored(file) == {FIRST: "theirs"}
    assert "theirs" in texts(app, "text")
    assert "another program has changed the note" in app.warning[0].value
    app.button(key="next").click().run()
    assert f"not stored: `{FIRST}`" in app.warning[0].value
    app.button(key="previous").click().run()
    assert field(app).value == "mine"
    app.button(key=button).click().run()
    assert not app.warning
    assert field(app).value == result
    assert stored(file) == {FIRST: result}


def test_a_file_that_cannot_be_written_is_told_and_the_text_stays(opened, file, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    app = opened()
    with monkeypatch.context() as broken:
        broken.setattr(module, "write_atomic", full)
        written(app, "mine")
        app.run()
    assert "cannot be written (No space left on device)" in app.error[0].value
    assert (field(app).value, file.exists()) == ("mine", False)
    app.button(key="store note").click().run()
    assert not app.error
    assert stored(file) == {FIRST: "mine"}


def test_a_public_explorer_has_no_notes(opened):

    assert opened().text_area
    assert not opened("--without-uploads").text_area


def test_the_mode_of_the_file_is_kept(file):
    write_note(str(file), "d", "x", "")
    os.chmod(file, 0o600)
    write_note(str(file), "d", "y", "x")
    assert file.stat().st_mode & 0o777 == 0o600
