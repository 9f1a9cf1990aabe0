"""Task pages of workers: list, preview, accept, work, return, continue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from starlette.responses import Response

from mturk.question_xml import expected_seconds
from mturk.service.rules.ends import CLOSED, NO_CONSENT, TIMED_OUT, WITHOUT_TASKS
from mturk.service.rules.participation import StudyProgress
from mturk.service.rules.work import EndedError, Offer, OpenAssignment, WorkError
from mturk.service.site.entry import ask_again, ended_page, enter_page, has_consented
from mturk.service.site.links import NOT_AVAILABLE
from mturk.service.site.question_frame import question_frame
from mturk.service.site.remaining_work import has_done_enough, has_finished, offers_of_study
from mturk.service.site.visit import RefusedError, Visit
from mturk.service.store.schema import SUBMITTED_STATUSES

UNAVAILABLE_CODES = ("AlreadyDone", "Closed", "Expired", "Full", "NoWork")
"""Codes of WorkError for an offer that is no longer available."""


def home(visit: Visit) -> Response:
    """List the available work, or show the sign-in page."""
    if visit.session.worker is None:
        return visit.redirect("/work/start") if visit.session.pending else enter_page(visit)
    work = visit.site.work
    if visit.session.study:
        return next_task(visit)
    offers = sorted(work.offers(visit.worker), key=lambda offer: not offer.eligible)
    return visit.page(
        "work.html",
        open_assignments=work.open_assignments(visit.worker, visit.session.study),
        offers=offers,
        seconds=_expected_seconds(visit, [offer.sample_hit_id for offer in offers]),
    )


def preview(visit: Visit) -> Response:
    """Show a HIT's question before acceptance, without submission."""
    hit_id = visit.path_parameter("hit_id")
    question = visit.site.work.preview(visit.worker, hit_id)
    offers = visit.site.work.offers(visit.worker, limit=1000)
    offer = next((offer for offer in offers if offer.sample_hit_id == hit_id), None)
    frame = question_frame(visit, question, hit_id, NOT_AVAILABLE)
    return visit.page(
        "preview.html", offer=offer, hit_id=hit_id, seconds=expected_seconds(question), frame=frame,
        frames=frame.sources,
    )  # fmt: skip


def _expected_seconds(visit: Visit, hit_ids: Sequence[str]) -> defaultdict[str, int | None]:
    """Return HIT id -> expected time of the page; None if the page states none."""
    return defaultdict(lambda: None, visit.site.work.expected_seconds(hit_ids))


def accept(visit: Visit) -> Response:
    """Accept a HIT, or the next HIT of a group."""
    if visit.session.study:  # its tasks are chosen by `next_task`, under the rules of the study
        return visit.redirect("/work/next")
    hit_id, group_id = visit.field("hit"), visit.field("group")
    assignment = visit.site.work.accept(visit.worker, hit_id or None, group_id or None)
    visit.change_session(group=group_id or None)
    return visit.redirect(f"/work/assignment/{assignment.assignment_id}")


def next_task(visit: Visit) -> Response:
    """Redirect a study's participant to the open assignment, a new one, or the end of the study.

    Accepting on a GET request is harmless here: it only affects the participant's own next HIT.
    """
    if visit.session.study is None:
        return visit.redirect("/work/")
    # Another tab can submit a task between two queries, so what is submitted is counted last.
    open_tasks = visit.site.work.open_assignments(visit.worker, visit.session.study)
    progress = visit.progress()
    ended = progress.outcome if progress.outcome in (*WITHOUT_TASKS, NO_CONSENT) else None
    if open_tasks and ended in (None, TIMED_OUT):  # a task that was begun in time can be finished
        return _task(visit, open_tasks[0])
    if ended is None and visit.study is None:
        ended = CLOSED
    if progress.is_late and not has_finished(visit, visit.study, visit.worker, progress):
        visit.site.participants.time_out(visit.participation)
        ended = TIMED_OUT
    if ended is not None:
        return ended_page(visit, visit.study, ended, submitted=visit.progress().submitted > 0)
    if not has_done_enough(visit.study, progress):
        offers = offers_of_study(visit, visit.study, visit.worker)
        if offers and not has_consented(visit, visit.session.study, visit.participation):
            return ask_again(visit)
        try:
            accepted = _accept_one(visit, offers)
        except EndedError:  # meanwhile, in another tab or browser
            return visit.redirect("/work/next")
        if accepted:
            return _task(visit, accepted)
        progress = visit.progress()
    if progress.submitted_now:
        visit.site.participants.complete(visit.participation)
    return visit.page("finished.html", done=progress.submitted > 0)


def _accept_one(visit: Visit, offers: Sequence[Offer]) -> OpenAssignment | None:
    """Accept a HIT of the first offer that is still available; return None if there is none."""
    for offer in offers:
        try:
            return visit.site.work.accept(
                visit.worker, None, offer.group_id, participation=visit.participation
            )
        except WorkError as error:
            if error.code not in UNAVAILABLE_CODES:
                raise
    return None


def _task(visit: Visit, assignment: OpenAssignment) -> Response:
    """Redirect to a task of a study; after an expired one, its page says so."""
    expired = visit.request.query_params.get("notice") == "working.expired"
    notice = "working.expired" if expired else ""
    return visit.redirect(f"/work/assignment/{assignment.assignment_id}", notice)


OPEN_STATUS = "Accepted"


def show_assignment(visit: Visit) -> Response:
    """Show an open assignment of the worker."""
    assignment = _own_assignment(visit, visit.path_parameter("assignment_id"))
    if assignment.status != OPEN_STATUS:
        return _leave_assignment(visit, assignment)
    progress = visit.progress() if visit.session.study else None
    is_known = progress.submitted > 0 if progress else visit.site.work.has_submitted(visit.worker)
    frame = question_frame(
        visit, assignment.question, assignment.hit_id, assignment.assignment_id, is_first=not is_known
    )  # fmt: skip
    due = datetime.fromtimestamp(assignment.deadline, UTC)
    position, total = _position(visit, progress)
    return visit.page(
        "assignment.html", assignment=assignment, frame=frame, frames=frame.sources, due=due,
        grace=round(assignment.closes - assignment.deadline), seconds=expected_seconds(assignment.question),
        position=position, total=total,
    )  # fmt: skip


def _position(visit: Visit, progress: StudyProgress | None) -> tuple[int | None, int | None]:
    """Return the number of the participant's task and that of all tasks of the study; None if unknown."""
    if visit.study is None or progress is None:
        return None, None
    position = progress.submitted_now + 1
    if visit.study.hits is not None:
        return position, max(position, visit.study.hits)
    offers = offers_of_study(visit, visit.study, visit.worker)
    if any(offer.has_more for offer in offers):
        return position, None
    return position, position + sum(offer.hits_available for offer in offers)


def return_assignment(visit: Visit) -> Response:
    """Return an assignment, so that others can accept the HIT."""
    assignment = _own_assignment(visit, visit.field("assignment"))
    visit.site.work.return_assignment(assignment.assignment_id, visit.worker)
    if visit.study and visit.progress().is_late:  # there is no next task, but an end with its code
        return visit.redirect("/work/next", "working.returned")
    return visit.redirect("/work/returned" if visit.study else "/work/", "working.returned")


def returned(visit: Visit) -> Response:
    """Show the page after a return in a study, with a link to the next task."""
    return visit.page("returned.html")


def continue_work(visit: Visit) -> Response:
    """Continue after the submission; before it, stay on the assignment.

    Without the session of the form (a lost cookie, another tab), say whether the answer was received.
    """
    if visit.session.worker is None or not visit.has_form_token:
        return _continue_without_session(visit)
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


def _continue_without_session(visit: Visit) -> Response:
    """Say whether the answer was received, and where to continue; nothing is changed.

    The form contains the id of the assignment, which only its worker knows.
    """
    try:
        assignment = visit.site.work.assignment(visit.field("assignment"))
    except WorkError:
        raise RefusedError(403, "error.csrf", "form token missing or wrong") from None
    is_own = visit.session.worker == assignment.worker_id
    path = f"/work/assignment/{assignment.assignment_id}"
    if is_own and visit.session.study in (None, assignment.study):
        return visit.redirect(path)
    return visit.page(
        "received.html", received=assignment.status in SUBMITTED_STATUSES, of_study=assignment.study
    )


def _leave_assignment(visit: Visit, assignment: OpenAssignment) -> Response:
    """Redirect from an assignment that is no longer open, and say whether it was submitted."""
    is_submitted = assignment.status in SUBMITTED_STATUSES
    notice = "working.received" if is_submitted else "working.expired"
    return visit.redirect("/work/next" if visit.session.study else "/work/", notice)


def _own_assignment(visit: Visit, assignment_id: str) -> OpenAssignment:
    """Return the worker's assignment; others, also of other studies, are reported as not found."""
    assignment = visit.site.work.assignment(assignment_id)
    is_own = assignment.worker_id == visit.worker
    if not is_own or visit.session.study not in (None, assignment.study):
        raise RefusedError(404, "error.NotYours", "an assignment of another worker or study")
    return assignment
