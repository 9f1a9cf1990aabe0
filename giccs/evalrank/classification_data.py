"""The ten classification sets of EvalRank's paper (section 5.1) as files: read them, check them.

A folder of them has the shape that EvalRank's program publishes, which is SentEval's with SciCite added:
``MR/rt-polarity.pos`` and so on, see `SETS`. Sets that are not there are left out and said.

Encodings: UTF-8. The publishers' own copies of MR, CR, MPQA, SUBJ and TREC are in Latin-1, so that a file of
these that is not UTF-8 is read as Latin-1, which is said. Empty lines are left out and counted; SentEval
keeps them as sentences of no words (four in CR, three in MPQA).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import read_bytes, read_text

__all__ = ["SETS", "ClassificationData", "LabelledSet", "Layout", "Row", "read_classification"]

CROSS_VALIDATED = ""
"""The part of a row in a set that comes without a division into training and test."""
PARTS = ("train", "dev", "test")
FOLDER = "sent_classification"
"""Where the sets are in the folder of all of EvalRank's data."""


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled sentence, or a labelled pair of sentences."""

    texts: tuple[str, ...]
    label: str
    part: str
    """``train``, ``dev`` or ``test``; empty where the set has no parts."""
    place: str
    """File and line: ``rt-polarity.pos:17``."""


@dataclass(frozen=True)
class LabelledSet:
    """One data set."""

    name: str
    rows: tuple[Row, ...]

    def part(self, part: str) -> list[int]:
        """Return the rows of a part, as places in `rows`."""
        return [place for place, row in enumerate(self.rows) if row.part == part]

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the parts it has: none, train and test, or all three."""
        found = {row.part for row in self.rows}
        return tuple(part for part in PARTS if part in found)

    def first(self, n: int) -> LabelledSet:
        """Return `n` rows of each part, its classes in the proportion that they have there.

        They are those at equal distances in the order of the classes, and inside a class of the file.
        """
        kept = [row for part in (self.parts or ("",)) for row in self._spread(part, n)]
        return replace(self, rows=tuple(kept))

    def _spread(self, part: str, n: int) -> Iterator[Row]:
        places = self.part(part)
        by_class = sorted(places, key=lambda place: self.rows[place].label)
        taken = {by_class[k * len(places) // n] for k in range(n)} if n < len(places) else {*places}
        yield from (self.rows[place] for place in sorted(taken))


@dataclass(frozen=True)
class ClassificationData:
    """The sets of a folder that are there."""

    name: str
    sets: tuple[LabelledSet, ...]
    warnings: tuple[Problem, ...] = ()
    """What was left out, or read in another encoding."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the content, rows in their order: the folds depend on it."""
        found = hashlib.sha256()
        for one in self.sets:
            for row in one.rows:
                line = json.dumps([one.name, row.part, row.label, *row.texts], ensure_ascii=False)
                found.update(f"{line}\n".encode())
        return found.hexdigest()

    def first(self, n: int, /) -> ClassificationData:
        """Return `n` rows of each part of each set, see `LabelledSet.first`."""
        return replace(self, sets=tuple(one.first(n) for one in self.sets))

    def described(self) -> str:
        """Return how much it holds."""
        rows = sum(len(one.rows) for one in self.sets)
        return f"{rows:,} rows in {len(self.sets)} data sets"


Read = Callable[[str], tuple[str, tuple[str, ...]]]
"""From a line to its label and texts; ValueError says what is wrong and what is allowed."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a set is in the folder, and how a line of it is read."""

    files: Mapping[str, str]
    """File -> its part."""
    read: Mapping[str, Read]
    """File -> how a line is read."""
    header: str = ""
    """What the first line begins with, where it is one of titles."""
    latin: bool = False
    """Whether the publisher's copy is in Latin-1."""


def read_classification(folder: str | os.PathLike[str]) -> ClassificationData:
    """Read the sets in a folder, or in its subfolder ``sent_classification``.

    Raises InputError with every line that cannot be read, for a set of which a file is missing, and where
    there is no set at all.
    """
    name = os.fspath(folder)
    place = Path(name, FOLDER) if Path(name, FOLDER).is_dir() else Path(name)
    found = [_read_set(which, layout, place) for which, layout in SETS.items()]
    if problems := [problem for _, problems, _ in found for problem in problems]:
        raise InputError(problems)
    sets = [one for one, _, _ in found if one.rows]
    if not sets:
        files = ", ".join(next(iter(layout.files)) for layout in SETS.values())
        what = "holds no data set" if place.is_dir() else "no such folder"
        message = f"{what}; at least one data set is expected, of {files} ..."
        raise InputError(Problem(name, None, message))
    return ClassificationData(name, tuple(sets), tuple(w for *_, said in found for w in said))


Found = tuple[LabelledSet, list[Problem], list[Problem]]
"""A set, its problems, its warnings."""


def _read_set(name: str, layout: Layout, folder: Path) -> Found:
    missing = [file for file in layout.files if not Path(folder, file).exists()]
    said = [Problem(str(folder / file), None, f"is not there; {name} needs it") for file in missing]
    if len(missing) == len(layout.files):
        return LabelledSet(name, ()), [], [Problem(str(folder), None, f"has no {name}: left out")]
    rows: list[Row] = []
    problems = said
    warnings: list[Problem] = []
    for file in layout.files:
        if file not in missing:
            more, wrong, odd = _read_file(folder, file, layout)
            rows, problems, warnings = rows + more, problems + wrong, warnings + odd
    return LabelledSet(name, tuple(rows)), problems, warnings


def _read_file(
    folder: Path, file: str, layout: Layout
) -> tuple[list[Row], list[Problem], list[Problem]]:
    path = str(folder / file)
    rows: list[Row] = []
    problems: list[Problem] = []
    text, warnings = _decoded(path) if layout.latin else (read_text(path), [])
    lines = text.removesuffix("\n").split("\n")
    start = 1 if layout.header else 0
    if not lines[0].startswith(layout.header):
        problems.append(Problem(path, 1, f"begins not with {layout.header!r}, the first title"))
    for number, line in enumerate(lines[start:], start=start + 1):
        if not line.strip():
            continue
        try:
            label, texts = layout.read[file](line.removesuffix("\r"))
            rows.append(Row(texts, label, layout.files[file], f"{file}:{number}"))
        except ValueError as error:
            problems.append(Problem(path, number, str(error)))
    if not rows and not problems:
        problems.append(Problem(path, None, "has no rows; there must be one"))
    empty = sum(not line.strip() for line in lines[start:])
    if empty:
        warnings.append(Problem(path, None, f"empty lines left out: {empty}"))
    return rows, problems, warnings


def _decoded(path: str) -> tuple[str, list[Problem]]:
    data = read_bytes(path)
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8: the file is read as Latin-1"
        return data.decode("latin-1"), [Problem(path, line, message)]


def _sentence(label: str) -> Read:
    """Return how a line of a file of one class is read: it is the sentence."""
    return lambda line: (label, (line.strip(),))


def _label_first(labels: str) -> Read:
    def read(line: str) -> tuple[str, tuple[str, ...]]:
        label, _, text = line.partition(" ")
        return _allowed(label, labels), (_text(text),)

    return read


def _trec(line: str) -> tuple[str, tuple[str, ...]]:
    """Read ``LOC:city What is …``; the class is the coarse one, before the colon."""
    label, _, text = line.partition(" ")
    coarse, colon, fine = label.partition(":")
    if not (colon and fine):
        raise ValueError(f"{label!r} is not a class; it must be as LOC:city")
    return _allowed(coarse, "ABBR DESC ENTY HUM LOC NUM"), (_text(text),)


def _label_last(line: str) -> tuple[str, tuple[str, ...]]:
    text, label = _cells(line, 2)
    return _allowed(label, "0 1"), (_text(text),)


def _paraphrase(line: str) -> tuple[str, tuple[str, ...]]:
    label, _, _, first, second = _cells(line, 5)
    return _allowed(label, "0 1"), (_text(first), _text(second))


def _entailment(line: str) -> tuple[str, tuple[str, ...]]:
    _, first, second, _, label = _cells(line, 5)
    allowed = _allowed(label, "CONTRADICTION ENTAILMENT NEUTRAL")
    return allowed, (_text(first), _text(second))


def _citation(line: str) -> tuple[str, tuple[str, ...]]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON ({error})") from None
    if not isinstance(row, dict) or not all(isinstance(row.get(k), str) for k in ("text", "label")):
        raise ValueError("is not an object with the texts 'text' and 'label'")
    return _allowed(row["label"], "background method result"), (_text(row["text"]),)


def _cells(line: str, n: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != n:
        raise ValueError(f"{len(cells)} cells divided by tabs; there must be {n}")
    return cells


def _allowed(label: str, labels: str) -> str:
    label = label.strip()
    if label not in labels.split():
        raise ValueError(f"the class is {label!r}; it must be one of {', '.join(labels.split())}")
    return label


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty; it must be a sentence")
    return text.strip()


def _halves(folder: str, stem: str, classes: str) -> Layout:
    files = [f"{folder}/{stem}.{label}" for label in classes.split()]
    read = {file: _sentence(label) for file, label in zip(files, classes.split(), strict=True)}
    return Layout(dict.fromkeys(files, CROSS_VALIDATED), read, latin=True)


def _parted(read: Read, header: str = "", latin: bool = False, **files: str) -> Layout:
    parts = {file: part for part, file in files.items()}
    return Layout(parts, dict.fromkeys(parts, read), header, latin)


SETS: Mapping[str, Layout] = {
    "SCICITE": _parted(
        _citation, train="SCICITE/train.txt", dev="SCICITE/dev.txt", test="SCICITE/test.txt"
    ),
    "MR": _halves("MR", "rt-polarity", "pos neg"),
    "CR": _halves("CR", "custrev", "pos neg"),
    "MPQA": _halves("MPQA", "mpqa", "pos neg"),
    "SUBJ": _halves("SUBJ", "subj", "subjective objective"),
    "SST2": _parted(
        _label_last,
        train="SST/binary/sentiment-train",
        dev="SST/binary/sentiment-dev",
        test="SST/binary/sentiment-test",
    ),
    "SST5": _parted(
        _label_first("0 1 2 3 4"),
        train="SST/fine/sentiment-train",
        dev="SST/fine/sentiment-dev",
        test="SST/fine/sentiment-test",
    ),
    "TREC": _parted(_trec, latin=True, train="TREC/train_5500.label", test="TREC/TREC_10.label"),
    "MRPC": _parted(
        _paraphrase,
        "Quality\t",
        train="MRPC/msr_paraphrase_train.txt",
        test="MRPC/msr_paraphrase_test.txt",
    ),
    "SICK-E": _parted(
        _entailment,
        "pair_ID\t",
        train="SICK/SICK_train.txt",
        dev="SICK/SICK_trial.txt",
        test="SICK/SICK_test_annotated.txt",
    ),
}
"""Name of a set, as in the paper's tables and in their order -> its files."""
