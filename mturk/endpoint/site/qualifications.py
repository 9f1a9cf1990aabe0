"""Asking for a qualification, with its test where it has one."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from mturk.endpoint.qualifying import Requestable
from mturk.endpoint.site.question_form import Block, FormQuestion, problems, read_form
from mturk.endpoint.site.visit import RefusedError, Visit
from mturk.endpoint.work import WorkError
from mturk.question_xml import QuestionForm, read

__all__ = ["overview", "request", "test"]

NOTICES = {"Granted": "qualifications.granted", "Pending": "qualifications.pending"}


def overview(visit: Visit) -> Response:
    """List what can be asked for, and how the worker stands."""
    return visit.page("qualifications.html", requestable=visit.site.work.requestable(visit.worker))


def test(visit: Visit) -> Response:
    """Show a qualification's test."""
    return _test_page(visit, _asked(visit), [])


def request(visit: Visit) -> Response:
    """Ask for a qualification; a test must be answered as it wants."""
    wanted = _asked(visit)
    answers = [(name, value) for name, value in visit.fields if name != "csrf"]
    wrong = problems(_form(wanted), answers, visit.language)
    if wrong:
        return _test_page(visit, wanted, wrong)
    try:
        outcome = visit.site.work.request_qualification(
            visit.worker, wanted.qualification_type_id, answers
        )
    except WorkError as error:
        raise RefusedError(409, "qualifications.no", error.text) from None
    return visit.go("/work/qualifications", NOTICES[outcome])


def _asked(visit: Visit) -> Requestable:
    found = visit.site.work.requestable(visit.worker)
    for one in found:
        if one.qualification_type_id == visit.part("type_id"):
            return one
    raise RefusedError(404, "error.not_found", "no such qualification type")


def _form(wanted: Requestable) -> Sequence[Block | FormQuestion]:
    question = read(wanted.test) if wanted.test else None
    return read_form(question.root) if isinstance(question, QuestionForm) else ()


def _test_page(visit: Visit, wanted: Requestable, wrong: list[str]) -> Response:
    return visit.page(
        "test.html", status=422 if wrong else 200, wanted=wanted, form=_form(wanted), wrong=wrong
    )
