"""Splits to train on, to select on and to report, with or without answers."""

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

from bws.problems import InputError, Problem
from giccs.csts.data import SAMPLE, SPLITS, Dataset, Instance
from giccs.csts.task_data import TaskData, in_splits, read_row_answers, read_task_data

__all__ = ["Splits", "read_splits", "sample_rows"]

HELD_OUT = 0.1
"""Share of the training rows that is held out if there is no validation split."""

Rows = tuple[Instance, ...]


@dataclass(frozen=True)
class Splits:
    """Rows with labels; with answers, these stand as the rows' sentences."""

    name: str
    train: Rows
    validation: Rows
    test: Rows
    """Empty where the test split is not there or its labels are hidden."""
    hidden: Rows = ()
    """The rows of a test split with hidden labels, in the order of the file."""
    texts: str = "sentences"
    """``sentences`` or ``answers``."""
    warnings: tuple[Problem, ...] = ()

    @property
    def reported(self) -> str:
        """Which split the numbers are of: ``test``, or ``validation`` where test has no labels."""
        return "test" if self.test else "validation"

    @property
    def measured(self) -> tuple[str, ...]:
        """The splits of which numbers are computed; the last one is reported."""
        return tuple(dict.fromkeys(("validation", self.reported)))

    @property
    def predicted(self) -> tuple[str, ...]:
        """The splits that a trained model scores: those measured, and ``hidden`` if it has rows."""
        return (*self.measured, "hidden") if self.hidden else self.measured

    def rows(self, split: str) -> Rows:
        """Return the rows of ``train``, ``validation``, ``test`` or ``hidden``."""
        instances: Rows = getattr(self, split)
        return instances

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over which rows are in which split."""
        splits = [*SPLITS, "hidden"] if self.hidden else SPLITS
        prints = [Dataset("", self.rows(split)).fingerprint for split in splits]
        return hashlib.sha256(json.dumps(prints).encode()).hexdigest()

    def described(self) -> str:
        """Return how much it is."""
        rows = ", ".join(f"{split} {len(self.rows(split))} rows" for split in SPLITS)
        return f"{rows}, {len(self.hidden)} rows with hidden labels" if self.hidden else rows


def read_splits(
    data: str | os.PathLike[str], *, answers: str | os.PathLike[str] | None = None
) -> Splits:
    """Read a folder of C-STS, or csts-sample, for training; rows have a label from 1 to 5.

    answers: a file as `giccs-csts answers` writes it; the answers take the place of the sentences. Without
    csts_validation.csv, a tenth of the training rows (`HELD_OUT`; whole sentence pairs, drawn with seed 0)
    is held out as validation. Without csts_test.csv, or where its labels are hidden, validation is reported:
    a warning says so. Rows with hidden labels are predicted, unless answers are given and lack theirs.
    Raises InputError with what is missing or wrong.
    """
    name = os.fspath(data)
    if not in_splits(name):
        message = "is no folder; training needs one with csts_train.csv and csts_validation.csv"
        raise InputError(Problem(name, None, message))
    available = [split for split in SPLITS if _is_there(name, split)]
    if "train" not in available:
        raise InputError(Problem(name, None, "holds no csts_train.csv, which is trained on"))
    if available == ["train"]:
        message = "holds no csts_validation.csv and no csts_test.csv; one of them is needed"
        raise InputError(Problem(name, None, message))
    split_data = _read(name, available, answers)
    warnings = [
        warning for split_dataset in split_data.values() for warning in split_dataset.warnings
    ]
    rows = {split: split_data[split].compared if split in split_data else () for split in SPLITS}
    if "test" not in split_data:
        warnings.append(
            Problem(name, None, "there is no test split; the numbers are of validation")
        )
    elif split_data["test"].hidden:
        rows |= {"hidden": rows["test"], "test": ()}
        message = "the labels of test are hidden; the numbers are of validation"
        warnings.append(Problem(name, None, message))
    if "validation" not in split_data:
        rows["train"], rows["validation"] = _held_out(rows["train"])
        count = len(rows["validation"])
        message = f"has no validation split; {count} of the training rows are held out instead"
        warnings.append(Problem(name, None, message))
    texts = "sentences" if answers is None else "answers"
    return Splits(name, **rows, texts=texts, warnings=tuple(warnings))


def sample_rows(rows: Rows, number: int | None, seed: int) -> Rows:
    """Return about `number` rows: whole sentence pairs in a random order, until there are enough.

    What is drawn for a smaller number is part of what is drawn for a larger one. The order of rows is kept.
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
    return data == SAMPLE or any(
        Path(data, f"csts_{split}{ending}").is_file() for ending in (".csv", ".csv.gz")
    )


def _read(
    data: str, available: Sequence[str], answers: str | os.PathLike[str] | None
) -> dict[str, TaskData]:
    """Read the splits; InputError with what is wrong in any of them."""
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
            split_data[split].name, None, "has no row with a label from 1 to 5; training needs them"
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
    """Return what is wrong where a uid without its split is that of rows in several splits."""
    rows = Counter(instance.uid for data in split_data.values() for instance in data.instances)
    several = [uid for uid in read_row_answers(answers) if rows[uid] > 1]
    if not several:
        return []
    message = (
        f"{len(several)} uids are those of rows in several splits, the first is {several[0]!r}; "
        f"write the split before it: {SPLITS[0]}:{several[0]}"
    )
    return [Problem(os.fspath(answers), None, message)]


def _held_out(rows: Rows) -> tuple[Rows, Rows]:
    validation = sample_rows(rows, max(2, round(HELD_OUT * len(rows))), seed=0)
    inside = {row.pair for row in validation}
    return tuple(row for row in rows if row.pair not in inside), validation
