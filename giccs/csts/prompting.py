"""Prompting (C-STS, 4.2, Tables 4 and 11; L-CSTS, Figure 9): does a model that writes know the similarity?

A prompt has up to three parts: an instruction, examples, and the question. The model writes 20 tokens at
most, and `parsing` reads a number from them. An answer without one is invalid and replaced by a draw from
U[1, 5] (A.3): here by the seed and the row's uid, so that it does not depend on what other rows there are.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bws.options import problem_with
from bws.problems import InputError, Problem
from giccs.csts.asked import Asked, Reading
from giccs.csts.data import SAMPLE
from giccs.csts.examples import Examples
from giccs.csts.measures import csts_metrics, hidden_metrics
from giccs.csts.parsing import VERSION, after_words, first_number
from giccs.csts.prompts import Text, text
from giccs.csts.records import LABELS, Instance
from giccs.measures.comparison import clustered_share
from giccs.measures.metrics import Estimate, Floats, interval_signature
from giccs.measures.results import TaskOutput
from giccs.progress import Progress, silent
from giccs.tasks import TaskKind, TaskOptions
from giccs.tasks.refusals import unable_to_write

if TYPE_CHECKING:
    import polars

__all__ = ["INSTRUCTIONS", "TASK", "Prompting", "open_tasks"]

log = logging.getLogger(__name__)

INSTRUCTIONS = {"none": None, "short": "short-1", "long": "long-1"}
"""What a prompt says first -> name of its text."""
MAX_TOKENS = 20
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Prompting:
    """Scores that a model writes, against the labels.

    `instruction`: ``none``, ``short`` or ``long``. `shots`: examples before the question, an even number,
    drawn for each row by the seed from other sentence pairs. `answers`: a file of answers to the conditions'
    questions, which the model compares instead of the sentences (L-CSTS, section 5; short, no examples).
    """

    instruction: str = "short"
    shots: int = 0
    answers: str | None = None
    chat_template: bool = False
    split: str = "validation"
    examples: str | None = None
    """File or folder of the examples; None is the training split of the data."""
    seed: int = 0
    resamples: int = 1000
    max_tokens: int = MAX_TOKENS
    name: str = field(default="csts-prompt", init=False)
    default_data: ClassVar[str] = SAMPLE

    def __post_init__(self) -> None:
        if faults := list(self._faults()):
            raise InputError(Problem(self.name, None, fault) for fault in faults)

    def _faults(self) -> Iterator[str]:
        for name in ("instruction", "shots"):
            if problem := problem_with(TaskOptions, name, getattr(self, name)):
                yield problem
        if self.shots % 2:
            yield (
                f"{self.shots} examples are asked for; an even number is allowed, since both rows of "
                "a sentence pair are shown"
            )
        if self.answers is not None and (self.instruction != "short" or self.shots):
            yield "answers are compared under the short instruction and without examples (L-CSTS)"

    @property
    def read(self) -> Reading:
        """How the data is read."""
        return Reading(self.split, self.answers, self.shots > 0, self.examples)

    @property
    def setting(self) -> str:
        """How it is asked, in a few words: ``long, 2 examples``."""
        examples = f"{self.shots or 'no'} examples"
        asked = "short, answers" if self.answers else f"{self.instruction}, {examples}"
        return f"{asked}, chat template" if self.chat_template else asked

    def refuses(self, model: Any) -> str:
        """Return why the model cannot do it and what could be done; empty where it can."""
        return unable_to_write(model, self.name, chat_template=self.chat_template)

    def parameters(self, model: Any, data: Asked) -> dict[str, Any]:
        """Return what the metrics depend on besides model, data and version."""
        instruction, query = self._texts(data)
        return {
            "setting": self.setting,
            "data": data.dataset.fingerprint,
            "answers": data.fingerprint if data.answers is not None else None,
            "instruction": instruction.document if instruction else None,
            "query": query.document,
            "examples": self._examples_document(data),
            "asked": {
                "instruction": self.instruction,
                "shots": self.shots,
                "answers": self.answers is not None,
                "split": self.split,
                "chat_template": self.chat_template,
            },
            "max_tokens": self.max_tokens,
            "parser": VERSION,
            "replacement": {"of": "invalid answers", "by": "U[1, 5]", "seed": self.seed},
            "interval": interval_signature("sentence pair", self.resamples, self.seed),
            **data.hidden_labels(),
        }

    def _examples_document(self, data: Asked) -> dict[str, Any] | None:
        if not self.shots or data.examples is None:
            return None
        return {
            "number": self.shots,
            "drawn": "for each row, by sentence pairs, higher label first",
            "from": data.examples.fingerprint,
            "seed": self.seed,
        }

    def measure(self, model: Any, data: Asked, progress: Progress = silent) -> TaskOutput:
        """Ask about every row, and measure what the model writes."""
        prompts = self.prompts(data)
        shown = [model.render_chat(one) for one in prompts] if self.chat_template else prompts
        answers = model.generate(shown, self.max_tokens, progress)
        log.debug("%d prompts answered; measuring, %d resamples", len(answers), self.resamples)
        numbers = [first_number(answer) for answer in answers]
        value = np.array(
            [
                self._replacement(one) if number is None else number
                for one, number in zip(data.instances, numbers, strict=True)
            ]
        )
        valid = np.array([number is not None for number in numbers])
        return TaskOutput(
            metrics=self._measured(value, data)
            | {"invalid": self._invalid(value, valid, answers, data.instances)},
            predictions=_table(data, shown, answers, value, valid),
        )

    def _measured(self, value: Floats, data: Asked) -> dict[str, Estimate]:
        if data.hidden:
            return hidden_metrics()
        return csts_metrics(value, data.instances, resamples=self.resamples, seed=self.seed)

    def prompts(self, data: Asked) -> list[str]:
        """Return what the model reads about each row, before any chat template.

        >>> print(Prompting("none").prompts(Prompting().read("csts-sample").first(1))[0])
        Input: Sentence 1: Sheep graze on rolling green hills under a pale spring sky. Sentence 2: \
Wildflowers carpet a grassy alpine meadow in the height of summer. Condition: The type of landscape. Output:
        """
        instruction, query = self._texts(data)
        before = [instruction.form] if instruction else []
        drawn = Examples(data.examples, self.shots, self.seed) if data.examples else None

        def parts(one: Instance) -> list[str]:
            examples = drawn.of(one) if drawn else []
            shown = [
                f"{query.fill(**_fields(example))} {_written(example)}" for example in examples
            ]
            return [*before, *shown, query.fill(**_fields(one, data))]

        return ["\n".join(parts(one)) for one in data.instances]

    def _texts(self, data: Asked) -> tuple[Text | None, Text]:
        """Return the instruction, if there is to be one, and the form of the question."""
        if data.answers is not None:
            return text("answers-short-1"), text("answers-query-1")
        name = INSTRUCTIONS[self.instruction]
        return text(name) if name else None, text("query-1")

    def _replacement(self, one: Instance) -> float:
        draw = random.Random(f"invalid {self.seed} {one.uid}")  # noqa: S311 - drawn again by its seed, no secret
        return draw.uniform(LABELS[0], LABELS[-1])

    def _invalid(
        self, value: Floats, valid: Bools, answers: Sequence[str], instances: Sequence[Instance]
    ) -> Estimate:
        """Return the share of invalid answers, and what else is odd about the others.

        ``outside``: numbers outside 1 to 5; ``after_words``: numbers that do not begin their answer.
        """
        outside = int((valid & ((value < LABELS[0]) | (value > LABELS[-1]))).sum())
        told = {
            "answers hold no number and are replaced by chance": int((~valid).sum()),
            "answers are outside 1 to 5": outside,
        }
        share = self._share(~valid, instances)
        remarks = [f"{count} of {share.n} {what}" for what, count in told.items() if count]
        return replace(
            share,
            reason="; ".join(filter(None, [share.reason, *remarks])),
            extra={"outside": outside, "after_words": sum(map(after_words, answers))},
        )

    def _share(self, of: Bools, instances: Sequence[Instance]) -> Estimate:
        """Return a share of the rows, with an interval over sentence pairs."""
        _, pair = np.unique([one.pair for one in instances], return_inverse=True)
        right = np.bincount(pair, of).astype(np.float64)
        found = clustered_share(right, np.bincount(pair), unit="sentence pairs")
        return replace(found, n=len(of), extra={})


def open_tasks(options: TaskOptions) -> list[Prompting]:
    """Return the task; InputError where what is asked for cannot be."""
    return [
        Prompting(
            options.instruction,
            options.shots,
            options.answers,
            options.chat_template,
            options.split,
            options.examples,
            options.seed,
        )
    ]


TASK = TaskKind(
    open_tasks,
    takes=("split", "answers", "instruction", "shots", "examples", "chat_template"),
)


def _fields(one: Instance, data: Asked | None = None) -> dict[str, str]:
    if data is None or data.answers is None:
        known = {"sentence1": one.sentence1, "sentence2": one.sentence2}
    else:
        answer1, answer2 = data.answers[one.uid]
        known = {"answer1": answer1, "answer2": answer2}
    return {**known, "condition": one.condition}


def _written(one: Instance) -> str:
    """Return the label as Figure 5 has it: 4.0."""
    return f"{one.label or 0:.1f}"


def _table(
    data: Asked, prompts: Sequence[str], answers: Sequence[str],
    value: Floats, valid: Bools,
) -> polars.DataFrame:  # fmt: skip
    import polars

    return polars.DataFrame(
        {
            "uid": [one.uid for one in data.instances],
            "prompt": prompts,
            "answer": answers,
            "value": value,
            "valid": valid,
            **data.label_columns(),
        }
    )
