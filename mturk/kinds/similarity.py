"""Base of the kinds of HIT about triplets: the similarity of two sentences under a condition."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from mturk import answers
from mturk.kinds import (
    Behaviour,
    ExpectedTuple,
    Fields,
    StatedSettings,
    Truth,
    ValidAnswer,
)
from mturk.kinds.sentence_pairs import (
    INVALID,
    SentenceKind,
    SentencePart,
    answer_context,
    read_triplets,
    write_rows,
)

if TYPE_CHECKING:
    from mturk.study.plan import PlannedStudy

LABELS = ("1", "2", "3", "4", "5")
TICKED = "yes"


class SimilarityKind(SentenceKind):
    """A kind of HIT with the similarity of two sentences under a condition, unless it does not apply.

    Its page extends ``levels.html``.
    """

    part = "triplet"
    answer = "answer"
    defaults: Mapping[str, Any] = {
        **SentenceKind.defaults,
        "reward": Decimal("0.75"),
        "assignments": 3,
        "dialogues_per_hit": 10,
        "expected_seconds": 150,
    }
    """Three assignments per HIT, as in section 3 of C-STS for measuring agreement."""
    output_columns: Sequence[str] = (
        "uid", "sentence1", "sentence2", "condition", "label", "applies",
    )  # fmt: skip

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Plan the study of a table of triplets, in the language of the settings or `language`."""
        self.check_no_dialogues(file, dialogues, settings)
        return self.plan_pages(read_triplets(file), settings.settings(language), file, words="")

    def part_values(self, part: SentencePart) -> Mapping[str, str]:
        """Return the values of a triplet for the page besides its sentences."""
        return {"condition": part.item_ids[2], **super().part_values(part)}

    def columns(self, part_id: str) -> dict[str, str]:
        """Return column of the batch file -> name of the form field.

        >>> SimilarityKind().columns("17")
        {'label': 'label-17', 'not_applicable': 'not-applicable-17', 'seconds': 'seconds-17'}
        """
        names = {"label": f"label-{part_id}", "not_applicable": f"not-applicable-{part_id}"}
        return {**names, "seconds": answers.seconds_field(part_id)}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as a label or a statement that the condition does not apply.

        >>> fields = [("label-17", "4"), ("not-applicable-17", "yes")]
        >>> SimilarityKind().problems(ExpectedTuple("17", "p1", ()), fields)
        ['17: the condition has label 4 and does not apply; expected only one']
        """
        values, names = dict(fields), self.columns(expected.tuple_id)
        problems = answers.repeated_field_problems(
            list(names.values()), Counter(name for name, _ in fields)
        )
        label, ticked = values.get(names["label"], ""), values.get(names["not_applicable"], "")
        if label and label not in LABELS:
            problems.append(
                f"{expected.tuple_id}: the label is {label!r}; expected one of {', '.join(LABELS)}"
            )
        problems += box_problems(expected, ticked)
        if label and ticked:
            message = f"{expected.tuple_id}: the condition has label {label} and does not apply"
            problems.append(f"{message}; expected only one")
        if not label and not ticked:
            problems.append(
                f"{expected.tuple_id}: missing answer; expected a level or a ticked box"
            )
        return [
            *problems,
            *answers.seconds_problems(expected.tuple_id, values.get(names["seconds"], "")),
        ]

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the true label with normal noise (standard deviation in scale steps), or a random answer for
        careless workers; InputError if the triplet has no true label.

        The true label -1 is a condition that does not apply.
        """
        true_label = truth.get((expected.group, expected.items[2]))
        if true_label is None:
            message = (
                f"triplet {expected.tuple_id!r}: no true label for condition {expected.items[2]!r}"
            )
            raise InputError(
                Problem("truth", None, f"{message}; expected one per triplet in --truth")
            )
        seed = json.dumps([behaviour.seed, worker, expected.tuple_id])
        generator = random.Random(hashlib.sha256(seed.encode()).digest())  # noqa: S311 - reproducible, not a secret
        names = self.columns(expected.tuple_id)
        noisy_label = min(5, max(1, round(generator.gauss(true_label, behaviour.noise))))
        label = "" if true_label == INVALID else str(noisy_label)
        if generator.random() < behaviour.careless:
            label = generator.choice(("", *LABELS))
        return [(names["label"], label)] if label else [(names["not_applicable"], TICKED)]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write one row per answer, grouped by triplet."""
        rows = sorted(answers, key=lambda row: (row.expected.group, row.expected.tuple_id))
        cells = ([*self.cells(row), *answer_context(row)] for row in rows)
        write_rows(self.output_columns, cells, path)

    def cells(self, row: ValidAnswer) -> list[str]:
        """Return the columns of an answer in the output file."""
        label = dict(row.fields).get(self.columns(row.expected.tuple_id)["label"], "")
        return [row.expected.tuple_id, *row.expected.items, label, TICKED if label else "no"]


def box_problems(expected: ExpectedTuple, value: str) -> list[str]:
    """Return the problem of the value of a box, which is empty or `TICKED`."""
    if value in ("", TICKED):
        return []
    return [f"{expected.tuple_id}: the box has the value {value!r}; expected {TICKED!r}"]
