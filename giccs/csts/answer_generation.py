"""Generation of answers to the question of each condition, one sentence at a time (L-CSTS, 4.1 and Figure 7).

A condition becomes the question "What is [condition]?", in lower case and without its full stop (footnote 4).
A model answers it from one sentence at a time. Its outputs are stored in a journal beside the answers as they
arrive, so that an interrupted call can be resumed. An answer is the first line with text. It is `NO_ANSWER`
if there is no such line, or if the condition is empty.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bws.base.rows import csv_text
from giccs.csts.data import LABELS, Dataset, Instance
from giccs.csts.prompts import text
from giccs.journal import Journal
from giccs.models.abilities import ServedModel
from giccs.progress import Progress, silent
from giccs.tasks.refusals import chat_parameters, no_generation_reason

log = logging.getLogger(__name__)

NO_ANSWER = "(no answer)"
"""Replacement for an empty output, which could be neither embedded nor distinguished from a gap."""
MAX_TOKENS = 20
AT_ONCE = 32
"""Number of rows per journal write, the maximum loss if a call is interrupted."""
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


Outputs = tuple[str, str]
"""Outputs of a model about sentence 1 and sentence 2."""


def parse_outputs(value: Any) -> Outputs:
    """Return the outputs stored in a journal."""
    return value[0], value[1]


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
            **chat_parameters(self.model, chat_template=self.chat_template),
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

    def ask(
        self, rows: Sequence[Instance], journal: Journal[Outputs], progress: Progress = silent
    ) -> int:
        """Generate answers for the rows that are not in the journal yet; return the number of these rows."""
        missing = [
            row for row in rows if row.uid not in journal.answers and question(row.condition)
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

    def _in_parts(self, rows: Sequence[Instance], journal: Journal[Outputs]) -> Iterator[Instance]:
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            self._add(some, journal)
            yield from some

    def _add(
        self, rows: Sequence[Instance], journal: Journal[Outputs], progress: Progress = silent
    ) -> None:
        prompts = [prompt for row in rows for prompt in self.prompts(row)]
        generated = self.model.generate(prompts, self.max_tokens, progress)
        outputs = zip(generated[::2], generated[1::2], strict=True)
        journal.add(zip((row.uid for row in rows), outputs, strict=True))


def answered_rows(rows: Sequence[Instance], journal: Journal[Outputs]) -> list[AnsweredRow]:
    """Return the cleaned answers of all rows."""
    nothing = ("", "")
    return [AnsweredRow(row, *map(cleaned, journal.answers.get(row.uid, nothing))) for row in rows]


def answers_csv(answers: Iterable[AnsweredRow]) -> str:
    """Return answers as CSV (uid, label, answer1, answer2, condition); the label may be empty."""
    rows = []
    for row in answers:
        label = row.row.label if row.row.label in LABELS else ""
        rows.append((row.row.uid, label, row.answer1, row.answer2, row.row.condition))
    return csv_text(rows, COLUMNS)
