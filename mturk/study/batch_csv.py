"""Batch results file in the format of the requester website: one row per assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from bws.base.rows import csv_text
from mturk import answers
from mturk.kinds import ExpectedTuple, get_kind
from mturk.kinds.registry import ANCHORS
from mturk.study.ledger import Assignment, Hit, Ledger, LedgerStudy
from mturk.study.review import work_seconds
from mturk.study.valid_answers import expected_tuples

FIXED = (
    "HITId", "HITTypeId", "Title", "Description", "Keywords", "Reward", "CreationTime", "MaxAssignments",
    "RequesterAnnotation", "AssignmentDurationInSeconds", "AutoApprovalDelayInSeconds", "Expiration",
    "NumberOfSimilarHITs", "LifetimeInSeconds", "AssignmentId", "WorkerId", "AssignmentStatus",
    "AcceptTime", "SubmitTime", "AutoApprovalTime", "ApprovalTime", "RejectionTime", "RequesterFeedback",
    "WorkTimeInSeconds", "LifetimeApprovalRate", "Last30DaysApprovalRate", "Last7DaysApprovalRate",
)  # fmt: skip
DECISION = ("Approve", "Reject")
PACIFIC = ZoneInfo("America/Los_Angeles")
DAY = 86_400
Cells = dict[str, str]


def batch_csv(
    ledger: Ledger,
    hits: Mapping[str, Mapping[str, Any]],
    worker: Callable[[Assignment], str],
    *,
    now: float,
) -> tuple[str, list[str]]:
    """Return the file, and the ids of assignments with unreadable answers (their cells are empty).

    The n-th tuple of a HIT is in Input.n.tuple_id, Input.n.group, Input.n.item1, ..., and its answer in
    Answer.n.best, Answer.n.worst, Answer.n.shown (item ids separated by ``;``) and Answer.n.seconds. For
    sentence pairs, the items are their texts, and the answer is in Answer.n.high and low, or in
    Answer.n.label and not_applicable. All other fields of the form are in Answer.<name of the field>. The
    approval rates are those of the worker in this study. `bws` reads the file as ``mturk-batch``; `review`
    reads it with marks in the columns Approve and Reject.

    hits: HIT id -> the HIT as listed by the service; deleted HITs are taken from the ledger.
    worker: returns the worker of an assignment. now: seconds since 1970, for the approval rates.
    """
    study, tuples = ledger.study(), expected_tuples(ledger)
    hits_by_id = {listed.hit_id: listed for listed in ledger.hits()}
    reviews_by_worker: dict[str, list[tuple[str, float]]] = {}
    for assignment in ledger.assignments():
        if assignment.status != "Submitted":
            at = assignment.approval_time or assignment.rejection_time or 0.0
            reviews_by_worker.setdefault(assignment.worker, []).append((assignment.status, at))
    rows: list[tuple[Cells, Cells, Cells]] = []
    unreadable = []
    for assignment in ledger.assignments():
        hit = hits_by_id[assignment.hit_id]
        fixed_cells = _hit_cells(hit, study, hits.get(assignment.hit_id))
        fixed_cells |= _assignment_cells(assignment, worker(assignment)) | _rates(
            reviews_by_worker.get(assignment.worker, ()), now
        )
        answer_cells, readable = _answer_cells(assignment, tuples[assignment.hit_id])
        rows.append((fixed_cells, _input_cells(tuples[assignment.hit_id]), answer_cells))
        unreadable += [] if readable else [assignment.assignment_id]
    order = _order(get_kind(study.settings.kind).columns(""))
    return _format_csv(rows, order), unreadable


def _format_csv(
    rows: Sequence[tuple[Cells, Cells, Cells]], order: Callable[[str], tuple[int, int, str]]
) -> str:
    input_columns = sorted({name for _, input_cells, _ in rows for name in input_cells}, key=order)
    answer_columns = sorted(
        {name for _, _, answer_cells in rows for name in answer_cells}, key=order
    )
    columns = [*FIXED, *input_columns, *answer_columns, *DECISION]
    csv_rows = (
        {**fixed_cells, **input_cells, **answer_cells}
        for fixed_cells, input_cells, answer_cells in rows
    )
    return csv_text(csv_rows, columns, quote_all=True)


def _order(answers: Iterable[str]) -> Callable[[str], tuple[int, int, str]]:
    """Return a sort key: by part, then in the order of the names; all other columns last."""
    names = ("tuple_id", "group", *(f"item{n}" for n in range(1, 100)), *answers)

    def key(column: str) -> tuple[int, int, str]:
        _, _, suffix = column.partition(".")
        part, _, name = suffix.partition(".")
        listed = part.isdecimal() and name in names
        return (int(part), names.index(name), "") if listed else (10**9, 0, suffix)

    return key


def _hit_cells(hit: Hit, study: LedgerStudy, listed: Mapping[str, Any] | None) -> Cells:
    settings = study.settings
    hit_values = listed or {
        "HITTypeId": study.hit_type_id or "",
        "Title": settings.title,
        "Description": settings.description,
        "Keywords": settings.keywords,
        "Reward": str(settings.reward),
        "MaxAssignments": hit.max_assignments,
        "RequesterAnnotation": hit.annotation,
        "AssignmentDurationInSeconds": settings.duration,
        "AutoApprovalDelayInSeconds": settings.auto_approval_delay,
    }
    names = (
        "HITTypeId", "Title", "Description", "Keywords", "MaxAssignments", "RequesterAnnotation",
        "AssignmentDurationInSeconds", "AutoApprovalDelayInSeconds",
    )  # fmt: skip
    created_at = hit_values.get("CreationTime")
    expires_at = hit_values.get("Expiration")
    return {
        "HITId": str(hit.hit_id),
        **{name: str(hit_values.get(name, "")) for name in names},
        "Reward": f"${hit_values['Reward']}",
        "CreationTime": pacific(created_at.timestamp() if created_at else hit.created_at),
        "Expiration": pacific(expires_at.timestamp() if expires_at else None),
    }


def _assignment_cells(assignment: Assignment, worker: str) -> Cells:
    return {
        "AssignmentId": assignment.assignment_id,
        "WorkerId": worker,
        "AssignmentStatus": assignment.status,
        "AcceptTime": pacific(assignment.accept_time),
        "SubmitTime": pacific(assignment.submit_time),
        "AutoApprovalTime": pacific(assignment.auto_approval_time),
        "ApprovalTime": pacific(assignment.approval_time),
        "RejectionTime": pacific(assignment.rejection_time),
        "RequesterFeedback": assignment.feedback,
        "WorkTimeInSeconds": work_seconds(assignment),
    }


def _rates(reviewed: Sequence[tuple[str, float]], now: float) -> Cells:
    period_starts = {"Lifetime": 0.0, "Last30Days": now - 30 * DAY, "Last7Days": now - 7 * DAY}
    return {
        f"{period}ApprovalRate": _rate([status for status, at in reviewed if at >= start])
        for period, start in period_starts.items()
    }


def _rate(statuses: Sequence[str]) -> str:
    approved, total = Counter(statuses)["Approved"], len(statuses)
    return f"{round(100 * approved / total) if total else 0}% ({approved}/{total})"


def _input_cells(tuples: Sequence[ExpectedTuple]) -> Cells:
    """Return the tuples of a HIT; anchors are no tuples, and their answers keep the names of the form."""
    cells: Cells = {}
    for part, expected in enumerate(_without_anchors(tuples), start=1):
        items = {f"item{position}": item for position, item in enumerate(expected.items, start=1)}
        values = {"tuple_id": expected.tuple_id, "group": expected.group, **items}
        cells |= {f"Input.{part}.{name}": value for name, value in values.items()}
    return cells


def _without_anchors(tuples: Sequence[ExpectedTuple]) -> list[ExpectedTuple]:
    return [expected for expected in tuples if expected.kind not in ANCHORS]


def _answer_cells(assignment: Assignment, tuples: Sequence[ExpectedTuple]) -> tuple[Cells, bool]:
    """Return the answer's cells, and whether the answer is readable; invalid values stay unchanged."""
    try:
        fields = dict(answers.from_xml(assignment.answer_xml))
    except ValueError:
        return {}, False
    cells: Cells = {}
    for part, expected in enumerate(_without_anchors(tuples), start=1):
        kind = get_kind(expected.kind)
        names = kind.columns(expected.tuple_id)
        values = {column: fields.pop(name, "") for column, name in names.items()}
        cells |= {
            f"Answer.{part}.{column}": kind.batch_value(column, value)
            for column, value in values.items()
        }
    return cells | {f"Answer.{name}": value for name, value in fields.items()}, True


def pacific(at: float | None) -> str:
    """Return a time (seconds since 1970) in the format of the requester website; empty for None.

    >>> pacific(1574312606.0), pacific(1594312606.0)
    ('Wed Nov 20 21:03:26 PST 2019', 'Thu Jul 09 09:36:46 PDT 2020')
    """
    return "" if at is None else f"{datetime.fromtimestamp(at, PACIFIC):%a %b %d %H:%M:%S %Z %Y}"
