"""Captions grouped by source, such as an image with several descriptions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from bws.files.schema import NAME, Field, Row, Unique, json_rows, records
from bws.files.table import read_table

COLUMNS = ("source_id", "caption")


@dataclass(frozen=True, eq=False)
class Captions:
    """N captions of S sources, grouped by source; captions are unique within a source."""

    file: str
    """The name of the file in messages."""
    sources: tuple[str, ...]
    """(S,) in the order of first appearance in the file."""
    texts: tuple[str, ...]
    """(N,) without surrounding white space."""
    starts: NDArray[np.int64]
    """(S + 1,) the captions of source s are ``texts[starts[s]:starts[s + 1]]``."""
    lines: NDArray[np.int64]
    """(N,) line number of each caption."""
    caption_indices: NDArray[np.int64]
    """(N,) index of each caption in the file."""
    in_file: int
    """Number of captions in the file, including repeated ones."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """(S,) number of captions per source."""
        return np.diff(self.starts)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Return warnings about skipped captions."""
        repeated = self.in_file - len(self.texts)
        message = f"captions repeated within their source are skipped: {repeated} of {self.in_file}"
        return (Problem(self.file, None, message),) if repeated else ()


class _Row(NamedTuple):
    source: str
    text: str
    line: int


def read_captions(path: str | os.PathLike[str]) -> Captions:
    """Read captions: JSON Lines of ``{"source_id", "captions": [...]}``, or a table (CSV, TSV).

    A table has the columns ``source_id`` and ``caption``, with one caption per row; rows of a source need not
    be adjacent. Files ending in ``.jsonl`` or ``.jsonl.gz`` are JSON Lines, with one source per line.

    Raises InputError with every empty caption, unnamed source and source without captions, and for fewer than
    two sources.
    """
    name = os.fspath(path).removesuffix(".gz")
    problems: list[Problem] = []
    read = _json_rows if name.endswith(".jsonl") else _table_rows
    rows = list(read(path, problems))
    file = display_name(path)
    problems += _blank(file, rows)
    sources = tuple(dict.fromkeys(row.source for row in rows))
    if not problems and len(sources) < 2:
        message = f"{len(sources)} source; expected at least two, because captions are paired across sources"
        problems.append(Problem(file, None, message))
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return _grouped(file, sources, rows)


def _blank(file: str, rows: Sequence[_Row]) -> Iterator[Problem]:
    for row in rows:
        if not row.source:
            yield Problem(file, row.line, "source_id is empty; expected the source of the caption")
        if not row.text:
            yield Problem(file, row.line, "the caption is empty; expected text")


def _table_rows(path: str | os.PathLike[str], problems: list[Problem]) -> Iterator[_Row]:
    table = read_table(path, COLUMNS)
    problems += table.problems
    table.need(COLUMNS)
    columns = (table.frame[column].to_list() for column in COLUMNS)
    for source, text, line in zip(*columns, table.lines.tolist(), strict=True):
        yield _Row(source.strip(), text.strip(), line)


def _json_rows(path: str | os.PathLike[str], problems: list[Problem]) -> Iterator[_Row]:
    unique = Unique[tuple[str, list[str]]]("source_id", lambda row: row[0])
    result = records(display_name(path), json_rows(path), _source, [unique])
    problems += result.problems
    for row in result.rows:
        source, captions = row.record
        yield from (
            _Row(source, text.strip(), row.location.line or 0) for text in captions if source
        )


def _source(row: Row) -> tuple[str, list[str]]:
    """Return the name of a source, which may be a number, and its captions."""
    return row.get("source_id", SOURCE), row.get("captions", CAPTIONS)


def _captions(value: Any) -> list[str]:
    if not value or not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("expected a list of one or more strings")
    return value


SOURCE = Field(lambda value: str(value) if type(value) is int else NAME.parse(value), "")
CAPTIONS: Field[list[str]] = Field(_captions, [])


def _grouped(file: str, sources: tuple[str, ...], rows: Sequence[_Row]) -> Captions:
    """Group captions by source and skip captions repeated within a source."""
    number = {source: index for index, source in enumerate(sources)}
    owner = np.array([number[row.source] for row in rows], dtype=np.int64)
    once: dict[tuple[int, str], int] = {}
    for row_index in np.argsort(owner, kind="stable").tolist():
        once.setdefault((int(owner[row_index]), rows[row_index].text), row_index)
    caption_indices = np.fromiter(once.values(), dtype=np.int64, count=len(once))
    starts = np.searchsorted(owner[caption_indices], np.arange(len(sources) + 1))
    return Captions(
        file,
        sources,
        tuple(rows[index].text for index in caption_indices.tolist()),
        starts.astype(np.int64),
        np.array([rows[index].line for index in caption_indices.tolist()], dtype=np.int64),
        caption_indices,
        len(rows),
    )
