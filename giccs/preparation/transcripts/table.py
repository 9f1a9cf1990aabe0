"""Tables (CSV, TSV; comma, semicolon or tab): one row per turn, or one row per dialogue.

CROWDSS (Frommherz and Zarcone 2021) and its like are such tables with dialogue acts beside the text. Where
one turn has several rows, one for each act, the rows have the turn's number and speaker in common. Tables
with one row per dialogue are spreadsheets with a column for the context and one per candidate.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from bws.files.table import Table, read_table
from bws.problems import InputError, Problem
from giccs.benchmark.fields import Fields
from giccs.preparation.transcripts.lines import Line, Transcript, stem
from giccs.preparation.transcripts.names import ACTS, PARTS, assign, find_columns
from giccs.preparation.transcripts.objects import DialogueColumns, ObjectReader

__all__ = ["read"]


def read(
    path: str | os.PathLike[str],
    columns: Mapping[str, str],
    layout: DialogueColumns | None = None,
) -> Transcript:
    """Read a table; a file without a column for the dialogue is one dialogue, called like the file.

    columns: the names of columns that are not found by themselves, by part ("text", "speaker", ...).
    layout: the columns of a table with one row per dialogue, in which a row without an id is named after
        the file and its position; None: a row is a turn.

    Raises InputError where a column is missing, or rows have the wrong number of fields.
    """
    table = read_table(path, separator="\t" if str(path).endswith((".tsv", ".tsv.gz")) else None)
    if layout:
        return _dialogues(table, columns, layout)
    try:
        found = assign(table.frame.columns, columns)
    except ValueError as error:
        raise InputError(Problem(table.file, 1, str(error))) from None
    if "text" not in found:
        there = ", ".join(table.frame.columns)
        message = (
            "no column for the text; name it: --columns text=NAME, or, where a row is a whole dialogue, "
            f"--context, --target and --candidates; there are {there}"
        )
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
    unused = _unused(table, found.values())
    warnings = _left_out(table.file, unused)
    if unused and "dialogue" not in found:
        message = (
            f"no column for the dialogue: all {len(lines)} rows are one; --id names the column"
        )
        warnings.append(Problem(table.file, 1, message))
    return Transcript(lines, tuple(warnings), unused=unused)


_FIELDS = {"number" if part == "turn" else part: part for part in PARTS}


def _check_dialogues(lines: Sequence[Line]) -> None:
    unnamed = [line for line in lines if not line.dialogue]
    message = "the dialogue is empty; each row names the one it belongs to"
    if unnamed:
        raise InputError(Problem(line.file, line.line, message) for line in unnamed)


def _dialogues(table: Table, columns: Mapping[str, str], layout: DialogueColumns) -> Transcript:
    """Return the turns and candidates of a table with one row per dialogue."""
    if table.problems:
        raise InputError(table.problems)
    names = table.frame.columns
    try:
        chosen = iter(find_columns(names, [*layout.names, *columns.values()]))
    except ValueError as error:
        raise InputError(Problem(table.file, 1, str(error))) from None
    layout = replace(
        layout,
        context=tuple(islice(chosen, len(layout.context))),
        target=next(chosen) if layout.target else "",
        candidates=tuple(islice(chosen, len(layout.candidates))),
    )
    reader = ObjectReader(table.file, dict(zip(columns, chosen, strict=True)), layout)
    problems: list[Problem] = []
    rows = zip(table.lines.tolist(), table.frame.iter_rows(named=True), strict=True)
    for position, (line, cells) in enumerate(rows, start=1):
        fields = Fields(table.file, line, cells)
        reader.add_dialogue(fields, f"{stem(table.file)}-{position}")
        problems += fields.problems
    if problems:
        raise InputError(problems)
    unused = Counter({name: reader.unused[name] for name in names if reader.unused[name]})
    return Transcript(
        tuple(reader.lines),
        (*reader.warnings, *_left_out(table.file, unused)),
        candidates=reader.candidates,
        unused=unused,
        notes=reader.notes,
    )


def _unused(table: Table, used: Collection[str]) -> Counter[str]:
    """Return the columns that are not used, and how many cells of each are not empty."""
    return Counter(
        {
            name: int((table.frame[name].str.strip_chars() != "").sum())
            for name in table.frame.columns
            if name not in used
        }
    )


def _left_out(file: str, unused: Mapping[str, int]) -> list[Problem]:
    acts = [column for column in unused if ACTS.search(column.strip().casefold())]
    rest = [column for column in unused if column not in acts]
    kinds = [(acts, "columns of dialogue acts or labels"), (rest, "columns")]
    return [
        Problem(file, None, f"{kind} left out: {_with_counts(unused, names)}")
        for names, kind in kinds
        if names
    ]


def _with_counts(unused: Mapping[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{name} (cells: {unused[name]})" for name in names)
