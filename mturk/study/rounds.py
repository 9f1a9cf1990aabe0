"""Rounds of an adaptive study: tuples chosen from the answers so far, published in the same ledger.

A round is chosen from the collected judgments, planned with the settings of the study, and recorded in one
transaction: its HITs, round, purpose and seed of each tuple, and what the choice depended on. An interrupted
command has either recorded the round, and the next call publishes the rest of its HITs, or nothing.
`repeat_rounds` repeats every choice from the ledger: the judgments of a round are those collected before it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from bws.base.tables import Column, ResultTable
from mturk.kinds import get_kind
from mturk.money import cost, hourly_wage
from mturk.study.ledger import Ledger
from mturk.study.plan import PlannedStudy, rounds_of
from mturk.study.settings import Settings
from mturk.study.valid_answers import ValidAnswers, read_valid_answers

if TYPE_CHECKING:
    from bws.records import Judgments, Tuples

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
class RoundChoice:
    """What the choice of a round depended on, as recorded in the ledger."""

    seed: int
    count: int | None
    """Number of tuples; None for a round of new items."""
    keep_apart: Sequence[Sequence[str]] = ()
    collected: float = 0.0
    """Time of the last answer collected before, in seconds since 1970."""
    digest: str = ""
    """Digest of the judgments so far; empty for a round of new items, which does not depend on them."""


@dataclass(frozen=True, slots=True)
class RepeatedRound:
    """A round that was chosen again from the ledger."""

    number: int
    equal: bool | None
    """Whether the choice has the published tuples; None if it cannot be repeated."""
    reason: str = ""


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


def study_tuples(ledger: Ledger, first: int = 1, last: float = math.inf) -> Tuples:
    """Return the tuples of rounds `first` to `last` of a study, each once, with the columns of rounds.

    Raises InputError for a study without tuples of one size.
    """
    from bws.adaptive import join_rounds
    from bws.files import read_tuples

    parts = {part.tuple_id: part for part in ledger.tuple_parts()}
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
        if first <= int(record.get("round", 1)) <= last:
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
            f"{MIN_ANSWERED:.0%} before a further round (giccs annotate top-up asks for missing ones)"
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


def choose_round(
    ledger: Ledger, tuples: Tuples, count: int, seed: int, keep_apart: Sequence[Sequence[str]] = ()
) -> tuple[Tuples, RoundChoice]:
    """Return the next round, chosen from the collected judgments, and what the choice depended on."""
    from bws.adaptive import next_round

    judgments = judged(ledger, read_valid_answers(ledger))
    design = next_round(judgments, tuples, count, keep_apart=keep_apart, seed=seed)
    collected = max(assignment.collected_at for assignment in ledger.assignments())
    choice = RoundChoice(seed, count, keep_apart, collected, judgments.canonical.digest())
    return design, choice


def record_round(
    ledger: Ledger, planned: PlannedStudy, before: Tuples, choice: RoundChoice
) -> None:
    """Record the HITs of a round, the rounds of all tuples, and the choice, in one transaction."""
    rounds = {**rounds_of(before), **planned.rounds}
    (number,) = {values[0] for values in planned.rounds.values()}
    notes = [(_note(number), json.dumps(asdict(choice), ensure_ascii=False))]
    ledger.add_hits(planned.hits, planned.settings.assignments, rounds, notes)


def _note(number: int | str) -> str:
    return f"round {number}"


def repeat_rounds(ledger: Ledger) -> list[RepeatedRound]:
    """Choose each round after the first again, from the judgments collected before it and its seed."""
    from bws.adaptive.rounds import last_round

    results = []
    for number in range(2, last_round(study_tuples(ledger)) + 1):
        text = ledger.get_note(_note(number))
        if not text:
            results.append(RepeatedRound(number, None, "it was not chosen by giccs annotate next"))
            continue
        choice, earlier = RoundChoice(**json.loads(text)), study_tuples(ledger, last=number - 1)
        published = study_tuples(ledger, number, number)
        try:
            repeated = _choose_again(ledger, choice, earlier, published)
        except InputError as error:
            results.append(RepeatedRound(number, None, error.problems[0].message))
            continue
        results.append(RepeatedRound(number, _rows(repeated) == _rows(published)))
    return results


def _choose_again(
    ledger: Ledger, choice: RoundChoice, earlier: Tuples, published: Tuples
) -> Tuples:
    """Return the round of a recorded choice; InputError if its judgments have changed."""
    from bws.adaptive import next_round, round_of_new_items
    from bws.files import Items

    if choice.count is None:
        groups = published.groups[published.group_of_item].tolist()
        return round_of_new_items(
            earlier, Items(published.items.tolist(), groups), seed=choice.seed
        )
    answers = read_valid_answers(ledger, collected_until=choice.collected)
    if answers.judgments is None or answers.judgments.canonical.digest() != choice.digest:
        message = "its judgments have changed: answers were rejected, withdrawn or deleted since"
        raise InputError(Problem(ledger.path, None, message))
    return next_round(
        answers.judgments, earlier, choice.count, keep_apart=choice.keep_apart, seed=choice.seed
    )


def _rows(tuples: Tuples) -> list[tuple[Any, ...]]:
    """Return the tuples with their columns, sorted by id."""
    return sorted(zip(tuples.rows(), *tuples.columns.values(), strict=True))


def rounds_table(summaries: Sequence[RoundSummary]) -> ResultTable:
    """Return a row per round."""
    columns = [
        Column("round", "round"),
        Column("tuples", "tuples"),
        Column("audit", "audit tuples"),
        Column("judgments", "judgments"),
        Column("seconds", "seconds per tuple", ".1f"),
        Column("hourly_usd", "USD per hour", ".2f"),
        Column("cost", "cost with fees, USD", ".2f"),
    ]
    rows = [
        (
            one.number, one.tuples, one.audit, one.judgments,
            math.nan if one.seconds is None else one.seconds,
            math.nan if one.hourly_usd is None else float(one.hourly_usd), float(one.cost),
        )
        for one in summaries
    ]  # fmt: skip
    return ResultTable(columns, rows, (), "Rounds", "unknown")


def round_cost(planned: PlannedStudy) -> Decimal:
    """Return the cost of the HITs of a round with fees, in US dollars."""
    settings = planned.settings
    return cost(settings.reward, settings.assignments) * len(planned.hits)


def summarize_rounds(ledger: Ledger, answers: ValidAnswers, tuples: Tuples) -> list[RoundSummary]:
    """Return answers, time and pay of each round."""
    settings = ledger.study().settings
    parts_of_hit: dict[int, list[str]] = {}
    for part in ledger.tuple_parts():
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
    for hit in (hit for hit in ledger.hits() if hit.number in parts_of_hit):
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
