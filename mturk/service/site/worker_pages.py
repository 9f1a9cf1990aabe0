"""Pages of a worker: history, messages, qualifications and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from mturk.question_xml import QuestionForm, read_question
from mturk.service.rules.inquiries import MAX_PER_HOUR, MAX_SUBJECT_CHARACTERS, MAX_TEXT_CHARACTERS
from mturk.service.rules.qualification_requests import RequestableQualification
from mturk.service.rules.work import WorkError
from mturk.service.site.question_form import Block, FormQuestion, find_problems, read_form
from mturk.service.site.visit import RefusedError, Visit

NOTICES = {"Granted": "qualifications.granted", "Pending": "qualifications.pending"}


def history(visit: Visit) -> Response:
    """Show the worker's submissions, their status and the earnings."""
    work, study = visit.site.work, visit.session.study
    return visit.page(
        "history.html",
        done=work.history(visit.worker, study),
        progress=work.progress(visit.worker, study),
    )


def messages(visit: Visit) -> Response:
    """Show the messages of requesters to the worker, and a form to write to them."""
    return _messages_page(visit, {})


def send_message(visit: Visit) -> Response:
    """Store a message to the requester; if it is refused, show the form with the typed text."""
    worker = visit.worker
    subject = " ".join(visit.field("subject").split())
    text = visit.field("text").replace("\r\n", "\n").strip()
    problems = {
        name: visit.t("messages.bad", n=limit)
        for name, typed, limit in (
            ("subject", subject, MAX_SUBJECT_CHARACTERS),
            ("text", text, MAX_TEXT_CHARACTERS),
        )
        if not 0 < len(typed) <= limit
    }
    if not problems and not visit.site.inquiries.send(worker, visit.session.study, subject, text):
        problems = {"text": visit.t("messages.often", n=MAX_PER_HOUR)}
    if problems:
        return _messages_page(visit, problems, subject, text)
    return visit.redirect("/work/messages", "messages.sent")


def _messages_page(
    visit: Visit, problems: Mapping[str, str], subject: str = "", text: str = ""
) -> Response:
    return visit.page(
        "messages.html",
        status=422 if problems else 200,
        messages=visit.site.work.messages(visit.worker, _confined_study(visit)),
        problems=problems,
        typed={"subject": subject, "text": text},
        limits={"subject": MAX_SUBJECT_CHARACTERS, "text": MAX_TEXT_CHARACTERS},
    )


def _confined_study(visit: Visit) -> str | None:
    """Return the study to which the session is confined: its entry proves nothing about work elsewhere."""
    study, participants = visit.session.study, visit.site.participants
    if study is None or participants.is_known_everywhere(
        visit.worker, study, visit.session.browser
    ):
        return None
    return study


def qualifications(visit: Visit) -> Response:
    """List the qualifications that the worker can request or has."""
    return visit.page("qualifications.html", requestable=_requestable(visit))


def _requestable(visit: Visit) -> list[RequestableQualification]:
    return [] if _confined_study(visit) else visit.site.work.requestable(visit.worker)


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
    for qualification in _requestable(visit):
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
