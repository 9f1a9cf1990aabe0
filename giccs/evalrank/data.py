"""Folders of EvalRank: positive pairs and background samples in text files.

``pos_pair.txt`` (or one ``pos_pair_….txt``) has a pair a line, anchor and positive with a tab between.
Sentences of the background stand in ``background_sent.txt``, words in ``basic_vocab.txt`` and
``wiki_vocab.txt``, one a line. A text is what stands there, less white space at its ends; two texts are one
sample where they are the same letter by letter: neither case nor spacing nor Unicode form is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bws.problems import InputError, Problem
from bws.textio import read_text
from giccs.evalrank.records import Level, RankingData

__all__ = ["BACKGROUND", "is_ranking_folder", "read_folder", "read_sentences", "read_words"]

BACKGROUND: dict[Level, tuple[str, ...]] = {
    "sentence": ("background_sent.txt",),
    "word": ("basic_vocab.txt", "wiki_vocab.txt"),
}
"""Files of a background; the first must be there."""


EXPECTED_DATA = (
    "is no ranking data, which is a folder with pos_pair.txt and background_sent.txt (sentences) or "
    "basic_vocab.txt (words), as giccs-evalrank build makes it, or a benchmark of giccs (sentences)"
)


def read_sentences(data: str) -> RankingData:
    """Read a folder of sentence pairs, or a GiCCS benchmark as a ranking task.

    >>> read_sentences("giccs-sample").described()
    '60 pairs among 360 sentences'
    """
    if is_ranking_folder(Path(data)):
        return read_folder(data, "sentence")
    from giccs.benchmark import read_benchmark
    from giccs.evalrank.preset import ranking_data_of

    try:
        return ranking_data_of(read_benchmark(data))
    except InputError as error:
        if any(problem.line for problem in error.problems):
            raise
        raise InputError([*error.problems, Problem(data, None, EXPECTED_DATA)]) from None


def read_words(data: str) -> RankingData:
    """Read a folder of word pairs."""
    if not is_ranking_folder(Path(data)):
        raise InputError(Problem(data, None, EXPECTED_DATA))
    return read_folder(data, "word")


def is_ranking_folder(folder: Path) -> bool:
    """Return whether a folder is one of EvalRank."""
    return any(folder.glob("pos_pair*.txt"))


def read_folder(data: str, level: Level) -> RankingData:
    """Read pairs and background; InputError with every line that is wrong, or not in the background.

    Repeated samples and pairs count once, with a warning. A pair of a text with itself stays: its rank is 1
    by definition, as nothing is nearer to a text than itself; a warning tells how many there are.
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
    warnings += _line_warnings(
        str(path), repeated_lines, "pairs stand in the file already; each counts once"
    )
    warnings += _line_warnings(
        str(path), identical_lines, "pairs are of a text with itself; their rank is 1"
    )
    if not distinct_pairs and not problems:
        problems.append(Problem(str(path), None, "holds no pairs; each line must be one"))
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
    message = f"holds {len(files)} files of pairs ({names}); one pos_pair.txt is expected"
    raise InputError(Problem(str(folder), None, message))


def _read_background(
    folder: Path, level: Level, problems: list[Problem], warnings: list[Problem]
) -> dict[str, int]:
    """Return the place of each distinct sample; what two files have in common is no fault."""
    first, *more = BACKGROUND[level]
    other_level: Level = "word" if level == "sentence" else "sentence"
    if not (folder / first).exists() and (folder / BACKGROUND[other_level][0]).exists():
        message = f"has no {first}; it holds {other_level}s, for --task evalrank-{other_level}"
        raise InputError(Problem(str(folder), None, message))
    files = [folder / first, *(folder / name for name in more if (folder / name).exists())]
    index: dict[str, int] = {}
    for path in files:
        file_texts: set[str] = set()
        repeated_lines = []
        for line, raw_text in _read_lines(path):
            text = raw_text.strip()
            if not text:
                problems.append(Problem(str(path), line, f"is empty; a {level} is expected"))
            repeated_lines += [line] if text in file_texts else []
            file_texts.add(text)
            index.setdefault(text, len(index))
        warnings += _line_warnings(
            str(path), repeated_lines, f"{level}s stand in the file already; each counts once"
        )
    return index


def _parse_pair(
    file: str, line: int, text: str, background: dict[str, int], problems: list[Problem]
) -> tuple[int, int] | None:
    sides = [side.strip() for side in text.split("\t")]
    if len(sides) != 2 or not all(sides):
        fault = f"has {len(sides)} fields" if len(sides) != 2 else "has an empty side"
        message = (
            f"{fault if text else 'is empty'}; anchor and positive with a tab between are expected"
        )
        problems.append(Problem(file, line, message))
        return None
    missing = [side for side in dict.fromkeys(sides) if side not in background]
    for side in missing:
        message = f"{side!r} is not in the background; both texts of a pair must be"
        problems.append(Problem(file, line, message))
    return None if missing else (background[sides[0]], background[sides[1]])


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its number; only a line feed ends one, as U+2028 and others stand in texts."""
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        yield number, line.rstrip("\r")


def _line_warnings(file: str, lines: list[int], message: str) -> list[Problem]:
    return [Problem(file, lines[0], f"{len(lines)} {message}; this is the first")] if lines else []
