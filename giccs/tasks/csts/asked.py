"""What is a model asked about? Labelled rows of C-STS and, where there are any, answers about the sentences.

An answers file (CSV or TSV) has the columns ``uid, answer1, answer2`` and, where it is known, ``condition``,
as `giccs-csts answers` writes them; further ones are passed over. A uid is that of a row, with its split
before it (``validation:17``) where the file is about several.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bws.files.table import read_table
from bws.problems import InputError, Problem
from bws.textio import display_name
from giccs.tasks.csts.data import SAMPLE, SPLITS, Dataset, read_csts
from giccs.tasks.csts.records import INVALID, Instance

__all__ = [
    "Answers",
    "Asked",
    "Given",
    "Reading",
    "first_pairs",
    "in_splits",
    "read_asked",
    "read_given",
]

Answers = Mapping[str, tuple[str, str]]
"""By uid: what sentence 1 says about the condition, and sentence 2."""
COLUMNS = ("uid", "answer1", "answer2")
SHOWN = 5
"""How many uids a message names."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is said about the condition of a row."""

    answer1: str
    """By sentence 1."""
    answer2: str
    condition: str
    """Empty where the file does not say."""


@dataclass(frozen=True)
class Asked:
    """Labelled rows, and what is known of them."""

    dataset: Dataset
    """Only rows with a label from 1 to 5; its warnings say what is left out."""
    answers: Answers | None = None
    """Of every row; None where no answers were given."""
    examples: Dataset | None = None
    """What examples in a prompt are drawn from; None where there are to be none."""

    @property
    def name(self) -> str:
        """How the data was called, and which split of it."""
        return self.dataset.name

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is odd or left out, also among the examples."""
        return (*self.dataset.warnings, *(self.examples.warnings if self.examples else ()))

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The rows."""
        return self.dataset.instances

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the rows and their answers, whatever their order and the form of the files."""
        if self.answers is None:
            return self.dataset.fingerprint
        lines = sorted([one.uid, *self.answers[one.uid]] for one in self.instances)
        text = json.dumps([self.dataset.fingerprint, lines], ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @property
    def sentence_pairs(self) -> int:
        """How many different sentence pairs the rows have."""
        return len({one.pair for one in self.instances})

    def first(self, n: int) -> Asked:
        """Return the rows of the first `n` sentence pairs."""
        return replace(
            self, dataset=replace(self.dataset, instances=first_pairs(self.instances, n))
        )

    def described(self) -> str:
        """Return how much there is: ``60 sentence pairs, 120 rows``."""
        return f"{self.sentence_pairs} sentence pairs, {len(self.instances)} rows"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the data of a task is read; equal where it is read alike."""

    split: str = "validation"
    answers: str | None = None
    with_examples: bool = False
    """Whether examples are to be drawn."""
    examples: str | None = None
    """Where from; None is the training split of the data itself."""

    def __call__(self, data: str) -> Asked:
        """Read; InputError with what is wrong, and where examples are wanted and there are none."""
        asked = read_asked(data, self.split, self.answers)
        return replace(asked, examples=self._examples(data)) if self.with_examples else asked

    def _examples(self, data: str) -> Dataset:
        source = self.examples or data
        if in_splits(source):
            return read_csts(source, "train", relabelled=True)
        if self.examples is None:
            message = (
                "is a file, without a training split to draw examples from; "
                "name one with --examples FILE"
            )
            raise InputError(Problem(display_name(data), None, message))
        return read_csts(source, relabelled=True)


def first_pairs(instances: Sequence[Instance], n: int | None) -> tuple[Instance, ...]:
    """Return the rows of the first `n` sentence pairs; of all where n is None."""
    kept = set(list(dict.fromkeys(one.pair for one in instances))[:n])
    return tuple(one for one in instances if one.pair in kept)


def in_splits(data: str | os.PathLike[str]) -> bool:
    """Tell whether data is a folder of splits; a file has none."""
    return data == SAMPLE or Path(data).is_dir()


def read_asked(
    data: str | os.PathLike[str],
    split: str = "validation",
    answers: str | os.PathLike[str] | None = None,
) -> Asked:
    """Read the labelled rows of a C-STS file, or of one split of a folder or of csts-sample.

    answers: a file with an answer about each sentence. Rows without a label, hidden ones and rows with an
    invalid condition (-1) are left out, and a warning says how many. Raises InputError where no row is left,
    where a row has no answers, and with every problem of the files.

    >>> read_asked("csts-sample").first(3).described()
    '3 sentence pairs, 6 rows'
    """
    whole = read_csts(data, split if in_splits(data) else None, relabelled=True)
    name = f"{whole.name} ({split})" if in_splits(data) else display_name(data)
    invalid = sum(one.label == INVALID for one in whole.instances)
    left_out = _told(name, invalid, "rows are left out: their label is -1, hidden or invalid")
    kept = whole.labelled()
    if not kept.instances:
        message = "has no row with a label from 1 to 5, so there is nothing to measure"
        raise InputError(Problem(name, None, message))
    known = None
    if answers is not None:
        given = read_given(answers)
        known, unused = _matched(replace(kept, name=name), given, split, display_name(answers))
        left_out += _told(display_name(answers), unused, "answers belong to no row that is asked")
    warnings = (*whole.warnings, *left_out)
    return Asked(replace(kept, name=name, warnings=warnings), known)


def read_given(path: str | os.PathLike[str]) -> dict[str, Given]:
    """Read answers by uid; white space outside and between words is made one space.

    Raises InputError with every problem: columns that are missing, uids that are empty or repeat, answers
    that are empty.
    """
    table = read_table(path)
    table.need(COLUMNS)
    problems, given = list(table.problems), {}
    for line, row in zip(table.lines.tolist(), table.frame.iter_rows(named=True), strict=True):
        uid = row["uid"].strip()
        faults = [
            f"{name} is empty; every row needs one" for name in COLUMNS if not row[name].strip()
        ]
        if uid in given:
            faults.append(f"the uid {uid!r} stands on an earlier line already")
        problems += [Problem(table.file, line, fault) for fault in faults]
        cells = (row["answer1"], row["answer2"], row.get("condition", ""))
        given[uid] = Given(*map(_words, cells))
    if problems:
        raise InputError(problems)
    return given


def _matched(
    dataset: Dataset, given: Mapping[str, Given], split: str, file: str
) -> tuple[Answers, int]:
    """Return the answers of every row, and how many of this split belong to none.

    Raises InputError where rows have no answers, or such as are about another condition.
    """
    rows, of = dataset.instances, f"{len(dataset.instances)} rows of {dataset.name}"
    found = {one.uid: given.get(f"{split}:{one.uid}") or given.get(one.uid) for one in rows}
    faults = {
        "has no answers for": [uid for uid, one in found.items() if one is None],
        "has answers about another condition for": [
            one.uid
            for one in rows
            if (known := found[one.uid]) and known.condition not in ("", _words(one.condition))
        ],
    }
    problems = [
        Problem(file, None, f"{fault} {len(wrong)} of {of}; their uids: {_some(wrong)}")
        for fault, wrong in faults.items()
        if wrong
    ]
    if problems:
        raise InputError(problems)
    answers = {uid: (one.answer1, one.answer2) for uid, one in found.items() if one}
    elsewhere = tuple(f"{one}:" for one in SPLITS if one != split)
    return answers, sum(not uid.startswith(elsewhere) for uid in given) - len(answers)


def _words(text: str) -> str:
    return " ".join(text.split())


def _some(uids: Sequence[str]) -> str:
    return ", ".join(uids[:SHOWN]) + (", ..." if len(uids) > SHOWN else "")


def _told(file: str, count: int, what: str) -> list[Problem]:
    return [Problem(file, None, f"{count} {what}")] if count else []
