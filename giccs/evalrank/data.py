"""Readers for ranking data: folders with positive pairs and background samples in text files.

``pos_pair.txt`` (or a single ``pos_pair_….txt``) contains one pair per line, with a tab between anchor and
positive. ``background_sent.txt`` contains background sentences, ``basic_vocab.txt`` and ``wiki_vocab.txt``
contain background words, one per line. Leading and trailing white space is removed. Two texts are the same
sample if they are identical; case, inner spacing and Unicode form are not normalised.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bws.base.file_kinds import text_remark
from bws.base.problems import InputError, Problem
from bws.base.text import read_text
from giccs.evalrank.records import Level, RankingData

BACKGROUND: dict[Level, tuple[str, ...]] = {
    "sentence": ("background_sent.txt",),
    "word": ("basic_vocab.txt", "wiki_vocab.txt"),
}
"""Background files by level; the first is required."""


EXPECTED_DATA = (
    "not ranking data; expected a folder with pos_pair.txt and background_sent.txt (sentences) or "
    "basic_vocab.txt (words), as written by giccs evalrank build, or a benchmark of giccs (sentences)"
)


def read_sentences(data: str) -> RankingData:
    """Read a folder of sentence pairs, or a GiCCS benchmark as a ranking task.

    >>> read_sentences("giccs-sample").described()
    '60 pairs among 360 sentences'
    """
    if is_ranking_folder(Path(data)):
        return read_folder(data, "sentence")
    from giccs.benchmark import read_benchmark
    from giccs.evalrank.benchmark_ranking import ranking_data_of

    try:
        return ranking_data_of(read_benchmark(data))
    except InputError as error:
        if any(problem.line for problem in error.problems):
            raise
        raise InputError([*error.problems, Problem(data, None, EXPECTED_DATA)]) from None


def read_words(data: str) -> RankingData:
    """Read a folder of word pairs."""
    if not is_ranking_folder(Path(data)):
        other_kind = text_remark(read_text(data)) if Path(data).is_file() else ""
        raise InputError(Problem(data, None, EXPECTED_DATA + other_kind))
    return read_folder(data, "word")


def is_ranking_folder(folder: Path) -> bool:
    """Return whether a folder contains ranking data."""
    return any(folder.glob("pos_pair*.txt"))


def read_folder(data: str, level: Level) -> RankingData:
    """Read pairs and background; raise InputError with all invalid lines and missing background texts.

    Repeated samples and pairs are used once, with a warning. Pairs of a text with itself are kept, with a
    warning; their rank is 1 by definition, as no text is closer to a text than itself.
    """
    problems: list[Problem] = []
    warnings: list[Problem] = []
    background = _read_background(Path(data), level, problems, warnings)
    path = _find_pairs_file(Path(data))
    distinct_pairs: dict[tuple[int, int], None] = {}
    repeated_lines, identical_lines = [], []
    for line, text in _read_lines(path):
        pair = _parse_pair(str(path), line, text, background, problems)
        if pair in distinct_pairs:
            repeated_lines.append(line)
        elif pair:
            distinct_pairs[pair] = None
            identical_lines += [line] if pair[0] == pair[1] else []
    warnings += _line_warnings(str(path), repeated_lines, "repeated pairs are used once")
    warnings += _line_warnings(
        str(path), identical_lines, "pairs consist of identical texts; their rank is 1"
    )
    if not distinct_pairs and not problems:
        problems.append(Problem(str(path), None, "no pairs; expected one per line"))
    if problems:
        raise InputError(problems)
    pairs = np.array([*distinct_pairs], dtype=np.intp)
    return RankingData(data, level, tuple(background), pairs, tuple(warnings))


def _find_pairs_file(folder: Path) -> Path:
    files = sorted(folder.glob("pos_pair*.txt"))
    if len(files) == 1:
        return files[0]
    if folder / "pos_pair.txt" in files:
        return folder / "pos_pair.txt"
    names = ", ".join(path.name for path in files)
    message = f"{len(files)} files of pairs ({names}); expected one pos_pair.txt"
    raise InputError(Problem(str(folder), None, message))


def _read_background(
    folder: Path, level: Level, problems: list[Problem], warnings: list[Problem]
) -> dict[str, int]:
    """Return the index of each distinct sample; duplicates across files are ignored without a warning."""
    first, *more = BACKGROUND[level]
    other_level: Level = "word" if level == "sentence" else "sentence"
    if not (folder / first).exists() and (folder / BACKGROUND[other_level][0]).exists():
        message = f"{first} is missing; the folder contains {other_level}s (--task evalrank-{other_level})"
        raise InputError(Problem(str(folder), None, message))
    files = [folder / first, *(folder / name for name in more if (folder / name).exists())]
    index: dict[str, int] = {}
    for path in files:
        file_texts: set[str] = set()
        repeated_lines = []
        for line, raw_text in _read_lines(path):
            text = raw_text.strip()
            if not text:
                problems.append(Problem(str(path), line, f"empty line; expected a {level}"))
            repeated_lines += [line] if text in file_texts else []
            file_texts.add(text)
            index.setdefault(text, len(index))
        warnings += _line_warnings(str(path), repeated_lines, f"repeated {level}s are used once")
    return index


def _parse_pair(
    file: str, line: int, text: str, background: dict[str, int], problems: list[Problem]
) -> tuple[int, int] | None:
    sides = [side.strip() for side in text.split("\t")]
    if len(sides) != 2 or not all(sides):
        fault = f"{len(sides)} fields" if len(sides) != 2 else "empty text"
        message = (
            f"{fault if text else 'empty line'}; expected anchor and positive, separated by a tab"
        )
        problems.append(Problem(file, line, message))
        return None
    missing = [side for side in dict.fromkeys(sides) if side not in background]
    for side in missing:
        message = f"{side!r} is missing from the background; expected both texts of a pair there"
        problems.append(Problem(file, line, message))
    return None if missing else (background[sides[0]], background[sides[1]])


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its number; only line feeds end a line, because texts may contain U+2028."""
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        yield number, line.rstrip("\r")


def _line_warnings(file: str, lines: list[int], message: str) -> list[Problem]:
    return (
        [Problem(file, lines[0], f"{len(lines)} {message}; first occurrence here")] if lines else []
    )
