"""JSON Lines: one dialogue per line (``turns`` of strings or objects), or one turn per line."""

from __future__ import annotations

import os
from collections.abc import Mapping

from bws.problems import InputError, Problem
from bws.textio import display_name
from giccs.benchmark.fields import json_lines
from giccs.preparation.transcripts.lines import Transcript, stem
from giccs.preparation.transcripts.objects import DialogueColumns, ObjectReader

__all__ = ["read"]


def read(
    path: str | os.PathLike[str],
    columns: Mapping[str, str],
    layout: DialogueColumns | None = None,
) -> Transcript:
    """Read a file; a dialogue without an id is named after the file and its position in it.

    columns: names of keys that differ from the usual ones, by part ("text", "speaker", ...).
    layout: the keys of a dialogue's parts; None: an object with ``turns`` is a dialogue, its candidates
        are in ``candidates``, and any other object is a turn.
    """
    file = display_name(path)
    reader = ObjectReader(file, columns, layout)
    problems: list[Problem] = []
    for position, fields in enumerate(json_lines(path), start=1):
        if not fields.values:
            pass
        elif layout or "turns" in fields.values:
            reader.add_dialogue(fields, f"{stem(file)}-{position}")
        else:
            reader.add_turn(fields, stem(file))
        problems += fields.problems
    if problems:
        raise InputError(problems)
    unused = [
        Problem(file, None, f"key {key!r} left out of {times} objects")
        for key, times in sorted(reader.unused.items())
    ]
    return Transcript(
        tuple(reader.lines),
        (*reader.warnings, *unused),
        candidates=reader.candidates,
        unused=reader.unused,
        notes=reader.notes,
    )
