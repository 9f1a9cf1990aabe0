"""HITs of tuples: the best and the worst utterance with respect to the last turn of a dialogue."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from mturk import answers
from mturk.kinds import (
    Behaviour,
    ExpectedTuple,
    Fields,
    HitKind,
    PartContent,
    StatedSettings,
    Truth,
    ValidAnswer,
)
from mturk.kinds.tuples import form

if TYPE_CHECKING:
    from bws.records import Judgments
    from mturk.study.plan import HitPart, PlannedStudy
    from mturk.study.settings import Settings

__all__ = ["KIND", "Tuples", "hash_number", "true_scores", "worker_deviation"]

COLUMNS = ("assignment_id", "seconds", "comment", "shown")
"""Additional columns of the judgments file, after the standard ones."""


class Tuples(HitKind):
    """HITs with the best and the worst utterance per tuple."""

    part = "tuple"
    answer = "judgment"
    file = "judgments.csv"
    no_judgments_note = "there are no judgments yet"

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Plan the study of a tuples file whose groups are dialogues.

        Its language is that of the dialogues, or else that of the settings or `language`.
        """
        from bws.files import read_tuples
        from giccs.benchmark.assemble import read_located_dialogues, repeated_dialogue_warnings
        from giccs.benchmark.languages import data_language, required_language
        from mturk.kinds.tuples.plan import plan, plan_notes
        from mturk.study.plan import PlannedStudy, controls_of, round_notes, rounds_of

        if dialogues is None:
            message = (
                "missing --dialogues, required for kind 'tuples' (--config can set another kind)"
            )
            raise InputError(Problem(file, None, message))
        try:
            tuples, located = read_tuples(file), read_located_dialogues(dialogues)
        except InputError as error:
            if not dialogues.endswith((".csv", ".tsv")):
                raise
            message = 'a table of items is for kind "items", which --config can set'
            raise InputError([*error.problems, Problem(dialogues, None, message)]) from None
        dialogue_list = [row.record for row in located]
        stated = settings.values.get("dialogue_language")
        language_of = (
            data_language if stated else partial(required_language, purpose="worker pages")
        )
        study_settings = settings.settings(language_of(dialogue_list, dialogues, language))
        plans = plan(tuples, dialogue_list, study_settings, file=file)
        messages = plan_notes(plans, study_settings)
        if tuples.n_repeated:
            repeated = f"{tuples.n_repeated} of {len(tuples)} tuples repeat the items of another"
            messages.append(f"{repeated}; each costs a full reward")
        messages += [*map(str, repeated_dialogue_warnings(located)), *round_notes(tuples)]
        rounds, controls = rounds_of(tuples), controls_of(tuples, file)
        return PlannedStudy(study_settings, tuple(plans), tuple(messages), rounds, controls)

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return column of the answer in a batch file -> name of the form field."""
        return {
            "best": form.best_field(part_id),
            "worst": form.worst_field(part_id),
            "shown": form.shown_field(part_id),
            "seconds": answers.seconds_field(part_id),
        }

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as an answer."""
        return form.find_problems([expected], fields)

    def form_remarks(self, fields: Fields, settings: Settings) -> list[str]:
        """Return a remark if the answer to the language check is wrong."""
        from mturk.kinds.tuples.language_check import check_cloze, load_clozes

        is_wrong = check_cloze(fields, load_clozes(settings)) is False
        return ["wrong answer to the language check"] if is_wrong else []

    def batch_value(self, column: str, value: str) -> str:
        """Return the order of presentation as item ids separated by semicolons, as read by `bws`."""
        return ";".join(form.split_shown(value)) if column == "shown" else value

    def content(self, part: HitPart, texts: Mapping[str, Any]) -> PartContent:
        """Return the utterances, and the dialogue with the page's names of speakers and of the last turn."""
        from mturk.kinds.tuples.page import Part

        if not isinstance(part, Part):
            return super().content(part, texts)
        speakers = texts["speakers"]
        *turns, last = (
            (speakers.get(turn.speaker, turn.speaker), turn.text) for turn in part.dialogue.turns
        )
        name = f"{texts['last']} ({last[0]})" if last[0] else str(texts["last"])
        return PartContent(tuple(item.text for item in part.items), (*turns, (name, last[1])))

    def judgments(self, answers: Sequence[ValidAnswer], file: str) -> tuple[Judgments | None, int]:
        """Return the judgments, and how many lack the order of presentation."""
        return form.judgments(answers, file)

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the fields of an answer simulated from the true scores."""
        best, worst, shown_order = _simulate_judgment(
            expected, true_scores(expected, truth), behaviour, worker
        )
        return [
            (form.shown_field(expected.tuple_id), form.join_shown(shown_order)),
            (form.best_field(expected.tuple_id), best),
            (form.worst_field(expected.tuple_id), worst),
        ]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write the judgments file atomically; without answers, only its header."""
        from bws.base.text import write_atomic
        from bws.files import write_judgments

        if answers:
            write_judgments(form.judgments(answers, "answers")[0], path)
            return
        items = [f"item{number}" for number in range(1, n_items + 1)]
        header = ["tuple_id", "group", *items, "best", "worst", "annotator", *COLUMNS]
        write_atomic(path, f"{','.join(header)}\n")


def true_scores(expected: ExpectedTuple, truth: Truth) -> list[float]:
    """Return the true score of each item; InputError if one has none."""
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
    """Simulate one judgment with `bws.simulate`."""
    import numpy as np

    from bws.records import Tuples
    from bws.simulation import simulate

    k = len(expected.items)
    tuples = Tuples(
        ids=np.array([expected.tuple_id], dtype=object),
        items=np.array(expected.items, dtype=object),
        group_of_item=np.zeros(k, np.int32),
        groups=np.array([expected.group], dtype=object),
        members=np.arange(k, dtype=np.int32)[np.newaxis],
    )
    deviations = [
        worker_deviation(behaviour, worker, expected.group, item) for item in expected.items
    ]
    judgments = simulate(
        tuples,
        np.array(values) + deviations,
        1,
        noise=behaviour.noise,
        careless=behaviour.careless,
        seed=hash_number(behaviour.seed, worker, expected.group, expected.tuple_id),
    )
    order = (
        [expected.items[index] for index in judgments.shown[0]]
        if judgments.shown is not None
        else []
    )
    return expected.items[int(judgments.best[0])], expected.items[int(judgments.worst[0])], order


def worker_deviation(behaviour: Behaviour, worker: str, group: str, item: str) -> float:
    """Return a worker's deviation from the true score of an item, constant over tuples."""
    share = ((hash_number(behaviour.seed, "taste", worker, group, item) >> 11) + 0.5) / 2**53
    return behaviour.disagreement * NormalDist().inv_cdf(share)


def hash_number(*parts: object) -> int:
    """Return a hash of all parts, an integer below 2**64."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:8])


KIND: HitKind = Tuples()
