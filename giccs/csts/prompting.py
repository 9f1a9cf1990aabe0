"""Prompting of text generation models for similarity scores (C-STS, 4.2, Tables 4 and 11; L-CSTS, Figure 9).

A prompt has up to three parts: an instruction, examples, and the question. The model generates at most 20
tokens, and `first_number` reads a number from them. An answer without a number is invalid and replaced by a
sample from U[1, 5] (A.3). The sample depends only on the seed and the row's uid.

Examples. C-STS (4.2) always shows both rows of a sentence pair, "so models will always see contrasting pairs
in the examples, but won't see a paired example for the query". The paper does not say whether all questions
share their examples. The authors' program samples them for each question and puts the row with the higher
label first, as in Figure 5. giccs does the same. Unlike in that program, the examples of a row depend only on
the seed and its uid, not on preceding rows, and never include its own sentences.

Scores. C-STS (A.3): the text "is stripped of non-numeric characters and errant punctuation before being cast
to a float". "The Answer is 2.0." is 2.0, and text that cannot be converted is invalid. This rule is ambiguous
for several numbers: "4 out of 5" without non-numeric characters is 45. The authors' program
(github.com/princeton-nlp/c-sts) takes the first number, digits with at most one point among them, and so does
giccs. As a consequence,

- signs, percent signs, fractions and exponents are ignored: "-2" is 2, "1e3" is 1, ".5" is 5, "3,5" is 3;
- numbers written as words are invalid, as are "nan" and "inf";
- digits of all scripts count ("٤" is 4), superscripts and "½" do not;
- a number outside 1 to 5 is valid and unchanged, as in the paper's Table 5, where GPT-3.5 answers 0.0;
- an answer without a score that mentions "Sentence 1" is read as 1. `after_words` distinguishes these from
  answers that begin with their number, and results include their count.
"""

from __future__ import annotations

import logging
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.options import problem_with
from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.csts.data import SAMPLE, Dataset, Instance, pairs
from giccs.csts.measures import csts_metrics, hidden_metrics
from giccs.csts.prompts import Text, text
from giccs.csts.sts_benchmark import SCALE, score_of
from giccs.csts.task_data import Reading, TaskData
from giccs.measures.comparison import clustered_share
from giccs.measures.metrics import Floats, interval_signature
from giccs.measures.results import TaskOutput
from giccs.progress import Progress, silent
from giccs.tasks import ResultKind, TaskKind, TaskOptions
from giccs.tasks.refusals import chat_parameters, no_generation_reason

if TYPE_CHECKING:
    import polars

PARSING_VERSION = "first-number-1"
"""Version of the rules of `first_number`."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")

SPARE = 2
"""Number of additional sentence pairs to sample: those of the question itself, in both orders, are
excluded."""

log = logging.getLogger(__name__)

INSTRUCTIONS = {"none": None, "short": "short-1", "long": "long-1"}
"""Instruction of a prompt -> name of its text."""
STS = "sts-"
"""Prefix of the texts for data without conditions."""
MAX_TOKENS = 20
Bools = NDArray[np.bool_]


def first_number(answer: str) -> float | None:
    """Return the first number of a text; None if there is none, or if it is too large for a float.

    >>> first_number("The Answer is 2.0."), first_number("4 out of 5"), first_number("four")
    (2.0, 4.0, None)
    """
    match = NUMBER.search(answer)
    value = float(match[0]) if match else math.inf
    return value if math.isfinite(value) else None


def after_words(answer: str) -> bool:
    """Return whether a letter precedes the first number of a text.

    >>> after_words("Sentence 1 is about dogs"), after_words(" **4** of 5"), after_words("four")
    (True, False, False)
    """
    match = NUMBER.search(answer)
    return match is not None and any(sign.isalpha() for sign in answer[: match.start()])


@dataclass(frozen=True)
class Examples:
    """Samples examples from labelled sentence pairs; raises InputError if there are too few."""

    dataset: Dataset
    shots: int
    """Number of example rows before a question; even."""
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self._groups) < self._needed:
            kind = "sentence pairs of two labelled rows" if self._has_pairs else "labelled rows"
            message = (
                f"has {len(self._groups)} {kind}; {self.shots} "
                f"examples require at least {self._needed}"
            )
            raise InputError(Problem(self.dataset.name, None, message))

    def of(self, instance: Instance) -> list[Instance]:
        """Return the examples of a row; the row with the higher label comes first in each sentence pair."""
        draw = random.Random(f"examples {self.seed} {instance.uid}")  # noqa: S311 - drawn again by its seed, no secret
        sampled = draw.sample(self._groups, self._needed)
        others = [rows for rows in sampled if _sentences(rows[0]) != _sentences(instance)]
        return [row for rows in others for row in rows][: self.shots]

    @property
    def _has_pairs(self) -> bool:
        return self.dataset.has_conditions

    @property
    def _needed(self) -> int:
        return self.shots // (2 if self._has_pairs else 1) + SPARE

    @cached_property
    def _groups(self) -> Sequence[tuple[Instance, ...]]:
        """Return the rows that are shown together: both of a sentence pair, or one without conditions."""
        if not self._has_pairs:
            return [(row,) for row in self.dataset.instances if row.label is not None]
        return [pair for pair in pairs(self.dataset) if pair[0].label is not None]


def _sentences(instance: Instance) -> frozenset[str]:
    return frozenset([instance.sentence1.strip(), instance.sentence2.strip()])


@dataclass(frozen=True, slots=True)
class Prompting:
    """Similarity scores generated by a model, compared with the labels.

    `instruction`: ``none``, ``short`` or ``long``. `shots`: number of examples before the question, even,
    sampled for each row by the seed from other sentence pairs. `answers`: a file of answers to the questions
    of the conditions, which the model compares instead of the sentences (L-CSTS, section 5; short, no
    examples).
    """

    instruction: str = "short"
    shots: int = 0
    answers: str | None = None
    chat_template: bool = False
    split: str = "validation"
    examples: str | None = None
    """File or folder of the examples; None for the training split of the data."""
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
                f"{self.shots} examples requested; expected an even number, because both rows "
                "of a sentence pair are shown"
            )
        if self.answers is not None and (self.instruction != "short" or self.shots):
            yield "answers require the short instruction and no examples (L-CSTS)"

    @property
    def read(self) -> Reading:
        """Settings for reading the data."""
        return Reading(self.split, self.answers, self.shots > 0, self.examples)

    @property
    def setting(self) -> str:
        """Short description of the prompt: ``long, 2 examples``."""
        examples = f"{self.shots or 'no'} examples"
        prompt_text = "short, answers" if self.answers else f"{self.instruction}, {examples}"
        return f"{prompt_text}, chat template" if self.chat_template else prompt_text

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        return no_generation_reason(model, self.name, chat_template=self.chat_template)

    def parameters(self, model: Any, data: TaskData) -> dict[str, Any]:
        """Return the settings that determine the metrics besides model, data and version."""
        instruction, query = self._texts(data)
        low, high = data.dataset.scale
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
                **chat_parameters(model, chat_template=self.chat_template),
            },
            "max_tokens": self.max_tokens,
            "parser": PARSING_VERSION,
            "replacement": {
                "of": "invalid answers",
                "by": f"U[{low:g}, {high:g}]",
                "seed": self.seed,
            },
            "interval": interval_signature("sentence pair", self.resamples, self.seed),
            **data.hidden_labels(),
        }

    def _examples_document(self, data: TaskData) -> dict[str, Any] | None:
        if not self.shots or data.examples is None:
            return None
        return {
            "number": self.shots,
            "drawn": "for each row, by sentence pairs, higher label first",
            "from": data.examples.fingerprint,
            "seed": self.seed,
        }

    def measure(self, model: Any, data: TaskData, progress: Progress = silent) -> TaskOutput:
        """Generate an answer for every row and compute the metrics."""
        prompts = self.prompts(data)
        rendered_prompts = (
            [model.render_chat(prompt) for prompt in prompts] if self.chat_template else prompts
        )
        answers = model.generate(rendered_prompts, self.max_tokens, progress)
        log.debug("%d prompts answered; measuring, %d resamples", len(answers), self.resamples)
        numbers = [first_number(answer) for answer in answers]
        value = np.array(
            [
                self._replacement(instance, data.dataset.scale) if number is None else number
                for instance, number in zip(data.instances, numbers, strict=True)
            ]
        )
        valid = np.array([number is not None for number in numbers])
        return TaskOutput(
            metrics=self._measured(value, data)
            | {"invalid": self._invalid(value, valid, answers, data)},
            predictions=_table(data, rendered_prompts, answers, value, valid),
        )

    def _measured(self, value: Floats, data: TaskData) -> dict[str, Estimate]:
        if data.hidden:
            return hidden_metrics()
        return csts_metrics(value, data.instances, resamples=self.resamples, seed=self.seed)

    def prompts(self, data: TaskData) -> list[str]:
        """Return the prompts of all rows, without chat template.

        >>> print(Prompting("none").prompts(Prompting().read("csts-sample").first(1))[0])
        Input: Sentence 1: Sheep graze on rolling green hills under a pale spring sky. Sentence 2: \
Wildflowers carpet a grassy alpine meadow in the height of summer. Condition: The type of landscape. Output:
        """
        instruction, query = self._texts(data)
        before = [instruction.form] if instruction else []
        shot_examples = Examples(data.examples, self.shots, self.seed) if data.examples else None

        def parts(instance: Instance) -> list[str]:
            examples = shot_examples.of(instance) if shot_examples else []
            example_texts = [
                f"{query.fill(**_fields(example))} {_label_text(example, data.dataset.scale)}"
                for example in examples
            ]
            return [*before, *example_texts, query.fill(**_fields(instance, data))]

        return ["\n".join(parts(instance)) for instance in data.instances]

    def _texts(self, data: TaskData) -> tuple[Text | None, Text]:
        """Return the instruction, if any, and the template of the question."""
        if data.answers is not None:
            return text("answers-short-1"), text("answers-query-1")
        name = INSTRUCTIONS[self.instruction]
        of_data = "" if data.dataset.has_conditions else STS
        return text(f"{of_data}{name}") if name else None, text(f"{of_data}query-1")

    def _replacement(self, instance: Instance, scale: tuple[float, float]) -> float:
        draw = random.Random(f"invalid {self.seed} {instance.uid}")  # noqa: S311 - drawn again by its seed, no secret
        return draw.uniform(*scale)

    def _invalid(
        self, value: Floats, valid: Bools, answers: Sequence[str], data: TaskData
    ) -> Estimate:
        """Return the share of invalid answers, with counts of unusual valid answers.

        ``outside``: numbers outside the scale of the labels, 1 to 5; ``after_words``: numbers that do not
        begin their answer.
        """
        low, high = data.dataset.scale
        outside = int((valid & ((value < low) | (value > high))).sum())
        share = self._share(~valid, data.instances)
        remarks = []
        if invalid := int((~valid).sum()):
            remarks.append(
                note(
                    "{n:d} of {total:d} answers contain no number and are replaced by random scores",
                    n=invalid,
                    total=share.n,
                )
            )
        if outside:
            remarks.append(
                note(
                    "{n:d} of {total:d} answers are outside {low:g} to {high:g}",
                    n=outside,
                    total=share.n,
                    low=low,
                    high=high,
                )
            )
        return replace(
            share.with_notes(*remarks),
            extra={"outside": outside, "after_words": sum(map(after_words, answers))},
        )

    def _share(self, of: Bools, instances: Sequence[Instance]) -> Estimate:
        """Return a share of the rows, with an interval over sentence pairs."""
        _, pair = np.unique([instance.pair for instance in instances], return_inverse=True)
        right = np.bincount(pair, of).astype(np.float64)
        estimate = clustered_share(right, np.bincount(pair), unit="sentence pairs")
        return replace(estimate, n=len(of), extra={})


def open_tasks(options: TaskOptions) -> list[Prompting]:
    """Return the task; raise InputError for unsupported options."""
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
    option_names=("split", "answers", "instruction", "shots", "examples", "chat_template"),
    results=ResultKind("metrics", item_columns=("value", "label")),
)


def _fields(instance: Instance, data: TaskData | None = None) -> dict[str, str]:
    if data is None or data.answers is None:
        fields = {"sentence1": instance.sentence1, "sentence2": instance.sentence2}
    else:
        answer1, answer2 = data.answers[instance.uid]
        fields = {"answer1": answer1, "answer2": answer2}
    return {**fields, "condition": instance.condition}


def _label_text(instance: Instance, scale: tuple[float, float]) -> str:
    """Return the label on the scale of the annotators, in the format of Figure 5: 4.0."""
    label = instance.label or 0
    return str(score_of(label)) if scale == SCALE else f"{label:.1f}"


def _table(
    data: TaskData, prompts: Sequence[str], answers: Sequence[str],
    value: Floats, valid: Bools,
) -> polars.DataFrame:  # fmt: skip
    import polars

    return polars.DataFrame(
        {
            "uid": [instance.uid for instance in data.instances],
            "prompt": prompts,
            "answer": answers,
            "value": value,
            "valid": valid,
            **data.label_columns(),
        }
    )
