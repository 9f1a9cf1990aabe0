"""Drafts, submissions without a connection, phones, and what a participant is told about time and pay."""

import json
import time

import pytest

from mturk.answers import from_xml
from mturk.service.site import texts as site_texts
from mturk.service.site.studies import PanelStudy
from tests.mturk.service.site.test_browser import (
    accept,
    choose,
    enter,
    our_question,
    stored,
    tab_to,
)
from tests.nightly import first_in_ci, nightly

PHONE = {"viewport": {"width": 320, "height": 568}, "has_touch": True, "is_mobile": True}
PAGE = (
    "<!DOCTYPE html><html><body><form><input name='word' aria-label='Word'>"
    "<input name='word' aria-label='Other word'><textarea name='text' aria-label='Text'></textarea>"
    "<select name='many' multiple aria-label='Many'><option>a</option><option>b</option></select>"
    "<label><input type='checkbox' name='box' value='1' checked>On</label>"
    "<label><input type='checkbox' name='box' value='2'>Two</label>"
    "<input type='password' name='secret' aria-label='Secret'><input type='hidden' name='state'>"
    "<button name='which' value='left'>Send</button></form></body></html>"
)
WAITING = {
    "en-GB": "No connection. Your answer stays",
    "de-DE": "Keine Verbindung. Ihre Antwort bleibt",
}


def drafts(page):
    return page.evaluate(
        "Object.entries(localStorage).map(([key, value]) => [key, JSON.parse(value)])"
    )


def wait_for_draft(page, text):
    page.wait_for_function(
        "text => Object.values(localStorage).some(value => value.includes(text))", arg=text
    )


def submit(frame):
    frame.locator("form button[type=submit]").click()


def test_a_draft_survives_reloading_and_is_removed_with_the_submission(live, open_page):
    live.service.publish(our_question())
    page = open_page()
    enter(live, page)
    frame = accept(page)
    choose(frame)
    frame.locator("textarea").fill("My comment")
    wait_for_draft(page, "My comment")
    seconds = float(frame.locator("[data-role=seconds]").last.input_value())
    page.reload()
    frame.locator("#answers input:checked").nth(3).wait_for()
    assert frame.locator("textarea").input_value() == "My comment"
    submit(frame)
    page.get_by_text("your answer has been received").wait_for()
    fields = dict(from_xml(stored(live)[0][2]))
    assert fields["comment"] == "My comment"
    assert float(fields["seconds-t-d2"]) >= seconds
    assert drafts(page) == []


def test_every_kind_of_field_is_restored_but_no_password(live, open_page):
    live.service.publish(PAGE)
    page = open_page()
    enter(live, page)
    frame = accept(page)
    frame.get_by_label("Word", exact=True).fill("one")
    frame.get_by_label("Other word").fill("two")
    frame.get_by_label("Many").select_option(["a", "b"])
    frame.get_by_label("On").uncheck()
    frame.get_by_label("Two").check()
    frame.get_by_label("Secret").fill("hidden")
    frame.locator("[name=state]").evaluate("field => { field.value = 'kept'; }")
    frame.get_by_label("Text").fill("three\nfour")
    wait_for_draft(page, "four")
    assert "hidden" not in json.dumps(drafts(page))
    page.reload()
    frame.locator("[name=box]:checked[value='2']").wait_for()
    frame.get_by_role("button", name="Send").click()
    page.get_by_text("your answer has been received").wait_for()
    assert sorted(from_xml(stored(live)[0][2])) == [
        ("box", "2"), ("many", "a"), ("many", "b"), ("secret", ""), ("state", "kept"),
        ("text", "three\r\nfour"), ("which", "left"), ("word", "one"), ("word", "two"),
    ]  # fmt: skip


@pytest.mark.parametrize("end", first_in_ci(["Sign out", "Return"]))
def test_a_draft_ends_with_the_session_and_with_the_task(live, open_page, end):
    live.service.publish(our_question())
    page = open_page()
    enter(live, page)
    choose(accept(page))
    wait_for_draft(page, "worst")
    here = page.url
    page.get_by_role("button", name=end).click()
    page.wait_for_url(lambda url: url != here)
    page.wait_for_function("Object.keys(localStorage).length === 0")
    page.goto(live.site + "/work/history")  # nothing was written later
    assert drafts(page) == []


def test_a_draft_is_nobody_elses_and_ends_with_its_deadline(live, open_page):
    live.service.publish(our_question())
    page = open_page()
    enter(live, page)
    choose(accept(page))
    wait_for_draft(page, "worst")
    [[key, draft]] = drafts(page)
    assert draft["worker"] == "AALICE1"
    page.goto(live.site + "/work/history")  # the question no longer writes
    day = 86_400
    for change in ({"worker": "ABOB1"}, {"deadline": time.time() - day - 60}):
        page.evaluate(
            "([key, draft]) => localStorage.setItem(key, draft)", [key, json.dumps(draft | change)]
        )
        page.reload()
        page.wait_for_function("Object.keys(localStorage).length === 0")


CLOCKS = {"ahead": 7 * 86_400, "behind": -7 * 86_400}


@pytest.mark.parametrize("device", first_in_ci(CLOCKS))
def test_a_draft_does_not_depend_on_the_clock_of_the_device(live, open_page, device):
    live.service.publish(our_question())
    page = open_page()
    page.clock.install(time=time.time() + CLOCKS[device])
    enter(live, page)
    frame = accept(page)
    choose(frame)
    frame.locator("textarea").fill("My comment")
    page.clock.run_for(1000)
    wait_for_draft(page, "My comment")
    page.reload()
    frame.locator("#answers input:checked").nth(3).wait_for()
    assert frame.locator("textarea").input_value() == "My comment"
    assert page.locator("#left").inner_text().startswith(("29:", "30:"))


@pytest.mark.parametrize("locale", first_in_ci(WAITING))
def test_the_deadline_keeps_what_was_typed_and_a_grace_period_takes_it(
    timed_site, open_page, locale
):
    live = timed_site(PanelStudy("pilot", "C0DE", country=False))
    service = live.service
    service.work.grace_seconds = 60
    service.publish(our_question(), duration=600)
    page = open_page(locale=locale)
    page.goto(live.study_link("pilot", "a" * 24))
    page.get_by_role("checkbox").check()
    page.locator("button.main").click()
    page.wait_for_url("**/work/assignment/*")
    first = page.url
    frame = page.frame_locator("#question")
    choose(frame)
    frame.locator("textarea").fill("My comment")
    wait_for_draft(page, "My comment")
    language = locale[:2]
    service.clock.advance(630)
    page.reload()
    grace = site_texts.text(language, "working.grace", time=site_texts.duration(language, 60))
    page.get_by_text(grace).wait_for()
    service.clock.advance(40)  # the grace period is over
    page.reload()
    page.get_by_text(site_texts.text(language, "working.expired")).wait_for()
    assert page.url != first
    frame.locator("#answers input:checked").nth(3).wait_for()
    assert frame.locator("textarea").input_value() == "My comment"
    orders = frame.locator("[data-role=shown]").evaluate_all("all => all.map(one => one.value)")
    radios = "all => all.map(one => [...one.querySelectorAll('input')].map(input => input.value).join(';'))"
    assert frame.locator("fieldset.best").evaluate_all(radios)[-2:] == orders  # after the example
    service.clock.advance(630)
    submit(frame)
    page.wait_for_url("**/work/next*")
    assert page.locator("code").inner_text() == "C0DE"
    assert [status for _, status, _ in stored(live)] == ["Abandoned", "Submitted"]


@pytest.mark.parametrize("locale", first_in_ci(WAITING))
def test_without_a_connection_the_answer_stays_and_is_sent_later(live, open_page, locale):
    for _ in range(3):
        live.service.publish(our_question())
    page = open_page(locale=locale, **PHONE)
    page.goto(live.study_link("pilot", "a" * 24))
    page.locator("#country").select_option("DE")
    page.get_by_role("checkbox").check()
    page.locator("button.main").click()
    page.wait_for_url("**/work/assignment/*")
    choose(frame := page.frame_locator("#question"))
    frame.locator("textarea").fill("Offline")
    page.context.set_offline(True)
    submit(frame)
    page.get_by_text(WAITING[locale]).wait_for()
    assert page.locator("#sending button").is_visible()
    assert frame.locator("#answers input:checked").count() == 4
    assert stored(live)[0][1] == "Accepted"
    here = page.url
    page.context.set_offline(False)
    page.wait_for_url(lambda url: url != here)
    assert [status for _, status, _ in stored(live)] == ["Submitted", "Accepted"]
    assert ("comment", "Offline") in from_xml(stored(live)[0][2])


def test_a_failing_server_gets_the_answer_again_and_stores_it_once(live, open_page):
    live.service.publish(our_question())
    page = open_page()
    enter(live, page)
    choose(frame := accept(page))
    failures = [lambda route: route.fulfill(status=503), lambda route: lose_response(route)]

    def lose_response(route):
        route.fetch()
        route.abort()

    page.route(
        "**/externalSubmit", lambda route: failures.pop(0)(route) if failures else route.continue_()
    )
    submit(frame)
    page.get_by_text("your answer has been received").wait_for()
    assert failures == []
    assert [status for _, status, _ in stored(live)] == ["Submitted"]


def test_a_page_around_the_frame_that_does_not_reply_is_not_needed(live, open_page):
    live.service.publish(our_question())
    page = open_page()
    page.route("**/work.js", lambda route: route.abort())
    enter(live, page)
    choose(frame := accept(page))
    submit(frame)
    frame.get_by_role("heading", name="Your answer has been received").wait_for()
    assert [status for _, status, _ in stored(live)] == ["Submitted"]


def test_what_a_question_demands_from_the_page_around_it_is_limited(live, open_page, elsewhere):
    """A question cannot read drafts of others, nor have answers sent to another address."""
    live.service.publish(PAGE.replace("<body>", f"""<body><script>
      for (const mturk of ["ready", "draft", "submit", "reveal", "height"])
        parent.postMessage({{ mturk, fields: "x", top: "a", address: "{elsewhere}" }}, "*");
      const got = [];
      addEventListener("message", event => got.push(event.data.mturk));
    </script>"""))  # fmt: skip
    page = open_page()
    enter(live, page)
    page.evaluate(
        "localStorage.setItem('mturk-draft:3OTHER', JSON.stringify("
        "{ worker: 'AALICE1', deadline: 1e12, fields: [['word', 'foreign']] }))"
    )
    frame = accept(page)
    frame.get_by_label("Text").fill("mine")
    wait_for_draft(page, "mine")
    assert frame.get_by_label("Word", exact=True).input_value() == ""
    assert "sending" not in frame.locator("body").evaluate("() => got")
    assert stored(live)[0][1] == "Accepted"


@pytest.mark.parametrize("width", first_in_ci([320, 390]))
def test_on_a_phone_an_incomplete_submission_shows_and_focuses_the_message(live, open_page, width):
    live.service.publish(our_question())
    page = open_page(**PHONE | {"viewport": {"width": width, "height": 568}})
    enter(live, page)
    frame = accept(page)
    choose(frame)
    frame.locator("form fieldset.worst").first.locator("input").nth(0).check()
    frame.locator("form button[type=submit]").scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    submit(frame)
    message = frame.locator("#problem-1")
    assert message.inner_text()
    assert message.evaluate("element => element === document.activeElement")
    page.wait_for_function("before => scrollY < before", arg=before)
    box = message.bounding_box()
    assert 0 <= box["y"] <= box["y"] + box["height"] <= 568
    assert stored(live)[0][1] == "Accepted"


def test_on_a_phone_a_refused_submission_shows_the_reason(live, open_page):
    live.service.publish(our_question())
    page = open_page(**PHONE)
    enter(live, page)
    frame = accept(page)
    frame.locator("form button[type=submit]").scroll_into_view_if_needed()
    frame.locator("#answers").evaluate("form => HTMLFormElement.prototype.submit.call(form)")
    heading = frame.get_by_role("heading", name="Not submitted yet")
    heading.wait_for()
    page.wait_for_function(
        "() => document.getElementById('question').getBoundingClientRect().bottom > 0"
    )
    box = heading.bounding_box()
    assert 0 <= box["y"] < 568


def test_with_a_keyboard_the_missing_answer_has_the_focus(live, open_page):
    live.service.publish(our_question())
    page = open_page()
    enter(live, page)
    frame = accept(page)
    (inside,) = [one for one in page.frames if one.parent_frame]
    frame.locator("#answers").wait_for()
    tab_to(page, "#submit", inside)
    page.keyboard.press("Enter")
    assert inside.evaluate("document.activeElement.type") == "radio"
    assert "fehlt noch eine Antwort" in frame.locator("#problem-1").inner_text()


@pytest.mark.parametrize(
    ("locale", "texts"),
    [
        ("en-GB", ["$0.25 ($15.00 per hour)", "about 1\u00a0minute", "Time limit", "30\u00a0minutes"]),
        nightly((
            "de-DE",
            ["0,25\u00a0$ (15,00\u00a0$ pro Stunde)", "etwa 1\u00a0Minute", "Zeitlimit", "30\u00a0Minuten"],
        )),
    ],
)  # fmt: skip
def test_pay_per_hour_and_duration_are_told_before_and_during_a_task(
    live, open_page, locale, texts
):
    live.service.publish(our_question())
    page = open_page(locale=locale)
    page.goto(live.site + "/work/")
    page.locator("#worker").fill("AALICE1")
    page.locator("button.main").click()
    page.locator("#country").select_option("DE")
    page.locator("button.main").click()
    for text in texts:
        assert text in page.locator(".card .facts").inner_text()
    page.locator(".card a.button").click()
    for text in texts:
        assert text in page.locator(".facts").inner_text()
    page.locator("form[action='/work/accept'] button").click()
    page.wait_for_url("**/work/assignment/*")
    for text in texts[:2]:
        assert text in page.locator(".facts").inner_text()


def test_a_task_without_a_stated_duration_has_a_time_limit_only(live, open_page):
    live.service.publish(PAGE)
    page = open_page()
    enter(live, page)
    facts = page.locator(".card .facts").inner_text()
    assert "$0.25" in facts
    assert "30\u00a0minutes" in facts
    assert "hour" not in facts
    assert "about" not in facts


def test_progress_through_a_study_and_its_duration(live, open_page):
    for _ in range(3):
        live.service.publish(our_question())
    page = open_page()
    page.goto(live.study_link("pilot", "a" * 24))
    page.get_by_text("2 tasks and takes about 2\u00a0minutes").wait_for()
    page.locator("#country").select_option("DE")
    page.get_by_role("checkbox").check()
    page.locator("button.main").click()
    for position in (1, 2):
        page.get_by_text(f"Task {position} of 2").wait_for()
        assert page.locator("progress").evaluate("bar => [bar.value, bar.max]") == [position - 1, 2]
        choose(frame := page.frame_locator("#question"))
        submit(frame)
    page.get_by_role("heading", name="Finished, thank you!").wait_for()


@pytest.mark.parametrize("locale", first_in_ci(reversed(WAITING)))
def test_a_volunteer_from_the_link_to_the_end_on_a_phone(live, open_page, locale):
    for _ in range(2):
        live.service.publish(our_question(), reward=0)
    page = open_page(locale=locale, **PHONE)
    page.goto(live.study_link("open", "").partition("?")[0])
    page.locator("#worker").fill("anna")
    page.locator("button.main").click()
    page.get_by_role("checkbox").check()
    page.locator("button.main").click()
    for _ in range(2):
        page.wait_for_url("**/work/assignment/*")
        here = page.url
        assert "$" not in page.locator("body").inner_text()
        choose(frame := page.frame_locator("#question"))
        submit(frame)
        page.wait_for_url(lambda url, here=here: url != here)
    assert page.locator("h1").inner_text() in ("Finished, thank you!", "Geschafft, vielen Dank!")
    assert page.locator("code").count() == 0
    assert [(worker, status) for worker, status, _ in stored(live)] == [("anna", "Submitted")] * 2
