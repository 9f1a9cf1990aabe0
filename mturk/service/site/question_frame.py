"""Question frames: the iframe in a page of the site, and the separate origin that serves its content."""

from __future__ import annotations

import functools
import html
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit, urlunsplit

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from mturk.question_xml import (
    CACHED_QUESTIONS,
    ExternalQuestion,
    HTMLQuestion,
    Question,
    QuestionForm,
    read_question,
    uses_assignment_number,
)
from mturk.service.rules.work import WorkError, WorkerService
from mturk.service.site import texts
from mturk.service.site.headers import SANDBOX, frame_headers, origin_of, static_files
from mturk.service.site.links import (
    NOT_AVAILABLE,
    LinkError,
    QuestionView,
    frame_link,
    read_frame_token,
)
from mturk.service.site.question_form import read_form
from mturk.service.site.visit import RefusedError, Site, Visit, environment
from mturk.service.threads import run_in_request_thread

log = logging.getLogger("mturk.site")
HEAD = re.compile(
    r"\ufeff?\s*(?:<!--.*?-->\s*)*(?:<!doctype[^>]*>\s*)?(?:<!--.*?-->\s*)*"
    r"(?:<html(?:\s[^>]*)?>\s*)?(?:<!--.*?-->\s*)*(?:<head(?:\s[^>]*)?>)?",
    re.IGNORECASE | re.DOTALL,
)


class QuestionPages:
    """Handlers of the question pages."""

    def __init__(
        self,
        work: WorkerService,
        secret: bytes,
        site_url: str,
        frame_url: str,
        allow_external: bool,
        image_origins: Sequence[str],
    ) -> None:
        self.work, self.secret, self.site_url, self.frame_url = work, secret, site_url, frame_url
        self.headers = frame_headers(
            site_url, frame_url, allow_external=allow_external, image_origins=image_origins
        )
        self._pages: dict[str, HTMLQuestion] = {}
        """HIT id -> page of the last assignments, which needs no thread for the database."""

    async def show(self, request: Request) -> Response:
        """Show the question of the token; the query parameters must match the token."""
        language = "en"
        try:
            view = read_frame_token(self.secret, request.path_params["token"])
            language = view.language
            parameters = view.parameters(self.site_url, self.secret)
            if any(request.query_params.get(key) != value for key, value in parameters.items()):
                raise LinkError("the query is not the token's")
            page = self._page(await self._question(view), view, parameters)
        except (LinkError, WorkError) as error:
            log.warning("question refused: %s", getattr(error, "code", error))
            return self._refusal(language)
        return HTMLResponse(page, headers=self.headers)

    async def _question(self, view: QuestionView) -> Question:
        if view.assignment_id == NOT_AVAILABLE:
            xml = await run_in_request_thread(self.work.preview, view.worker_id, view.hit_id)
            return read_question(xml)
        if page := self._pages.get(view.hit_id):
            return page
        question = read_question(await run_in_request_thread(self.work.question, view.hit_id))
        if isinstance(question, HTMLQuestion):
            self._pages[view.hit_id] = question
            if len(self._pages) > CACHED_QUESTIONS:
                del self._pages[next(iter(self._pages))]
        return question

    def _page(self, question: Question, view: QuestionView, parameters: Mapping[str, str]) -> str:
        script = _script(self.frame_url, self.site_url, parameters, view.language)
        if isinstance(question, HTMLQuestion):
            return with_script(question.html, script)
        if isinstance(question, QuestionForm):
            return environment().get_template("question_form.html").render(
                t=functools.partial(texts.text, view.language), language=view.language,
                script=Markup(script),  # noqa: S704 - `_script` escapes each value
                frame_url=self.frame_url, parameters=parameters,
                form=read_form(question.root),
            )  # fmt: skip
        raise LinkError("an ExternalQuestion is not served by the frame origin")

    def _refusal(self, language: str) -> Response:
        page = environment().get_template("frame_error.html").render(
            t=functools.partial(texts.text, language), language=language, frame_url=self.frame_url
        )  # fmt: skip
        return HTMLResponse(page, 403, headers=self.headers)


def build_frame(
    work: WorkerService,
    secret: bytes,
    *,
    site_url: str,
    frame_url: str,
    allow_external: bool = False,
    image_origins: Sequence[str] = (),
) -> Starlette:
    """Return the application of the frame origin; it uses no cookies and accepts no answers.

    image_origins: other origins from which questions may load images. With `allow_external`, questions may
    load scripts, styles and images over https from other hosts.
    """
    frames = QuestionPages(work, secret, site_url, frame_url, allow_external, image_origins)
    return Starlette(
        routes=[
            Route("/question/{token}", frames.show, methods=["GET"]),
            Mount("/static", static_files()),
        ]
    )


def with_script(page: str, script: str) -> str:
    """Insert a script before all scripts of a page.

    >>> with_script("<!DOCTYPE html><p>Hi", "<script></script>")
    '<!DOCTYPE html><script></script><p>Hi'
    """
    match = HEAD.match(page)
    position = match.end() if match else 0
    return page[:position] + script + page[position:]


def _script(frame_url: str, site_url: str, parameters: Mapping[str, str], language: str) -> str:
    """Return the element that loads frame.js, with its parameters as data attributes."""
    values = {
        "assignment": parameters["assignmentId"],
        "submit-to": parameters["turkSubmitTo"],
        "site": site_url,
        "hint": texts.text(language, "preview.hint"),
    }
    data = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in values.items())
    return f'<script src="{html.escape(frame_url)}/static/frame.js" {data}></script>'


EXTERNAL_SANDBOX = f"{SANDBOX} allow-same-origin"
"""Sandbox of a requester's own site, which has its own origin and may use cookies."""
DEFAULT_HEIGHT_PIXELS = 640


@dataclass(frozen=True, slots=True)
class QuestionFrame:
    """An iframe with a question."""

    address: str
    sandbox: str
    height: int
    """Initial height in pixels, until the question reports its own."""
    sources: tuple[str, ...]
    """Sources allowed in the frame by the page's policy: the question, and the site's response."""


def question_frame(
    visit: Visit, question_xml: str, hit_id: str, assignment_id: str, *, is_first: bool = False
) -> QuestionFrame:
    """Return the frame of a question for the visitor.

    is_first: whether it is the first task of the visitor, for which our pages show their instructions.

    Raises RefusedError for a question that was stored before its address was checked.
    """
    site = visit.site
    try:
        question = read_question(question_xml)
    except ValueError as error:
        raise RefusedError(409, "error.question", f"HIT {hit_id}: {error}") from None
    view = QuestionView(hit_id, assignment_id, visit.worker, visit.language)
    answers = f"{site.site_url}/submit/"
    if isinstance(question, ExternalQuestion):
        return QuestionFrame(
            _with_query(question.url, view.parameters(site.site_url, site.secret)),
            _sandbox(site, question.url),
            question.frame_height or DEFAULT_HEIGHT_PIXELS,
            (origin_of(question.url), answers),
        )
    address = frame_link(site.frame_url, site.site_url, site.secret, view)
    parameters = {"firstTask": "true"} if is_first else {}
    if assignment_id != NOT_AVAILABLE and uses_assignment_number(question_xml):
        parameters["assignmentNumber"] = str(site.work.assignment_number(assignment_id))
    if parameters:
        address = _with_query(address, parameters)
    height = question.frame_height if isinstance(question, HTMLQuestion) else 0
    return QuestionFrame(
        address, SANDBOX, height or DEFAULT_HEIGHT_PIXELS, (f"{site.frame_url}/", answers)
    )


def _sandbox(site: Site, url: str) -> str:
    """Return the sandbox of an external page; pages on the service's own origins get the strict one."""
    own_origins = {origin_of(site.site_url), origin_of(site.frame_url)}
    return SANDBOX if origin_of(url).lower() in own_origins else EXTERNAL_SANDBOX


def _with_query(url: str, parameters: dict[str, str]) -> str:
    """Append query parameters to an address that may have a query and a fragment.

    >>> _with_query("https://a.example/t?x=1#top", {"hitId": "3"})
    'https://a.example/t?x=1&hitId=3#top'
    """
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode(parameters))))
    return urlunsplit(parts._replace(query=query))
