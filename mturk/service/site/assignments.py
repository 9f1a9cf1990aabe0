"""Working on an assignment: the question, the time left, returning it, and what comes after it."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from mturk.service.rules.work import OpenAssignment, WorkError
from mturk.service.site.question_frame import question_frame
from mturk.service.site.visit import RefusedError, Visit

__all__ = ["after", "give_back", "returned", "show"]

OPEN = "Accepted"
SENT = ("Submitted", "Approved", "Rejected")


def show(visit: Visit) -> Response:
    """Show the worker's own open assignment."""
    mine = _mine(visit, visit.part("assignment_id"))
    if mine.status != OPEN:
        return _done(visit, mine)
    frame = question_frame(visit, mine.question, mine.hit_id, mine.assignment_id)
    due = datetime.fromtimestamp(mine.deadline, UTC)
    return visit.page(
        "assignment.html", assignment=mine, frame=frame, frames=frame.sources, due=due,
        now=visit.site.now(),
    )  # fmt: skip


def give_back(visit: Visit) -> Response:
    """Return the assignment; the HIT is free for others."""
    visit.site.work.give_back(visit.field("assignment"), visit.worker)
    return visit.go("/work/returned" if visit.study else "/work/", "working.returned")


def returned(visit: Visit) -> Response:
    """Let a study's participant decide what comes after a return: the next task, or the end for now."""
    return visit.page("returned.html")


def after(visit: Visit) -> Response:
    """Go on once the answer is in; not before."""
    mine = _mine(visit, visit.field("assignment"))
    if visit.study is None:
        visit.change(automatic=visit.field("automatic") == "yes")
    if mine.status == OPEN:
        return visit.go(f"/work/assignment/{mine.assignment_id}", "working.not_yet")
    if visit.study or not (visit.session.automatic and visit.session.group):
        return _done(visit, mine)
    try:
        taken = visit.site.work.accept(visit.worker, None, visit.session.group)
    except WorkError:
        return visit.go("/work/", "working.received.none")
    return visit.go(f"/work/assignment/{taken.assignment_id}", "working.received")


def _done(visit: Visit, mine: OpenAssignment) -> Response:
    """Leave an assignment that is no longer open."""
    if mine.status not in SENT:
        raise RefusedError(410, "error.Expired", f"the assignment is {mine.status}")
    return visit.go("/work/next" if visit.study else "/work/", "working.received")


def _mine(visit: Visit, assignment_id: str) -> OpenAssignment:
    """Return the assignment where it is this worker's; others' do not exist for him."""
    found = visit.site.work.assignment(assignment_id)
    if found.worker_id != visit.worker:
        raise RefusedError(404, "error.NotYours", "another worker's assignment")
    return found
