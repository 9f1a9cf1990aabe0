"""Sign-in of workers: open entry in dry runs, personal links, and recruiting links of studies."""

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

__all__ = ["complete_start", "enter", "enter_openly", "enter_page", "join", "sign_out", "start"]

WORKER_ID = re.compile("A[A-Z0-9]{1,63}")


def enter_page(visit: Visit) -> Response:
    """Show the sign-in page."""
    return visit.page("enter.html", bad=False, entered="")


def enter_openly(visit: Visit) -> Response:
    """Sign in as any worker, if open entry is enabled for a dry run."""
    if not visit.site.open_entry:
        raise RefusedError(403, "enter.closed", "open entry is off")
    worker = visit.field("worker").strip()
    if not WORKER_ID.fullmatch(worker):
        return visit.page("enter.html", status=422, bad=True, entered=worker)
    return _start_entry(visit, worker)


def enter(visit: Visit) -> Response:
    """Sign in by a personal link."""
    token = visit.request.query_params.get("token", "")
    worker = read_worker_token(visit.site.secret, token, visit.site.now())
    return _start_entry(visit, worker)


def join(visit: Visit) -> Response:
    """Sign in by a study's recruiting link; the panel passes the participant in the query."""
    name = read_study_token(visit.site.secret, visit.path_parameter("token"))
    if name not in visit.site.studies:
        raise LinkError("the study is not available")
    worker = recruited_worker(visit.request.query_params.get("PROLIFIC_PID", ""))
    return _start_entry(visit, worker, name)


def _start_entry(visit: Visit, worker: str, study: str | None = None) -> Response:
    """Go to the start page, or directly to the work if this worker has completed it before."""
    if visit.session.worker == worker and visit.session.study == study:
        return visit.redirect("/work/next" if study else "/work/")
    # A new nonce invalidates forms of a previous user of this browser.
    visit.session = Session(pending=worker, study=study, language=visit.session.language)
    if study is None and visit.site.work.country(worker):
        return _complete_entry(visit, worker)
    return visit.redirect("/work/start")


def start(visit: Visit) -> Response:
    """Show the start page, which asks for the country and, in a study, for consent."""
    if visit.session.pending is None:
        return visit.redirect("/work/")
    return _start_page(visit, [])


def complete_start(visit: Visit) -> Response:
    """Process the start page's form and complete the sign-in."""
    worker = visit.session.pending
    if worker is None:
        return visit.redirect("/work/")
    missing = [] if visit.field("country") in country_names(visit.language) else ["country"]
    if visit.study and visit.field("consent") != "yes":
        missing.append("consent")
    if missing:
        return _start_page(visit, missing)
    visit.site.work.register(worker, country=visit.field("country"))
    return _complete_entry(visit, worker)


def _complete_entry(visit: Visit, worker: str) -> Response:
    before = visit.site.work.progress(worker).submitted
    visit.change_session(
        worker=worker, pending=None, before=before, automatic=visit.study is not None
    )
    return visit.redirect("/work/next" if visit.study else "/work/")


def _start_page(visit: Visit, missing: list[str]) -> Response:
    return visit.page(
        "start.html", status=422 if missing else 200, missing=missing,
        countries=countries(visit.language),
        chosen=visit.field("country") or visit.site.work.country(visit.session.pending or ""),
        consented=visit.field("consent") == "yes",
        paragraphs=visit.study.paragraphs(visit.language) if visit.study else [],
    )  # fmt: skip


def sign_out(visit: Visit) -> Response:
    """Sign out, but keep the language."""
    visit.session = Session(language=visit.session.language)
    return visit.redirect("/work/")
