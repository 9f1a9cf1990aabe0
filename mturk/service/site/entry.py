"""Sign-in of workers: open entry in dry runs, personal links, and recruiting links of studies."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row
from starlette.responses import Response

from mturk.catalogues import best_language
from mturk.limits import RECRUITED_PREFIX, WORKER_ID
from mturk.service.rules.admission import Entry, StudyRules
from mturk.service.rules.ends import (
    CLOSED,
    LEFT,
    NO_CONSENT,
    SCREENED_OUT,
    WITHDRAWN,
    WITHOUT_TASKS,
)
from mturk.service.rules.participation import Consent
from mturk.service.rules.work import WorkError
from mturk.service.site import texts
from mturk.service.site.countries import countries, country_names
from mturk.service.site.links import (
    ClosedLinkError,
    LinkError,
    panel_id,
    read_study_token,
    read_worker_token,
    recruited_worker,
)
from mturk.service.site.remaining_work import has_finished
from mturk.service.site.sessions import Session, new_nonce
from mturk.service.site.studies import PanelStudy
from mturk.service.site.visit import RefusedError, Visit

log = logging.getLogger("mturk.site")
ID_CODES = ("Bound", "Taken", "Spelling")
"""Codes of WorkError for an id of somebody else."""


def enter_page(visit: Visit) -> Response:
    """Show the sign-in page."""
    return visit.page("enter.html", bad=False, entered="")


def enter_openly(visit: Visit) -> Response:
    """Sign in as any worker, if open entry is enabled for a dry run."""
    if not visit.site.open_entry:
        raise RefusedError(403, "enter.closed", "open entry is off")
    worker = visit.field("worker").strip()
    if not WORKER_ID.fullmatch(worker):
        return visit.page("enter.html", status=422, bad=True, entered=worker)
    entry = Entry(worker)
    if not _requested_fields(visit, entry):  # the form has confirmed the entry
        return _complete_entry(visit, entry, ())
    return _start_entry(visit, entry)


def enter(visit: Visit) -> Response:
    """Sign in by a personal link."""
    token = visit.request.query_params.get("token", "")
    worker = read_worker_token(visit.site.secret, token, visit.site.now())
    if visit.site.participants.is_revoked(token):
        raise LinkError("the link was revoked")
    return _start_entry(visit, Entry(worker))


def join(visit: Visit) -> Response:
    """Sign in by a study's recruiting link; the panel passes the participant in the query."""
    try:
        study = _study_of_link(visit, visit.path_parameter("token"))
    except ClosedLinkError as error:
        if visit.session.worker is not None and visit.session.study == error.study:
            return visit.redirect("/work/next")
        raise
    if study.volunteers and "PROLIFIC_PID" not in visit.request.query_params:
        return _join_as_volunteer(visit, study)
    parameters = study.panel_parameters(visit.request.query_params, visit.site.site_url)
    worker = recruited_worker(parameters.get("PROLIFIC_PID", ""))
    panel_ids = [panel_id(parameters, key) for key in ("STUDY_ID", "SESSION_ID")]
    return _start_entry(
        visit, Entry(worker, study.name, *panel_ids, is_signed=bool(study.prolific_keys))
    )


def _study_of_link(visit: Visit, token: str) -> PanelStudy:
    """Return the study of a recruiting link; raise LinkError."""
    name = read_study_token(visit.site.secret, token, visit.site.now())
    if visit.site.participants.is_revoked(token):
        raise ClosedLinkError(name, "the link was revoked")
    if name not in visit.site.studies:
        raise ClosedLinkError(name, "the study is not available")
    return visit.site.studies[name]


def _join_as_volunteer(visit: Visit, study: PanelStudy) -> Response:
    """Ask volunteers for an id of their choice; an id that is in use needs the browser of its first entry."""
    if visit.session.worker is not None and visit.session.study == study.name:
        has_declined = visit.progress().outcome == NO_CONSENT
        return ask_again(visit) if has_declined else visit.redirect("/work/next")
    if visit.request.method == "GET":
        return visit.page("join.html", joined_study=study, entered="", problem="")
    worker = visit.field("worker").strip()
    if not WORKER_ID.fullmatch(worker) or worker.upper().startswith(RECRUITED_PREFIX):
        problem = "join.bad"
    else:
        try:
            return _start_entry(visit, Entry(worker, study.name, is_chosen=True))
        except WorkError as error:
            if error.code not in ID_CODES:
                raise
            visit.change_session(pending=None)
            problem = "join.taken"
    return visit.page("join.html", status=422, joined_study=study, entered=worker, problem=problem)


def _start_entry(visit: Visit, entry: Entry) -> Response:
    """Go to the start page, which confirms the entry, unless this worker is signed in."""
    is_same = visit.session.worker == entry.worker and visit.session.study == entry.study
    if is_same and entry.study is None:
        return visit.redirect("/work/")
    # A worker who is signed in remains so until the entry is confirmed: links can come from anybody.
    signed_in = visit.session
    visit.change_session(pending=entry)
    known = _find(visit, entry)
    if (
        is_same
        and known is not None
        and known.number == signed_in.participation
        and known.outcome != NO_CONSENT
    ):
        visit.session = signed_in
        return visit.redirect("/work/next")
    return visit.redirect("/work/start")


def start(visit: Visit) -> Response:
    """Show the start page, which asks for the country and, in a study, for consent."""
    entry = visit.session.pending
    if entry is None:
        return visit.redirect("/work/")
    return _start_page(visit, entry, _requested_fields(visit, entry), [])


def complete_start(visit: Visit) -> Response:
    """Process the start page's form and complete the sign-in.

    Who declines is not signed in, also if another tab or browser of the same person has consented.
    """
    entry, declines = visit.session.pending, visit.field("decline") == "yes"
    if not visit.has_form_token:
        if declines and visit.session.study is not None:  # another tab has consented
            return visit.redirect("/work/withdraw")
        raise RefusedError(403, "error.csrf", "form token missing or wrong")
    if entry is None:
        return visit.redirect("/work/")
    if declines and entry.study is not None:
        known = _find(visit, entry)  # proves the id
        if known is None or not _is_over(known):
            return _decline(visit, entry, visit.site.studies[entry.study], known)
    requested = _requested_fields(visit, entry)
    missing = [name for name in requested if not _is_answered(visit, entry, name)]
    if missing:
        return _start_page(visit, entry, requested, missing)
    return _complete_entry(visit, entry, requested)


def ended_page(visit: Visit, study: PanelStudy | None, end: str, *, submitted: bool) -> Response:
    """Show how a participation ended, with the code of the end if there is one.

    `study` is None if it is no longer available, and with it its codes.
    """
    code = study.code(end, submitted=submitted) if study else ""
    address = study.completion_url(end, submitted=submitted) if study and code else ""
    return visit.page(
        "ended.html", end=end, submitted=submitted, code=code, address=address,
        of_volunteers=study is not None and study.volunteers,
    )  # fmt: skip


def _decline(visit: Visit, entry: Entry, study: PanelStudy, known: Row[Any] | None) -> Response:
    """End the participation of those who do not consent; nothing about new participants is stored.

    The page can be loaded again: the cookie keeps the entry. Who has submitted tasks remains signed in, to
    write messages.
    """
    n_submitted = visit.site.participants.decline(entry.worker, study.name)
    if n_submitted and known is not None:
        session = Session(
            worker=entry.worker, study=entry.study, participation=known.number,
            browser=visit.session.browser, language=visit.session.language,
        )  # fmt: skip
        visit.site.participants.resume(session.nonce, entry.worker, known.number)
        visit.session = session
        return visit.redirect("/work/next")
    return ended_page(visit, study, NO_CONSENT, submitted=n_submitted > 0)


def withdraw(visit: Visit) -> Response:
    """Show what a withdrawal from the study deletes and what it keeps."""
    if visit.worker and visit.session.study is None:
        return visit.redirect("/work/")
    if visit.progress().outcome == WITHDRAWN:
        return visit.redirect("/work/next")
    return visit.page("withdraw.html")


def confirm_withdrawal(visit: Visit) -> Response:
    """Withdraw the participant from the study; a new session shows the end and messages only."""
    worker, study, number = visit.worker, visit.session.study, visit.session.participation
    if study is None or number is None:
        return visit.redirect("/work/")
    visit.site.participants.withdraw(worker, study)
    visit.change_session(nonce=new_nonce())
    visit.site.participants.resume(visit.session.nonce, worker, number)
    return visit.redirect("/work/next")


def _complete_entry(visit: Visit, entry: Entry, requested: Sequence[str]) -> Response:
    """Begin a session of the worker and end that of a previous one in this browser."""
    study = visit.site.studies.get(entry.study or "")
    answers = _answers(visit, study, requested)
    # A new nonce invalidates forms of a previous user of this browser.
    session = Session(
        worker=entry.worker, study=entry.study, browser=visit.session.browser,
        language=visit.session.language, automatic=entry.study is not None,
    )  # fmt: skip
    number = visit.site.participants.enter(
        entry, session.nonce, session.browser, _study_rules(visit, entry),
        country=visit.field("country") if "country" in requested else None,
        agreed=_shown_consent(visit, study) if study and "consent" in requested else None,
        answers=answers,
        outcome=None if study is None or _are_accepted(study, answers) else SCREENED_OUT,
    )  # fmt: skip
    if visit.session.worker is not None:
        visit.site.participants.leave(visit.session.nonce)
    visit.session = replace(session, participation=number)
    return visit.redirect("/work/next" if entry.study else "/work/")


def _find(visit: Visit, entry: Entry) -> Row[Any] | None:
    """Return the participation that an entry continues, or None; raise WorkError if it is refused."""
    if entry.study is None:
        return None
    rules = _study_rules(visit, entry)
    return visit.site.participants.find(entry, visit.session.browser, rules)


def _study_rules(visit: Visit, entry: Entry) -> StudyRules:
    if entry.study is None:
        return StudyRules()
    if entry.study not in visit.site.studies:
        raise ClosedLinkError(entry.study, "the study is not available")
    return visit.site.studies[entry.study].rules


def _requested_fields(visit: Visit, entry: Entry) -> list[str]:
    """Return what the start page asks for: consent, country, and names of fields of questions."""
    if entry.study is None:
        return [] if visit.site.work.country(entry.worker) is not None else ["country"]
    known = _find(visit, entry)  # proves the id
    study = visit.site.studies[entry.study]
    if known is None:
        fields = [question.field_name for question in study.questions]
        return ["consent", *(["country"] if study.country else []), *fields]
    if _is_over(known) or _has_finished(visit, entry, study, known.number):
        return []
    is_asked = known.outcome == NO_CONSENT or not has_consented(visit, study.name, known.number)
    return ["consent"] if is_asked else []


def _is_over(known: Row[Any]) -> bool:
    """Return whether a participation has ended in a way that the consent does not change."""
    return known.completed is not None or known.outcome in WITHOUT_TASKS


def _has_finished(visit: Visit, entry: Entry, study: PanelStudy, number: int) -> bool:
    """Return whether everything is submitted, although the code was not shown yet."""
    progress = visit.site.participants.progress(
        entry.worker, study.name, number, max_seconds=study.max_seconds
    )
    return has_finished(visit, study, entry.worker, progress)


def has_consented(visit: Visit, study: str | None, participation: int) -> bool:
    """Return whether the last consent in a participation is to the present information of the study."""
    wordings = visit.site.wordings[study or ""]
    return visit.site.participants.last_consent(participation) in wordings


def ask_again(visit: Visit) -> Response:
    """Go to the start page, which asks the signed-in participant for consent to changed information."""
    visit.change_session(pending=visit.site.participants.entry(visit.participation))
    return visit.redirect("/work/start")


def _is_answered(visit: Visit, entry: Entry, name: str) -> bool:
    """Return whether a field of the start page has a valid answer."""
    if name == "country":
        return visit.field("country") in country_names(visit.language)
    study = visit.site.studies[entry.study or ""]
    if name == "consent":
        return visit.field("consent") == "yes" and _shown_consent(visit, study) is not None
    questions = {one.field_name: one for one in study.questions}
    return questions[name].is_valid(visit.field(name).strip())


def _shown_consent(visit: Visit, study: PanelStudy) -> Consent | None:
    """Return the wording that the form showed, in whichever language; None if it has changed since."""
    digest = visit.field("wording")
    if not digest:
        return study.consent(visit.language)
    return next((one for one in study.consents() if one.digest == digest), None)


def _answers(visit: Visit, study: PanelStudy | None, requested: Sequence[str]) -> dict[str, str]:
    """Return question id -> answer of the questions that were asked."""
    questions = study.questions if study else ()
    return {
        question.id: visit.field(question.field_name).strip()
        for question in questions
        if question.field_name in requested
    }


def _are_accepted(study: PanelStudy, answers: Mapping[str, str]) -> bool:
    return all(
        question.is_accepted(answers[question.id])
        for question in study.questions
        if question.id in answers
    )


def _start_page(
    visit: Visit, entry: Entry, requested: Sequence[str], missing: Sequence[str]
) -> Response:
    study = visit.site.studies.get(entry.study or "")
    questions = study.questions if study else ()
    shown_languages = texts.languages()
    if study:
        visit.language = study.consent_language(visit.language)
        shown_languages = _switch(study)
    return visit.page(
        "start.html", status=422 if missing else 200, requested=requested, missing=missing, entry=entry,
        languages=shown_languages, wording=study.consent(visit.language).digest if study else "",
        countries=countries(visit.language), chosen=visit.field("country"),
        consented=visit.field("consent") == "yes" and "consent" not in missing, entered_study=study,
        minutes=_expected_minutes(visit, entry, study) if requested else None,
        paragraphs=study.paragraphs(visit.language) if study else [],
        information=texts.text(visit.language, study.information_key if study else "start.information"),
        questions=[question for question in questions if question.field_name in requested],
        given={question.field_name: visit.field(question.field_name) for question in questions},
    )  # fmt: skip


def _switch(study: PanelStudy) -> Mapping[str, str]:
    """Return the languages of the site in which the start page of a study can be shown."""
    tags = [best_language([language], texts.languages()) for language in study.consent_languages]
    return {tag: texts.languages()[tag] for tag in tags if tag}


def _expected_minutes(visit: Visit, entry: Entry, study: PanelStudy | None) -> int | None:
    """Return the expected time of a study with a fixed number of HITs whose pages state theirs."""
    if study is None or study.hits is None:
        return None
    offers = visit.site.work.offers(entry.worker, limit=1000)
    hit_ids = [one.sample_hit_id for one in offers if study.group_id in (None, one.group_id)]
    seconds = visit.site.work.expected_seconds(hit_ids)
    if not seconds or len(seconds) < len(hit_ids):
        return None
    minutes = math.ceil(study.hits * max(seconds.values()) / 60)
    if study.minutes is not None and study.minutes < minutes:
        _log_short_time(study.name, study.minutes, minutes)
    return minutes


@functools.cache
def _log_short_time(study: str, available: int, expected: int) -> None:
    """Log once that the time of a study is below the expected one."""
    log.warning(
        "study %s: its time (minutes = %d) is over before the expected %d minutes",
        study, available, expected,
    )  # fmt: skip


def sign_out(visit: Visit) -> Response:
    """End the session on the server, but keep the language and the browser's key."""
    session, study = visit.session, visit.study
    if session.worker is None:  # the page after signing out was loaded again
        return visit.redirect("/work/")
    if not visit.has_form_token:
        raise RefusedError(403, "error.csrf", "form token missing or wrong")
    visit.sign_out()
    participants = visit.site.participants
    participants.leave(session.nonce)
    if session.study is None:
        return visit.redirect("/work/")
    submitted = participants.n_submitted(session.worker, session.study) > 0
    return ended_page(visit, study, LEFT if study else CLOSED, submitted=submitted)
