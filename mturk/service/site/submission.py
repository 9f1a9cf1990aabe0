"""What comes back from a question's form: taken once, or refused with what is wrong."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mturk import answers, kinds
from mturk.question_xml import HTMLQuestion, QuestionForm, read_question
from mturk.service.monitoring.requests import note
from mturk.service.rules.work import WorkError
from mturk.service.site import texts
from mturk.service.site.headers import answer_headers
from mturk.service.site.links import LinkError, read_submit_token
from mturk.service.site.question_form import problems, read_form
from mturk.service.site.request_handling import BodyError, read_fields
from mturk.service.site.visit import Site, environment

__all__ = ["Submissions"]

log = logging.getLogger("mturk.site")
Fields = Sequence[tuple[str, str]]


class Submissions:
    """The endpoints to which forms in question frames post; a token in the address authenticates."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def take(self, request: Request) -> Response:
        """Take the answer of the assignment that the token names."""
        language = texts.choose_language(request.headers.get("accept-language", ""))
        try:
            token = request.path_params["token"]
            assignment_id, worker_id, language = read_submit_token(self.site.secret, token)
        except LinkError as error:
            return self._refused_token(request, language, error)
        seconds = self.site.by_worker.wait(worker_id)
        if seconds:
            return self._often(language, seconds)
        try:
            fields = await read_fields(request)
        except BodyError as error:
            return self._refuse(language, error.status, error.key)
        return await run_in_threadpool(self._take, language, assignment_id, worker_id, fields)

    async def preview(self, request: Request) -> Response:
        """Refuse what a preview's form sends."""
        language = texts.choose_language(request.headers.get("accept-language", ""))
        return self._refuse(language, 403, "error.preview")

    async def without_token(self, request: Request) -> Response:
        """Refuse what is sent to Mechanical Turk's old address: nobody knows whose it is."""
        language = texts.choose_language(request.headers.get("accept-language", ""))
        return self._refuse(language, 403, "error.no_token")

    def _take(self, language: str, assignment_id: str, worker_id: str, fields: Fields) -> Response:
        given = [value for name, value in fields if name == "assignmentId"]
        if any(value != assignment_id for value in given):
            log.warning("answer refused: assignmentId is not the token's")
            return self._refuse(language, 403, "error.link")
        kept = [(name, value) for name, value in fields if name != "assignmentId"]
        try:
            mine = self.site.work.assignment(assignment_id)
            if mine.status == "Accepted":
                wrong, whose = _problems(mine.question, kept, language)
                if wrong:
                    return self._page(language, 422, "wrong", problems=wrong, problems_in=whose)
            first = self.site.work.submit(assignment_id, worker_id, kept)
        except WorkError as error:
            log.warning("answer refused: %s", error.code)
            status = 403 if error.code == "NotYours" else 410
            return self._refuse(language, status, f"error.{error.code}")
        return self._page(language, 200, "done" if first else "again")

    def _refused_token(self, request: Request, language: str, error: LinkError) -> Response:
        address = request.client.host if request.client else "unknown"
        log.warning("answer refused: %s", error)
        seconds = self.site.by_refusals.wait(address)
        return (
            self._often(language, seconds) if seconds else self._refuse(language, 403, "error.link")
        )

    def _often(self, language: str, seconds: int) -> Response:
        response = self._refuse(language, 429, "error.often", n=seconds)
        response.headers["Retry-After"] = str(seconds)
        return response

    def _refuse(self, language: str, status: int, key: str, **values: object) -> Response:
        message = texts.text(language, key, **values)
        return self._page(language, status, "refused", message=message)

    def _page(self, language: str, status: int, outcome: str, **values: object) -> Response:
        note(outcome=outcome)
        page = environment().get_template("answer.html").render(
            t=functools.partial(texts.text, language), language=language, outcome=outcome,
            site_url=self.site.site_url, **values,
        )  # fmt: skip
        return HTMLResponse(page, status, headers=answer_headers(self.site.site_url))


def _problems(question_xml: str, fields: Fields, language: str) -> tuple[list[str], str]:
    """Return what keeps the fields from being an answer, and the language that says it."""
    question = read_question(question_xml)
    if isinstance(question, HTMLQuestion):
        return kinds.find_problems(answers.expected_tuples_in_page(question.html), fields), "en"
    if isinstance(question, QuestionForm):
        return problems(read_form(question.root), fields, language), language
    return [], language
