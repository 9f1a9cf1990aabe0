"""HITs of tuples: the best and the worst of some utterances, for the last one of a dialogue."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

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
from mturk.kinds.tuples import form

if TYPE_CHECKING:
    from bws.records import Judgments
    from mturk.study.plan import PlannedStudy
    from mturk.study.settings import Settings

__all__ = ["KIND"]

COLUMNS = ("assignment_id", "seconds", "comment", "shown")
"""Columns of the judgments file after those of every such file."""


class Tuples(HitKind):
    """The best and the worst of the utterances of a tuple."""

    part = "tuple"
    answer = "judgment"
    file = "judgments.csv"
    no_judgments_note = "there are no judgments yet"

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Return the study of a tuples file whose groups are dialogues.

        It is in the language that the dialogues state, or else the settings or `language`.
        """
        from bws.files import read_tuples
        from giccs.benchmark.assemble import read_dialogues
        from giccs.benchmark.languages import data_language, required_language
        from mturk.kinds.tuples.plan import plan, plan_notes
        from mturk.study.plan import PlannedStudy

        if dialogues is None:
            message = "--dialogues is needed for a study of tuples; a file of --config may set another kind"
            raise InputError(Problem(file, None, message))
        tuples, read = read_tuples(file), read_dialogues(dialogues)
        stated = settings.values.get("dialogue_language")
        language_of = (
            data_language if stated else partial(required_language, purpose="worker pages")
        )
        study_settings = settings.settings(language_of(read, dialogues, language))
        plans = plan(tuples, read, study_settings, file=file)
        messages = plan_notes(plans, study_settings)
        if tuples.n_repeated:
            repeated = f"{tuples.n_repeated} of {len(tuples)} tuples repeat the items of another"
            messages.append(f"{repeated}; each is paid for")
        return PlannedStudy(study_settings, tuple(plans), tuple(messages))

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return the columns of the answer in a batch file -> the names of the form's fields."""
        return {
            "best": form.best_field(part_id),
            "worst": form.worst_field(part_id),
            "shown": form.shown_field(part_id),
            "seconds": answers.seconds_field(part_id),
        }

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return all that keeps the fields from being an answer."""
        return form.find_problems([expected], fields)

    def form_remarks(self, fields: Fields, settings: Settings) -> list[str]:
        """Return whether the word of the language check is wrong."""
        from mturk.kinds.tuples.language_check import check_cloze, load_clozes

        wrong = check_cloze(fields, load_clozes(settings)) is False
        return ["the word of the language check is wrong"] if wrong else []

    def batch_value(self, column: str, value: str) -> str:
        """Return the order shown as item ids with semicolons between them, as `bws` reads it."""
        return ";".join(form.split_shown(value)) if column == "shown" else value

    def judgments(self, answers: Sequence[ValidAnswer], file: str) -> tuple[Judgments | None, int]:
        """Return the judgments, and how many do not state the order shown."""
        return form.judgments(answers, file)

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the fields of an answer by the true scores, as far as the behaviour keeps to them."""
        best, worst, shown_order = _simulate_judgment(
            expected, _true_scores(expected, truth), behaviour, worker
        )
        return [
            (form.shown_field(expected.tuple_id), form.join_shown(shown_order)),
            (form.best_field(expected.tuple_id), best),
            (form.worst_field(expected.tuple_id), worst),
        ]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write the judgments file, whole or not at all; where there are none, only its header."""
        from bws.files import write_judgments
        from bws.textio import write_atomic

        if answers:
            write_judgments(form.judgments(answers, "answers")[0], path)
            return
        items = [f"item{number}" for number in range(1, n_items + 1)]
        header = ["tuple_id", "group", *items, "best", "worst", "annotator", *COLUMNS]
        write_atomic(path, f"{','.join(header)}\n")


def _true_scores(expected: ExpectedTuple, truth: Truth) -> list[float]:
    values = [truth.get((expected.group, item), truth.get(("", item))) for item in expected.items]
    items_without_score = [
        item for item, value in zip(expected.items, values, strict=True) if value is None
    ]
    if items_without_score:
        names = ", ".join(map(repr, items_without_score))
        message = f"tuple {expected.tuple_id!r}: no true score for {names}; expected one per item"
        raise InputError(Problem("truth", None, message))
    return [value for value in values if value is not None]


def _simulate_judgment(
    expected: ExpectedTuple, values: Sequence[float], behaviour: Behaviour, worker: str
) -> tuple[str, str, list[str]]:
    """Ask `bws.simulate` for one judgment."""
    import numpy as np

    from bws.records import Tuples
    from bws.simulate import simulate

    k = len(expected.items)
    tuples = Tuples(
        ids=np.array([expected.tuple_id], dtype=object),
        items=np.array(expected.items, dtype=object),
        group_of_item=np.zeros(k, np.int32),
        groups=np.array([expected.group], dtype=object),
        members=np.arange(k, dtype=np.int32)[np.newaxis],
    )
    tastes = [_taste(behaviour, worker, expected.group, item) for item in expected.items]
    judgments = simulate(
        tuples,
        np.array(values) + tastes,
        1,
        noise=behaviour.noise,
        careless=behaviour.careless,
        seed=_hash_number(behaviour.seed, worker, expected.group, expected.tuple_id),
    )
    order = (
        [expected.items[index] for index in judgments.shown[0]]
        if judgments.shown is not None
        else []
    )
    return expected.items[int(judgments.best[0])], expected.items[int(judgments.worst[0])], order


def _taste(behaviour: Behaviour, worker: str, group: str, item: str) -> float:
    """Return what a worker thinks of an item beyond its truth, the same in all tuples."""
    share = ((_hash_number(behaviour.seed, "taste", worker, group, item) >> 11) + 0.5) / 2**53
    return behaviour.disagreement * NormalDist().inv_cdf(share)


def _hash_number(*parts: object) -> int:
    """Return a number below 2**64 that depends on all parts."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:8])


KIND: HitKind = Tuples()
