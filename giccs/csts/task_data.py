"""Data of the C-STS tasks: rows and, if a file gives them, answers about their sentences.

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
from giccs.csts.data import INVALID, SAMPLE, SPLITS, Dataset, Instance, read_csts
from giccs.measures.submission import INDEX

__all__ = [
    "Reading",
    "TaskData",
    "first_pairs",
    "in_splits",
    "read_row_answers",
    "read_task_data",
]

Answers = Mapping[str, tuple[str, str]]
"""By uid: what sentence 1 says about the condition, and sentence 2."""
COLUMNS = ("uid", "answer1", "answer2")
MAX_LISTED_UIDS = 5
"""How many uids a message names."""


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """What is said about the condition of a row."""

    answer1: str
    """By sentence 1."""
    answer2: str
    condition: str
    """Empty where the file does not say."""


@dataclass(frozen=True)
class TaskData:
    """Rows with labels, or rows of which all labels are hidden, and what is known of them."""

    dataset: Dataset
    """Rows with a label from 1 to 5, or else all rows; its warnings say what is left out."""
    answers: Answers | None = None
    """Of every row; None where no answers were given."""
    examples: Dataset | None = None
    """What examples in a prompt are drawn from; None where there are to be none."""
    indices: Mapping[str, int] | None = None
    """uid -> index of the row in its file, counted from 0, if all labels are hidden; else None."""

    @property
    def hidden(self) -> bool:
        """Whether the labels are hidden, so that rows are predicted and nothing is measured."""
        return self.indices is not None

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
        """SHA-256 over the rows and their answers, whatever their order and the form of the files."""
        if self.answers is None:
            return self.dataset.fingerprint
        lines = sorted([instance.uid, *self.answers[instance.uid]] for instance in self.instances)
        text = json.dumps([self.dataset.fingerprint, lines], ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @property
    def sentence_pairs(self) -> int:
        """How many different sentence pairs the rows have."""
        return len({instance.pair for instance in self.instances})

    def first(self, n: int) -> TaskData:
        """Return the rows of the first `n` sentence pairs."""
        return replace(
            self, dataset=replace(self.dataset, instances=first_pairs(self.instances, n))
        )

    def hidden_labels(self) -> dict[str, bool]:
        """Return the entry of a signature that says that the labels are hidden; empty if they are known."""
        return {"hidden_labels": True} if self.hidden else {}

    def label_columns(self) -> dict[str, list[int | None]]:
        """Return the columns of a table of predictions: ``label``, and ``index`` if labels are hidden."""
        labels = {"label": [instance.label for instance in self.instances]}
        if self.indices is None:
            return labels
        return {**labels, INDEX: [self.indices[instance.uid] for instance in self.instances]}

    def described(self) -> str:
        """Return how much there is: ``60 sentence pairs, 120 rows``."""
        labels = ", labels hidden" if self.hidden else ""
        return f"{self.sentence_pairs} sentence pairs, {len(self.instances)} rows{labels}"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the data of a task is read; equal where it is read alike."""

    split: str = "validation"
    answers: str | None = None
    with_examples: bool = False
    """Whether examples are to be drawn."""
    examples: str | None = None
    """Where from; None is the training split of the data itself."""

    def __call__(self, data: str) -> TaskData:
        """Read; InputError with what is wrong, and where examples are wanted and there are none."""
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
                "is a file, without a training split to draw examples from; "
                "name one with --examples FILE"
            )
            raise InputError(Problem(display_name(data), None, message))
        return read_csts(source, relabelled=True)


def first_pairs(instances: Sequence[Instance], n: int | None) -> tuple[Instance, ...]:
    """Return the rows of the first `n` sentence pairs; of all where n is None."""
    first_pairs_set = set(list(dict.fromkeys(instance.pair for instance in instances))[:n])
    return tuple(instance for instance in instances if instance.pair in first_pairs_set)


def in_splits(data: str | os.PathLike[str]) -> bool:
    """Tell whether data is a folder of splits; a file has none."""
    return data == SAMPLE or Path(data).is_dir()


def read_task_data(
    data: str | os.PathLike[str],
    split: str = "validation",
    answers: str | os.PathLike[str] | None = None,
) -> TaskData:
    """Read the labelled rows of a C-STS file, or of one split of a folder or of csts-sample.

    answers: a file with an answer about each sentence. Rows without a label, hidden ones and rows with an
    invalid condition (-1) are left out, and a warning says how many. If no row has a label, all are hidden:
    the rows are kept, and a warning says so. Raises InputError where a row has no answers, and with every
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
            name, invalid, "rows are left out: their label is -1, hidden or invalid"
        )
    else:
        dataset = replace(
            full_dataset,
            instances=tuple(replace(instance, label=None) for instance in full_dataset.instances),
        )
        indices = {instance.uid: index for index, instance in enumerate(full_dataset.instances)}
        message = "no row has a label from 1 to 5: rows are predicted, and nothing is measured"
        left_out = [Problem(name, None, message)]
    answers_by_uid = None
    if answers is not None:
        answer_rows = read_row_answers(answers)
        answers_by_uid, unused = _matched(
            replace(dataset, name=name), answer_rows, split, display_name(answers)
        )
        left_out += _count_problem(
            display_name(answers), unused, "answers belong to no row that is asked"
        )
    warnings = (*full_dataset.warnings, *left_out)
    return TaskData(replace(dataset, name=name, warnings=warnings), answers_by_uid, indices=indices)


def read_row_answers(path: str | os.PathLike[str]) -> dict[str, RowAnswers]:
    """Read answers by uid; white space outside and between words is made one space.

    Raises InputError with every problem: columns that are missing, uids that are empty or repeat, answers
    that are empty.
    """
    table = read_table(path)
    table.need(COLUMNS)
    problems, answer_rows = list(table.problems), {}
    for line, row in zip(table.lines.tolist(), table.frame.iter_rows(named=True), strict=True):
        uid = row["uid"].strip()
        faults = [
            f"{name} is empty; every row needs one" for name in COLUMNS if not row[name].strip()
        ]
        if uid in answer_rows:
            faults.append(f"the uid {uid!r} stands on an earlier line already")
        problems += [Problem(table.file, line, fault) for fault in faults]
        cells = (row["answer1"], row["answer2"], row.get("condition", ""))
        answer_rows[uid] = RowAnswers(*map(_words, cells))
    if problems:
        raise InputError(problems)
    return answer_rows


def _matched(
    dataset: Dataset, answer_rows: Mapping[str, RowAnswers], split: str, file: str
) -> tuple[Answers, int]:
    """Return the answers of every row, and how many of this split belong to none.

    Raises InputError where rows have no answers, or such as are about another condition.
    """
    rows, of = dataset.instances, f"{len(dataset.instances)} rows of {dataset.name}"
    matches = {
        row.uid: answer_rows.get(f"{split}:{row.uid}") or answer_rows.get(row.uid) for row in rows
    }
    faults = {
        "has no answers for": [uid for uid, answer_row in matches.items() if answer_row is None],
        "has answers about another condition for": [
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
