"""Data of the C-STS tasks: rows and, optionally, answers about their sentences.

An answers file (CSV or TSV) has the columns ``uid, answer1, answer2`` and, optionally, ``condition``, as
written by `giccs csts answers`; other columns are ignored. A uid is that of a row, with its split as a prefix
(``validation:17``) in files about several splits.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from bws.files.table import read_table
from giccs.csts.data import INVALID, SAMPLE, SPLITS, Dataset, Instance, read_csts
from giccs.measures.submission import INDEX

Answers = Mapping[str, tuple[str, str]]
"""By uid: the answers about the condition from sentence 1 and sentence 2."""
COLUMNS = ("uid", "answer1", "answer2")
MAX_LISTED_UIDS = 5
"""Maximum number of uids in a message."""


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """Two answers about the condition of a row."""

    answer1: str
    """From sentence 1."""
    answer2: str
    condition: str
    """Empty if the file does not contain it."""


@dataclass(frozen=True)
class TaskData:
    """Labelled rows, or rows whose labels are all hidden, with answers and examples."""

    dataset: Dataset
    """Rows with a label from 1 to 5, or all rows if labels are hidden; its warnings list skipped rows."""
    answers: Answers | None = None
    """Answers of all rows; None without an answers file."""
    examples: Dataset | None = None
    """Source of the examples in prompts; None without examples."""
    indices: Mapping[str, int] | None = None
    """uid -> index of the row in its file, from 0, if all labels are hidden; else None."""

    @property
    def hidden(self) -> bool:
        """Whether all labels are hidden, so that rows are predicted without metrics."""
        return self.indices is not None

    @property
    def name(self) -> str:
        """The name of the data, with the split."""
        return self.dataset.name

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Warnings about the data and the examples."""
        return (*self.dataset.warnings, *(self.examples.warnings if self.examples else ()))

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The rows."""
        return self.dataset.instances

    @property
    def compared(self) -> tuple[Instance, ...]:
        """The rows, with the answers in place of the sentences if there are any."""
        if self.answers is None:
            return self.instances
        return tuple(
            replace(row, sentence1=self.answers[row.uid][0], sentence2=self.answers[row.uid][1])
            for row in self.instances
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rows and their answers, independent of their order and the file format."""
        if self.answers is None:
            return self.dataset.fingerprint
        lines = sorted([instance.uid, *self.answers[instance.uid]] for instance in self.instances)
        text = json.dumps([self.dataset.fingerprint, lines], ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @property
    def sentence_pairs(self) -> int:
        """Number of distinct sentence pairs."""
        return len({instance.pair for instance in self.instances})

    def first(self, n: int) -> TaskData:
        """Return the rows of the first `n` sentence pairs."""
        return replace(
            self, dataset=replace(self.dataset, instances=first_pairs(self.instances, n))
        )

    def hidden_labels(self) -> dict[str, bool]:
        """Return the signature entry for hidden labels; empty if labels are known."""
        return {"hidden_labels": True} if self.hidden else {}

    def label_columns(self) -> dict[str, Any]:
        """Return the columns of a prediction table: ``label``, and ``index`` if labels are hidden."""
        labels = {"label": [instance.label for instance in self.instances]}
        if self.indices is None:
            return labels
        return {**labels, INDEX: [self.indices[instance.uid] for instance in self.instances]}

    def described(self) -> str:
        """Return the size of the data: ``60 sentence pairs, 120 rows``."""
        labels = ", labels hidden" if self.hidden else ""
        return f"{self.sentence_pairs} sentence pairs, {len(self.instances)} rows{labels}"


@dataclass(frozen=True, slots=True)
class Reading:
    """Reader of a task's data; equal readers return equal data."""

    split: str = "validation"
    answers: str | None = None
    with_examples: bool = False
    """Whether the prompts have examples."""
    examples: str | None = None
    """Source of the examples; None for the training split of the data itself."""

    def __call__(self, data: str) -> TaskData:
        """Read the data; raise InputError for its problems, and for missing examples if they are required."""
        task_data = read_task_data(data, self.split, self.answers)
        return (
            replace(task_data, examples=self._examples(data)) if self.with_examples else task_data
        )

    def _examples(self, data: str) -> Dataset:
        source = self.examples or data
        if in_splits(source):
            return read_csts(source, "train", relabelled=True)
        if self.examples is None:
            message = (
                "a single file has no training split for examples; specify one with --examples FILE"
            )
            raise InputError(Problem(display_name(data), None, message))
        return read_csts(source, relabelled=True)


def first_pairs(instances: Sequence[Instance], n: int | None) -> tuple[Instance, ...]:
    """Return the rows of the first `n` sentence pairs, or all if n is None."""
    first_pairs_set = set(list(dict.fromkeys(instance.pair for instance in instances))[:n])
    return tuple(instance for instance in instances if instance.pair in first_pairs_set)


def in_splits(data: str | os.PathLike[str]) -> bool:
    """Return whether data is a folder of splits."""
    return data == SAMPLE or Path(data).is_dir()


def read_task_data(
    data: str | os.PathLike[str],
    split: str = "validation",
    answers: str | os.PathLike[str] | None = None,
) -> TaskData:
    """Read the labelled rows of a C-STS file, or of one split of a folder or of csts-sample.

    answers: a file with an answer about each sentence. Rows without a label, with a hidden label or with an
    invalid condition (-1) are skipped, and a warning gives their number. If no row has a label, all labels
    are
    hidden: all rows are returned, with a warning. Raises InputError for rows without answers, and with every
    problem of the files.

    >>> read_task_data("csts-sample").first(3).described()
    '3 sentence pairs, 6 rows'
    """
    full_dataset = read_csts(data, split if in_splits(data) else None, relabelled=True)
    name = f"{full_dataset.name} ({split})" if in_splits(data) else display_name(data)
    dataset, indices = full_dataset.labelled(), None
    if dataset.instances:
        invalid = sum(instance.label == INVALID for instance in full_dataset.instances)
        left_out = _count_problem(
            name, invalid, "rows are skipped: their label is -1, hidden or invalid"
        )
    else:
        dataset = replace(
            full_dataset,
            instances=tuple(replace(instance, label=None) for instance in full_dataset.instances),
        )
        indices = {instance.uid: index for index, instance in enumerate(full_dataset.instances)}
        message = "no row has a label from 1 to 5: rows are predicted without metrics"
        left_out = [Problem(name, None, message)]
    answers_by_uid = None
    if answers is not None:
        answer_rows = read_row_answers(answers)
        answers_by_uid, unused = _matched(
            replace(dataset, name=name), answer_rows, split, display_name(answers)
        )
        left_out += _count_problem(
            display_name(answers), unused, "answers match no row of the data"
        )
    warnings = (*full_dataset.warnings, *left_out)
    return TaskData(replace(dataset, name=name, warnings=warnings), answers_by_uid, indices=indices)


def read_row_answers(path: str | os.PathLike[str]) -> dict[str, RowAnswers]:
    """Read answers by uid; white space is normalised.

    Raises InputError with every problem: missing columns, empty or repeated uids, empty answers.
    """
    table = read_table(path, (*COLUMNS, "condition"))
    table.need(COLUMNS)
    problems, answer_rows = list(table.problems), {}
    for line, row in zip(table.lines.tolist(), table.frame.iter_rows(named=True), strict=True):
        uid = row["uid"].strip()
        faults = [
            f"{name} is empty; expected an answer for every row"
            for name in COLUMNS
            if not row[name].strip()
        ]
        if uid in answer_rows:
            faults.append(f"repeated uid {uid!r}")
        problems += [Problem(table.file, line, fault) for fault in faults]
        cells = (row["answer1"], row["answer2"], row.get("condition", ""))
        answer_rows[uid] = RowAnswers(*map(_words, cells))
    if problems:
        raise InputError(problems)
    return answer_rows


def _matched(
    dataset: Dataset, answer_rows: Mapping[str, RowAnswers], split: str, file: str
) -> tuple[Answers, int]:
    """Return the answers of every row, and the number of answers of this split that match no row.

    Raises InputError for rows without answers or with answers about another condition.
    """
    rows, of = dataset.instances, f"{len(dataset.instances)} rows of {dataset.name}"
    matches = {
        row.uid: answer_rows.get(f"{split}:{row.uid}") or answer_rows.get(row.uid) for row in rows
    }
    faults = {
        "no answers for": [uid for uid, answer_row in matches.items() if answer_row is None],
        "answers about another condition for": [
            row.uid
            for row in rows
            if (row_answer := matches[row.uid])
            and row_answer.condition not in ("", _words(row.condition))
        ],
    }
    problems = [
        Problem(file, None, f"{fault} {len(wrong)} of {of}; their uids: {_some(wrong)}")
        for fault, wrong in faults.items()
        if wrong
    ]
    if problems:
        raise InputError(problems)
    answers = {uid: (answer.answer1, answer.answer2) for uid, answer in matches.items() if answer}
    elsewhere = tuple(f"{other_split}:" for other_split in SPLITS if other_split != split)
    return answers, sum(not uid.startswith(elsewhere) for uid in answer_rows) - len(answers)


def _words(text: str) -> str:
    return " ".join(text.split())


def _some(uids: Sequence[str]) -> str:
    return ", ".join(uids[:MAX_LISTED_UIDS]) + (", ..." if len(uids) > MAX_LISTED_UIDS else "")


def _count_problem(file: str, count: int, description: str) -> list[Problem]:
    return [Problem(file, None, f"{count} {description}")] if count else []
