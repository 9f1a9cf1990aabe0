"""Rounds of an adaptive study: tuples chosen from the answers so far, published in the same ledger.

A round is chosen from the collected judgments, planned with the settings of the study, and recorded in one
transaction: its HITs, and round, purpose and seed of each tuple. An interrupted command has either recorded
the round, and the next call publishes the rest of its HITs, or nothing. The judgments of a round that was
recorded at a time are those collected before, so that every choice can be repeated from the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from mturk.kinds import get_kind
from mturk.money import cost, hourly_wage
from mturk.study.ledger import Ledger
from mturk.study.plan import PlannedStudy, rounds_of
from mturk.study.settings import Settings
from mturk.study.valid_answers import ValidAnswers

if TYPE_CHECKING:
    from bws.records import Judgments, Tuples

__all__ = [
    "MIN_ANSWERED", "RoundSummary", "check_answers", "judged", "plan_round", "record_round", "round_cost",
    "study_tuples", "summarize_rounds",
]  # fmt: skip

MIN_ANSWERED = 0.5
"""Share of the tuples of the last round that must have a judgment before a further round is published."""


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """Answers, time and pay of a round."""

    number: int
    tuples: int
    audit: int
    """Number of audit tuples."""
    judgments: int
    seconds: float | None
    """Median time per tuple in seconds; None without recorded times."""
    hourly_usd: Decimal | None
    """Hourly pay at the median time, in US dollars."""
    cost: Decimal
    """Cost with fees, in US dollars."""

    def document(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return {
            "round": self.number,
            "tuples": self.tuples,
            "audit": self.audit,
            "judgments": self.judgments,
            "median_seconds": self.seconds,
            "hourly_usd": None if self.hourly_usd is None else f"{self.hourly_usd:.2f}",
            "cost": str(self.cost),
        }


@dataclass(frozen=True, slots=True)
class _RecordedSettings:
    """The settings of a published study as settings of a file, to plan further HITs."""

    recorded: Settings

    @property
    def kind(self) -> str:
        return self.recorded.kind

    @property
    def values(self) -> Mapping[str, Any]:
        return {"dialogue_language": self.recorded.dialogue_language}

    def settings(self, language: str | None) -> Settings:
        return self.recorded


def study_tuples(ledger: Ledger) -> Tuples:
    """Return the tuples of all rounds of a study, each once, with the columns of rounds.

    Raises InputError for a study without tuples of one size.
    """
    from bws.adaptive import join_rounds
    from bws.files import read_tuples

    parts = {part.tuple_id: part for part in ledger.parts()}
    sizes = {len(part.items) for part in parts.values()}
    if get_kind(ledger.study().settings.kind).answer != "judgment" or len(sizes) != 1:
        message = "rounds require a study of tuples of one size, with best and worst answers"
        raise InputError(Problem(ledger.path, None, message))
    rounds = ledger.rounds()
    records: list[dict[str, str]] = []
    for part in parts.values():
        items = {f"item{number}": item for number, item in enumerate(part.items, start=1)}
        record = {"tuple_id": part.tuple_id, "group": part.group, **items}
        if rounds:
            record |= dict(zip(("round", "purpose", "seed"), rounds[part.tuple_id], strict=True))
        records.append(record)
    return join_rounds([read_tuples(records)])


def judged(ledger: Ledger, answers: ValidAnswers) -> Judgments:
    """Return the judgments of the answers; InputError if there are none."""
    if answers.judgments is None:
        message = "contains no judgments yet; a round is chosen from those of earlier rounds"
        raise InputError(Problem(ledger.path, None, message))
    return answers.judgments


def check_answers(ledger: Ledger, answers: ValidAnswers, tuples: Tuples) -> None:
    """Raise InputError if too few tuples of the last round have a judgment."""
    last = max(tuples.columns["round"], key=int)
    ids = tuples.ids[tuples.columns["round"] == last]
    answered = sum(answers.answers_per_tuple[identity] > 0 for identity in ids)
    if answered < MIN_ANSWERED * len(ids):
        message = (
            f"round {last} has judgments of {answered} of {len(ids)} tuples; expected at least "
            f"{MIN_ANSWERED:.0%} before a further round (mturk-hits top-up asks for missing ones)"
        )
        raise InputError(Problem(ledger.path, None, message))


def plan_round(ledger: Ledger, file: str | os.PathLike[str], dialogues: str | None) -> PlannedStudy:
    """Plan the HITs of a file of tuples with the settings of the study.

    Raises InputError if tuples of the ledger are in the file, or it lacks rounds.
    """
    settings = ledger.study().settings
    planned = get_kind(settings.kind).plan(
        os.fspath(file), dialogues, _RecordedSettings(settings), settings.dialogue_language
    )
    existing = {part.tuple_id for part in ledger.parts()}
    repeated = [
        part.tuple_id for hit in planned.hits for part in hit.parts if part.tuple_id in existing
    ]
    if repeated:
        message = f"{len(repeated)} tuple ids are in the ledger already, such as {repeated[0]!r}"
        raise InputError(Problem(os.fspath(file), None, message))
    return planned


def record_round(ledger: Ledger, planned: PlannedStudy, before: Tuples) -> None:
    """Record the HITs of a round and the rounds of all tuples, in one transaction."""
    rounds = {**rounds_of(before), **planned.rounds}
    ledger.add_hits(planned.hits, planned.settings.assignments, rounds)


def round_cost(planned: PlannedStudy) -> Decimal:
    """Return the cost of the HITs of a round with fees, in US dollars."""
    settings = planned.settings
    return cost(settings.reward, settings.assignments) * len(planned.hits)


def summarize_rounds(ledger: Ledger, answers: ValidAnswers, tuples: Tuples) -> list[RoundSummary]:
    """Return answers, time and pay of each round."""
    settings = ledger.study().settings
    parts_of_hit: dict[int, list[str]] = {}
    for part in ledger.parts():
        parts_of_hit.setdefault(part.number, []).append(part.tuple_id)
    round_of = dict(zip(tuples.ids, map(int, tuples.columns["round"]), strict=True))
    empty = RoundSummary(0, 0, 0, 0, None, None, Decimal("0.00"))
    summaries = {number: replace(empty, number=number) for number in sorted({*round_of.values()})}
    for identity, purpose in zip(tuples.ids, tuples.columns["purpose"], strict=True):
        old = summaries[round_of[identity]]
        summaries[old.number] = replace(
            old, tuples=old.tuples + 1, audit=old.audit + (purpose == "audit"),
            judgments=old.judgments + answers.answers_per_tuple[identity],
        )  # fmt: skip
    for hit in ledger.hits():
        old = summaries[round_of[parts_of_hit[hit.number][0]]]
        hit_cost = cost(settings.reward, hit.max_assignments)
        summaries[old.number] = replace(old, cost=old.cost + hit_cost)
    tuples_per_hit = max(map(len, parts_of_hit.values()))
    for number, times in _seconds(answers, round_of).items():
        seconds = median(times)
        hourly = hourly_wage(settings.reward, round(seconds * tuples_per_hit)) if seconds else None
        summaries[number] = replace(summaries[number], seconds=seconds, hourly_usd=hourly)
    return list(summaries.values())


def _seconds(answers: ValidAnswers, round_of: Mapping[str, int]) -> dict[int, list[float]]:
    """Return round -> recorded times of the judgments in seconds."""
    times: dict[int, list[float]] = {}
    data = answers.judgments
    if data is not None:
        ids = data.tuples.ids[data.tuple_of]
        for identity, text in zip(ids, data.columns["seconds"], strict=True):
            if text:
                times.setdefault(round_of[identity], []).append(float(text))
    return times
