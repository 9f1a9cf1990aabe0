"""HITs in which conditions are verified: does a condition fit two sentences, and how alike are they then?

C-STS, section 2.2.2 (stage 3) and appendix C.2; what the page says of it is worded anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from mturk import answers
from mturk.kinds import (
    Behaviour,
    ExpectedTuple,
    Fields,
    HitKind,
    StatedSettings,
    Truth,
    ValidAnswer,
)
from mturk.kinds.sentence_pairs import (
    SentenceKind,
    SentencePart,
    answer_context,
    read_triplets,
    write_rows,
)

if TYPE_CHECKING:
    from mturk.study.plan import PlannedStudy

__all__ = ["KIND"]

LABELS = ("1", "2", "3", "4", "5")
TICKED = "yes"
COLUMNS = ("uid", "sentence1", "sentence2", "condition", "label", "applies")


class Verification(SentenceKind):
    """How similar two sentences are under a condition, or that it does not apply."""

    part = "triplet"
    answer = "answer"
    file = "verification.csv"
    defaults: Mapping[str, Any] = {
        **SentenceKind.defaults,
        "reward": Decimal("0.75"),
        "assignments": 3,
        "dialogues_per_hit": 10,
        "expected_seconds": 150,
    }
    """Section 3 of the paper has three annotators where agreement is measured."""

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Return the study of a table of triplets, in the language of the settings or of `language`."""
        self.check_no_dialogues(file, dialogues, settings)
        return self.plan_pages(read_triplets(file), settings.settings(language), file, words="")

    def part_values(self, part: SentencePart) -> Mapping[str, str]:
        """Return what the page shows of a triplet besides its sentences."""
        return {"condition": part.item_ids[2], **super().part_values(part)}

    def columns(self, part_id: str) -> dict[str, str]:
        """Return what the batch file calls the answer's fields -> the names of these fields.

        >>> KIND.columns("17")
        {'label': 'label-17', 'not_applicable': 'not-applicable-17', 'seconds': 'seconds-17'}
        """
        names = {"label": f"label-{part_id}", "not_applicable": f"not-applicable-{part_id}"}
        return {**names, "seconds": answers.seconds_field(part_id)}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return all that keeps the fields from being a label or the word that the condition does not apply.

        >>> KIND.problems(ExpectedTuple("17", "p1", ()), [("label-17", "4"), ("not-applicable-17", "yes")])
        ['17: the condition has label 4 and does not apply; one of the two is allowed']
        """
        values, names = dict(fields), self.columns(expected.tuple_id)
        problems = answers.repeated_field_problems(
            list(names.values()), Counter(name for name, _ in fields)
        )
        label, ticked = values.get(names["label"], ""), values.get(names["not_applicable"], "")
        if label and label not in LABELS:
            problems.append(
                f"{expected.tuple_id}: the label is {label!r}; {', '.join(LABELS)} are allowed"
            )
        if ticked not in ("", TICKED):
            problems.append(
                f"{expected.tuple_id}: the box has the value {ticked!r}; {TICKED!r} is allowed"
            )
        if label and ticked:
            message = f"{expected.tuple_id}: the condition has label {label} and does not apply"
            problems.append(f"{message}; one of the two is allowed")
        if not label and not ticked:
            problems.append(
                f"{expected.tuple_id}: an answer is missing; choose a level or tick the box"
            )
        return [
            *problems,
            *answers.seconds_problems(expected.tuple_id, values.get(names["seconds"], "")),
        ]

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the true label with normal noise (its standard deviation in steps of the scale), or, of a
        careless worker, any answer; InputError where the truth does not know the triplet."""
        true = truth.get((expected.group, expected.items[2]))
        if true is None:
            message = (
                f"triplet {expected.tuple_id!r}: no label of the condition {expected.items[2]!r}"
            )
            raise InputError(
                Problem("truth", None, f"{message}; every triplet needs one, --truth has them")
            )
        seed = json.dumps([behaviour.seed, worker, expected.tuple_id])
        generator = random.Random(hashlib.sha256(seed.encode()).digest())  # noqa: S311 - drawn again by its seed, no secret
        names = self.columns(expected.tuple_id)
        label = str(min(5, max(1, round(generator.gauss(true, behaviour.noise)))))
        if generator.random() < behaviour.careless:
            label = generator.choice(("", *LABELS))
        return [(names["label"], label)] if label else [(names["not_applicable"], TICKED)]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write a row for each answer, those to a triplet one after the other."""
        rows = sorted(answers, key=lambda row: (row.expected.group, row.expected.tuple_id))
        write_rows(COLUMNS, ([*_cells(row), *answer_context(row)] for row in rows), path)


def _cells(row: ValidAnswer) -> list[str]:
    label = dict(row.fields).get(KIND.columns(row.expected.tuple_id)["label"], "")
    return [row.expected.tuple_id, *row.expected.items, label, "yes" if label else "no"]


KIND: HitKind = Verification()
