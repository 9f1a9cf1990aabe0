"""A worker's tasks: the list, a preview, accepting, working, returning, and what comes after."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from mturk.service.rules.work import OpenAssignment, WorkError
from mturk.service.site.entry import welcome
from mturk.service.site.links import NOT_AVAILABLE
from mturk.service.site.question_frame import question_frame
from mturk.service.site.visit import RefusedError, Visit

__all__ = ["accept", "after", "give_back", "home", "next_task", "preview", "returned", "show"]

GONE = ("AlreadyDone", "Closed", "Expired", "Full", "NoWork")
"""Why an offer may be no more when it is accepted."""


def home(visit: Visit) -> Response:
    """List the work, or show the way in."""
    if visit.session.worker is None:
        return visit.go("/work/start") if visit.session.pending else welcome(visit)
    work = visit.site.work
    if visit.study:
        return next_task(visit)
    offers = sorted(work.offers(visit.worker), key=lambda offer: not offer.eligible)
    return visit.page(
        "work.html", begun=work.open_assignments(visit.worker), offers=offers, now=visit.site.now()
    )


def preview(visit: Visit) -> Response:
    """Show a HIT's question before it is accepted; nothing can be submitted."""
    hit_id = visit.part("hit_id")
    question = visit.site.work.preview(visit.worker, hit_id)
    offers = visit.site.work.offers(visit.worker, limit=1000)
    offer = next((offer for offer in offers if offer.sample_hit_id == hit_id), None)
    frame = question_frame(visit, question, hit_id, NOT_AVAILABLE)
    return visit.page("preview.html", offer=offer, hit_id=hit_id, frame=frame, frames=frame.sources)


def accept(visit: Visit) -> Response:
    """Accept a HIT, or the next one of a group."""
    hit_id, group_id = visit.field("hit"), visit.field("group")
    taken = visit.site.work.accept(visit.worker, hit_id or None, group_id or None)
    visit.change(group=group_id or None)
    return visit.go(f"/work/assignment/{taken.assignment_id}")


def next_task(visit: Visit) -> Response:
    """Go to what a study's participant does next: the open assignment, a new one, or the end.

    Accepting on a GET is harmless here: whoever is sent to this address gets his own next HIT.
    """
    if visit.study is None:
        return visit.go("/work/")
    work = visit.site.work
    for begun in work.open_assignments(visit.worker):
        return visit.go(f"/work/assignment/{begun.assignment_id}")
    for group_id in [] if _has_done_enough(visit) else _groups(visit):
        try:
            taken = work.accept(visit.worker, None, group_id)
        except WorkError as error:
            if error.code not in GONE:
                raise
        else:
            return visit.go(f"/work/assignment/{taken.assignment_id}")
    return visit.page("finished.html", done=_submitted_in_study(visit))


def _groups(visit: Visit) -> list[str]:
    """Return the groups of the visitor's study in which there is work for him."""
    wanted = visit.study.group_id if visit.study else None
    offers = visit.site.work.offers(visit.worker, limit=1000)
    return [one.group_id for one in offers if one.eligible and wanted in (None, one.group_id)]


def _has_done_enough(visit: Visit) -> bool:
    limit = visit.study.hits if visit.study else None
    return limit is not None and _submitted_in_study(visit) >= limit


def _submitted_in_study(visit: Visit) -> int:
    """Return how many assignments the visitor has submitted in the study."""
    if visit.study and visit.study.group_id:
        return visit.site.work.submitted_in(visit.worker, visit.study.group_id)
    return visit.site.work.progress(visit.worker).submitted - visit.session.before


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
