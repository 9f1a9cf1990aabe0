"""One request to the site: who asks, with what, and how the answer looks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from mturk.service.monitoring.requests import request_id
from mturk.service.rules.work import Work
from mturk.service.site import texts
from mturk.service.site.headers import page_headers
from mturk.service.site.rate_limits import Buckets, Rates
from mturk.service.site.requirements import in_words
from mturk.service.site.sessions import Session, csrf_token
from mturk.service.site.studies import Study

__all__ = ["RefusedError", "Site", "Visit", "environment"]


class RefusedError(Exception):
    """A request that is answered with an error page; `detail` is for the log, without secrets."""

    def __init__(self, status: int, key: str, detail: str = "") -> None:
        super().__init__(detail or key)
        self.status, self.key = status, key


@functools.cache
def environment() -> Environment:
    """Return the templates: all escaped, and an unknown name is an error."""
    found = Environment(
        loader=PackageLoader("mturk.service.site"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.globals["languages"] = texts.LANGUAGES
    found.globals["request_id"] = request_id
    found.filters["clock"] = texts.clock
    found.filters["iso"] = texts.iso
    return found


class Site:
    """What every request needs: the work, the secret, the addresses, the limits."""

    def __init__(
        self, work: Work, secret: bytes, *, frame_url: str, site_url: str, open_entry: bool,
        studies: Mapping[str, Study], now: Callable[[], float], rates: Rates,
    ) -> None:  # fmt: skip
        self.work, self.secret, self.now = work, secret, now
        self.frame_url, self.site_url = frame_url, site_url
        self.open_entry, self.studies = open_entry, studies
        self.secure = site_url.startswith("https:")
        self.by_worker = Buckets(rates.worker, now=now)
        self.by_address = Buckets(rates.address, now=now)
        self.by_refusals = Buckets(rates.refusals, now=now)


@dataclass
class Visit:
    """One request; `session` may be replaced, and is then written back."""

    site: Site
    request: Request
    session: Session
    language: str
    fields: Sequence[tuple[str, str]]

    @property
    def worker(self) -> str:
        """The worker who has entered; RefusedError where nobody has."""
        if self.session.worker is None:
            raise RefusedError(401, "enter.closed", "nobody has entered")
        return self.session.worker

    @property
    def study(self) -> Study | None:
        """The study that the worker joined by link, where it is still offered."""
        return self.site.studies.get(self.session.study or "")

    @property
    def address(self) -> str:
        """Where the request comes from."""
        return self.request.client.host if self.request.client else "unknown"

    def field(self, name: str) -> str:
        """Return a field of the form; empty where it is not there."""
        return _storable(dict(self.fields).get(name, ""))

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return _storable(self.request.path_params[name])

    def t(self, key: str, **values: object) -> str:
        """Return a text in the visitor's language."""
        return texts.text(self.language, key, **values)

    def change(self, **values: Any) -> None:
        """Change the session."""
        self.session = replace(self.session, **values)

    def page(
        self, template: str, *, status: int = 200, frames: tuple[str, ...] = (), **values: Any
    ) -> HTMLResponse:
        """Render a page of the site."""
        html = environment().get_template(template).render(**self._shared(), **values)
        return HTMLResponse(html, status, headers=page_headers(*frames))

    def _shared(self) -> dict[str, Any]:
        """Return what every page is rendered with."""
        notice = self.request.query_params.get("notice", "")
        return {
            "t": self.t,
            "money": functools.partial(texts.money, self.language),
            "duration": functools.partial(texts.duration, self.language),
            "in_words": functools.partial(in_words, language=self.language),
            "language": self.language,
            "session": self.session,
            "study": self.study,
            "csrf": csrf_token(self.session, self.site.secret),
            "open_entry": self.site.open_entry,
            "here": self.request.url.path if self.request.method == "GET" else "/work/",
            "notice": self.t(notice) if notice in NOTICES else "",
        }

    def refuse(self, status: int, key: str, **values: object) -> HTMLResponse:
        """Render an error page."""
        return self.page("error.html", status=status, message=self.t(key, **values))

    def go(self, path: str, notice: str = "") -> Response:
        """Send the browser on, after a form; `notice` is the key of a text that the page shows."""
        target = f"{path}?notice={notice}" if notice else path
        return RedirectResponse(target, 303, headers=page_headers())


NOTICES = frozenset(
    {
        "working.not_yet", "working.returned", "working.received", "working.received.none",
        "qualifications.granted", "qualifications.pending",
    }
)  # fmt: skip


def _storable(text: str) -> str:
    """Return a text without U+0000, which PostgreSQL refuses even to look for."""
    return text.replace("\0", "\ufffd")
