"""Splits for training, selection and evaluation, with or without answers."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from bws.base.problems import InputError, Problem
from giccs.csts.data import SAMPLE, SPLITS, Dataset, Instance, split_file
from giccs.csts.task_data import TaskData, in_splits, read_row_answers, read_task_data

HELD_OUT = 0.1
"""Share of the training rows that is held out if there is no validation split."""

Rows = tuple[Instance, ...]


@dataclass(frozen=True)
class Splits:
    """Labelled rows; with answers, these replace the rows' sentences."""

    name: str
    train: Rows
    validation: Rows
    test: Rows
    """Empty if there is no test split or its labels are hidden."""
    hidden: Rows = ()
    """The rows of a test split with hidden labels, in the order of the file."""
    texts: str = "sentences"
    """``sentences`` or ``answers``."""
    answers: str = ""
    """Name of the file of answers; empty without answers."""
    warnings: tuple[Problem, ...] = ()

    @property
    def reported(self) -> str:
        """The split of the reported metrics: ``test``, or ``validation`` if test has no labels."""
        return "test" if self.test else "validation"

    @property
    def has_conditions(self) -> bool:
        """Whether any training row has a condition."""
        return Dataset("", self.train).has_conditions

    @property
    def measured(self) -> tuple[str, ...]:
        """The splits with computed metrics; the last one is reported."""
        return tuple(dict.fromkeys(("validation", self.reported)))

    @property
    def predicted(self) -> tuple[str, ...]:
        """The splits scored by a trained model: those measured, and ``hidden`` if it has rows."""
        return (*self.measured, "hidden") if self.hidden else self.measured

    def rows(self, split: str) -> Rows:
        """Return the rows of ``train``, ``validation``, ``test`` or ``hidden``."""
        instances: Rows = getattr(self, split)
        return instances

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the assignment of rows to splits."""
        splits = [*SPLITS, "hidden"] if self.hidden else SPLITS
        prints = [Dataset("", self.rows(split)).fingerprint for split in splits]
        return hashlib.sha256(json.dumps(prints).encode()).hexdigest()

    def described(self) -> str:
        """Return the size of the splits."""
        rows = ", ".join(f"{split} {len(self.rows(split))} rows" for split in SPLITS)
        return f"{rows}, {len(self.hidden)} rows with hidden labels" if self.hidden else rows


def read_splits(
    data: str | os.PathLike[str], *, answers: str | os.PathLike[str] | None = None
) -> Splits:
    """Read a folder of C-STS, or csts-sample, for training; rows have a label from 1 to 5.

    answers: a file written by `giccs csts answers`; the answers replace the sentences. Without
    csts_validation.csv, a tenth of the training rows (`HELD_OUT`; complete sentence pairs, sampled with seed
    0) is held out as validation. Without csts_test.csv, or if its labels are hidden, validation is reported,
    with a warning. Rows with hidden labels are predicted, unless answers are given and those of test are
    missing. Raises InputError with every problem.
    """
    name = os.fspath(data)
    if not in_splits(name):
        message = "not a folder; expected one with csts_train.csv and csts_validation.csv"
        raise InputError(Problem(name, None, message))
    available = [split for split in SPLITS if _is_there(name, split)]
    if "train" not in available:
        raise InputError(
            Problem(name, None, "contains no csts_train.csv, which is required for training")
        )
    if available == ["train"]:
        message = (
            "contains no csts_validation.csv and no csts_test.csv; expected at least one of them"
        )
        raise InputError(Problem(name, None, message))
    split_data = _read(name, available, answers)
    warnings = [
        warning for split_dataset in split_data.values() for warning in split_dataset.warnings
    ]
    rows = {split: split_data[split].compared if split in split_data else () for split in SPLITS}
    if "test" not in split_data:
        warnings.append(Problem(name, None, "no test split; metrics are of validation"))
    elif split_data["test"].hidden:
        rows |= {"hidden": rows["test"], "test": ()}
        message = "the labels of test are hidden; metrics are of validation"
        warnings.append(Problem(name, None, message))
    if "validation" not in split_data:
        rows["train"], rows["validation"] = _held_out(rows["train"])
        count = len(rows["validation"])
        message = f"no validation split; {count} of the training rows are held out instead"
        warnings.append(Problem(name, None, message))
    texts = "sentences" if answers is None else "answers"
    file = "" if answers is None else Path(answers).name
    return Splits(name, **rows, texts=texts, answers=file, warnings=tuple(warnings))


def sample_rows(rows: Rows, number: int | None, seed: int) -> Rows:
    """Return about `number` rows in complete, randomly selected sentence pairs.

    Smaller samples are contained in larger ones. The order of the rows is preserved.
    """
    if number is None or number >= len(rows):
        return rows
    sizes: dict[int, int] = {}
    for row in rows:
        sizes[row.pair] = sizes.get(row.pair, 0) + 1
    order = np.random.default_rng(seed).permutation(list(sizes))
    before = np.cumsum([0, *(sizes[pair] for pair in order)])[:-1]
    selected_pairs = set(order[before < number].tolist())
    return tuple(row for row in rows if row.pair in selected_pairs)


def _is_there(data: str, split: str) -> bool:
    return data == SAMPLE or split_file(Path(data), split) is not None


def _read(
    data: str, available: Sequence[str], answers: str | os.PathLike[str] | None
) -> dict[str, TaskData]:
    """Read the splits; raise InputError with the problems of all of them."""
    split_data: dict[str, TaskData] = {}
    problems: list[Problem] = []
    for split in available:
        try:
            split_data[split] = read_task_data(data, split, answers)
        except InputError as error:
            if split == "test" and (hidden := _unanswered(data, error)):
                split_data[split] = hidden
            else:
                problems += error.problems
    problems += [
        Problem(
            split_data[split].name, None, "no row with a label from 1 to 5; required for training"
        )
        for split in ("train", "validation")
        if split in split_data and split_data[split].hidden
    ]
    if answers is not None and not problems:
        problems += _ambiguous(split_data, answers)
    if problems:
        raise InputError(problems)
    return split_data


def _unanswered(data: str, error: InputError) -> TaskData | None:
    """Return a test split with hidden labels, without its rows, if the answers are the only problem."""
    try:
        test_data = read_task_data(data, "test")
    except InputError:
        return None
    if not test_data.hidden:
        return None
    warnings = [
        replace(problem, message=f"{problem.message}; test is not predicted")
        for problem in error.problems
    ]
    return replace(
        test_data, dataset=replace(test_data.dataset, instances=(), warnings=tuple(warnings))
    )


def _ambiguous(
    split_data: Mapping[str, TaskData], answers: str | os.PathLike[str]
) -> list[Problem]:
    """Return the problem of answers whose uid without split matches rows in several splits."""
    rows = Counter(instance.uid for data in split_data.values() for instance in data.instances)
    several = [uid for uid in read_row_answers(answers) if rows[uid] > 1]
    if not several:
        return []
    message = (
        f"{len(several)} uids match rows in several splits, the first is {several[0]!r}; add "
        f"the split as a prefix: {SPLITS[0]}:{several[0]}"
    )
    return [Problem(os.fspath(answers), None, message)]


def _held_out(rows: Rows) -> tuple[Rows, Rows]:
    validation = sample_rows(rows, max(2, round(HELD_OUT * len(rows))), seed=0)
    inside = {row.pair for row in validation}
    return tuple(row for row in rows if row.pair not in inside), validation
