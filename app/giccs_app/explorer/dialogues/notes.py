"""Notes of the reader on dialogues: a CSV file with the columns dialogue_id, note and time.

The file is read again before each change, so that notes which another program has added are kept. The note of
the same dialogue is not overwritten if it has changed in the meantime. Processes are not locked out: a change
within the milliseconds between reading and writing is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.text import write_atomic
from bws.files.schema import TEXT, Schema, Unique, normal_ids
from bws.files.table import read_table

COLUMNS = ("dialogue_id", "note", "time")


@dataclass(frozen=True)
class Note:
    """A note on a dialogue."""

    dialogue_id: str
    note: str
    time: str
    """Time of the last change in ISO 8601."""


class ChangedNoteError(Exception):
    """The note of the dialogue has changed since it was read."""


def read_notes(path: str) -> dict[str, Note]:
    """Return the notes by dialogue; none if the file is missing or empty.

    Raises InputError with the line of each problem. Other columns are a problem, since they would be lost.
    """
    if not os.path.exists(path) or (os.path.isfile(path) and os.path.getsize(path) == 0):
        return {}
    table = read_table(path, separator=",")
    if unknown := [name for name in table.frame.columns if name not in COLUMNS]:
        message = f"unknown column {', '.join(unknown)}; expected {', '.join(COLUMNS)}"
        raise InputError(Problem(path, 1, message))
    return {note.dialogue_id: note for note in NOTES.read(table).checked()}


def write_note(path: str, dialogue_id: str, text: str, expected: str) -> None:
    """Write the note on a dialogue; an empty text removes it.

    expected: the note as it was read, empty without a note. Raises ChangedNoteError if the file has another
    one, InputError if the file is invalid, and OSError if it cannot be written; then the file is unchanged.
    """
    with WRITING:
        notes = read_notes(path)
        if dialogue_id in notes and notes[dialogue_id].note == text:
            return
        if text_of(notes, dialogue_id) != expected:
            raise ChangedNoteError(dialogue_id)
        notes.pop(dialogue_id, None)
        if text:
            time = datetime.now(UTC).isoformat(timespec="seconds")
            notes[dialogue_id] = Note(dialogue_id, text, time)
        rows = [(note.dialogue_id, note.note, note.time) for note in notes.values()]
        write_atomic(path, csv_text(rows, COLUMNS))


def text_of(notes: Mapping[str, Note], dialogue_id: str) -> str:
    """Return the text of the note on a dialogue, empty without a note."""
    return notes[dialogue_id].note if dialogue_id in notes else ""


def plain(text: str) -> str:
    """Return a text as it can be stored: with line feeds only, without NUL and surrounding white space.

    >>> plain(" a\\r\\nb\\0 ")
    'a\\nb'
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()


def _wrong_time(note: Note) -> Iterator[str]:
    try:
        datetime.fromisoformat(note.time)
    except ValueError:
        yield f"time is {note.time!r}; expected a time like 2026-01-31T12:00:00+00:00"


NOTES = Schema(
    Note,
    {"dialogue_id": TEXT, "note": TEXT, "time": TEXT},
    unique=[Unique("dialogue_id", lambda note: note.dialogue_id, normal_ids)],
    check=_wrong_time,
)
WRITING = Lock()
"""Sessions of one explorer write one after the other."""
