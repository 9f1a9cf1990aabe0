"""How does a file tell which pairs of texts were rated, and with what score?

Known forms, by what is in the file: a benchmark of giccs (``.jsonl``); STS-Benchmark (seven or more fields
between tabs, no header, the fifth is the score, nothing is quoted); a table with a header (SICK, STR and
SemRel, or columns that the user names); three fields without a header (``word word score``, or texts between
tabs with the score first or last). By its name: ``STS.input.*``, whose scores are in ``STS.gs.*`` (see
`giccs.evalrank.semeval_sts`).
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bws.files.table import Table, table_of, text_bytes
from bws.problems import InputError, Problem
from bws.textio import display_name, read_bytes
from giccs.evalrank.semeval_sts import gold_path, read_gold_rows

__all__ = ["Columns", "RatedFile", "RatedPair", "read_rated"]

Scale = tuple[float, float]
STS: Scale = (0.0, 5.0)
STS_FIELDS, STS_SCORE = 7, 4
FORMS = (
    "known are: a header with text1, text2, score; word, word, score without a header; the files of "
    "STS-Benchmark, SemEval's STS (STS.input.* with STS.gs.*), SICK and STR; a benchmark of giccs (.jsonl)"
)


class Columns(NamedTuple):
    """Names of a table's columns; `second` is empty where `first` holds both texts, a line each."""

    first: str
    second: str
    score: str


HEADERS: tuple[tuple[Columns, Scale | None], ...] = (
    (Columns("text1", "text2", "score"), None),
    (Columns("sentence1", "sentence2", "score"), None),
    (Columns("sentence1", "sentence2", "similarity_score"), None),
    (Columns("word1", "word2", "score"), None),
    (Columns("sentence_A", "sentence_B", "relatedness_score"), (1.0, 5.0)),
    (Columns("Text", "", "Score"), (0.0, 1.0)),
)
"""Headers that are known, and the scale where the header tells it: SICK; STR and SemRel."""


class RatedPair(NamedTuple):
    """Two texts and how similar people found them."""

    text1: str
    text2: str
    score: float

    @property
    def texts(self) -> frozenset[str]:
        """Return the texts without their order; one where they are the same."""
        return frozenset((self.text1, self.text2))


@dataclass(frozen=True)
class RatedFile:
    """What one file holds, or a file of texts and its file of scores."""

    files: tuple[tuple[str, str], ...]
    """(file, SHA-256 of its bytes)."""
    pairs: tuple[RatedPair, ...]
    scale: Scale | None
    """The least and the most similar a pair can be; None where the file does not tell."""
    n_unrated: int = 0
    """Rows without a score, which are not among the pairs."""


@dataclass(frozen=True)
class _Rows:
    """What stands in a file: (line, text, text, score as it is written), and which lines are wrong."""

    rows: Sequence[tuple[int, str, str, str]]
    problems: Sequence[Problem] = ()
    scale: Scale | None = None
    scores: tuple[str, bytes] | None = None
    """Name and bytes of the file with the scores, where it is another file."""
    n_unrated: int = 0


def read_rated(path: str | os.PathLike[str], columns: Columns | None = None) -> RatedFile:
    """Read a file of rated pairs (``-``, ``.gz`` as usual); raise InputError with every problem it has.

    Texts lose white space at their ends. A score must be a number, and inside the scale where there is one.
    """
    name = display_name(path)
    data = read_bytes(path)
    if name.removesuffix(".gz").endswith(".jsonl"):
        found = _benchmark(path)
    elif columns is None and (gold := gold_path(Path(path))):
        found = _semeval(Path(path), data, gold)
    else:
        found = _rows(text_bytes(data, name), name, columns)
    pairs, problems = [], list(found.problems)
    of_scores = found.scores[0] if found.scores else name
    for line, first, second, written in found.rows:
        pair = RatedPair(first.strip(), second.strip(), _number(written))
        problems += [Problem(name, line, fault) for fault in _text_faults(pair)]
        problems += [
            Problem(of_scores, line, fault) for fault in _score_faults(pair, written, found.scale)
        ]
        pairs.append(pair)
    if not pairs and not problems:
        problems.append(Problem(name, None, "holds no pairs"))
    if problems:
        raise InputError(sorted(problems, key=lambda one: one.line or 0))
    files = [(name, data), *([found.scores] if found.scores else [])]
    hashes = tuple((file, hashlib.sha256(content).hexdigest()) for file, content in files)
    return RatedFile(hashes, tuple(pairs), found.scale, found.n_unrated)


def _text_faults(pair: RatedPair) -> Iterator[str]:
    if not pair.text1 or not pair.text2:
        yield "a text is empty; a pair needs two"


def _score_faults(pair: RatedPair, written: str, scale: Scale | None) -> Iterator[str]:
    if not math.isfinite(pair.score):
        yield f"the score is {written!r}; it must be a number"
    elif scale and not scale[0] <= pair.score <= scale[1]:
        yield f"the score is {written}; it must be from {scale[0]:g} to {scale[1]:g}"


def _number(written: str) -> float:
    """Return the number, NaN where it is none.

    >>> _number(" 3.5\\r"), _number("high"), _number("1_0")
    (3.5, nan, nan)
    """
    try:
        return math.nan if "_" in written else float(written)
    except ValueError:
        return math.nan


def _benchmark(path: str | os.PathLike[str]) -> _Rows:
    from giccs.benchmark import read_benchmark

    items = read_benchmark(path).items
    rows = [
        (line, one.last_turn, one.utterance, repr(one.score)) for line, one in enumerate(items, 1)
    ]
    return _Rows(rows, scale=(0.0, 1.0))


def _semeval(path: Path, data: bytes, gold: Path) -> _Rows:
    found = read_gold_rows(path, data, gold)
    scores = (str(gold), found.gold_bytes)
    return _Rows(found.rows, found.problems, STS, scores, found.n_unrated)


def _rows(data: bytes, name: str, columns: Columns | None) -> _Rows:
    text = data.decode("utf-8")
    first = next((line for line in text.split("\n") if line.strip()), "")
    if columns is None and _is_sts(first.split("\t")):
        return _fields(text, name, STS_FIELDS, (5, 6, STS_SCORE), "\t", STS)
    if columns is None and (three := _three(first)):
        return _fields(text, name, 3, *three, None)
    table = table_of(data, name)
    columns, scale = (columns, None) if columns else _known(table)
    return _table_rows(table, columns, scale)


def _is_sts(fields: Sequence[str]) -> bool:
    return len(fields) >= STS_FIELDS and not math.isnan(_number(fields[STS_SCORE]))


def _three(line: str) -> tuple[tuple[int, int, int], str | None] | None:
    """Return where a line of three fields has its texts and its score, and what is between; None for others.

    >>> _three("sun sunlight 50.0"), _three("5.0\\tEin Mann.\\tEin Kind."), _three("text1,text2,score")
    (((0, 1, 2), None), ((1, 2, 0), '\\t'), None)
    """
    for between in ("\t", None):
        fields = line.split(between)
        if len(fields) == 3 and not math.isnan(_number(fields[2])):
            return (0, 1, 2), between
        if between and len(fields) == 3 and not math.isnan(_number(fields[0])):
            return (1, 2, 0), between
    return None


def _fields(
    text: str, name: str, least: int, places: tuple[int, int, int], between: str | None,
    scale: Scale | None,
) -> _Rows:  # fmt: skip
    """Return rows of fields that are not quoted; `least` fields, and exactly so many where it is three."""
    rows: list[tuple[int, str, str, str]] = []
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split(between)
        if not line.strip():
            continue
        if len(fields) < least or (least == 3 and len(fields) > 3):
            needed = "3" if least == 3 else f"{least} or more"
            if between is None and len(fields) > 3:
                needed += ", or tabs between where a text has spaces"
            problems.append(Problem(name, number, f"{len(fields)} fields; a row has {needed}"))
        else:
            first, second, score = (fields[place] for place in places)
            rows.append((number, first, second, score))
    return _Rows(rows, problems, scale)


def _known(table: Table) -> tuple[Columns, Scale | None]:
    there = set(table.frame.columns)
    for columns, scale in HEADERS:
        if there >= {name for name in columns if name}:
            return columns, scale
    here = ", ".join(table.frame.columns[:8])
    message = f"is in no known form of rated pairs (first line: {here[:80]}); {FORMS}"
    raise InputError(Problem(table.file, None, message))


def _table_rows(table: Table, columns: Columns, scale: Scale | None) -> _Rows:
    missing = [name for name in columns if name and name not in table.frame.columns]
    if missing:
        there = ", ".join(table.frame.columns)
        message = f"has no column {', '.join(missing)}; its columns are {there}"
        raise InputError(Problem(table.file, None, message))
    lines = table.lines.tolist()
    firsts, scores = (table.frame[name].to_list() for name in (columns.first, columns.score))
    if columns.second:
        seconds = table.frame[columns.second].to_list()
        return _Rows(list(zip(lines, firsts, seconds, scores, strict=True)), table.problems, scale)
    return _two_lines(table, lines, firsts, scores, scale)


def _two_lines(
    table: Table, lines: Sequence[int], cells: Sequence[str], scores: Sequence[str],
    scale: Scale | None,
) -> _Rows:  # fmt: skip
    """Return rows whose two texts are the lines of one cell; quotes around every text of the file go."""
    split = [cell.strip().split("\n") for cell in cells]
    problems = [
        Problem(table.file, line, f"{len(texts)} lines of text; a pair has two, a line each")
        for line, texts in zip(lines, split, strict=True)
        if len(texts) != 2
    ]
    quoted = all(_is_quoted(text) for texts in split for text in texts)
    rows = [
        (line, _bare(texts[0], quoted), _bare(texts[1], quoted), score)
        for line, texts, score in zip(lines, split, scores, strict=True)
        if len(texts) == 2
    ]
    return _Rows(rows, [*table.problems, *problems], scale)


def _bare(text: str, quoted: bool) -> str:
    return text.strip()[1:-1] if quoted else text


def _is_quoted(text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'
