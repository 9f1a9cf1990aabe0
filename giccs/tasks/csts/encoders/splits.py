"""What is trained on, what chooses the epoch, and what is reported: the splits, with or without answers."""

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
from giccs.tasks.csts.asked import Asked, in_splits, read_asked, read_given
from giccs.tasks.csts.data import SAMPLE, SPLITS, Dataset, read_csts
from giccs.tasks.csts.records import Instance

__all__ = ["HELD_OUT", "Splits", "drawn", "read_splits"]

HELD_OUT = 0.1
"""Share of the training rows that choose the epoch where there is no validation split."""

Rows = tuple[Instance, ...]


@dataclass(frozen=True)
class Splits:
    """Rows with labels; with answers, these stand as the rows' sentences."""

    name: str
    train: Rows
    validation: Rows
    test: Rows
    """Empty where the test split is not there or its labels are hidden."""
    texts: str = "sentences"
    """``sentences`` or ``answers``."""
    warnings: tuple[Problem, ...] = ()

    @property
    def reported(self) -> str:
        """Which split the numbers are of: ``test``, or ``validation`` where test has no labels."""
        return "test" if self.test else "validation"

    def rows(self, split: str) -> Rows:
        """Return the rows of ``train``, ``validation`` or ``test``."""
        found: Rows = getattr(self, split)
        return found

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over which rows are in which split."""
        prints = [Dataset("", self.rows(split)).fingerprint for split in SPLITS]
        return hashlib.sha256(json.dumps(prints).encode()).hexdigest()

    def described(self) -> str:
        """Return how much it is."""
        return ", ".join(f"{split} {len(self.rows(split))} rows" for split in SPLITS)


def read_splits(
    data: str | os.PathLike[str], *, answers: str | os.PathLike[str] | None = None
) -> Splits:
    """Read a folder of C-STS, or csts-sample, for training; only rows with a label from 1 to 5 are kept.

    answers: a file as `giccs-csts answers` writes it; the answers take the place of the sentences. Without
    csts_validation.csv, a tenth of the training rows (`HELD_OUT`; whole sentence pairs, drawn with seed 0)
    chooses the epoch. Without csts_test.csv, or where its labels are hidden, validation is reported: a
    warning says so. Raises InputError with what is missing or wrong.
    """
    name = os.fspath(data)
    if not in_splits(name):
        message = "is no folder; training needs one with csts_train.csv and csts_validation.csv"
        raise InputError(Problem(name, None, message))
    there = [split for split in SPLITS if _is_there(name, split)]
    if "train" not in there:
        raise InputError(Problem(name, None, "holds no csts_train.csv, which is trained on"))
    if there == ["train"]:
        message = "holds no csts_validation.csv and no csts_test.csv; one of them is needed"
        raise InputError(Problem(name, None, message))
    found = _read(name, there, answers)
    warnings = [warning for asked in found.values() for warning in asked.warnings]
    rows = {split: _rows(found[split]) if split in found else () for split in SPLITS}
    if "test" not in found:
        what = "the labels of test are hidden" if "test" in there else "there is no test split"
        warnings.append(Problem(name, None, f"{what}; the numbers are of validation"))
    if "validation" not in found:
        rows["train"], rows["validation"] = _held_out(rows["train"])
        count = len(rows["validation"])
        message = f"has no validation split; {count} of the training rows choose the epoch instead"
        warnings.append(Problem(name, None, message))
    texts = "sentences" if answers is None else "answers"
    return Splits(name, **rows, texts=texts, warnings=tuple(warnings))


def drawn(rows: Rows, number: int | None, seed: int) -> Rows:
    """Return about `number` rows: whole sentence pairs in a random order, until there are enough.

    What is drawn for a smaller number is part of what is drawn for a larger one. The order of rows is kept.
    """
    if number is None or number >= len(rows):
        return rows
    sizes: dict[int, int] = {}
    for one in rows:
        sizes[one.pair] = sizes.get(one.pair, 0) + 1
    order = np.random.default_rng(seed).permutation(list(sizes))
    before = np.cumsum([0, *(sizes[pair] for pair in order)])[:-1]
    kept = set(order[before < number].tolist())
    return tuple(one for one in rows if one.pair in kept)


def _is_there(data: str, split: str) -> bool:
    return data == SAMPLE or any(
        Path(data, f"csts_{split}{ending}").is_file() for ending in (".csv", ".csv.gz")
    )


def _read(
    data: str, there: Sequence[str], answers: str | os.PathLike[str] | None
) -> dict[str, Asked]:
    """Read the splits that have labels; InputError with what is wrong in any of them."""
    found: dict[str, Asked] = {}
    problems: list[Problem] = []
    for split in there:
        try:
            if split != "test" or not _is_hidden(data):
                found[split] = read_asked(data, split, answers)
        except InputError as error:
            problems += error.problems
    if answers is not None and not problems:
        problems += _ambiguous(found, answers)
    if problems:
        raise InputError(problems)
    return found


def _ambiguous(found: Mapping[str, Asked], answers: str | os.PathLike[str]) -> list[Problem]:
    """Return what is wrong where a uid without its split is that of rows in several splits."""
    rows = Counter(one.uid for asked in found.values() for one in asked.instances)
    several = [uid for uid in read_given(answers) if rows[uid] > 1]
    if not several:
        return []
    message = (
        f"{len(several)} uids are those of rows in several splits, the first is {several[0]!r}; "
        f"write the split before it: {SPLITS[0]}:{several[0]}"
    )
    return [Problem(os.fspath(answers), None, message)]


def _is_hidden(data: str) -> bool:
    """Tell whether no row of test has a label, which is how C-STS was published."""
    try:
        return not read_csts(data, "test").labelled().instances
    except InputError:  # whatever it is, it is told when the split is read
        return False


def _rows(asked: Asked) -> Rows:
    """Return the rows, with answers in place of the sentences where there are any."""
    if asked.answers is None:
        return asked.instances
    return tuple(
        replace(one, sentence1=asked.answers[one.uid][0], sentence2=asked.answers[one.uid][1])
        for one in asked.instances
    )


def _held_out(rows: Rows) -> tuple[Rows, Rows]:
    held = drawn(rows, max(2, round(HELD_OUT * len(rows))), seed=0)
    inside = {one.pair for one in held}
    return tuple(one for one in rows if one.pair not in inside), held
