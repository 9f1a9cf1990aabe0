"""Generation of answers: what does each sentence say about the condition? (L-CSTS, 4.1 and Figure 7)

A condition becomes the question "What is [condition]?", in lower case and without its full stop (footnote 4),
and a model answers it from one sentence at a time. What it wrote is kept in a journal beside the answers as
soon as it is there: a call that was stopped goes on where it was. An answer is the first line that has text;
where there is none, or the condition is empty and nothing can be asked, it is `NO_ANSWER`.
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
"""What stands where a model wrote nothing: an empty answer could not be embedded, nor be told from a gap."""
MAX_TOKENS = 20
AT_ONCE = 32
"""Rows between two notes in the journal: what an interrupted call loses at most."""
MAX_PROGRESS_LABEL = 40
"""Characters of a value in a message."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
COLUMNS = ("uid", "label", "answer1", "answer2", "condition")


@dataclass(frozen=True, slots=True)
class AnsweredRow:
    """A row, and what the model made of its sentences."""

    row: Instance
    answer1: str
    answer2: str

    @property
    def empty(self) -> int:
        """How many of the answers are none."""
        return (self.answer1, self.answer2).count(NO_ANSWER)


def question(condition: str) -> str:
    """Return the question about a condition; empty where the condition is.

    >>> question("The color of the dogs.")
    'What is the color of the dogs?'
    """
    normalized_condition = " ".join(condition.lower().split()).removesuffix(".").rstrip()
    return f"What is {normalized_condition}?" if normalized_condition else ""


def cleaned(answer: str) -> str:
    """Return the first line that has text, with single spaces; `NO_ANSWER` where there is none.

    Control characters count as spaces: a random byte is no part of an answer, and spoils a CSV file.

    >>> cleaned("\\n  Two  dogs \\nSentence: A cat."), cleaned(" ")
    ('Two dogs', '(no answer)')
    """
    lines = (" ".join(CONTROL.sub(" ", line).split()) for line in answer.splitlines())
    return next(filter(None, lines), NO_ANSWER)


def rows_to_ask(dataset: Dataset) -> tuple[Instance, ...]:
    """Return the rows that are asked about: those with a label from 1 to 5, or all where none has one."""
    return dataset.labelled().instances or dataset.instances


@dataclass(slots=True)
class Journal:
    """What a model wrote about each uid: a file of JSON lines, the first of which says how it was asked.

    InputError where the file is of another question, or is no journal.
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
        """Keep what was written: uid, about sentence 1, about sentence 2; on the disk when this returns."""
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
            raise self._refused("is no journal of answers; remove it, or use --force") from None
        if changed := _changed(signature, json_ready(self.signature)):
            raise self._refused(
                f"holds answers that came about otherwise: {changed}; name another output, or use "
                "--force to ask everything again"
            )
        if len(complete_lines) < len(
            data
        ):  # the last line was being written when the program was ended
            os.truncate(self.path, len(complete_lines))

    def _refused(self, message: str) -> InputError:
        return InputError(Problem(str(self.path), None, message))


@dataclass(frozen=True, slots=True)
class AnswerGenerator:
    """Asks a model that writes."""

    model: Any
    """With `generate`, and with `render_chat` where a chat template is wanted."""
    max_tokens: int = MAX_TOKENS
    chat_template: bool = False

    def refuses(self) -> str:
        """Return why the model cannot do it and what could be done; empty where it can."""
        return no_generation_reason(self.model, "answering", chat_template=self.chat_template)

    def signature(self, dataset: Dataset) -> dict[str, Any]:
        """Return all that the answers depend on; labels are not among it."""
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
        """Return what the model reads: a prompt for each sentence."""
        question_text = question(row.condition)
        prompts = [
            text("question-1").fill(sentence=sentence, question=question_text)
            for sentence in (row.sentence1, row.sentence2)
        ]
        return list(map(self.model.render_chat, prompts)) if self.chat_template else prompts

    def ask(self, rows: Sequence[Instance], journal: Journal, progress: Progress = silent) -> int:
        """Ask about the rows that the journal does not know yet; return how many these were."""
        missing = [
            row for row in rows if row.uid not in journal.answers_by_uid and question(row.condition)
        ]
        log.debug("%d rows, %d of them to be asked about", len(rows), len(missing))
        served = isinstance(
            self.model, ServedModel
        )  # it keeps answers itself, and counts a call's cost
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
    """Return the answers of every row, cleaned."""
    nothing = ("", "")
    return [
        AnsweredRow(row, *map(cleaned, journal.answers_by_uid.get(row.uid, nothing)))
        for row in rows
    ]


def answers_csv(answers: Iterable[AnsweredRow]) -> str:
    """Return answers as CSV (uid, label, answer1, answer2, condition); a row without a label has none."""
    rows = []
    for row in answers:
        label = row.row.label if row.row.label in LABELS else ""
        rows.append((row.row.uid, label, row.answer1, row.answer2, row.row.condition))
    return csv_text(rows, COLUMNS)


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(json_ready(document), ensure_ascii=False) + "\n"


def _changed(old: Any, new: Mapping[str, Any]) -> str:
    """Return what of a signature is different: ``model was a, is b``."""
    before = old if isinstance(old, Mapping) else {}
    return ", ".join(
        f"{name} was {_short(before.get(name))}, is {_short(new.get(name))}"
        for name in dict.fromkeys([*before, *new])
        if before.get(name) != new.get(name)
    )


def _short(value: Any) -> str:
    """Return a value as a message has it: of a digest the beginning."""
    text = repr(value)
    return text if len(text) <= MAX_PROGRESS_LABEL else f"{text[:MAX_PROGRESS_LABEL]}…"
