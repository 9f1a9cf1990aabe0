"""Status of a study: answers per tuple, pace, expected end, and quality of the answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bws.adaptive import Stopping, stopping
from bws.annotators import AnnotatorReport, annotator_report
from bws.split_half import Reliability, Split, reliability
from mturk.kinds import get_kind
from mturk.kinds.registry import DEFAULT_KIND
from mturk.study.collect import Listing, hit_counts
from mturk.study.ledger import Assignment, Ledger
from mturk.study.rounds import RoundSummary, rounds_table, study_tuples, summarize_rounds
from mturk.study.valid_answers import ValidAnswers

HOUR = 3600.0
MIN_RECENT_SUBMISSIONS = 5
"""Minimum submissions in the last hour; with fewer, the pace is computed since the first one."""


@dataclass(frozen=True, slots=True)
class AssignmentCounts:
    """Assignments by state."""

    wanted: int
    """Total of all existing HITs."""
    open: int
    """Available to workers."""
    closed: int
    """Not accepted before the HIT expired."""
    accepted: int
    """In progress."""
    submitted: int
    """Pending review."""
    approved: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Pace:
    """Rate of submissions."""

    per_hour: float
    """Assignments submitted per hour; NaN if unknown."""
    end: float
    """Expected time of the last submission at this pace, in seconds since 1970; NaN if unknown."""
    reason: str = ""
    """Reason why a number is NaN."""


@dataclass(frozen=True, eq=False)
class Status:
    """Status of a study."""

    hits: Mapping[str, int]
    """HITs by state: planned (not yet published), offered, full (all assignments accepted), closed (expired
    before all were accepted), gone (deleted at the service)."""
    counts: AssignmentCounts
    answers_required: int
    answers_per_tuple: Mapping[str, int]
    """Tuple id -> number of valid judgments."""
    pace: Pace
    reliability: Reliability | None
    """None with too few judgments and for adaptive studies, see `reasons`."""
    stopping: Stopping | None
    """Evidence for the end of an adaptive study; None for other studies."""
    rounds: Sequence[RoundSummary]
    """Answers, time and pay per round of a study in rounds; empty for other studies."""
    annotators: AnnotatorReport | None
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons for missing statistics."""
    notes: Sequence[str] = ()
    kind: str = DEFAULT_KIND
    answers_per_anchor: Mapping[str, int] = field(default_factory=dict)
    """Id of an anchor -> number of valid answers; empty for a study without anchors."""

    @property
    def share(self) -> float:
        """Share of the required judgments that are collected, in [0, 1]; surplus judgments are ignored."""
        n_required = self.answers_required * len(self.answers_per_tuple)
        n_counted = sum(min(n, self.answers_required) for n in self.answers_per_tuple.values())
        return n_counted / n_required if n_required else math.nan

    @property
    def complete(self) -> bool:
        """Whether every tuple has the required judgments, and every anchor the required answers."""
        counts = (*self.answers_per_tuple.values(), *self.answers_per_anchor.values())
        return all(n >= self.answers_required for n in counts)

    def document(self) -> dict[str, Any]:
        """Return the status for JSON; times are seconds since 1970."""
        counts = {name: getattr(self.counts, name) for name in AssignmentCounts.__slots__}
        reliability_document = self.reliability.document() if self.reliability else None
        return {
            "hits": dict(self.hits),
            "assignments": counts,
            "tuples": {
                "wanted": self.answers_required,
                "share": self.share,
                "complete": self.complete,
                "with": dict(sorted(Counter(self.answers_per_tuple.values()).items())),
                "judgments": dict(self.answers_per_tuple),
            },
            **({"anchors": dict(self.answers_per_anchor)} if self.answers_per_anchor else {}),
            "pace": {
                "per_hour": self.pace.per_hour, "end": self.pace.end, "reason": self.pace.reason
            },
            "reliability": reliability_document["groups"][0] if reliability_document else None,
            "stopping": self.stopping.document() if self.stopping else None,
            "rounds": [summary.document() for summary in self.rounds],
            "annotators": self.annotators.document() if self.annotators else None,
            "reasons": dict(self.reasons),
            "notes": list(self.notes),
        }  # fmt: skip

    def table(self) -> str:
        """Return the status as a text table."""
        parts = [self._progress_text(), self._tuples_table()]
        if self.rounds:
            parts.append(str(rounds_table(self.rounds)))
        parts.append(self._reliability_text())
        if self.annotators:
            parts.append(self.annotators.table())
        notes = [f"note: {note}" for note in self.notes]
        return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])

    def _progress_text(self) -> str:
        counts = self.counts
        hits = ", ".join(f"{n} {state}" for state, n in self.hits.items() if n) or "none"
        states = [f"{counts.open} open", f"{counts.accepted} in progress"]
        states += [f"{counts.closed} expired"] if counts.closed else []
        states += [
            f"{counts.submitted} pending review", f"{counts.approved} approved",
            f"{counts.rejected} rejected",
        ]  # fmt: skip
        anchors = self.answers_per_anchor.values()
        n_answers = sum(min(n, self.answers_required) for n in anchors)
        n_required = self.answers_required * len(anchors)
        anchor_line = [f"anchors      {n_answers} of {n_required} answers"] if anchors else []
        speed = self.pace.reason
        if not math.isnan(self.pace.per_hour):
            number = self.pace.per_hour
            speed = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
            speed += " assignments per hour"
            if not math.isnan(self.pace.end):
                speed += f", expected end {local_time(self.pace.end)}"
            else:
                speed += f" ({self.pace.reason})"
        return "\n".join(
            [
                f"HITs         {hits}",
                f"assignments  {counts.wanted} required: {', '.join(states)}",
                *anchor_line,
                f"pace         {speed}",
            ]
        )

    def _tuples_table(self) -> str:
        from tabulate import tabulate

        total = len(self.answers_per_tuple)
        rows = [
            [n, tuples, f"{100 * tuples / total:.1f} %"]
            for n, tuples in sorted(Counter(self.answers_per_tuple.values()).items())
        ]
        kind = get_kind(self.kind)
        parts, answers = f"{kind.part}s", f"{kind.answer}s"
        summary = f"{100 * self.share:.1f} % of {self.answers_required} {answers} for each of {total} {parts}"
        table = tabulate(rows, [answers, parts, "share"], colalign=("right", "right", "right"))
        return f"{summary}\n{table}" if total else f"no {parts}"

    def _reliability_text(self) -> str:
        if self.stopping is not None:
            return f"End of the study\n{self.stopping.result_table()}"
        if self.reliability is None:
            return f"reliability  {self.reasons['reliability']}"
        return f"Split-half reliability\n{self.reliability.table()}"


def local_time(at: float | None) -> str:
    """Return a time (seconds since 1970) in the local time zone; empty for None."""
    return "" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M %Z}"


def study_status(
    ledger: Ledger, hits: Listing, valid_answers: ValidAnswers, *, now: float, trials: int = 100,
    target: float = 0.95,
) -> Status:  # fmt: skip
    """Return the status of a study, from collected answers and the service's list of its HITs.

    now: time of the service, in seconds since 1970. trials: number of random splits for the reliability.
    target: required correlation of the scores of an adaptive study with the true scores.
    """
    assignments = ledger.assignments()
    counts = _counts(hits, assignments)
    assignments_per_hit = ledger.study().settings.assignments
    split: Split = "tuple" if ledger.rounds() and assignments_per_hit == 1 else "annotation"
    report, reasons = _reliability(valid_answers, split, trials)
    judgments = valid_answers.judgments
    tuples = study_tuples(ledger) if ledger.rounds() else None
    is_adaptive = judgments is not None and judgments.is_adaptive
    return Status(
        hits=_hit_states(ledger, hits),
        counts=counts,
        answers_required=assignments_per_hit,
        answers_per_tuple=valid_answers.answers_per_tuple,
        pace=estimate_pace(
            [assignment.submit_time or 0.0 for assignment in assignments], counts, now
        ),
        reliability=report,
        stopping=stopping(judgments, tuples, target) if judgments and is_adaptive else None,
        rounds=summarize_rounds(ledger, valid_answers, tuples) if tuples else (),
        annotators=annotator_report(judgments) if judgments else None,
        reasons=reasons,
        notes=valid_answers.notes(),
        kind=valid_answers.kind,
        answers_per_anchor=valid_answers.answers_per_anchor,
    )


def _reliability(
    valid_answers: ValidAnswers, split: Split, trials: int
) -> tuple[Reliability | None, dict[str, str]]:
    judgments = valid_answers.judgments
    if judgments is None:
        note = get_kind(valid_answers.kind).no_judgments_note
        return None, {"reliability": note, "annotators": note}
    if judgments.is_adaptive:
        return None, {"reliability": "not available: tuples were chosen from earlier judgments"}
    result = reliability(judgments, trials=trials, split=split)
    overall = result.groups[0]
    if math.isnan(overall.pearson.mean):
        reason = "; ".join(overall.notes) or "halves without scores"
        return None, {"reliability": f"not available: {reason}"}
    return result, {}


def _counts(hits: Listing, assignments: Sequence[Assignment]) -> AssignmentCounts:
    """Return the counts: open and accepted assignments of the service, submitted ones of the ledger."""
    counts_per_hit = [hit_counts(hit) for hit in hits.values()]
    statuses = Counter(assignment.status for assignment in assignments)
    return AssignmentCounts(
        wanted=sum(of.max_assignments for of in counts_per_hit),
        open=sum(of.available for of in counts_per_hit if of.is_offered),
        closed=sum(of.available for of in counts_per_hit if not of.is_offered),
        accepted=sum(of.pending for of in counts_per_hit),
        submitted=statuses["Submitted"],
        approved=statuses["Approved"],
        rejected=statuses["Rejected"],
    )


def _hit_states(ledger: Ledger, hits: Listing) -> dict[str, int]:
    states = dict.fromkeys(("planned", "offered", "full", "closed", "gone"), 0)
    for hit in ledger.hits():
        states[_hit_state(hit.hit_id, hits)] += 1
    return states


def _hit_state(hit_id: str | None, hits: Listing) -> str:
    if hit_id is None:
        return "planned"
    if hit_id not in hits:
        return "gone"
    counts = hit_counts(hits[hit_id])
    if not counts.available:
        return "full"
    return "offered" if counts.is_offered else "closed"


def estimate_pace(submitted: Sequence[float], counts: AssignmentCounts, now: float) -> Pace:
    """Return the rate of submissions in the last hour, or since the first one if those are few.

    submitted: times in seconds since 1970. Open and accepted assignments are expected in future.

    >>> counts = AssignmentCounts(20, open=10, closed=0, accepted=0, submitted=10, approved=0, rejected=0)
    >>> pace = estimate_pace([float(minute * 60) for minute in range(10)], counts, 600.0)
    >>> pace.per_hour, pace.end
    (60.0, 1200.0)
    """
    recent = [at for at in submitted if at > now - HOUR]
    times = recent if len(recent) >= MIN_RECENT_SUBMISSIONS else list(submitted)
    if len(times) < 2:
        return Pace(math.nan, math.nan, "too few answers")
    start = now - HOUR if len(times) < len(submitted) else min(times)
    if not now > start:
        return Pace(math.nan, math.nan, "answers have future times: the clocks differ")
    per_hour = len(times) / (now - start) * HOUR
    left = counts.open + counts.accepted
    if not left:
        return Pace(per_hour, math.nan, "no open assignments")
    return Pace(per_hour, now + left / per_hour * HOUR)
