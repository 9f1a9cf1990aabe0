"""Pages of a worker: history, messages, qualifications and tests."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from mturk.question_xml import QuestionForm, read_question
from mturk.service.rules.qualification_requests import RequestableQualification
from mturk.service.rules.work import WorkError
from mturk.service.site.question_form import Block, FormQuestion, find_problems, read_form
from mturk.service.site.visit import RefusedError, Visit

__all__ = ["history", "messages", "qualifications", "request_qualification", "test"]

NOTICES = {"Granted": "qualifications.granted", "Pending": "qualifications.pending"}


def history(visit: Visit) -> Response:
    """Show the worker's submissions, their status and the earnings."""
    work = visit.site.work
    return visit.page(
        "history.html", done=work.history(visit.worker), progress=work.progress(visit.worker)
    )


def messages(visit: Visit) -> Response:
    """Show the messages of requesters to the worker."""
    return visit.page("messages.html", messages=visit.site.work.messages(visit.worker))


def qualifications(visit: Visit) -> Response:
    """List the qualifications that the worker can request or has."""
    return visit.page("qualifications.html", requestable=visit.site.work.requestable(visit.worker))


def test(visit: Visit) -> Response:
    """Show a qualification's test."""
    return _test_page(visit, _requested_qualification(visit), [])


def request_qualification(visit: Visit) -> Response:
    """Request a qualification; answers to a test are validated first."""
    qualification = _requested_qualification(visit)
    answers = [(name, value) for name, value in visit.fields if name != "csrf"]
    form_problems = find_problems(_form(qualification), answers, visit.language)
    if form_problems:
        return _test_page(visit, qualification, form_problems)
    try:
        outcome = visit.site.work.request_qualification(
            visit.worker, qualification.qualification_type_id, answers
        )
    except WorkError as error:
        raise RefusedError(409, "qualifications.no", error.text) from None
    return visit.redirect("/work/qualifications", NOTICES[outcome])


def _requested_qualification(visit: Visit) -> RequestableQualification:
    requestable = visit.site.work.requestable(visit.worker)
    for qualification in requestable:
        if qualification.qualification_type_id == visit.path_parameter("type_id"):
            return qualification
    raise RefusedError(404, "error.not_found", "no such qualification type")


def _form(qualification: RequestableQualification) -> Sequence[Block | FormQuestion]:
    question = read_question(qualification.test) if qualification.test else None
    return read_form(question.root) if isinstance(question, QuestionForm) else ()


def _test_page(
    visit: Visit, qualification: RequestableQualification, form_problems: list[str]
) -> Response:
    return visit.page(
        "test.html",
        status=422 if form_problems else 200,
        qualification=qualification,
        form=_form(qualification),
        form_problems=form_problems,
    )
