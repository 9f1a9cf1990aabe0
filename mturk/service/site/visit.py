"""A request to the site, with its session, and rendering of the response."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from giccs.benchmark.languages import text_direction
from mturk.money import hourly_wage
from mturk.service.monitoring.requests import request_id
from mturk.service.rules.inquiries import Inquiries
from mturk.service.rules.participation import Participants, StudyProgress
from mturk.service.rules.work import WorkerService
from mturk.service.site import texts
from mturk.service.site.headers import page_headers
from mturk.service.site.links import own_id
from mturk.service.site.rate_limits import RateLimits, TokenBuckets
from mturk.service.site.requirements import describe_requirement
from mturk.service.site.sessions import Session, csrf_matches, csrf_token
from mturk.service.site.studies import PanelStudy


class RefusedError(Exception):
    """A request answered with an error page; `detail` is logged and must not contain secrets."""

    def __init__(self, status: int, key: str, detail: str = "") -> None:
        super().__init__(detail or key)
        self.status, self.key = status, key


@functools.cache
def environment() -> Environment:
    """Return the template environment, with autoescaping and strict undefined names."""
    templates = Environment(
        loader=PackageLoader("mturk.service.site"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    templates.globals["request_id"] = request_id
    templates.filters["clock"] = texts.clock
    templates.filters["direction"] = text_direction
    templates.filters["iso"] = texts.iso
    templates.filters["own_id"] = own_id
    return templates


class Site:
    """Context shared by all requests: worker service, secret, addresses, rate limits."""

    def __init__(
        self, work: WorkerService, secret: bytes, *, frame_url: str, site_url: str, open_entry: bool,
        studies: Mapping[str, PanelStudy], now: Callable[[], float], rates: RateLimits,
    ) -> None:  # fmt: skip
        self.work, self.secret, self.now = work, secret, now
        self.frame_url, self.site_url = frame_url, site_url
        self.open_entry, self.studies = open_entry, studies
        self.wordings = {
            name: {(one.version, one.digest) for one in study.consents()}
            for name, study in studies.items()
        }
        """Study -> version and digest of the consent in all its languages."""
        self.participants = Participants(work.database, work.clock)
        self.inquiries = Inquiries(work.database, work.clock)
        self.secure = site_url.startswith("https:")
        self.by_worker = TokenBuckets(rates.worker, now=now)
        self.by_address = TokenBuckets(rates.address, now=now)
        self.by_refusals = TokenBuckets(rates.refusals, now=now)


@dataclass
class Visit:
    """A request; a replaced `session` is written back to the cookie."""

    site: Site
    request: Request
    session: Session
    language: str
    fields: Sequence[tuple[str, str]]

    @property
    def worker(self) -> str:
        """Id of the signed-in worker; raises RefusedError if nobody is signed in."""
        if self.session.worker is None:
            raise RefusedError(401, "enter.closed", "not signed in")
        return self.session.worker

    @property
    def study(self) -> PanelStudy | None:
        """Study that the worker joined by link; None if it is no longer available."""
        return self.site.studies.get(self.session.study or "")

    @property
    def participation(self) -> int:
        """Number of the participation of the session; raises RefusedError outside studies."""
        if self.session.participation is None:
            raise RefusedError(401, "enter.closed", "the session has no participation")
        return self.session.participation

    def progress(self) -> StudyProgress:
        """Return what the participant has done in the study of the session."""
        return self.site.participants.progress(
            self.worker, self.session.study or "", self.participation,
            max_seconds=self.study.max_seconds if self.study else None,
        )  # fmt: skip

    @property
    def volunteers(self) -> bool:
        """Whether the visitor takes part, or is about to take part, in a study of volunteers."""
        pending = self.session.pending
        study = self.site.studies.get((pending.study if pending else self.session.study) or "")
        return study is not None and study.volunteers

    @property
    def address(self) -> str:
        """Address of the client."""
        return self.request.client.host if self.request.client else "unknown"

    @property
    def has_form_token(self) -> bool:
        """Whether the form belongs to the session."""
        return csrf_matches(self.session, self.site.secret, self.field("csrf"))

    def field(self, name: str) -> str:
        """Return a form field; empty if absent."""
        return _storable(dict(self.fields).get(name, ""))

    def path_parameter(self, name: str) -> str:
        """Return a path parameter."""
        return _storable(self.request.path_params[name])

    def t(self, key: str, of_volunteers: bool | None = None, /, **values: object) -> str:
        """Return a text in the visitor's language; volunteers get their own wording if there is one.

        `of_volunteers` is used instead of `volunteers` for a study that the visitor has left.
        """
        own_key = f"{key}.volunteers"
        is_own = self.volunteers if of_volunteers is None else of_volunteers
        is_own = is_own and own_key in texts.TEXTS
        return texts.text(self.language, own_key if is_own else key, **values)

    def sign_out(self) -> None:
        """Replace the session by a new one with the language and the browser's key."""
        self.session = Session(language=self.session.language, browser=self.session.browser)

    def change_session(self, **values: Any) -> None:
        """Change the session."""
        self.session = replace(self.session, **values)

    def page(
        self, template: str, *, status: int = 200, frames: tuple[str, ...] = (), **values: Any
    ) -> HTMLResponse:
        """Render a page of the site."""
        context = self._template_context() | values
        html = environment().get_template(template).render(context)
        return HTMLResponse(html, status, headers=page_headers(*frames))

    def _template_context(self) -> dict[str, Any]:
        """Return the template variables of all pages."""
        notice = self.request.query_params.get("notice", "")
        return {
            "t": self.t,
            "money": functools.partial(texts.money, self.language),
            "number": functools.partial(texts.number, self.language),
            "hourly": hourly_wage,
            "duration": functools.partial(texts.duration, self.language),
            "describe_requirement": functools.partial(describe_requirement, language=self.language),
            "language": self.language,
            "languages": texts.languages(),
            "now": self.site.now(),
            "session": self.session,
            "study": self.study,
            "volunteers": self.volunteers,
            "csrf": csrf_token(self.session, self.site.secret),
            "open_entry": self.site.open_entry,
            "here": self.request.url.path if self.request.method == "GET" else "/work/",
            "notice": self.t(notice) if notice in NOTICES else "",
        }

    def error_page(self, status: int, key: str, **values: Any) -> HTMLResponse:
        """Render an error page."""
        return self.page(
            "error.html", status=status, title=texts.error_title(self.language, status),
            message=self.t(key, **values),
        )  # fmt: skip

    def redirect(self, path: str, notice: str = "") -> Response:
        """Redirect after a form; `notice` is the key of a text shown on the target page."""
        target = f"{path}?notice={notice}" if notice else path
        return RedirectResponse(target, 303, headers=page_headers())


NOTICES = frozenset(
    {
        "working.expired", "working.not_yet", "working.returned", "working.received", "working.received.none",
        "qualifications.granted", "qualifications.pending", "messages.sent",
    }
)  # fmt: skip


def _storable(text: str) -> str:
    """Replace U+0000, which PostgreSQL does not accept in queries."""
    return text.replace("\0", "\ufffd")
