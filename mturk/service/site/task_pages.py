"""Task pages of workers: list, preview, accept, work, return, continue."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from mturk.service.rules.participation import SCREENED_OUT
from mturk.service.rules.work import OpenAssignment, WorkError
from mturk.service.site.entry import ended_page, enter_page
from mturk.service.site.links import NOT_AVAILABLE
from mturk.service.site.question_frame import question_frame
from mturk.service.site.studies import PanelStudy
from mturk.service.site.visit import RefusedError, Visit

__all__ = [
    "accept",
    "continue_work",
    "home",
    "next_task",
    "preview",
    "return_assignment",
    "returned",
    "show_assignment",
]

UNAVAILABLE_CODES = ("AlreadyDone", "Closed", "Expired", "Full", "NoWork")
"""Codes of WorkError for an offer that is no longer available."""


def home(visit: Visit) -> Response:
    """List the available work, or show the sign-in page."""
    if visit.session.worker is None:
        return visit.redirect("/work/start") if visit.session.pending else enter_page(visit)
    work = visit.site.work
    if visit.study:
        return next_task(visit)
    offers = sorted(work.offers(visit.worker), key=lambda offer: not offer.eligible)
    return visit.page(
        "work.html",
        open_assignments=work.open_assignments(visit.worker),
        offers=offers,
        now=visit.site.now(),
    )


def preview(visit: Visit) -> Response:
    """Show a HIT's question before acceptance, without submission."""
    hit_id = visit.path_parameter("hit_id")
    question = visit.site.work.preview(visit.worker, hit_id)
    offers = visit.site.work.offers(visit.worker, limit=1000)
    offer = next((offer for offer in offers if offer.sample_hit_id == hit_id), None)
    frame = question_frame(visit, question, hit_id, NOT_AVAILABLE)
    return visit.page("preview.html", offer=offer, hit_id=hit_id, frame=frame, frames=frame.sources)


def accept(visit: Visit) -> Response:
    """Accept a HIT, or the next HIT of a group."""
    if visit.study:  # its tasks are chosen by `next_task`, under the rules of the study
        return visit.redirect("/work/next")
    hit_id, group_id = visit.field("hit"), visit.field("group")
    assignment = visit.site.work.accept(visit.worker, hit_id or None, group_id or None)
    visit.change_session(group=group_id or None)
    return visit.redirect(f"/work/assignment/{assignment.assignment_id}")


def next_task(visit: Visit) -> Response:
    """Redirect a study's participant to the open assignment, a new one, or the end of the study.

    Accepting on a GET request is harmless here: it only affects the participant's own next HIT.
    """
    if visit.study is None:
        return visit.redirect("/work/")
    work = visit.site.work
    outcome = _outcome(visit, visit.study)
    if outcome == SCREENED_OUT:
        return ended_page(visit, visit.study, outcome)
    for assignment in work.open_assignments(visit.worker):
        return visit.redirect(f"/work/assignment/{assignment.assignment_id}")
    if outcome == "timed_out":
        return ended_page(visit, visit.study, outcome)
    for group_id in [] if _has_done_enough(visit) else _available_groups(visit):
        try:
            accepted = work.accept(
                visit.worker, None, group_id, participation=visit.session.participation
            )
        except WorkError as error:
            if error.code not in UNAVAILABLE_CODES:
                raise
        else:
            return visit.redirect(f"/work/assignment/{accepted.assignment_id}")
    n_submitted = _submitted_in_study(visit)
    if n_submitted and visit.session.participation is not None:
        visit.site.participants.complete(visit.session.participation)
    return visit.page("finished.html", done=n_submitted)


def _outcome(visit: Visit, study: PanelStudy) -> str | None:
    """Return the outcome of the visitor's participation; None while it continues."""
    limited = study.minutes is not None and not _has_done_enough(visit)
    seconds = 60 * study.minutes if study.minutes is not None and limited else None
    return visit.site.participants.outcome(visit.worker, study.name, seconds)


def _available_groups(visit: Visit) -> list[str]:
    """Return the HIT groups of the visitor's study with available work."""
    study_group = visit.study.group_id if visit.study else None
    offers = visit.site.work.offers(visit.worker, limit=1000)
    return [
        offer.group_id
        for offer in offers
        if offer.eligible and study_group in (None, offer.group_id)
    ]


def _has_done_enough(visit: Visit) -> bool:
    """Return whether the visitor has submitted all HITs of the study or received its code."""
    if visit.study is None:
        return False
    limit = visit.study.hits
    return (limit is not None and _submitted_in_study(visit) >= limit) or (
        visit.site.participants.has_completed(visit.worker, visit.study.name)
    )


def _submitted_in_study(visit: Visit) -> int:
    """Return the number of assignments that the visitor has submitted in the study."""
    return visit.site.participants.n_submitted(visit.worker, visit.session.study or "")


OPEN_STATUS = "Accepted"
SUBMITTED_STATUSES = ("Submitted", "Approved", "Rejected")


def show_assignment(visit: Visit) -> Response:
    """Show an open assignment of the worker."""
    assignment = _own_assignment(visit, visit.path_parameter("assignment_id"))
    if assignment.status != OPEN_STATUS:
        return _leave_assignment(visit, assignment)
    frame = question_frame(visit, assignment.question, assignment.hit_id, assignment.assignment_id)
    due = datetime.fromtimestamp(assignment.deadline, UTC)
    return visit.page(
        "assignment.html", assignment=assignment, frame=frame, frames=frame.sources, due=due,
        now=visit.site.now(),
    )  # fmt: skip


def return_assignment(visit: Visit) -> Response:
    """Return an assignment, so that others can accept the HIT."""
    visit.site.work.return_assignment(visit.field("assignment"), visit.worker)
    return visit.redirect("/work/returned" if visit.study else "/work/", "working.returned")


def returned(visit: Visit) -> Response:
    """Show the page after a return in a study, with a link to the next task."""
    return visit.page("returned.html")


def continue_work(visit: Visit) -> Response:
    """Continue after the submission; before it, stay on the assignment."""
    assignment = _own_assignment(visit, visit.field("assignment"))
    if visit.study is None:
        visit.change_session(automatic=visit.field("automatic") == "yes")
    if assignment.status == OPEN_STATUS:
        return visit.redirect(f"/work/assignment/{assignment.assignment_id}", "working.not_yet")
    if visit.study or not (visit.session.automatic and visit.session.group):
        return _leave_assignment(visit, assignment)
    try:
        next_assignment = visit.site.work.accept(visit.worker, None, visit.session.group)
    except WorkError:
        return visit.redirect("/work/", "working.received.none")
    return visit.redirect(f"/work/assignment/{next_assignment.assignment_id}", "working.received")


def _leave_assignment(visit: Visit, assignment: OpenAssignment) -> Response:
    """Redirect from an assignment that is no longer open."""
    if assignment.status not in SUBMITTED_STATUSES:
        raise RefusedError(410, "error.Expired", f"the assignment is {assignment.status}")
    return visit.redirect("/work/next" if visit.study else "/work/", "working.received")


def _own_assignment(visit: Visit, assignment_id: str) -> OpenAssignment:
    """Return the worker's assignment; other workers' assignments are reported as not found."""
    assignment = visit.site.work.assignment(assignment_id)
    if assignment.worker_id != visit.worker:
        raise RefusedError(404, "error.NotYours", "another worker's assignment")
    return assignment
