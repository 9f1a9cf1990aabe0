"""The worker site as one application: its addresses and what answers them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from mturk.service.rules.work import Work
from mturk.service.site import entry, task_pages, worker_pages
from mturk.service.site.headers import origin_of, static_files
from mturk.service.site.rate_limits import Rates
from mturk.service.site.request_handling import Handler, answering, visit_of
from mturk.service.site.studies import Study
from mturk.service.site.submission import Submissions
from mturk.service.site.visit import Site

__all__ = ["build_site"]


def build_site(
    work: Work, secret: bytes, *, frame_url: str, site_url: str, open_entry: bool,
    studies: Sequence[Study] = (), now: Callable[[], float] = time.time, rates: Rates | None = None,
) -> Starlette:  # fmt: skip
    """Return the worker site.

    `frame_url` and `site_url` are origins as browsers see them (``https://work.example.org``), without a
    path. With `open_entry` anybody enters as any worker: for rehearsals on one's own machine only.
    Raises ValueError where an address is no origin, both are the same, or two studies share a name.
    """
    for name, url in (("site_url", site_url), ("frame_url", frame_url)):
        if url != origin_of(url):
            raise ValueError(f"{name} is {url!r}; scheme, host and port without a path are allowed")
    if site_url == frame_url:
        raise ValueError(f"site_url and frame_url are both {site_url!r}; they must be two origins")
    named = {study.name: study for study in studies}
    if len(named) < len(studies):
        raise ValueError("two studies have the same name; each needs its own")
    site = Site(
        work, secret, frame_url=frame_url, site_url=site_url, open_entry=open_entry, studies=named,
        now=now, rates=rates or Rates(),
    )  # fmt: skip
    return Starlette(routes=_routes(site), exception_handlers=_errors(site))


def _routes(site: Site) -> list[Route | Mount]:
    def get(path: str, handler: Handler) -> Route:
        return Route(path, answering(site, handler), methods=["GET"])

    def post(path: str, handler: Handler) -> Route:
        return Route(path, answering(site, handler), methods=["POST"])

    submissions = Submissions(site)
    return [
        get("/", lambda visit: visit.go("/work/")),
        get("/work", lambda visit: visit.go("/work/")),
        get("/work/", task_pages.home),
        get("/enter", entry.enter),
        post("/work/enter", entry.enter_openly),
        get("/join/{token}", entry.join),
        get("/work/start", entry.start),
        post("/work/start", entry.begin),
        post("/work/leave", entry.leave),
        get("/work/preview/{hit_id}", task_pages.preview),
        post("/work/accept", task_pages.accept),
        get("/work/next", task_pages.next_task),
        get("/work/assignment/{assignment_id}", task_pages.show),
        post("/work/return", task_pages.give_back),
        get("/work/returned", task_pages.returned),
        post("/work/continue", task_pages.after),
        get("/work/history", worker_pages.history),
        get("/work/messages", worker_pages.messages),
        get("/work/qualifications", worker_pages.qualifications),
        get("/work/qualification/{type_id}", worker_pages.test),
        post("/work/qualification/{type_id}", worker_pages.request_qualification),
        Route("/submit/preview/mturk/externalSubmit", submissions.preview, methods=["POST"]),
        Route("/submit/{token}/mturk/externalSubmit", submissions.take, methods=["POST"]),
        Route("/mturk/externalSubmit", submissions.without_token, methods=["POST"]),
        Mount("/work/static", static_files()),
    ]


def _errors(site: Site) -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
    keys = {404: "error.not_found", 405: "error.method"}

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return visit_of(site, request).refuse(status, keys.get(status, "error.server"))

    return {HTTPException: refused, Exception: refused}
