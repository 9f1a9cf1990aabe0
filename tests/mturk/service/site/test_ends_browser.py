"""Each row of the table in docs/operations/participations.md in a browser, in German or English."""

from dataclasses import replace

import pytest

from mturk.service.rules.admission import Entry
from mturk.service.rules.ends import ENDS
from mturk.service.rules.participation import Participants
from mturk.service.rules.person import ERASED_PREFIX, erase
from mturk.service.rules.work import WorkError
from mturk.service.site import texts
from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import assignment, consent, participation, worker
from tests.mturk.service.site.questions import read_questions

ANNA, BEN = ("a" * 24, "b" * 24)
WORKER = f"APROLIFIC{ANNA.upper()}"
STUDY = PanelStudy(
    "pilot", "DONE-1", participants=1, minutes=60, country=False,
    timed_out_code="LATE-1", withdrawn_code="", no_consent_code="", screened_out_code="",
    questions=read_questions([{"id": "age", "minimum": 18}]),
)  # fmt: skip
LANGUAGES = {"de": "de-DE", "en": "en-GB"}


class Participant:
    """Anna in her browser."""

    def __init__(self, page, start, study, language):
        self.page, self.start, self.study, self.language = page, start, study, language
        self.live = start(study)
        self.service = self.live.service
        self.people = Participants(self.service.database, self.service.clock)

    def text(self, key, **values):
        return texts.text(self.language, key, **values)

    def join(self, *, age="30", session="x", participant=ANNA):
        self.page.goto(self.live.study_link("pilot", participant, session))
        self.page.get_by_role("checkbox").check()
        self.page.locator("#question-age").fill(age)
        self.page.locator("button.main").click()

    def reopen(self, session="x"):
        """Open the link again and confirm it."""
        self.page.goto(self.live.study_link("pilot", ANNA, session))
        if self.page.url.endswith("/work/start"):
            self.page.locator("button.main").click()

    def submit(self):
        self.page.wait_for_url("**/work/assignment/*")
        here = self.page.url
        frame = self.page.frame_locator("#question")
        frame.locator("input[name=answer]").fill("yes")
        frame.locator("button").click()
        self.page.wait_for_url(lambda url: url != here)

    def restart(self, *studies):
        """Continue on a site of other studies; the cookies are the same."""
        self.live = self.start(*studies)

    def go(self, path):
        self.page.goto(self.live.site + path)

    def press(self, key):
        self.page.get_by_role("button", name=self.text(key)).click()


def begin(anna, submitted):
    """Enter the study, and submit a task if `submitted`."""
    for _ in range(3):
        anna.service.publish()
    anna.join()
    if submitted:
        anna.submit()
    anna.page.wait_for_url("**/work/assignment/*")


def finish(anna, submitted):
    if submitted:
        anna.service.publish()
    anna.join()
    if submitted:
        anna.submit()


def withdraw(anna, submitted):
    begin(anna, submitted)
    anna.page.get_by_role("link", name=anna.text("nav.withdraw")).click()
    anna.press("withdraw.button")


def decline(anna, submitted):
    if submitted:
        begin(anna, submitted)
        anna.press("nav.leave")
        anna.restart(replace(anna.study, version="2"))
    anna.page.goto(anna.live.study_link("pilot", ANNA))
    anna.press("start.decline")


def fail_screening(anna, submitted):
    if submitted:
        begin(anna, submitted)
    anna.join(age="17", session="y" if submitted else "x")


def run_out_of_time(anna, submitted):
    begin(anna, submitted)
    anna.service.clock.advance(3601)
    anna.go("/work/next")


def leave(anna, submitted):
    begin(anna, submitted)
    anna.press("nav.leave")


def release(anna, submitted):
    begin(anna, submitted)
    anna.people.release(WORKER, "pilot", actor="test")
    anna.go("/work/next")


def find_it_full(anna, submitted):
    ben = Entry("APROLIFIC" + BEN.upper(), "pilot", "s", "z")
    anna.people.enter(ben, "nonce", "browser", anna.study.rules)
    anna.page.goto(anna.live.study_link("pilot", ANNA))


def find_it_closed(anna, submitted):
    begin(anna, submitted)
    anna.service.work.return_assignment(anna.page.url.rpartition("/")[2], WORKER)
    anna.restart(PanelStudy("other", "C2"))
    anna.go("/work/next")


def be_erased(anna, submitted):
    begin(anna, submitted)
    with anna.service.database.write() as connection:
        erase(connection, WORKER, anna.service.clock.now(), actor="test", approve=True)
    anna.go("/work/next")


REACH = {
    "finished": finish, "withdrawn": withdraw, "no_consent": decline, "screened_out": fail_screening,
    "timed_out": run_out_of_time, "left": leave, "released": release, "full": find_it_full,
    "closed": find_it_closed, "erased": be_erased,
}  # fmt: skip
SIGN_IN = ("enter.title", "enter.closed")
PAGES = {
    ("finished", False): ("finished.nothing.title", "finished.nothing"),
    ("finished", True): ("finished.title", "finished.text"),
    ("released", False): SIGN_IN, ("released", True): SIGN_IN,
    ("erased", False): SIGN_IN, ("erased", True): SIGN_IN,
    ("full", False): ("error.title", "error.StudyFull"),
}  # fmt: skip
CODES = {
    "withdrawn": "DONE-1",
    "no_consent": "DONE-1",
    "screened_out": "DONE-1",
    "finished": "DONE-1",
}
WITH_MESSAGES = ("finished", "withdrawn", "screened_out", "timed_out", "closed")
"""Ends after which messages are open; also ``no_consent`` with a submitted task."""


def expected_page(end, submitted):
    """Return the keys of heading and text."""
    other = (f"ended.{end}.title", f"ended.{end}{'.submitted' if submitted else ''}")
    return PAGES.get((end, submitted), other)


def is_place_free(anna):
    carl = Entry("APROLIFIC" + "C" * 24, "pilot", "s", "z")
    try:
        anna.people.find(carl, "browser", anna.study.rules)
    except WorkError as error:
        return error.code != "StudyFull"
    return True


def ends_and_languages():
    """Return each end in both languages, of which one is for `make nightly`; the languages take turns."""
    cases = []
    for number, (end, submitted) in enumerate(ENDS):
        for language in LANGUAGES:
            is_other = language != [*LANGUAGES][number % 2]
            marks = [pytest.mark.nightly] * is_other
            cases.append(pytest.param(end, submitted, language, marks=marks))
    return cases


@pytest.mark.parametrize(("end", "submitted", "language"), ends_and_languages())
def test_each_end_in_a_browser(timed_site, open_page, end, submitted, language):
    anna = Participant(open_page(locale=LANGUAGES[language]), timed_site, STUDY, language)
    REACH[end](anna, submitted)
    page = anna.page
    heading, words = expected_page(end, submitted)
    page.get_by_role("heading", name=anna.text(heading), exact=True).wait_for()
    body = page.locator("main").inner_text()
    assert anna.text(words) in body

    code = "LATE-1" if end == "timed_out" else CODES.get(end, "") if submitted else ""
    assert page.locator("code").all_inner_texts() == ([code] if code else [])
    if code:
        assert page.locator("a.button.main").get_attribute("href").endswith(f"cc={code}")
    is_returned = "Return submission" in body or anna.text("error.StudyFull") in body
    assert is_returned == (not submitted and not code and end not in ("left", "released", "erased"))
    can_write = page.locator("main a[href='/work/messages']").count() == 1
    assert can_write == (end in WITH_MESSAGES or (end == "no_consent" and submitted))
    if end == "full":
        return
    if end == "finished" and not submitted:  # the participation continues
        assert not is_place_free(anna)
        return
    assert is_place_free(anna) != ENDS[end, submitted].holds_place
    check_data(anna, end, submitted)
    check_way_back(anna, end, submitted)


def check_data(anna, end, submitted):
    """Check what is stored, and that submitted tasks are paid."""
    anna.service.clock.advance(86_400)  # automatic approval
    anna.service.work.apply_due_changes()
    with anna.service.database.read() as connection:
        tasks = connection.execute(assignment.select()).all()
        entries = connection.execute(participation.select()).all()
        consents = connection.execute(consent.select()).all()
        known = connection.execute(worker.select()).all()
    paid = [task for task in tasks if task.status == "Approved"]
    assert len(paid) == submitted
    assert not [task for task in tasks if task.status == "Submitted"]
    has_answer = end not in ("withdrawn", "erased")
    assert [task.answer is not None for task in paid] == [has_answer] * submitted
    if end == "no_consent" and not submitted:
        assert entries == consents == known == []
        return
    assert all(one.worker_id.startswith(ERASED_PREFIX) == (end == "erased") for one in entries)
    has_answers = end not in ("withdrawn", "erased") and (end, submitted) != ("screened_out", False)
    assert entries[0].answers == ({"age": "30"} if has_answers else None)
    assert consents
    assert all((one.withdrawn is not None) == (end == "withdrawn") for one in consents)


def check_way_back(anna, end, submitted):
    """The link leads to the same code, or to tasks and messages; nobody with a task is told to return."""
    if end in ("no_consent", "closed", "erased", "released"):
        return
    anna.service.publish()  # the others have expired: a task is left
    anna.reopen("y" if (end, submitted) == ("screened_out", True) else "x")
    body = anna.page.locator("main").inner_text()
    assert not submitted or "Return submission" not in body
    if end == "left":
        # the time of the study has passed meanwhile
        assert anna.page.locator("code").inner_text() == "LATE-1"
    elif submitted:
        assert anna.page.locator("code").inner_text() == (
            "LATE-1" if end == "timed_out" else "DONE-1"
        )
    assert anna.page.locator("main a[href='/work/messages']").count() == 1
