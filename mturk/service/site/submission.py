"""Submissions of question forms: accepted once, or refused with an error page."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mturk import answers, kinds
from mturk.question_xml import (
    HTMLQuestion,
    Question,
    QuestionForm,
    read_question,
    selection_questions,
)
from mturk.service.monitoring.requests import annotate_request
from mturk.service.rules.work import WorkError
from mturk.service.site import texts
from mturk.service.site.headers import answer_headers
from mturk.service.site.links import LinkError, read_submit_token
from mturk.service.site.question_form import find_problems, read_form
from mturk.service.site.request_handling import MAX_FIELDS, BodyError, read_fields
from mturk.service.site.visit import Site, environment
from mturk.service.threads import run_in_request_thread

log = logging.getLogger("mturk.site")
Fields = Sequence[tuple[str, str]]
CACHED_PAGES = 64
"""Languages times outcomes."""


class Submissions:
    """Endpoints for the forms in question frames, authenticated by the token in the address."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def submit(self, request: Request) -> Response:
        """Submit the answer of the token's assignment.

        A form is sent by POST. Survey platforms end with a redirect, that is by GET: it must contain
        assignmentId, and no browser that only prefetches the address, and no HEAD, submits anything.
        """
        try:
            token = request.path_params["token"]
            assignment_id, worker_id, language = read_submit_token(self.site.secret, token)
        except LinkError as error:
            return self._refused_token(request, error)
        seconds = self.site.by_worker.wait(worker_id)
        if seconds:
            return self._too_many_requests(language, seconds)
        try:
            fields = await _read_answer(request)
        except BodyError as error:
            return self._refuse(language, error.status, error.key)
        return await run_in_request_thread(self._submit, language, assignment_id, worker_id, fields)

    async def reject_preview(self, request: Request) -> Response:
        """Refuse submissions from a preview."""
        language = texts.choose_language(request.headers.get("accept-language", ""))
        return self._refuse(language, 403, "error.preview")

    async def reject_without_token(self, request: Request) -> Response:
        """Refuse submissions to Mechanical Turk's fixed address, which contains no token."""
        language = texts.choose_language(request.headers.get("accept-language", ""))
        return self._refuse(language, 403, "error.no_token")

    def _submit(
        self, language: str, assignment_id: str, worker_id: str, fields: Fields
    ) -> Response:
        assignment_ids = [value for name, value in fields if name == "assignmentId"]
        if any(value != assignment_id for value in assignment_ids):
            log.warning("answer refused: assignmentId does not match the token")
            return self._refuse(language, 403, "error.link")
        answer_fields = [(name, value) for name, value in fields if name != "assignmentId"]
        try:
            assignment = self.site.work.assignment(assignment_id)
            question = read_question(assignment.question)
            if assignment.status == "Accepted":
                answer_problems, problems_language = _answer_problems(
                    question, answer_fields, language
                )
                if answer_problems:
                    return self._page(
                        language,
                        422,
                        "wrong",
                        problems=answer_problems,
                        problems_in=problems_language,
                    )
            selections = selection_questions(question)
            is_new = self.site.work.submit(assignment_id, worker_id, answer_fields, selections)
        except WorkError as error:
            log.warning("answer refused: %s", error.code)
            status = 403 if error.code == "NotYours" else 410
            return self._refuse(language, status, f"error.{error.code}")
        return self._page(language, 200, "done" if is_new else "again")

    def _refused_token(self, request: Request, error: LinkError) -> Response:
        language = texts.choose_language(request.headers.get("accept-language", ""))
        address = request.client.host if request.client else "unknown"
        log.warning("answer refused: %s", error)
        seconds = self.site.by_refusals.wait(address)
        return (
            self._too_many_requests(language, seconds)
            if seconds
            else self._refuse(language, 403, "error.link")
        )

    def _too_many_requests(self, language: str, seconds: int) -> Response:
        response = self._refuse(language, 429, "error.often", n=seconds)
        response.headers["Retry-After"] = str(seconds)
        return response

    def _refuse(self, language: str, status: int, key: str, **values: object) -> Response:
        message = texts.text(language, key, **values)
        return self._page(language, status, "refused", message=message)

    def _page(self, language: str, status: int, outcome: str, **values: object) -> Response:
        annotate_request(outcome=outcome)
        site_url = self.site.site_url
        page = (_render if values else _rendered)(language, outcome, site_url, **values)
        return HTMLResponse(page, status, headers=answer_headers(site_url))


def _render(language: str, outcome: str, site_url: str, **values: object) -> str:
    template = environment().get_template("answer.html")
    t = functools.partial(texts.text, language)
    return template.render(t=t, language=language, outcome=outcome, site_url=site_url, **values)


_rendered = functools.lru_cache(CACHED_PAGES)(_render)
"""Pages without values: those of accepted answers."""


async def _read_answer(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form, or of a redirect; raise BodyError."""
    if request.method == "POST":
        return await read_fields(request)
    fields = request.query_params.multi_items()
    is_prefetch = "prefetch" in request.headers.get(
        "sec-purpose", request.headers.get("purpose", "")
    )
    if request.method != "GET" or is_prefetch or "assignmentId" not in dict(fields):
        raise BodyError(405, "error.get")
    if len(fields) > MAX_FIELDS:
        raise BodyError(413, "error.too_large")
    return fields


def _answer_problems(question: Question, fields: Fields, language: str) -> tuple[list[str], str]:
    """Return the problems of the submitted fields, and the language of their texts."""
    if isinstance(question, HTMLQuestion):
        return kinds.find_problems(answers.expected_tuples_in_page(question.html), fields), "en"
    if isinstance(question, QuestionForm):
        return find_problems(read_form(question.root), fields, language), language
    return [], language
