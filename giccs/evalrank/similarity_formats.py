"""Readers for files of rated text pairs.

Formats are recognised by content: benchmarks of giccs; STS-Benchmark (seven or more tab-separated fields
without header and quoting, the fifth is the score); tables with a header, data frames, JSON Lines and JSON
arrays with two texts and a score (`file_kinds.pair_columns`, or columns given by the user), also SICK,
STR and SemRel; three fields without a header (``word word score``, or tab-separated texts with the score
first or last). Files named ``STS.input.*`` have their scores in ``STS.gs.*`` (see
`giccs.evalrank.semeval_sts`).
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bws.base.file_kinds import pair_columns, remark
from bws.base.frames import Source, frame_records, is_path
from bws.base.problems import InputError, Problem
from bws.base.rows import json_lines_text
from bws.base.text import display_name, read_bytes
from bws.files.schema import json_values
from bws.files.table import DECIMAL_COMMA, Table, table_of, text_bytes
from giccs.evalrank.semeval_sts import gold_path, read_gold_rows

Scale = tuple[float, float]
QUOTED_TEXTS = re.compile(r'(?<=")\s*\n\s*(?=")')
"""The line break between two texts in quotes."""
POINT_OR_THOUSANDS = r"\.|^\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*$"
STS_SCALE: Scale = (0.0, 5.0)
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
STS_MIN_FIELDS, STS_SCORE_INDEX = 7, 4
KNOWN_FORMATS = (
    "expected a header with text1, text2, score (or sentence1, sentence2, label and similar; rename other "
    "columns); word, word, score without a header; a file of STS-Benchmark, SemEval's STS (STS.input.* "
    "with STS.gs.*), SICK or STR; or a benchmark of giccs (.jsonl)"
)


class Columns(NamedTuple):
    """Column names of a table; `second` is empty if `first` contains both texts, one per line."""

    first: str
    second: str
    score: str


KNOWN_HEADERS: tuple[tuple[Columns, Scale], ...] = (
    (Columns("sentence_A", "sentence_B", "relatedness_score"), (1.0, 5.0)),
    (Columns("Text", "", "Score"), (0.0, 1.0)),
)
"""Headers that imply a rating scale."""


class RatedPair(NamedTuple):
    """Two texts and their human similarity rating."""

    text1: str
    text2: str
    score: float

    @property
    def texts(self) -> frozenset[str]:
        """Unordered texts; a single element if they are identical."""
        return frozenset((self.text1, self.text2))


@dataclass(frozen=True)
class RatedFile:
    """Rated pairs of a file, or of a file of texts and its file of scores."""

    files: tuple[tuple[str, str], ...]
    """Names and SHA-256 digests of the files."""
    pairs: tuple[RatedPair, ...]
    scale: Scale | None
    """Minimum and maximum of the rating scale; None if unknown."""
    n_unrated: int = 0
    """Number of rows without a score, which are excluded from `pairs`."""
    repeated_headers: tuple[int, ...] = ()
    """Lines that repeat the header, which are excluded from `pairs`."""


@dataclass(frozen=True)
class _FileContent:
    """Rows of a file as (line, first text, second text, unparsed score), with the problems of other lines."""

    rows: Sequence[tuple[int, str, str, str]]
    problems: Sequence[Problem] = ()
    scale: Scale | None = None
    scores: tuple[str, bytes] | None = None
    """Name and content of the file with the scores, if it is a separate file."""
    n_unrated: int = 0
    repeated_headers: tuple[int, ...] = ()


def read_rated(path: Source, columns: Columns | None = None) -> RatedFile:
    """Read rated pairs from a file (``-`` and ``.gz`` are supported), a data frame or records.

    Leading and trailing white space of texts is removed. Scores must be numbers within the scale, if known.
    Raises InputError with all problems.
    """
    name = display_name(path)
    records = _records(path)
    data = (
        read_bytes(path) if is_path(path) else json_lines_text(r for _, r in records or ()).encode()
    )
    if records is not None:
        file_content = _read_records(path, name, records, columns)
    elif columns is None and (gold := gold_path(Path(path))):
        file_content = _read_semeval(Path(path), data, gold)
    else:
        file_content = _parse_content(text_bytes(data, name), name, columns)
    pairs, problems = [], list(file_content.problems)
    score_file = file_content.scores[0] if file_content.scores else name
    for line, first, second, score_text in file_content.rows:
        pair = RatedPair(first.strip(), second.strip(), _parse_number(score_text))
        problems += [Problem(name, line, fault) for fault in _text_faults(pair)]
        problems += [
            Problem(score_file, line, fault)
            for fault in _score_faults(pair, score_text, file_content.scale)
        ]
        pairs.append(pair)
    if not pairs and not problems:
        problems.append(Problem(name, None, "no pairs; expected at least one"))
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    files = [(name, data), *([file_content.scores] if file_content.scores else [])]
    hashes = tuple((file, hashlib.sha256(content).hexdigest()) for file, content in files)
    return RatedFile(
        hashes,
        tuple(pairs),
        file_content.scale,
        file_content.n_unrated,
        file_content.repeated_headers,
    )


def _text_faults(pair: RatedPair) -> Iterator[str]:
    if not pair.text1 or not pair.text2:
        yield "empty text; expected two texts per pair"


def _score_faults(pair: RatedPair, score_text: str, scale: Scale | None) -> Iterator[str]:
    if not math.isfinite(pair.score):
        yield f"the score is {score_text!r}; expected a number"
    elif scale and not scale[0] <= pair.score <= scale[1]:
        yield f"the score is {score_text}; expected a number from {scale[0]:g} to {scale[1]:g}"


def _parse_number(text: str) -> float:
    """Return the number, or NaN if the text is not a number.

    >>> _parse_number(" 3.5\\r"), _parse_number("high"), _parse_number("1_0")
    (3.5, nan, nan)
    """
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _records(source: Source) -> list[tuple[int, Mapping[str, Any]]] | None:
    """Return the objects of a JSON file, or the rows of a data frame, with their lines; None for a table."""
    if not is_path(source):
        return list(enumerate(frame_records(source), start=2))  # Line 1 is the header.
    if not os.fspath(source).removesuffix(".gz").endswith(JSON_SUFFIXES):
        return None
    objects = list(json_values(source))
    problems = [
        location.problem(
            f"not a JSON object{reason and f' ({reason})'}; expected one per line or element"
        )
        for location, value, reason in objects
        if reason or not isinstance(value, dict)
    ]
    if problems:
        raise InputError(problems)
    return [(location.line or 0, value) for location, value, _ in objects]


def _read_records(
    source: Source, name: str, records: Sequence[tuple[int, Mapping[str, Any]]], columns: Columns | None
) -> _FileContent:  # fmt: skip
    keys = list(dict.fromkeys(key for _, record in records for key in record))
    if not keys:
        raise InputError(Problem(name, None, "no pairs; expected at least one"))
    if "turns" in keys:
        return _read_benchmark_items(source)
    import polars as pl

    cells = {
        key: ["" if record.get(key) is None else str(record[key]) for _, record in records]
        for key in keys
    }
    lines = np.array([line for line, _ in records], np.int64)
    return _table_content(Table(name, pl.DataFrame(cells), lines), columns)


def _read_benchmark_items(path: Source) -> _FileContent:
    from giccs.benchmark import read_benchmark

    items = read_benchmark(path).items
    rows = [
        (line, item.last_turn, item.utterance, repr(item.score))
        for line, item in enumerate(items, 1)
    ]
    return _FileContent(rows, scale=(0.0, 1.0))


def _read_semeval(path: Path, data: bytes, gold: Path) -> _FileContent:
    gold_rows = read_gold_rows(path, data, gold)
    scores = (str(gold), gold_rows.gold_bytes)
    return _FileContent(gold_rows.rows, gold_rows.problems, STS_SCALE, scores, gold_rows.n_unrated)


def _parse_content(data: bytes, name: str, columns: Columns | None) -> _FileContent:
    text = data.decode("utf-8")
    first = next((line for line in text.split("\n") if line.strip()), "")
    if columns is None and _is_sts_benchmark(first.split("\t")):
        return _parse_fields(text, name, STS_MIN_FIELDS, (5, 6, STS_SCORE_INDEX), "\t", STS_SCALE)
    if columns is None and (layout := _three_field_layout(first)):
        return _parse_fields(text, name, 3, *layout, None)
    return _table_content(table_of(data, name), columns)


def _table_content(table: Table, columns: Columns | None) -> _FileContent:
    table, columns, scale = (
        (table.named(columns), columns, None) if columns else _known_columns(table)
    )
    content = _table_rows(_with_decimal_points(table, columns.score), columns, scale)
    return replace(content, repeated_headers=table.repeated_headers)


def _with_decimal_points(table: Table, score: str) -> Table:
    """Return the table with points for the decimal commas of the scores.

    Where semicolons do not separate fields, a comma may also separate thousands: such scores, and those of
    a column that has points too, remain as they are and are errors.
    """
    if table.separator == ";" or score not in table.frame.columns:
        return table.with_decimal_points([score])
    cells = table.frame[score]
    if cells.str.contains(POINT_OR_THOUSANDS).any():
        return table
    points = cells.str.replace(DECIMAL_COMMA, "$1.$2")
    return replace(table, frame=table.frame.with_columns(points))


def _is_sts_benchmark(fields: Sequence[str]) -> bool:
    return len(fields) >= STS_MIN_FIELDS and not math.isnan(_parse_number(fields[STS_SCORE_INDEX]))


def _three_field_layout(line: str) -> tuple[tuple[int, int, int], str | None] | None:
    """Return the indices of texts and score in a three-field line, and the separator; None for other lines.

    >>> _three_field_layout("sun sunlight 50.0"), _three_field_layout("text1,text2,score")
    (((0, 1, 2), None), None)
    >>> _three_field_layout("5.0\\tEin Mann.\\tEin Kind.")
    ((1, 2, 0), '\\t')
    """
    for separator in ("\t", None):
        fields = line.split(separator)
        if len(fields) == 3 and not math.isnan(_parse_number(fields[2])):
            return (0, 1, 2), separator
        if separator and len(fields) == 3 and not math.isnan(_parse_number(fields[0])):
            return (1, 2, 0), separator
    return None


def _parse_fields(
    text: str, name: str, min_fields: int, indices: tuple[int, int, int], separator: str | None,
    scale: Scale | None,
) -> _FileContent:  # fmt: skip
    """Parse rows of unquoted fields: at least `min_fields` per row, or exactly three if it is three."""
    rows: list[tuple[int, str, str, str]] = []
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split(separator)
        if not line.strip():
            continue
        if len(fields) < min_fields or (min_fields == 3 and len(fields) > 3):
            expected = "3" if min_fields == 3 else f"{min_fields} or more"
            if separator is None and len(fields) > 3:
                expected += ", separated by tabs if a text contains spaces"
            problems.append(Problem(name, number, f"{len(fields)} fields; expected {expected}"))
        else:
            first, second, score = (fields[index] for index in indices)
            rows.append((number, first, second, score))
    return _FileContent(rows, problems, scale)


def _known_columns(table: Table) -> tuple[Table, Columns, Scale | None]:
    """Return the table with the known names for its columns, and these names."""
    for columns, scale in KNOWN_HEADERS:
        named = table.named(filter(None, columns))
        if {*named.frame.columns} >= {name for name in columns if name}:
            return named, columns, scale
    if pair := pair_columns(table.frame.columns):
        return table, Columns(*pair), None
    first_columns = ", ".join(table.frame.columns[:8])
    first_line = f"first line: {first_columns[:80]}"
    other_kind = remark(table.frame.columns)
    message = f"unknown format of rated pairs ({first_line}){other_kind or f'; {KNOWN_FORMATS}'}"
    raise InputError(Problem(table.file, None, message))


def _table_rows(table: Table, columns: Columns, scale: Scale | None) -> _FileContent:
    missing = [name for name in columns if name and name not in table.frame.columns]
    if missing:
        available = ", ".join(table.frame.columns)
        message = f"no column {', '.join(missing)}; existing columns are {available}"
        raise InputError(Problem(table.file, None, message))
    lines = table.lines.tolist()
    firsts, scores = (table.frame[name].to_list() for name in (columns.first, columns.score))
    if columns.second:
        seconds = table.frame[columns.second].to_list()
        return _FileContent(
            list(zip(lines, firsts, seconds, scores, strict=True)), table.problems, scale
        )
    return _two_line_rows(table, lines, firsts, scores, scale)


def _two_line_rows(
    table: Table, lines: Sequence[int], cells: Sequence[str], scores: Sequence[str],
    scale: Scale | None,
) -> _FileContent:  # fmt: skip
    """Return rows whose two texts are the lines of a cell; quotes are removed if all texts are quoted."""
    cell_lines = [_two_lines(cell) for cell in cells]
    problems = [
        Problem(table.file, line, f"{len(texts)} lines of text; expected two texts, one per line")
        for line, texts in zip(lines, cell_lines, strict=True)
        if len(texts) != 2
    ]
    quoted = all(_is_quoted(text) for texts in cell_lines for text in texts)
    rows = [
        (line, _unquote(texts[0], quoted), _unquote(texts[1], quoted), score)
        for line, texts, score in zip(lines, cell_lines, scores, strict=True)
        if len(texts) == 2
    ]
    return _FileContent(rows, [*table.problems, *problems], scale)


def _two_lines(cell: str) -> list[str]:
    """Return the lines of a cell that are not empty, or its two quoted texts, which may have several lines.

    >>> _two_lines("A kite.\\n\\n A bus."), _two_lines('"A\\nkite."\\n"A bus."')
    (['A kite.', 'A bus.'], ['"A\\nkite."', '"A bus."'])
    """
    lines = [line.strip() for line in cell.split("\n") if line.strip()]
    if len(lines) > 2 and len(texts := QUOTED_TEXTS.split(cell.strip())) == 2:
        return texts
    return lines


def _unquote(text: str, quoted: bool) -> str:
    return text.strip()[1:-1] if quoted else text


def _is_quoted(text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'
