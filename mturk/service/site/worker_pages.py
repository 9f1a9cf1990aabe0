"""What concerns one worker: history, messages, and qualifications with their tests."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from mturk.question_xml import QuestionForm, read_question
from mturk.service.rules.qualification_requests import Requestable
from mturk.service.rules.work import WorkError
from mturk.service.site.question_form import Block, FormQuestion, problems, read_form
from mturk.service.site.visit import RefusedError, Visit

__all__ = ["history", "messages", "qualifications", "request_qualification", "test"]

NOTICES = {"Granted": "qualifications.granted", "Pending": "qualifications.pending"}


def history(visit: Visit) -> Response:
    """Show what the worker has submitted, what came of it, and what was earned."""
    work = visit.site.work
    return visit.page(
        "history.html", done=work.history(visit.worker), progress=work.progress(visit.worker)
    )


def messages(visit: Visit) -> Response:
    """Show what requesters have written to the worker."""
    return visit.page("messages.html", messages=visit.site.work.messages(visit.worker))


def qualifications(visit: Visit) -> Response:
    """List what can be asked for, and how the worker stands."""
    return visit.page("qualifications.html", requestable=visit.site.work.requestable(visit.worker))


def test(visit: Visit) -> Response:
    """Show a qualification's test."""
    return _test_page(visit, _asked(visit), [])


def request_qualification(visit: Visit) -> Response:
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
    question = read_question(wanted.test) if wanted.test else None
    return read_form(question.root) if isinstance(question, QuestionForm) else ()


def _test_page(visit: Visit, wanted: Requestable, wrong: list[str]) -> Response:
    return visit.page(
        "test.html", status=422 if wrong else 200, wanted=wanted, form=_form(wanted), wrong=wrong
    )
