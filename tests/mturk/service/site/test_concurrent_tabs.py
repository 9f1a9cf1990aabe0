"""Two tabs or browsers of one participant: what one does between two queries of the other."""

from dataclasses import replace

import pytest

from mturk.service.rules.participation import Participants
from mturk.service.rules.work import WorkerService
from mturk.service.site.links import recruited_worker
from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import assignment, consent, participation
from tests.mturk.service.site.test_browser import our_question
from tests.mturk.service.site.test_participants import (
    ANNA,
    visit,  # noqa: F401 - a fixture
)
from tests.mturk.service.site.test_study_outcomes import rows
from tests.mturk.service.site.test_volunteers import OPEN, begin, path

STUDY = PanelStudy(
    "pilot", "C0DE", timed_out_code="LATE", no_consent_code="", minutes=10, country=False
)
WORKER = recruited_worker(ANNA)
QUERIES = [
    (WorkerService, "open_assignments"),
    (Participants, "progress"),
    (WorkerService, "offers"),
    (WorkerService, "accept"),
    (Participants, "time_out"),
    (Participants, "complete"),
]
"""Calls of the next task's page, each a transaction of its own."""


def before_call(monkeypatch, place, number, act):
    """Let the other tab act before the call of a method with this number; return the list of its calls."""
    owner, name = place
    original, calls, acting = getattr(owner, name), [], []

    def wrapper(*args, **options):
        if not acting:
            calls.append(name)
            if len(calls) == number:
                acting.append(True)
                act()
                acting.clear()
        return original(*args, **options)

    monkeypatch.setattr(owner, name, wrapper)
    return calls


@pytest.mark.parametrize("seconds", [0, 601])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("place", QUERIES, ids=[name for _, name in QUERIES])
def test_a_task_submitted_in_another_tab_meanwhile_is_counted(
    service, visit, monkeypatch, place, number, seconds  # noqa: F811
):  # fmt: skip
    service.publish()
    anna = visit(STUDY)
    task = anna.begin(service).url.path.rpartition("/")[2]
    service.clock.advance(seconds)

    def submit():
        service.work.submit(task, WORKER, [("answer", "yes")])

    calls = before_call(monkeypatch, place, number, submit)
    page = anna.get("/work/next")
    monkeypatch.undo()
    if len(calls) < number:  # the page has not come so far: the task is open
        submit()
        page = anna.get("/work/next")
    elif page.url.path.startswith("/work/assignment/"):
        page = anna.get("/work/next")
    assert "C0DE" in page.text or "LATE" in page.text
    assert "Return submission" not in page.text


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("place", QUERIES, ids=[name for _, name in QUERIES])
def test_a_task_accepted_and_submitted_in_another_tab_meanwhile_is_counted(
    service, visit, monkeypatch, place, number  # noqa: F811
):  # fmt: skip
    anna = visit(replace(STUDY, minutes=None))
    anna.begin(service)
    assert "C0DE" not in anna.get("/work/next").text
    service.publish()

    def do_the_task():
        if not (offers := service.work.offers(WORKER)):
            return  # this tab was first
        accepted = service.work.accept(WORKER, None, offers[0].group_id, participation=1)
        service.work.submit(accepted.assignment_id, WORKER, [("answer", "yes")])

    before_call(monkeypatch, place, number, do_the_task)
    page = anna.get("/work/next")
    monkeypatch.undo()
    if page.url.path.startswith("/work/assignment/"):  # this tab was first
        page = anna.finish(page)
    assert "C0DE" in page.text


def test_a_task_submitted_while_declining_is_counted(service, visit, monkeypatch):  # noqa: F811
    service.publish()
    anna = visit(STUDY)
    task = anna.begin(service).url.path.rpartition("/")[2]
    changed = visit(replace(STUDY, version="2"))
    changed.join(service)
    token = changed.token("/work/start")
    before_call(
        monkeypatch, (Participants, "decline"), 1,
        lambda: service.work.submit(task, WORKER, [("answer", "yes")]),
    )  # fmt: skip
    page = changed.post("/work/start", data={"csrf": token, "decline": "yes"})
    assert "C0DE" in page.text
    assert "Return submission" not in page.text


@pytest.mark.parametrize("n_consents", [0, 1])
def test_who_declines_after_another_browser_has_consented_is_not_signed_in(
    service, visit, n_consents  # noqa: F811
):  # fmt: skip
    service.publish()
    second = visit(STUDY)
    second.join(service)
    token = second.token("/work/start")
    first = visit(STUDY)
    for _ in range(n_consents):
        assert first.begin(service).url.path.startswith("/work/assignment/")
    page = second.post("/work/start", data={"csrf": token, "decline": "yes"})
    assert "You are not taking part" in page.text
    assert [row.outcome for row in rows(service, participation)] == ["no_consent"] * n_consents
    assert first.get("/work/next").url.path in ("/work/", "/work/start")


@pytest.mark.parametrize(
    ("field", "path"), [({"decline": "yes"}, "/work/withdraw"), ({"consent": "yes"}, "/work/start")]
)
def test_who_declines_after_another_tab_has_consented_can_withdraw(
    service, visit, field, path  # noqa: F811
):  # fmt: skip
    service.publish()
    anna = visit(STUDY)
    anna.join(service)
    token = anna.token("/work/start")
    anna.submit("/work/start", text="/work/start", consent="yes")
    page = anna.post("/work/start", data={"csrf": token, **field})
    assert page.url.path == path
    assert page.status_code == (200 if "decline" in field else 403)
    stranger = visit(STUDY)
    assert stranger.post("/work/start", data={"csrf": token, **field}).status_code == 403


def test_who_is_signed_in_is_asked_again_after_a_change_of_the_information(service, visit):  # noqa: F811
    for _ in range(3):
        service.publish()
    anna = visit(STUDY)
    page = anna.begin(service)
    changed = visit(replace(STUDY, version="2"))
    changed.cookies.update(anna.cookies)
    page = changed.get("/work/next")
    assert page.url.path.startswith("/work/assignment/")  # what was begun is finished
    page = changed.finish(page)
    assert page.url.path == "/work/start"
    assert 'name="consent"' in page.text
    assert changed.get("/work/next").url.path == "/work/start"
    assert "C0DE" in changed.submit("/work/start", text="/work/start", decline="yes").text
    assert [row.version for row in rows(service, consent)] == ["1"]
    changed.join(service)
    page = changed.submit("/work/start", text="/work/start", consent="yes")
    assert page.url.path.startswith("/work/assignment/")
    assert [row.version for row in rows(service, consent)] == ["1", "2"]
    assert [row.outcome for row in rows(service, participation)] == [None]
    assert changed.finish(page).url.path.startswith("/work/assignment/")  # and only once


@pytest.mark.parametrize("done", [True, False])
def test_who_has_finished_or_finds_no_task_is_not_asked_again(service, visit, done):  # noqa: F811
    service.publish()
    anna = visit(replace(STUDY, hits=1))
    anna.finish(anna.begin(service))
    changed = visit(replace(STUDY, hits=1, version="2"))
    changed.cookies.update(anna.cookies)
    if done:
        assert "C0DE" in changed.get("/work/next").text
    assert "C0DE" in changed.get("/work/").text
    assert [row.version for row in rows(service, consent)] == ["1"]


def decline(service, visitor):
    changed = visitor(replace(STUDY, version="2"))
    changed.join(service)
    changed.submit("/work/start", text="/work/start", decline="yes")


def withdraw(service, visitor):
    Participants(service.database, service.clock).withdraw(WORKER, "pilot")


def release(service, visitor):
    Participants(service.database, service.clock).release(WORKER, "pilot", actor="test")


def time_out(service, visitor):
    Participants(service.database, service.clock).time_out(1)


@pytest.mark.parametrize("end", [decline, withdraw, release, time_out])
def test_who_ends_while_a_task_is_accepted_gets_none(service, visit, monkeypatch, end):  # noqa: F811
    anna = visit(STUDY)
    anna.begin(service)
    service.publish()
    before_call(monkeypatch, (WorkerService, "accept"), 1, lambda: end(service, visit))
    page = anna.get("/work/next")
    assert not page.url.path.startswith("/work/assignment/")
    assert rows(service, assignment) == []
    assert ("LATE" in page.text) == (end is time_out)


@pytest.mark.parametrize("hits", [1, None])
@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("browser", ["same", "other"])
def test_who_has_submitted_everything_is_not_asked_again(
    service, visit, hits, version, browser  # noqa: F811
):  # fmt: skip
    """Also if the code was not shown yet."""
    service.publish()
    study = replace(STUDY, hits=hits)
    anna = visit(study)
    page = anna.begin(service)
    anna.post(anna.answer_address(page), data={"answer": "yes"})
    again = visit(replace(study, version=version))
    if browser == "same":
        again.cookies.update(anna.cookies)
        again.submit("/work/leave", text="/work/history")
    page = again.join(service)
    assert 'name="consent"' not in page.text
    if page.url.path == "/work/start":
        page = again.submit("/work/start", text="/work/start")
    assert "C0DE" in page.text
    assert [row.version for row in rows(service, consent)] == ["1"]


@pytest.mark.parametrize("code", ["", "NOPE"])
def test_who_declines_after_a_submission_can_write_and_is_asked_again_by_the_link(
    service, visit, code  # noqa: F811
):  # fmt: skip
    for _ in range(2):
        service.publish()
    study = replace(OPEN, no_consent_code=code)
    anna, link = visit(study), path(service)
    anna.finish(begin(anna, service, "anna"))
    changed = visit(replace(study, version="2"))
    changed.cookies.update(anna.cookies)
    (task,) = (row.assignment_id for row in rows(service, assignment) if row.status == "Accepted")
    changed.submit("/work/return", text=f"/work/assignment/{task}", assignment=task)
    assert changed.get("/work/next").url.path == "/work/start"
    page = changed.submit("/work/start", text="/work/start", decline="yes")
    assert "You are not taking part" in page.text
    assert code in page.text
    assert "/work/messages" in page.text
    page = changed.get("/work/messages")
    assert page.url.path == "/work/messages"
    assert "You are not taking part" in changed.get("/work/next").text
    page = changed.get(link)
    assert 'name="consent"' in page.text
    page = changed.submit("/work/start", text="/work/start", consent="yes")
    assert page.url.path.startswith("/work/assignment/")


def test_a_time_below_the_expected_one_is_logged_once(service, visit, caplog):  # noqa: F811
    for _ in range(3):
        service.publish(our_question())
    study = replace(STUDY, name="hurried", hits=3, minutes=1)
    for _ in range(3):
        visit(study).join(service, study="hurried")
    assert sum("before the expected" in one for one in caplog.messages) == 1
