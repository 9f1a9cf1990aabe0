"""Which work there is for a worker: the list, a preview, and accepting."""

from __future__ import annotations

from starlette.responses import Response

from mturk.endpoint.site.entry import welcome
from mturk.endpoint.site.links import NOT_AVAILABLE
from mturk.endpoint.site.questions import question_frame
from mturk.endpoint.site.visit import Visit
from mturk.endpoint.work import WorkError

__all__ = ["accept", "finished", "home", "next_task", "preview"]


def home(visit: Visit) -> Response:
    """List the work, or show the way in."""
    if visit.session.worker is None:
        return visit.go("/work/start") if visit.session.pending else welcome(visit)
    work = visit.site.work
    offers = work.offers(visit.worker)
    if visit.study and visit.study.group_id:
        offers = [offer for offer in offers if offer.group_id == visit.study.group_id]
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
    study = visit.study
    if study is None:
        return visit.go("/work/")
    work = visit.site.work
    for open_ in work.open_assignments(visit.worker):
        return visit.go(f"/work/assignment/{open_.assignment_id}")
    if study.hits is not None and _done(visit) >= study.hits:
        return visit.go("/work/finished")
    for group_id in _groups(visit):
        try:
            taken = work.accept(visit.worker, None, group_id)
        except WorkError as error:
            if error.code not in ("NoWork", "Full", "AlreadyDone", "Closed", "NotEligible"):
                raise
        else:
            return visit.go(f"/work/assignment/{taken.assignment_id}")
    return visit.go("/work/finished")


def _groups(visit: Visit) -> list[str]:
    if visit.study and visit.study.group_id:
        return [visit.study.group_id]
    return [offer.group_id for offer in visit.site.work.offers(visit.worker) if offer.eligible]


def _done(visit: Visit) -> int:
    return visit.site.work.progress(visit.worker).submitted - visit.session.before


def finished(visit: Visit) -> Response:
    """Show a study's completion code to who has finished it, and to nobody else."""
    study = visit.study
    if study is None:
        return visit.go("/work/")
    if visit.site.work.open_assignments(visit.worker) or not _is_over(visit):
        return visit.go("/work/next")
    return visit.page("finished.html", done=visit.site.work.progress(visit.worker).submitted)


def _is_over(visit: Visit) -> bool:
    study = visit.study
    if study and study.hits is not None and _done(visit) >= study.hits:
        return True
    work = visit.site.work
    return all(work.next_hit(visit.worker, group_id) is None for group_id in _groups(visit))
