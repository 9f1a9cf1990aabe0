"""How a worker gets in: open entry in rehearsals, a personal link, or a study's recruiting link."""

from __future__ import annotations

import re

from starlette.responses import Response

from mturk.service.site.countries import countries, country_names
from mturk.service.site.links import (
    LinkError,
    read_study_token,
    read_worker_token,
    recruited_worker,
)
from mturk.service.site.sessions import Session
from mturk.service.site.visit import RefusedError, Visit

__all__ = ["begin", "enter", "enter_openly", "join", "leave", "start", "welcome"]

WORKER_ID = re.compile("A[A-Z0-9]{1,63}")


def welcome(visit: Visit) -> Response:
    """Show how one enters."""
    return visit.page("enter.html", bad=False, entered="")


def enter_openly(visit: Visit) -> Response:
    """Enter as any worker, where the operator has opened the door for a rehearsal."""
    if not visit.site.open_entry:
        raise RefusedError(403, "enter.closed", "open entry is off")
    worker = visit.field("worker").strip()
    if not WORKER_ID.fullmatch(worker):
        return visit.page("enter.html", status=422, bad=True, entered=worker)
    return _pending(visit, worker)


def enter(visit: Visit) -> Response:
    """Enter by a personal link."""
    token = visit.request.query_params.get("token", "")
    worker = read_worker_token(visit.site.secret, token, visit.site.now())
    return _pending(visit, worker)


def join(visit: Visit) -> Response:
    """Enter by a study's recruiting link; the panel says in the query who comes."""
    name = read_study_token(visit.site.secret, visit.part("token"))
    if name not in visit.site.studies:
        raise LinkError("the study is not offered (any more)")
    worker = recruited_worker(visit.request.query_params.get("PROLIFIC_PID", ""))
    return _pending(visit, worker, name)


def _pending(visit: Visit, worker: str, study: str | None = None) -> Response:
    """Go to the start page, or on with the work where this worker has been through it."""
    if visit.session.worker == worker and visit.session.study == study:
        return visit.go("/work/next" if study else "/work/")
    # A new nonce: a form of whoever used this browser before is not one of this worker's.
    visit.session = Session(pending=worker, study=study, language=visit.session.language)
    if study is None and visit.site.work.country(worker):
        return _entered(visit, worker)
    return visit.go("/work/start")


def start(visit: Visit) -> Response:
    """Ask for the country and, in a study, for consent."""
    if visit.session.pending is None:
        return visit.go("/work/")
    return _start_page(visit, [])


def begin(visit: Visit) -> Response:
    """Take the start page's answers; the worker has entered."""
    worker = visit.session.pending
    if worker is None:
        return visit.go("/work/")
    missing = [] if visit.field("country") in country_names(visit.language) else ["country"]
    if visit.study and visit.field("consent") != "yes":
        missing.append("consent")
    if missing:
        return _start_page(visit, missing)
    visit.site.work.register(worker, country=visit.field("country"))
    return _entered(visit, worker)


def _entered(visit: Visit, worker: str) -> Response:
    before = visit.site.work.progress(worker).submitted
    visit.change(worker=worker, pending=None, before=before, automatic=visit.study is not None)
    return visit.go("/work/next" if visit.study else "/work/")


def _start_page(visit: Visit, missing: list[str]) -> Response:
    return visit.page(
        "start.html", status=422 if missing else 200, missing=missing,
        countries=countries(visit.language),
        chosen=visit.field("country") or visit.site.work.country(visit.session.pending or ""),
        consented=visit.field("consent") == "yes",
        paragraphs=visit.study.paragraphs(visit.language) if visit.study else [],
    )  # fmt: skip


def leave(visit: Visit) -> Response:
    """Forget who was here, but not the language."""
    visit.session = Session(language=visit.session.language)
    return visit.go("/work/")
