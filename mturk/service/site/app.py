"""The worker site as an ASGI application: its routes and error handlers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from mturk.service.rules.work import WorkerService
from mturk.service.site import entry, task_pages, worker_pages
from mturk.service.site.headers import origin_of, static_files
from mturk.service.site.rate_limits import RateLimits
from mturk.service.site.request_handling import Handler, create_endpoint, create_visit
from mturk.service.site.studies import PanelStudy
from mturk.service.site.submission import Submissions
from mturk.service.site.visit import Site

BOTH = ["GET", "POST"]
"""Methods of submissions: forms use POST, survey platforms redirect to the address with GET."""


def build_site(
    work: WorkerService, secret: bytes, *, frame_url: str, site_url: str, open_entry: bool,
    studies: Sequence[PanelStudy] = (), now: Callable[[], float] = time.time, rates: RateLimits | None = None,
) -> Starlette:  # fmt: skip
    """Return the worker site.

    `frame_url` and `site_url` are public origins without a path (``https://work.example.org``). With
    `open_entry`, anybody can sign in as any worker: for dry runs on a local machine only. Raises ValueError
    if an address is not an origin, both are equal, two studies have the same name, or a study excludes an
    unknown one.
    """
    for name, url in (("site_url", site_url), ("frame_url", frame_url)):
        if url != origin_of(url):
            raise ValueError(f"{name} is {url!r}; expected scheme, host and port without a path")
    if site_url == frame_url:
        raise ValueError(
            f"site_url and frame_url are both {site_url!r}; they must be different origins"
        )
    studies_by_name = {study.name: study for study in studies}
    if len(studies_by_name) < len(studies):
        raise ValueError("two studies have the same name; names must be unique")
    site = Site(
        work, secret, frame_url=frame_url, site_url=site_url, open_entry=open_entry, studies=studies_by_name,
        now=now, rates=rates or RateLimits(),
    )  # fmt: skip
    _check_excluded_studies(site)
    return Starlette(routes=_routes(site), exception_handlers=_exception_handlers(site))


def _check_excluded_studies(site: Site) -> None:
    known_names = {*site.studies, *site.participants.studies()}
    for study in site.studies.values():
        if unknown_names := sorted({*study.exclude} - known_names):
            raise ValueError(
                f"study {study.name!r} excludes unknown studies: {', '.join(unknown_names)}; expected "
                "studies of the same file or with participants in the database"
            )


def _routes(site: Site) -> list[Route | Mount]:
    def get(path: str, handler: Handler) -> Route:
        return Route(path, create_endpoint(site, handler), methods=["GET"])

    def post(path: str, handler: Handler, **options: bool) -> Route:
        return Route(path, create_endpoint(site, handler, **options), methods=["POST"])

    submissions = Submissions(site)
    return [  # Starlette compares one after the other, so the routes of each task are the first ones
        post("/work/continue", task_pages.continue_work, needs_form_token=False),
        get("/work/assignment/{assignment_id}", task_pages.show_assignment),
        Route("/submit/preview/mturk/externalSubmit", submissions.reject_preview, methods=BOTH),
        Route("/submit/{token}/mturk/externalSubmit", submissions.submit, methods=BOTH),
        get("/", lambda visit: visit.redirect("/work/")),
        get("/work", lambda visit: visit.redirect("/work/")),
        get("/work/", task_pages.home),
        get("/enter", entry.enter),
        post("/work/enter", entry.enter_openly),
        get("/join/{token}", entry.join),
        post("/join/{token}", entry.join),
        get("/work/start", entry.start),
        post("/work/start", entry.complete_start, needs_form_token=False),
        post("/work/leave", entry.sign_out, needs_form_token=False),
        get("/work/withdraw", entry.withdraw),
        post("/work/withdraw", entry.confirm_withdrawal),
        get("/work/preview/{hit_id}", task_pages.preview),
        post("/work/accept", task_pages.accept),
        get("/work/next", task_pages.next_task),
        post("/work/return", task_pages.return_assignment),
        get("/work/returned", task_pages.returned),
        get("/work/history", worker_pages.history),
        get("/work/messages", worker_pages.messages),
        post("/work/messages", worker_pages.send_message),
        get("/work/qualifications", worker_pages.qualifications),
        get("/work/qualification/{type_id}", worker_pages.test),
        post("/work/qualification/{type_id}", worker_pages.request_qualification),
        Route("/mturk/externalSubmit", submissions.reject_without_token, methods=BOTH),
        Mount("/work/static", static_files()),
    ]


def _exception_handlers(
    site: Site,
) -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
    keys = {404: "error.not_found", 405: "error.method"}

    async def error_response(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return create_visit(site, request).error_page(status, keys.get(status, "error.server"))

    return {HTTPException: error_response, Exception: error_response}
