"""Readers for the ten classification sets of EvalRank (section 5.1).

A data folder has the layout published with EvalRank, which is that of SentEval with SciCite added:
``MR/rt-polarity.pos`` and so on; see `SETS`. Missing sets are skipped with a warning.

Files are expected to be in UTF-8. The original MR, CR, MPQA, SUBJ and TREC files are in Latin-1, so files of
these sets that are not valid UTF-8 are read as Latin-1, with a warning. Empty lines are skipped and counted;
SentEval keeps them as sentences without words (four in CR, three in MPQA).
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

from bws.base.file_kinds import text_remark
from bws.base.problems import InputError, Problem
from bws.base.text import read_bytes, read_text

NO_SPLIT = ""
"""Split name of rows in sets without predefined splits, which are cross-validated."""
SPLITS = ("train", "dev", "test")
DATA_FOLDER = "sent_classification"
"""Subfolder of the sets in the published data folder."""


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A labelled sentence or a labelled pair of sentences."""

    texts: tuple[str, ...]
    label: str
    split: str
    """``train``, ``dev`` or ``test``; empty if the set has no splits."""
    location: str
    """File and line, such as ``rt-polarity.pos:17``."""


@dataclass(frozen=True)
class LabelledSet:
    """A data set of labelled rows."""

    name: str
    rows: tuple[LabelledRow, ...]

    def rows_of_split(self, part: str) -> list[int]:
        """Return the indices of the rows of a split."""
        return [index for index, row in enumerate(self.rows) if row.split == part]

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits of the set: none, train and test, or train, dev and test."""
        present_splits = {row.split for row in self.rows}
        return tuple(split for split in SPLITS if split in present_splits)

    def first(self, n: int) -> LabelledSet:
        """Return `n` rows of each split, preserving the class proportions.

        The rows are evenly spaced in the order by class, and by position in the file within a class.
        """
        sampled_rows = [
            row for split in (self.splits or ("",)) for row in self._sample_split(split, n)
        ]
        return replace(self, rows=tuple(sampled_rows))

    def _sample_split(self, split: str, n: int) -> Iterator[LabelledRow]:
        indices = self.rows_of_split(split)
        by_class = sorted(indices, key=lambda index: self.rows[index].label)
        sampled_indices = (
            {by_class[k * len(indices) // n] for k in range(n)} if n < len(indices) else {*indices}
        )
        yield from (self.rows[index] for index in sorted(sampled_indices))


@dataclass(frozen=True)
class ClassificationData:
    """Classification sets of a folder."""

    name: str
    sets: tuple[LabelledSet, ...]
    warnings: tuple[Problem, ...] = ()
    """Skipped sets and lines, and files in another encoding."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, including the order of rows, which determines the folds."""
        digest = hashlib.sha256()
        for labelled_set in self.sets:
            for row in labelled_set.rows:
                line = json.dumps(
                    [labelled_set.name, row.split, row.label, *row.texts], ensure_ascii=False
                )
                digest.update(f"{line}\n".encode())
        return digest.hexdigest()

    def first(self, n: int, /) -> ClassificationData:
        """Return `n` rows of each split of each set; see `LabelledSet.first`."""
        return replace(self, sets=tuple(labelled_set.first(n) for labelled_set in self.sets))

    def described(self) -> str:
        """Return the numbers of rows and sets as text."""
        rows = sum(len(labelled_set.rows) for labelled_set in self.sets)
        return f"{rows:,} rows in {len(self.sets)} data sets"


LineReader = Callable[[str], tuple[str, tuple[str, ...]]]
"""Parser of a line, returning label and texts; ValueError for invalid lines."""


@dataclass(frozen=True, slots=True)
class SetLayout:
    """Files of a set and their format."""

    files: Mapping[str, str]
    """Split by file."""
    parsers: Mapping[str, LineReader]
    """Line parser by file."""
    header: str = ""
    """Beginning of the header line; empty if there is no header."""
    is_latin1: bool = False
    """Whether the original files are in Latin-1."""


def read_classification(folder: str | os.PathLike[str]) -> ClassificationData:
    """Read the sets in a folder or in its subfolder ``sent_classification``.

    Raises InputError with all invalid lines, for sets of which a file is missing, and if there is no set.
    """
    name = os.fspath(folder)
    path = Path(name, DATA_FOLDER) if Path(name, DATA_FOLDER).is_dir() else Path(name)
    readings = [_read_set(set_name, layout, path) for set_name, layout in SETS.items()]
    if problems := [problem for _, problems, _ in readings for problem in problems]:
        raise InputError(problems)
    sets = [labelled_set for labelled_set, _, _ in readings if labelled_set.rows]
    if not sets:
        files = ", ".join(next(iter(layout.files)) for layout in SETS.values())
        fault = "no such folder"
        if path.exists():
            fault = "contains no data set" if path.is_dir() else "is a file"
        other_kind = text_remark(read_text(path)) if path.is_file() else ""
        message = f"{fault}; expected at least one of {files} ...{other_kind}"
        raise InputError(Problem(name, None, message))
    return ClassificationData(
        name, tuple(sets), tuple(w for *_, set_warnings in readings for w in set_warnings)
    )


SetReading = tuple[LabelledSet, list[Problem], list[Problem]]
"""A set, its problems and its warnings."""


def _read_set(name: str, layout: SetLayout, folder: Path) -> SetReading:
    missing = [file for file in layout.files if not Path(folder, file).exists()]
    missing_problems = [
        Problem(str(folder / file), None, f"missing; required for {name}") for file in missing
    ]
    if len(missing) == len(layout.files):
        return (
            LabelledSet(name, ()),
            [],
            [Problem(str(folder), None, f"{name} is missing; skipped")],
        )
    rows: list[LabelledRow] = []
    problems = missing_problems
    warnings: list[Problem] = []
    for file in layout.files:
        if file not in missing:
            file_rows, file_problems, file_warnings = _read_file(folder, file, layout)
            rows, problems, warnings = (
                rows + file_rows,
                problems + file_problems,
                warnings + file_warnings,
            )
    return LabelledSet(name, tuple(rows)), problems, warnings


def _read_file(
    folder: Path, file: str, layout: SetLayout
) -> tuple[list[LabelledRow], list[Problem], list[Problem]]:
    path = str(folder / file)
    rows: list[LabelledRow] = []
    problems: list[Problem] = []
    text, warnings = _decode(path) if layout.is_latin1 else (read_text(path), [])
    lines = text.removesuffix("\n").split("\n")
    start = 1 if layout.header else 0
    if not lines[0].startswith(layout.header):
        problems.append(
            Problem(
                path, 1, f"unexpected header; expected a line that begins with {layout.header!r}"
            )
        )
    for number, line in enumerate(lines[start:], start=start + 1):
        if not line.strip():
            continue
        try:
            label, texts = layout.parsers[file](line.removesuffix("\r"))
            rows.append(LabelledRow(texts, label, layout.files[file], f"{file}:{number}"))
        except ValueError as error:
            problems.append(Problem(path, number, str(error)))
    if not rows and not problems:
        problems.append(Problem(path, None, "no rows; expected at least one"))
    empty = sum(not line.strip() for line in lines[start:])
    if empty:
        warnings.append(Problem(path, None, f"{empty} empty lines skipped"))
    return rows, problems, warnings


def _decode(path: str) -> tuple[str, list[Problem]]:
    data = read_bytes(path)
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not valid UTF-8; the file is read as Latin-1"
        return data.decode("latin-1"), [Problem(path, line, message)]


def _one_class_reader(label: str) -> LineReader:
    """Return a parser for files in which each line is a sentence of the same class."""
    return lambda line: (label, (line.strip(),))


def _label_first_reader(labels: str) -> LineReader:
    def read(line: str) -> tuple[str, tuple[str, ...]]:
        label, _, text = line.partition(" ")
        return _check_label(label, labels), (_check_text(text),)

    return read


def _read_trec(line: str) -> tuple[str, tuple[str, ...]]:
    """Parse a line such as ``LOC:city What is …``; the label is the coarse class before the colon."""
    label, _, text = line.partition(" ")
    coarse, colon, fine = label.partition(":")
    if not (colon and fine):
        raise ValueError(f"{label!r} is not a class; expected a class such as LOC:city")
    return _check_label(coarse, "ABBR DESC ENTY HUM LOC NUM"), (_check_text(text),)


def _read_label_last(line: str) -> tuple[str, tuple[str, ...]]:
    text, label = _split_cells(line, 2)
    return _check_label(label, "0 1"), (_check_text(text),)


def _read_paraphrase(line: str) -> tuple[str, tuple[str, ...]]:
    label, _, _, first, second = _split_cells(line, 5)
    return _check_label(label, "0 1"), (_check_text(first), _check_text(second))


def _read_entailment(line: str) -> tuple[str, tuple[str, ...]]:
    _, first, second, _, label = _split_cells(line, 5)
    checked_label = _check_label(label, "CONTRADICTION ENTAILMENT NEUTRAL")
    return checked_label, (_check_text(first), _check_text(second))


def _read_citation(line: str) -> tuple[str, tuple[str, ...]]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON ({error})") from None
    if not isinstance(row, dict) or not all(isinstance(row.get(k), str) for k in ("text", "label")):
        raise ValueError("expected an object with the strings 'text' and 'label'")
    return _check_label(row["label"], "background method result"), (_check_text(row["text"]),)


def _split_cells(line: str, n: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != n:
        raise ValueError(f"{len(cells)} tab-separated cells; expected {n}")
    return cells


def _check_label(label: str, labels: str) -> str:
    label = label.strip()
    if label not in labels.split():
        raise ValueError(f"unknown class {label!r}; expected one of {', '.join(labels.split())}")
    return label


def _check_text(text: str) -> str:
    if not text.strip():
        raise ValueError("empty text; expected a sentence")
    return text.strip()


def _layout_by_class(folder: str, stem: str, classes: str) -> SetLayout:
    files = [f"{folder}/{stem}.{label}" for label in classes.split()]
    read = {
        file: _one_class_reader(label) for file, label in zip(files, classes.split(), strict=True)
    }
    return SetLayout(dict.fromkeys(files, NO_SPLIT), read, is_latin1=True)


def _layout_by_split(
    read: LineReader, header: str = "", is_latin1: bool = False, **files: str
) -> SetLayout:
    split_by_file = {file: split for split, file in files.items()}
    return SetLayout(split_by_file, dict.fromkeys(split_by_file, read), header, is_latin1)


SETS: Mapping[str, SetLayout] = {
    "SCICITE": _layout_by_split(
        _read_citation, train="SCICITE/train.txt", dev="SCICITE/dev.txt", test="SCICITE/test.txt"
    ),
    "MR": _layout_by_class("MR", "rt-polarity", "pos neg"),
    "CR": _layout_by_class("CR", "custrev", "pos neg"),
    "MPQA": _layout_by_class("MPQA", "mpqa", "pos neg"),
    "SUBJ": _layout_by_class("SUBJ", "subj", "subjective objective"),
    "SST2": _layout_by_split(
        _read_label_last,
        train="SST/binary/sentiment-train",
        dev="SST/binary/sentiment-dev",
        test="SST/binary/sentiment-test",
    ),
    "SST5": _layout_by_split(
        _label_first_reader("0 1 2 3 4"),
        train="SST/fine/sentiment-train",
        dev="SST/fine/sentiment-dev",
        test="SST/fine/sentiment-test",
    ),
    "TREC": _layout_by_split(
        _read_trec, is_latin1=True, train="TREC/train_5500.label", test="TREC/TREC_10.label"
    ),
    "MRPC": _layout_by_split(
        _read_paraphrase,
        "Quality\t",
        train="MRPC/msr_paraphrase_train.txt",
        test="MRPC/msr_paraphrase_test.txt",
    ),
    "SICK-E": _layout_by_split(
        _read_entailment,
        "pair_ID\t",
        train="SICK/SICK_train.txt",
        dev="SICK/SICK_trial.txt",
        test="SICK/SICK_test_annotated.txt",
    ),
}
"""Layouts by set name, in the order of the paper's tables."""
