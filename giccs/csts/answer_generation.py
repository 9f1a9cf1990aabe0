"""Generation of answers to the question of each condition, one sentence at a time (L-CSTS, 4.1 and Figure 7).

A condition becomes the question "What is [condition]?", in lower case and without its full stop (footnote 4).
A model answers it from one sentence at a time. Its outputs are stored in a journal beside the answers as they
arrive, so that an interrupted call can be resumed. An answer is the first line with text. It is `NO_ANSWER`
if there is no such line, or if the condition is empty.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bws.command import json_ready
from bws.problems import InputError, Problem
from bws.textio import csv_text, read_bytes, write_atomic
from giccs.csts.data import LABELS, Dataset, Instance
from giccs.csts.prompts import text
from giccs.models.abilities import ServedModel
from giccs.progress import Progress, silent
from giccs.tasks.refusals import no_generation_reason

__all__ = [
    "MAX_TOKENS",
    "NO_ANSWER",
    "AnswerGenerator",
    "AnsweredRow",
    "Journal",
    "answered_rows",
    "answers_csv",
    "cleaned",
    "question",
    "rows_to_ask",
]

log = logging.getLogger(__name__)

NO_ANSWER = "(no answer)"
"""Replacement for an empty output, which could be neither embedded nor distinguished from a gap."""
MAX_TOKENS = 20
AT_ONCE = 32
"""Number of rows per journal write, the maximum loss if a call is interrupted."""
MAX_PROGRESS_LABEL = 40
"""Maximum number of characters of a value in a message."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
COLUMNS = ("uid", "label", "answer1", "answer2", "condition")


@dataclass(frozen=True, slots=True)
class AnsweredRow:
    """A row and the model's answers about its two sentences."""

    row: Instance
    answer1: str
    answer2: str

    @property
    def empty(self) -> int:
        """Number of missing answers."""
        return (self.answer1, self.answer2).count(NO_ANSWER)


def question(condition: str) -> str:
    """Return the question about a condition, or an empty string for an empty condition.

    >>> question("The color of the dogs.")
    'What is the color of the dogs?'
    """
    normalized_condition = " ".join(condition.lower().split()).removesuffix(".").rstrip()
    return f"What is {normalized_condition}?" if normalized_condition else ""


def cleaned(answer: str) -> str:
    """Return the first line with text, with single spaces, or `NO_ANSWER` without one.

    Control characters are treated as spaces, because they would corrupt a CSV file.

    >>> cleaned("\\n  Two  dogs \\nSentence: A cat."), cleaned(" ")
    ('Two dogs', '(no answer)')
    """
    lines = (" ".join(CONTROL.sub(" ", line).split()) for line in answer.splitlines())
    return next(filter(None, lines), NO_ANSWER)


def rows_to_ask(dataset: Dataset) -> tuple[Instance, ...]:
    """Return the rows for which answers are generated: those with a label from 1 to 5, or all if none has
    one."""
    return dataset.labelled().instances or dataset.instances


@dataclass(slots=True)
class Journal:
    """Model outputs by uid, stored as JSON Lines; the first line is the signature of the generation.

    Raises InputError if the file has another signature or is not a journal.
    """

    path: Path
    signature: Mapping[str, Any]
    answers_by_uid: dict[str, tuple[str, str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.path.exists():
            self._read()
        else:
            write_atomic(self.path, _line({"signature": self.signature}))

    def add(self, answer_rows: Iterable[tuple[str, str, str]]) -> None:
        """Store rows of uid, output about sentence 1 and output about sentence 2; flushed to disk before the
        return."""
        rows = list(answer_rows)
        lines = (_line({"uid": uid, "written": [answer1, two]}) for uid, answer1, two in rows)
        with open(self.path, "ab") as file:
            file.write("".join(lines).encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        self.answers_by_uid |= {uid: (answer_one, two) for uid, answer_one, two in rows}

    def _read(self) -> None:
        data = read_bytes(self.path)
        complete_lines = data[: data.rfind(b"\n") + 1]
        try:
            header, *lines = [json.loads(line) for line in complete_lines.splitlines()]
            signature = header["signature"]
            self.answers_by_uid = {
                line["uid"]: (line["written"][0], line["written"][1]) for line in lines
            }
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise self._refused("not a journal of answers; remove it, or use --force") from None
        if changed := _changed(signature, json_ready(self.signature)):
            raise self._refused(
                f"contains answers generated with other settings: {changed}; choose another "
                "output, or use --force to generate all answers again"
            )
        if len(complete_lines) < len(
            data
        ):  # The last line is incomplete if the program was interrupted.
            os.truncate(self.path, len(complete_lines))

    def _refused(self, message: str) -> InputError:
        return InputError(Problem(str(self.path), None, message))


@dataclass(frozen=True, slots=True)
class AnswerGenerator:
    """Generates answers with a text generation model."""

    model: Any
    """Must have `generate`, and `render_chat` if a chat template is used."""
    max_tokens: int = MAX_TOKENS
    chat_template: bool = False

    def refuses(self) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        return no_generation_reason(self.model, "answering", chat_template=self.chat_template)

    def signature(self, dataset: Dataset) -> dict[str, Any]:
        """Return all settings that determine the answers; labels are not among them."""
        unlabelled = tuple(replace(instance, label=None) for instance in dataset.instances)
        return {
            "model": self.model.name,
            **self.model.identity,
            "data": replace(dataset, instances=unlabelled).fingerprint,
            "prompt": text("question-1").document,
            "chat_template": self.chat_template,
            "max_tokens": self.max_tokens,
        }

    def prompts(self, row: Instance) -> list[str]:
        """Return two prompts, one per sentence."""
        question_text = question(row.condition)
        prompts = [
            text("question-1").fill(sentence=sentence, question=question_text)
            for sentence in (row.sentence1, row.sentence2)
        ]
        return list(map(self.model.render_chat, prompts)) if self.chat_template else prompts

    def ask(self, rows: Sequence[Instance], journal: Journal, progress: Progress = silent) -> int:
        """Generate answers for the rows that are not in the journal yet; return the number of these rows."""
        missing = [
            row for row in rows if row.uid not in journal.answers_by_uid and question(row.condition)
        ]
        log.debug("%d rows, %d of them without answers yet", len(rows), len(missing))
        served = isinstance(
            self.model, ServedModel
        )  # The model stores answers itself and tracks the cost of a call.
        if served:
            self._add(missing, journal, progress)
        else:
            for _ in progress(self._in_parts(missing, journal), "answering", len(missing)):
                pass
        return len(missing)

    def _in_parts(self, rows: Sequence[Instance], journal: Journal) -> Iterator[Instance]:
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            self._add(some, journal)
            yield from some

    def _add(self, rows: Sequence[Instance], journal: Journal, progress: Progress = silent) -> None:
        prompts = [prompt for row in rows for prompt in self.prompts(row)]
        generated = self.model.generate(prompts, self.max_tokens, progress)
        uids = (row.uid for row in rows)
        journal.add(zip(uids, generated[::2], generated[1::2], strict=True))


def answered_rows(rows: Sequence[Instance], journal: Journal) -> list[AnsweredRow]:
    """Return the cleaned answers of all rows."""
    nothing = ("", "")
    return [
        AnsweredRow(row, *map(cleaned, journal.answers_by_uid.get(row.uid, nothing)))
        for row in rows
    ]


def answers_csv(answers: Iterable[AnsweredRow]) -> str:
    """Return answers as CSV (uid, label, answer1, answer2, condition); the label may be empty."""
    rows = []
    for row in answers:
        label = row.row.label if row.row.label in LABELS else ""
        rows.append((row.row.uid, label, row.answer1, row.answer2, row.row.condition))
    return csv_text(rows, COLUMNS)


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(json_ready(document), ensure_ascii=False) + "\n"


def _changed(old: Any, new: Mapping[str, Any]) -> str:
    """Return the differences between two signatures: ``model was a, is b``."""
    before = old if isinstance(old, Mapping) else {}
    return ", ".join(
        f"{name} was {_short(before.get(name))}, is {_short(new.get(name))}"
        for name in dict.fromkeys([*before, *new])
        if before.get(name) != new.get(name)
    )


def _short(value: Any) -> str:
    """Return a value for a message; digests are shortened."""
    text = repr(value)
    return text if len(text) <= MAX_PROGRESS_LABEL else f"{text[:MAX_PROGRESS_LABEL]}…"
