"""STS files of SemEval 2012 to 2017: sentence pairs in one file, their gold scores in another.

``STS.input.NAME.txt`` (``STS2016.input.NAME.txt`` in the release of 2016) has two sentences per line,
separated by a tab; further fields are ignored. Line n of ``STS.gs.NAME.txt``, in the same folder, is the
score of line n, from 0 to 5; it is blank where the pair was not rated (2015, 2016). SentEval's
``downstream/STS`` holds the same files, one folder per year.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bws.base.problems import InputError, Problem
from bws.base.text import read_bytes
from bws.files.table import text_bytes

NAME = re.compile(r"(STS\d*)\.(input|gs)\.(.+)\.txt(\.gz)?")
ALL = "ALL"
"""Name of the file that joins all sets of a year."""


@dataclass(frozen=True)
class GoldRows:
    """The rated rows of a pair of files."""

    rows: Sequence[tuple[int, str, str, str]]
    """(line, first text, second text, unparsed score)."""
    problems: Sequence[Problem]
    n_unrated: int
    """Rows whose gold score is blank."""
    gold_bytes: bytes
    """Content of the file of gold scores."""


def set_name(path: Path) -> str:
    """Return the name of the set that a file belongs to; empty for other files.

    >>> set_name(Path("STS.input.surprise.OnWN.txt")), set_name(Path("sts-dev.csv"))
    ('surprise.OnWN', '')
    """
    match = NAME.fullmatch(path.name)
    return match[3] if match else ""


def _kind(path: Path) -> str:
    match = NAME.fullmatch(path.name)
    return match[2] if match else ""


def gold_path(path: Path) -> Path | None:
    """Return the file with the gold scores of an input file; None if `path` is not an input file.

    Raises InputError if `path` itself is a file of gold scores.
    """
    if _kind(path) == "gs":
        message = (
            "gold scores without texts; expected STS.input.NAME.txt or the folder of both files"
        )
        raise InputError(Problem(str(path), None, message))
    if _kind(path) != "input":
        return None
    return path.with_name(path.name.replace(".input.", ".gs.", 1))


def input_files(paths: Iterable[Path]) -> list[Path]:
    """Return the input files among the files of a folder; the joint file only if it is the only one."""
    inputs = [path for path in paths if _kind(path) == "input"]
    return [path for path in inputs if set_name(path) != ALL] or inputs


def read_gold_rows(path: Path, data: bytes, gold: Path) -> GoldRows:
    """Read the rated rows of an input file with the content `data`, and their gold scores.

    Raises InputError if the gold scores are missing, or the numbers of lines differ.
    """
    if not gold.is_file():
        raise InputError(Problem(str(path), None, f"no gold scores; expected a file {gold.name}"))
    gold_bytes = read_bytes(gold)
    texts, scores = _lines(data, path), _lines(gold_bytes, gold)
    if len(texts) != len(scores):
        message = f"{len(scores)} lines; expected {len(texts)}, the number of lines of {path.name}"
        raise InputError(Problem(str(gold), None, message))
    rows, problems = [], []
    for number, (text, score) in enumerate(zip(texts, scores, strict=True), 1):
        fields = text.split("\t")
        if not score.strip():
            continue
        if len(fields) < 2:
            message = f"{len(fields)} field; expected two sentences, separated by a tab"
            problems.append(Problem(str(path), number, message))
        else:
            rows.append((number, fields[0], fields[1], score))
    n_unrated = len(texts) - len(rows) - len(problems)
    return GoldRows(rows, problems, n_unrated, gold_bytes)


def _lines(data: bytes, path: Path) -> list[str]:
    """Return the lines, including blank lines; a final line feed does not start a line."""
    text = text_bytes(data, str(path)).decode("utf-8")
    return text.removesuffix("\n").split("\n") if text else []
