"""Tables of turns (CSV, TSV; comma, semicolon or tab): a row a turn, columns found by their names.

CROWDSS (Frommherz and Zarcone 2021) and its like are such tables with dialogue acts beside the text. Where
one turn has several rows, one for each act, the rows have the turn's number and speaker in common.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from bws.files.table import read_table
from bws.problems import InputError, Problem
from giccs.transcripts.lines import Line, Transcript, stem
from giccs.transcripts.names import ACTS, PARTS, assign

__all__ = ["read"]


def read(path: str | os.PathLike[str], columns: Mapping[str, str]) -> Transcript:
    """Read a table; a file without a column for the dialogue is one dialogue, called like the file.

    columns: the names of columns that are not found by themselves, by part ("text", "speaker", ...).

    Raises InputError where there is no text, or rows have the wrong number of fields.
    """
    table = read_table(path, separator="\t" if str(path).endswith((".tsv", ".tsv.gz")) else None)
    try:
        found = assign(table.frame.columns, columns)
    except ValueError as error:
        raise InputError(Problem(table.file, 1, str(error))) from None
    if "text" not in found:
        there = ", ".join(table.frame.columns)
        message = f"no column for the text; name it: --columns text=NAME; there are {there}"
        raise InputError([Problem(table.file, 1, message), *table.problems])
    if table.problems:
        raise InputError(table.problems)
    parts = {part: table.frame[column].to_list() for part, column in found.items()}
    parts.setdefault("dialogue", [stem(table.file)] * len(table.frame))
    empty = [""] * len(table.frame)
    rows = zip(
        table.lines.tolist(), *(parts.get(part, empty) for part in _FIELDS.values()), strict=True
    )
    lines = tuple(
        Line(table.file, line, **dict(zip(_FIELDS, map(str.strip, cells), strict=True)))
        for line, *cells in rows
    )
    _check_dialogues(lines)
    rest = [column for column in table.frame.columns if column not in found.values()]
    return Transcript(lines, tuple(_left_out(table.file, rest)))


_FIELDS = {"number" if part == "turn" else part: part for part in PARTS}


def _check_dialogues(lines: Sequence[Line]) -> None:
    unnamed = [line for line in lines if not line.dialogue]
    message = "the dialogue is empty; each row names the one it belongs to"
    if unnamed:
        raise InputError(Problem(line.file, line.line, message) for line in unnamed)


def _left_out(file: str, columns: Sequence[str]) -> list[Problem]:
    acts = [column for column in columns if ACTS.search(column.strip().casefold())]
    rest = [column for column in columns if column not in acts]
    said = [(acts, "columns of dialogue acts or labels"), (rest, "columns")]
    return [
        Problem(file, None, f"{what} left out: {', '.join(names)}") for names, what in said if names
    ]
