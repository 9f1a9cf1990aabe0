"""The worker site in a real browser, from the sign-in to the completion code."""

import json

import pytest

from giccs.benchmark.items import Candidate, Dialogue, Turn
from mturk.answers import expected_tuples, from_xml
from mturk.kinds.tuples.form import tuple_answers
from mturk.kinds.tuples.page import Part, question_xml
from mturk.service.store.schema import assignment
from mturk.study.settings import Settings
from tests.nightly import first_in_ci

ODD = "<script>alert(1)</script> ${B} ]]> \"quoted\" 'single' \u200fמילה\u200e 🙂 &amp;"


def our_question(texts=("Um neun.", "Gegen neun Uhr.", "Morgen nicht.")):
    """Two dialogues of three and five turns, with three candidates each."""
    parts = []
    for name, length in (("d1", 3), ("d2", 5)):
        items = tuple(Candidate(f"{name}-{n}", text) for n, text in enumerate(texts))
        turns = tuple(Turn(("user", "system")[n % 2], f"Äußerung {n} {ODD}") for n in range(length))
        dialogue = Dialogue(name, "", "", turns, items)
        parts.append(Part(f"t-{name}", dialogue, items))
    return question_xml(parts, Settings(language_check=False))


def enter(live, page, worker="AALICE1"):
    page.goto(live.site + "/work/")
    page.get_by_label("Worker ID").fill(worker)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("In which country do you live?").select_option("DE")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="Available tasks").wait_for()


def accept(page):
    page.get_by_role("button", name="Accept").first.click()
    page.wait_for_url("**/work/assignment/*")
    return page.frame_locator("#question")


def choose(frame, *, worst=1):
    """Choose the first option as best and the one at `worst` as worst, of both tuples."""
    for part in range(2):
        for choice, index in (("best", 0), ("worst", worst)):
            frame.locator(f"form fieldset.{choice}").nth(part).locator("input").nth(index).check()


def stored(live):
    with live.service.database.read() as connection:
        rows = connection.execute(assignment.select().order_by(assignment.c.number)).all()
    return [(row.worker_id, row.status, row.answer) for row in rows]


def test_preview_accept_refuse_submit_return(live, open_page):
    xml = our_question()
    for _ in range(2):
        live.service.publish(xml)
    page = open_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    enter(live, page)

    page.get_by_role("link", name="Preview").click()
    frame = page.frame_locator("#question")
    frame.locator("form button[type=submit]:disabled").wait_for()
    frame.locator("form").evaluate("form => form.requestSubmit()")
    frame.locator("form").evaluate("form => HTMLFormElement.prototype.submit.call(form)")
    assert frame.locator("#answers").is_visible()
    assert stored(live) == []

    frame = accept(page)
    assert page.locator("#left").inner_text()[:3] in ("30:", "29:")
    choose(frame, worst=0)
    frame.locator("form button[type=submit]").click()
    assert frame.locator(".problem").first.inner_text()
    assert stored(live)[0][1] == "Accepted"
    choose(frame)
    frame.locator("form button[type=submit]").click()
    page.get_by_text("your answer has been received").wait_for()
    ((worker, status, answer),) = stored(live)
    assert (worker, status) == ("AALICE1", "Submitted")
    for tuple_answer in tuple_answers(expected_tuples(xml), from_xml(answer)):
        assert tuple_answer.best == tuple_answer.shown_order[0]
        assert tuple_answer.worst == tuple_answer.shown_order[1]
        assert tuple_answer.seconds > 0

    accept(page)
    page.get_by_role("button", name="Return").click()
    page.get_by_text("The task has been returned.").wait_for()
    assert [status for _, status, _ in stored(live)] == ["Submitted", "Returned"]
    assert problems == []


def test_what_the_server_refuses_can_be_mended_without_losing_answers(live, open_page):
    """The check of the page is disabled, as by a manipulating worker."""
    live.service.publish(our_question())
    page = open_page()
    enter(live, page)
    frame = accept(page)
    choose(frame, worst=0)
    frame.locator("textarea").fill("My comment")
    frame.locator("#answers").evaluate("form => HTMLFormElement.prototype.submit.call(form)")
    frame.get_by_role("heading", name="Not submitted yet").wait_for()
    assert frame.locator("li").count() == 2
    assert stored(live)[0][1] == "Accepted"
    frame.get_by_role("button", name="Back to the task").click()
    frame.locator("#answers").wait_for()
    assert frame.locator("textarea").input_value() == "My comment"
    assert frame.locator("#answers input:checked").count() == 4
    choose(frame)
    frame.locator("form button[type=submit]").click()
    page.get_by_text("your answer has been received").wait_for()
    assert ("comment", "My comment") in from_xml(stored(live)[0][2])


def test_a_post_without_the_page_is_checked_all_the_same(live, open_page):
    live.service.publish(our_question())
    page = open_page()
    enter(live, page)
    accept(page)
    query = page.locator("#question").evaluate(
        "frame => Object.fromEntries(new URL(frame.src).searchParams)"
    )
    fields = {f"{choice}-t-{d}": f"{d}-0" for d in ("d1", "d2") for choice in ("best", "worst")}
    answer = page.request.post(query["turkSubmitTo"] + "/mturk/externalSubmit", form=fields)
    assert answer.status == 422
    assert "best and worst are both" in answer.text()
    assert stored(live)[0][1] == "Accepted"


def test_with_the_keyboard_only(live, open_page):
    live.service.publish(our_question())
    page = open_page()
    page.goto(live.site + "/work/")
    tab_to(page, "#worker")
    page.keyboard.type("AKEYS1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/work/start")
    tab_to(page, "#country")
    page.keyboard.type("Germany")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/work/")
    tab_to(page, "form[action='/work/accept'] button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/work/assignment/*")
    page.frame_locator("#question").locator("#answers").wait_for()
    (inside,) = [frame for frame in page.frames if frame.parent_frame]
    for choice in ("best", "worst", "best", "worst"):
        tab_to(page, f"form fieldset.{choice} input:not(.seen)", inside)
        inside.evaluate(
            "which => document.activeElement.closest('fieldset').querySelectorAll('input')"
            ".forEach(input => input.classList.add('seen'))",
            choice,
        )
        page.keyboard.press("Space" if choice == "best" else "ArrowDown")
    tab_to(page, "form button[type=submit]", inside)
    page.keyboard.press("Enter")
    page.get_by_text("your answer has been received").wait_for()
    assert stored(live)[0][:2] == ("AKEYS1", "Submitted")


def tab_to(page, selector, frame=None):
    """Press Tab until an element has the focus, at most 60 times."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if (frame or page).evaluate("s => document.activeElement.matches(s)", selector):
            return
    pytest.fail(f"{selector} cannot be reached with Tab")


def test_three_workers_finish_a_hit(live, open_page):
    live.service.publish(our_question(), places=3)
    for number in range(3):
        page = open_page()
        live.service.work.register(f"AWORKER{number}", country="DE")
        page.goto(live.personal_link(f"AWORKER{number}"))
        page.get_by_role("button", name="Continue").click()
        choose(frame := accept(page))
        frame.locator("form button[type=submit]").click()
        page.get_by_text("your answer has been received").wait_for()
    assert [status for _, status, _ in stored(live)] == ["Submitted"] * 3
    late = open_page()
    enter(live, late, "ALATE1")
    late.get_by_text("There are no tasks for you at the moment").wait_for()


def test_from_a_recruiting_link_to_the_completion_code(live, open_page):
    for _ in range(3):
        live.service.publish(our_question())
    page = open_page(locale="de-DE")
    page.goto(live.study_link("pilot", "5f3c1a2b4d5e6f708192a3b4"))
    assert page.locator("html").get_attribute("lang") == "de"
    page.get_by_label("In welchem Land leben Sie?").select_option("DE")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Beginnen").click()
    for _ in range(2):
        page.wait_for_url("**/work/assignment/*")
        here = page.url
        choose(frame := page.frame_locator("#question"))
        frame.locator("form button[type=submit]").click()
        page.wait_for_url(lambda url, here=here: url != here)
    assert page.locator("code").inner_text() == "C0DE-42"
    way_back = page.get_by_role("link", name="Zurück zu Prolific")
    assert (
        way_back.get_attribute("href") == "https://app.prolific.com/submissions/complete?cc=C0DE-42"
    )


def finish_pilot(live, page, participant):
    """Enter the study by its link and submit its two HITs."""
    page.goto(live.study_link("pilot", participant))
    page.get_by_label("In which country do you live?").select_option("DE")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Start").click()
    for _ in range(2):
        page.wait_for_url("**/work/assignment/*")
        here = page.url
        choose(frame := page.frame_locator("#question"))
        frame.locator("form button[type=submit]").click()
        page.wait_for_url(lambda url, here=here: url != here)


def test_participants_return_are_bound_to_their_session_and_confirm_links(live, open_page):
    for _ in range(3):
        live.service.publish(our_question())
    anna, ben = "a" * 24, "b" * 24
    page = open_page()
    finish_pilot(live, page, anna)
    assert page.locator("code").inner_text() == "C0DE-42"

    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign out").wait_for(state="detached")
    page.go_back()
    page.reload()
    assert page.get_by_role("button", name="Sign out").count() == 0
    lost = open_page()  # another browser without the cookie, by the same link
    lost.goto(live.study_link("pilot", anna))
    lost.get_by_role("button", name="Continue").click()
    assert lost.locator("code").inner_text() == "C0DE-42"
    assert len(stored(live)) == 2

    stranger = open_page()
    stranger.goto(live.study_link("pilot", anna).replace("SESSION_ID=x", "SESSION_ID=guess"))
    stranger.get_by_text("has already entered the study in another session").wait_for()

    lost.goto(live.study_link("pilot", ben))  # a foreign link changes nothing without confirmation
    lost.get_by_text(f"signs you in as {ben}").wait_for()
    lost.get_by_text(f"currently signed in as {anna}").wait_for()
    lost.goto(live.site + "/work/")
    assert lost.locator("code").inner_text() == "C0DE-42"


def test_texts_of_strangers_are_shown_literally(live, open_page):
    live.service.publish(our_question((ODD, "b", "c")), title=ODD, description=ODD)
    live.service.write("AALICE1", ODD, ODD)
    page = open_page()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    enter(live, page)
    card = page.locator(".card").first
    assert card.locator("h2").text_content() == ODD
    assert card.locator("p.description").text_content() == ODD
    frame = accept(page)
    assert page.locator("h1").text_content() == ODD
    assert frame.locator("#answers .utterance").first.text_content() == f"Äußerung 0 {ODD}"
    text = frame.locator("#answers .option .text").all_text_contents()
    assert text.count(ODD) == 4  # twice in each of the two tuples
    page.goto(live.site + "/work/messages")
    assert page.locator(".letter").text_content() == ODD
    assert dialogs == []


EXISTING = {
    "set by script": '<form id="mturk_form" method="post">',
    "the sandbox": '<form method="get" action="https://workersandbox.mturk.com/mturk/externalSubmit">',
    "the old address": '<form method="post" action="https://www.mturk.com/mturk/externalSubmit">',
    "relative": '<form method="post" action="/mturk/externalSubmit">',
    "no address": "<form>",
    "by submit()": '<form method="post" action="https://www.mturk.com/mturk/externalSubmit">',
}
SCRIPTS = {
    "set by script": (
        "document.addEventListener('DOMContentLoaded', () => { const f = document.forms[0];"
        "f.action = turkGetParam('turkSubmitTo') + '/mturk/externalSubmit'; });"
    ),
    "by submit()": (
        "document.addEventListener('DOMContentLoaded', () => document.querySelector('button')"
        ".addEventListener('click', e => { e.preventDefault(); document.forms[0].submit(); }));"
    ),
}


@pytest.mark.parametrize("kind", first_in_ci(EXISTING))
def test_forms_that_requesters_have_work_unchanged(live, open_page, kind):
    html = (
        "<!DOCTYPE html><html><head><title>Old</title>"
        "<script src='https://s3.amazonaws.com/mturk-public/externalHIT_v1.js'></script>"
        f"<script>{SCRIPTS.get(kind, '')}</script></head><body>{EXISTING[kind]}"
        "<input name='answer' aria-label='Answer'><button>Send</button></form>"
        "<script>turkSetAssignmentID();</script></body></html>"
    )
    live.service.publish(html)
    page = open_page()
    enter(live, page)
    page.get_by_role("link", name="Preview").click()
    page.frame_locator("#question").locator("button:disabled").wait_for()
    frame = accept(page)
    frame.get_by_label("Answer").fill("42 é")
    frame.get_by_role("button", name="Send").click()
    page.get_by_text("your answer has been received").wait_for()
    assert from_xml(stored(live)[0][2]) == [("answer", "42 é")]


@pytest.mark.parametrize("place", first_in_ci(["requester's site", "page"]))
def test_a_survey_link_opens_in_its_own_window(live, open_page, elsewhere, place):
    """The survey has its origin and cookies, and no way back to the frame or the site."""
    live.service.publish(
        f"<html><body><a href='{elsewhere}/survey' target='_blank'>Survey</a><form></form></body></html>"
        if place == "page"
        else EXTERNAL.format(elsewhere)
    )
    page = open_page()
    enter(live, page)
    frame = accept(page)
    with page.expect_popup() as opened:
        frame.get_by_role("link", name="Survey").click()
    survey = opened.value
    survey.wait_for_load_state()
    assert survey.evaluate("() => [self.origin, document.cookie = 'a=1', document.cookie]") == [
        elsewhere, "a=1", "a=1",
    ]  # fmt: skip
    assert survey.evaluate("() => window.opener") is None
    frame.locator("body").evaluate("() => { document.body.dataset.here = 'yes' }")
    assert page.url.startswith(live.site + "/work/assignment/")


def test_a_question_reaches_nobody_and_nothing(live, open_page):
    """A hostile question: access to cookies, the parent page, other servers and navigation."""
    attempts = """
      const tried = {};
      const attempt = (name, what) => {
        try { tried[name] = String(what()); } catch (e) { tried[name] = 'refused'; }
      };
      attempt('cookie', () => document.cookie);
      attempt('storage', () => localStorage.length);
      attempt('parent', () => parent.document.title);
      attempt('top', () => { top.location.href = 'about:blank'; return 'asked'; });
      attempt('popup', () => open('about:blank'));
      tried.origin = self.origin;
      fetch('/static/site.css').then(() => 'reached', () => 'refused').then(answer => {
        tried.fetch = answer; document.body.dataset.tried = JSON.stringify(tried); });
    """
    live.service.publish(f"<html><body><form></form><script>{attempts}</script></body></html>")
    page = open_page()
    enter(live, page)
    frame = accept(page)
    body = frame.locator("body[data-tried]")
    body.wait_for(state="attached")
    tried = json.loads(body.get_attribute("data-tried"))
    assert tried.pop("origin") == "null"
    assert tried.pop("popup") == "null"
    assert set(tried.values()) == {"refused"}, tried
    assert page.url.startswith(live.site + "/work/assignment/")
    body.evaluate("() => parent.postMessage({ mturk: 'submitted' }, '*')")  # which proves nothing
    page.get_by_text("This task has not been submitted yet").wait_for()
    assert stored(live)[0][1] == "Accepted"


EXTERNAL = (
    '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
    '2006-07-14/ExternalQuestion.xsd"><ExternalURL>{}/task?set=1</ExternalURL>'
    "<FrameHeight>500</FrameHeight></ExternalQuestion>"
)


def test_a_question_on_the_requesters_own_site(live, open_page, elsewhere):
    """A stub of a requester's server, whose page keeps its origin and posts the answer to the service."""
    live.service.publish(EXTERNAL.format(elsewhere))
    page = open_page()
    enter(live, page)
    frame = accept(page)
    frame.get_by_label("Answer").fill("from elsewhere")
    frame.get_by_role("button", name="Send").click()
    page.get_by_text("your answer has been received").wait_for()
    fields = dict(from_xml(stored(live)[0][2]))
    assert fields == {"answer": "from elsewhere", "origin": elsewhere}


def test_without_scripts_everything_but_the_question_works(live, open_page):
    live.service.publish(our_question())
    page = open_page(java_script_enabled=False)
    enter(live, page)
    page.get_by_role("link", name="My progress").click()
    page.locator("nav.switch summary").click()
    page.get_by_role("link", name="Deutsch").click()
    page.get_by_role("heading", name="Mein Fortschritt").wait_for()
    page.get_by_role("link", name="Aufgaben").click()
    page.get_by_role("button", name="Annehmen").click()
    page.get_by_text("bis ").wait_for()
    page.get_by_role("button", name="Zurückgeben").click()
    page.get_by_text("Die Aufgabe wurde zurückgegeben.").wait_for()
