"""Places of a study are free again after ends without a submitted task; sessions of one participant."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import assignment, consent, participation
from tests.mturk.service.site.questions import read_questions
from tests.mturk.service.site.test_participants import (
    ANNA,
    BEN,
    CARL,
    STUDY,
    command,
    signed,  # noqa: F401 - a fixture
    visit,  # noqa: F401 - a fixture
)
from tests.mturk.service.site.test_study_outcomes import rows

WORKER = "APROLIFIC" + ANNA.upper()
TIMED = PanelStudy("pilot", "C0DE", participants=2, minutes=10, timed_out_code="LATE")


def open_task(page):
    return page.url.path.startswith("/work/assignment/")


def exported(service):
    return list(csv.DictReader(io.StringIO(command(service, "participants"))))


def test_places_of_those_who_withdraw_are_given_to_others(service, visit):  # noqa: F811
    service.publish(places=9)
    study = replace(STUDY, participants=2)
    for participant, session in ((ANNA, "x1"), (BEN, "x2")):
        visitor = visit(study)
        visitor.begin(service, participant, session=session)
        visitor.submit("/work/withdraw", text="/work/history")
    assert open_task(visit(study).begin(service, CARL, session="x3"))


def test_a_submitted_task_holds_the_place_of_who_withdraws(service, visit):  # noqa: F811
    service.publish(places=9)
    study = replace(STUDY, participants=1)
    anna = visit(study)
    anna.finish(anna.begin(service))
    anna.submit("/work/withdraw", text="/work/history")
    assert visit(study).join(service, BEN, session="x2").status_code == 409


def test_the_place_of_who_ran_out_of_time_is_free_also_if_nobody_looked(service, visit):  # noqa: F811
    service.publish(places=9, duration=60)
    study = replace(TIMED, participants=1)
    anna = visit(study)
    anna.begin(service)
    service.clock.advance(599)
    service.work.apply_due_changes()
    assert visit(study).join(service, BEN, session="x2").status_code == 409
    service.clock.advance(1)
    assert open_task(visit(study).begin(service, BEN, session="x2"))
    assert "LATE" in anna.get("/work/next").text
    assert visit(study).join(service, CARL, session="x3").status_code == 409


def test_a_task_in_progress_holds_the_place_after_the_time_of_the_study(service, visit):  # noqa: F811
    for _ in range(2):
        service.publish(places=9, duration=3600)
    study = replace(TIMED, participants=1)
    anna = visit(study)
    page = anna.begin(service)
    service.clock.advance(700)
    assert visit(study).join(service, BEN, session="x2").status_code == 409
    assert "LATE" in anna.finish(page).text


def test_who_declines_a_changed_information_frees_the_place_and_can_come_back(service, visit):  # noqa: F811
    service.publish(places=9)
    study = replace(STUDY, participants=1)
    visit(study).begin(service)
    changed = replace(study, version="2")
    anna = visit(changed)
    anna.join(service)
    assert "C0DE" not in anna.submit("/work/start", text="/work/start", decline="yes").text
    assert [row.outcome for row in rows(service, participation)] == ["no_consent"]
    assert [row.status for row in rows(service, assignment)] == ["Returned"]
    ben = visit(changed)
    assert open_task(ben.begin(service, BEN, session="x2"))
    assert anna.join(service).status_code == 409
    ben.submit("/work/withdraw", text="/work/history")
    anna.join(service)
    assert open_task(anna.submit("/work/start", text="/work/start", consent="yes"))
    assert [row.outcome for row in rows(service, participation)] == [None, "withdrawn"]


@pytest.mark.parametrize("submitted", [False, True])
def test_a_release_says_what_it_frees(service, visit, submitted):  # noqa: F811
    for _ in range(2):
        service.publish(places=9)
    study = replace(STUDY, participants=1)
    anna = visit(study)
    page = anna.begin(service)
    if submitted:
        page = anna.finish(page)
    output = command(service, "release", ANNA, "--study", "pilot", "--json")
    assert json.loads(output) == {
        "released": 1, "place_freed": not submitted, "submitted": int(submitted), "returned": 1,
    }  # fmt: skip
    assert rows(service, assignment)[-1].status == "Returned"
    ben = visit(study).join(service, BEN, session="x2")
    assert ben.status_code == (409 if submitted else 200)
    again = visit(study)
    assert open_task(again.begin(service, session="x9"))
    text = command(service, "release", ANNA, "--study", "pilot")
    place = "the place stays taken: 1 submitted" if submitted else "the place is free"
    assert place in text
    assert "1 in progress returned" in text


def test_another_session_in_the_same_browser_is_a_session_of_its_own(service, visit):  # noqa: F811
    for _ in range(4):
        service.publish()
    anna = visit(replace(STUDY, hits=3))
    anna.finish(anna.begin(service, session="x1"))
    start = anna.join(service, session="x2")
    assert 'name="consent"' in start.text
    page = anna.submit("/work/start", text="/work/start", country="DE", consent="yes")
    assert "Task 2 of 3" in page.text  # the first session was not finished
    page = anna.finish(page)
    assert "C0DE" in anna.finish(page).text
    assert [(row["session_id"], row["status"], row["outcome"]) for row in exported(service)] == [
        ("x1", "Submitted", ""), ("x2", "Submitted", "finished"), ("x2", "Submitted", "finished"),
    ]  # fmt: skip
    assert all(row["consent_digest"] for row in exported(service))
    assert len(rows(service, consent)) == 2


def test_the_task_in_progress_belongs_to_the_session_that_submits_it(service, visit):  # noqa: F811
    service.publish()
    anna = visit()
    page = anna.begin(service, session="x1")
    assert anna.begin(service, session="x2").url.path == page.url.path
    assert "C0DE" in anna.finish(page).text
    with_task = [row for row in exported(service) if row["assignment_id"]]
    assert [row["session_id"] for row in with_task] == ["x2"]


def test_who_is_done_and_invited_again_gets_the_tasks_of_the_next_batch(service, visit):  # noqa: F811
    for _ in range(2):
        service.publish()
    study = replace(STUDY, hits=2)
    anna = visit(study)
    assert "C0DE" in anna.finish(anna.finish(anna.begin(service, session="x1"))).text
    for _ in range(3):
        service.publish()
    assert "C0DE" in anna.join(service, session="x1").text
    service.clock.advance(1)
    page = anna.begin(service, session="x2")
    assert "Task 1 of 2" in page.text
    page = anna.finish(page)
    assert open_task(page)
    assert "C0DE" in anna.finish(page).text
    assert "C0DE" in anna.get("/work/next").text
    assert [row["session_id"] for row in exported(service)] == ["x1", "x1", "x2", "x2"]
    for session in ("x1", "x2"):
        lost = visit(study)
        lost.join(service, session=session)
        assert "C0DE" in lost.submit("/work/start", text="/work/start").text


@pytest.mark.parametrize("sees_the_end", [True, False])
def test_tasks_count_for_one_code_only(service, visit, sees_the_end):  # noqa: F811
    for _ in range(7):
        service.publish()
    anna = visit(replace(STUDY, hits=2))
    page = anna.begin(service, session="x1")
    if sees_the_end:  # one task in each of two sessions
        anna.finish(page)
    else:  # two tasks in one session, whose end is not opened
        page = anna.finish(page)
        anna.post(anna.answer_address(page), data={"answer": "yes"})
    page = anna.begin(service, session="x2")
    page = anna.finish(page) if sees_the_end else page
    assert "C0DE" in page.text
    service.clock.advance(1)
    page = anna.begin(service, session="x3")
    assert "Task 1 of 2" in page.text
    assert "C0DE" in anna.finish(anna.finish(page)).text


def test_loading_a_task_after_the_time_does_not_end_the_participation(service, visit):  # noqa: F811
    for _ in range(2):
        service.publish(duration=3600)
    anna = visit(replace(TIMED, hits=2))
    page = anna.finish(anna.begin(service, session="x1"))
    service.clock.advance(700)
    anna.get(page.url.path)
    assert rows(service, participation)[0].outcome is None
    assert "C0DE" in anna.finish(page).text


def test_who_has_done_every_task_has_finished_although_the_time_is_over(service, visit):  # noqa: F811
    service.publish()
    anna = visit(TIMED)
    page = anna.begin(service, session="x1")
    anna.post(anna.answer_address(page), data={"answer": "yes"})
    service.clock.advance(700)
    assert "C0DE" in anna.get("/work/next").text
    assert rows(service, participation)[0].outcome == "finished"


def test_who_has_finished_is_not_asked_for_consent_again(service, visit):  # noqa: F811
    service.publish()
    visited = visit()
    visited.finish(visited.begin(service, session="x1"))
    again = visit(replace(STUDY, version="2", no_consent_code="NOCONS"))
    start = again.join(service, session="x1")
    assert 'name="consent"' not in start.text
    assert "C0DE" in again.submit("/work/start", text="/work/start").text


@pytest.mark.parametrize("end", ["screened out", "declined"])
@pytest.mark.parametrize("in_progress", [False, True])
def test_an_end_in_a_further_session_ends_the_earlier_ones(service, visit, end, in_progress):  # noqa: F811
    service.publish(places=9)
    questions = read_questions([{"id": "age", "minimum": 18}])
    study = PanelStudy("pilot", "C0DE", country=False, questions=questions, participants=1)
    anna = visit(study)
    anna.join(service, session="x1")
    page = anna.submit("/work/start", text="/work/start", consent="yes", **{"question-age": "30"})
    address = anna.answer_address(page)
    if not in_progress:
        anna.submit("/work/return", assignment=page.url.path.rpartition("/")[2])
    anna.join(service, session="x2")
    fields = {"decline": "yes"} if end == "declined" else {"consent": "yes", "question-age": "17"}
    page = anna.submit("/work/start", text="/work/start", **fields)
    assert "Return submission" in page.text
    assert anna.post(address, data={"answer": "yes"}).status_code == 410
    assert not open_task(anna.get("/work/next"))
    assert visit(study).join(service, BEN, session="x3").status_code == 200  # the place is free
    lost = visit(study)
    page = lost.join(service, session="x1")
    assert ('name="consent"' in page.text) == (end == "declined")
    page = lost.submit("/work/start", text="/work/start", consent="yes")
    assert open_task(page) == (end == "declined")


def test_the_page_after_signing_out_can_be_loaded_again(service, visit):  # noqa: F811
    service.publish()
    anna = visit()
    page = anna.finish(anna.begin(service))
    token = re.search('name="csrf" value="([0-9a-f]+)"', page.text)[1]
    assert anna.post("/work/leave", data={"csrf": "0"}).status_code == 403
    assert "signed out" in anna.post("/work/leave", data={"csrf": token}).text
    assert anna.post("/work/leave", data={"csrf": token}).status_code == 200


def test_signing_out_of_a_closed_study_says_that_it_has_ended(service, visit):  # noqa: F811
    service.publish(places=9)
    anna = visit()
    page = anna.finish(anna.begin(service))
    closed = visit(replace(STUDY, name="other"))
    closed.cookies = anna.cookies
    token = re.search('name="csrf" value="([0-9a-f]+)"', page.text)[1]
    page = closed.post("/work/leave", data={"csrf": token})
    assert "has ended" in page.text
    assert "Return submission" not in page.text


def test_who_is_invited_again_when_no_task_is_left_keeps_the_code(service, visit):  # noqa: F811
    service.publish()
    anna = visit()
    anna.finish(anna.begin(service, session="x1"))
    page = anna.begin(service, session="x2")
    assert "C0DE" in page.text
    assert "Return submission" not in page.text
    service.publish()
    assert open_task(anna.get("/work/next"))


def test_a_signed_session_is_a_proof_in_another_browser(service, visit, signed):  # noqa: F811
    study, sign, _ = signed
    for _ in range(3):
        service.publish()
    study = replace(study, hits=1)

    def begin(visitor, session):
        ids = {"PROLIFIC_PID": ANNA, "STUDY_ID": "s1", "SESSION_ID": session}
        visitor.join(service, prolific_token=sign(prolific=ids))
        return visitor.submit("/work/start", text="/work/start", country="DE", consent="yes")

    first, second = visit(study), visit(study)
    assert "C0DE" in first.finish(begin(first, "x1")).text
    service.clock.advance(1)
    assert "C0DE" in second.finish(begin(second, "x2")).text
    assert [row["session_id"] for row in exported(service)] == ["x1", "x2"]
    assert visit(study).join(service, session="x3").status_code == 403  # without a signature


def test_a_link_without_a_session_continues_the_last_one(service, visit):  # noqa: F811
    service.publish()
    anna = visit()
    page = anna.begin(service, session="x1")
    assert anna.join(service, session="").url.path == page.url.path
    assert len(rows(service, participation)) == 1


def test_who_is_screened_out_of_a_further_session_keeps_the_first_code(service, visit):  # noqa: F811
    service.publish()
    questions = read_questions([{"id": "age", "minimum": 18}])
    study = PanelStudy("pilot", "C0DE", country=False, questions=questions)
    anna = visit(study)
    for session, age in (("x1", "30"), ("x2", "17")):
        anna.join(service, session=session)
        fields = {"consent": "yes", "question-age": age}
        page = anna.submit("/work/start", text="/work/start", **fields)
        if session == "x1":
            page = anna.finish(page)
        assert "C0DE" in page.text
        assert "Return submission" not in page.text
    assert [row.outcome for row in rows(service, participation)] == ["finished", "screened_out"]
    lost = visit(study)
    lost.join(service, session="x1")
    assert "C0DE" in lost.submit("/work/start", text="/work/start").text


def test_the_time_of_a_further_session_begins_anew(service, visit):  # noqa: F811
    for _ in range(3):
        service.publish(duration=60)
    anna = visit(TIMED)
    anna.finish(anna.begin(service, session="x1"))
    service.clock.advance(700)
    assert "LATE" in anna.get("/work/next").text
    assert open_task(anna.begin(service, session="x2"))


@pytest.mark.parametrize("submitted", [False, True])
def test_links_that_are_closed_lose_no_pay(service, visit, submitted):  # noqa: F811
    service.publish()
    anna = visit()
    page = anna.begin(service)
    if submitted:
        anna.finish(page)
    gone = visit(PanelStudy("other", "C1"))
    gone.cookies = anna.cookies
    assert (gone.join(service).url.path == page.url.path) == (not submitted)
    stranger = visit(PanelStudy("other", "C1")).join(service, BEN)
    assert stranger.status_code == 403
    for words in ("they are stored and are paid", "keep your place"):
        assert words in stranger.text
