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

__all__ = ["BACKGROUND", "holds_pairs", "read_folder", "read_sentences", "read_words"]

BACKGROUND: dict[Level, tuple[str, ...]] = {
    "sentence": ("background_sent.txt",),
    "word": ("basic_vocab.txt", "wiki_vocab.txt"),
}
"""Files of a background; the first must be there."""


EXPECTED = (
    "is no ranking data, which is a folder with pos_pair.txt and background_sent.txt (sentences) or "
    "basic_vocab.txt (words), as giccs-evalrank build makes it, or a benchmark of giccs (sentences)"
)


def read_sentences(data: str) -> RankingData:
    """Read a folder of sentence pairs, or a GiCCS benchmark as a ranking task.

    >>> read_sentences("giccs-sample").described()
    '60 pairs among 360 sentences'
    """
    if holds_pairs(Path(data)):
        return read_folder(data, "sentence")
    from giccs.benchmark import read_benchmark
    from giccs.evalrank.preset import ranking_of

    try:
        return ranking_of(read_benchmark(data))
    except InputError as error:
        if any(problem.line for problem in error.problems):
            raise
        raise InputError([*error.problems, Problem(data, None, EXPECTED)]) from None


def read_words(data: str) -> RankingData:
    """Read a folder of word pairs."""
    if not holds_pairs(Path(data)):
        raise InputError(Problem(data, None, EXPECTED))
    return read_folder(data, "word")


def holds_pairs(folder: Path) -> bool:
    """Return whether a folder is one of EvalRank."""
    return any(folder.glob("pos_pair*.txt"))


def read_folder(data: str, level: Level) -> RankingData:
    """Read pairs and background; InputError with every line that is wrong, or not in the background.

    Repeated samples and pairs count once, with a warning. A pair of a text with itself stays: its rank is 1
    by definition, as nothing is nearer to a text than itself; a warning tells how many there are.
    """
    problems: list[Problem] = []
    warnings: list[Problem] = []
    background = _background(Path(data), level, problems, warnings)
    path = _pairs_file(Path(data))
    places: dict[tuple[int, int], None] = {}
    again, same = [], []
    for line, text in _lines(path):
        pair = _pair(str(path), line, text, background, problems)
        if pair in places:
            again.append(line)
        elif pair:
            places[pair] = None
            same += [line] if pair[0] == pair[1] else []
    warnings += _warned(str(path), again, "pairs stand in the file already; each counts once")
    warnings += _warned(str(path), same, "pairs are of a text with itself; their rank is 1")
    if not places and not problems:
        problems.append(Problem(str(path), None, "holds no pairs; each line must be one"))
    if problems:
        raise InputError(problems)
    pairs = np.array([*places], dtype=np.intp)
    return RankingData(data, level, tuple(background), pairs, tuple(warnings))


def _pairs_file(folder: Path) -> Path:
    found = sorted(folder.glob("pos_pair*.txt"))
    if len(found) == 1:
        return found[0]
    if folder / "pos_pair.txt" in found:
        return folder / "pos_pair.txt"
    names = ", ".join(path.name for path in found)
    message = f"holds {len(found)} files of pairs ({names}); one pos_pair.txt is expected"
    raise InputError(Problem(str(folder), None, message))


def _background(
    folder: Path, level: Level, problems: list[Problem], warnings: list[Problem]
) -> dict[str, int]:
    """Return the place of each distinct sample; what two files have in common is no fault."""
    first, *more = BACKGROUND[level]
    other: Level = "word" if level == "sentence" else "sentence"
    if not (folder / first).exists() and (folder / BACKGROUND[other][0]).exists():
        message = f"has no {first}; it holds {other}s, for --task evalrank-{other}"
        raise InputError(Problem(str(folder), None, message))
    files = [folder / first, *(folder / name for name in more if (folder / name).exists())]
    place: dict[str, int] = {}
    for path in files:
        own: set[str] = set()
        again = []
        for line, whole in _lines(path):
            text = whole.strip()
            if not text:
                problems.append(Problem(str(path), line, f"is empty; a {level} is expected"))
            again += [line] if text in own else []
            own.add(text)
            place.setdefault(text, len(place))
        warnings += _warned(
            str(path), again, f"{level}s stand in the file already; each counts once"
        )
    return place


def _pair(
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


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its number; only a line feed ends one, as U+2028 and others stand in texts."""
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        yield number, line.rstrip("\r")


def _warned(file: str, lines: list[int], what: str) -> list[Problem]:
    return [Problem(file, lines[0], f"{len(lines)} {what}; this is the first")] if lines else []
