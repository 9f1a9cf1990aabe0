"""Task pages: on a phone the first screen shows the dialogue; the first task shows the instructions."""

import pytest

from mturk.kinds.tuples.page import question_xml
from mturk.study.settings import Settings
from tests.mturk.service.site.test_browser import choose, enter
from tests.nightly import first_in_ci

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
START = {"de-DE": "Beginnen", "en-GB": "Start"}
CONSENT = "We study how similar utterances are. " * 3


@pytest.fixture(params=first_in_ci(sorted(START)))
def locale(request):
    return request.param


@pytest.fixture
def question(german_question, locale):
    """The German question, or the same in English; with a consent text, as in real studies."""
    from tests.mturk.service.site.conftest import german_parts

    return question_xml(german_parts(), Settings(language=locale[:2], consent=CONSENT))


def begin(live, page, locale, study):
    link = live.study_link(study, "a" * 24)
    page.goto(link if study == "pilot" else link.partition("?")[0])
    if study == "open":
        page.locator("#worker").fill("anna")
        page.locator("button.main").click()
    else:
        page.locator("#country").select_option("DE")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name=START[locale]).click()


def submit(page):
    choose(frame := page.frame_locator("#question"))
    frame.locator("[data-role=check] input").first.check()
    here = page.url
    frame.locator("form button[type=submit]").click()
    page.wait_for_url(lambda url: url != here)


def bottom_of_first_turn(page):
    """Return the distance of the end of the first turn from the top of the page, which is not scrolled."""
    turn = page.frame_locator("#question").locator("form .turn").first
    turn.wait_for()
    page.wait_for_function("() => document.querySelector('#question').clientHeight > 700")
    assert page.evaluate("scrollY") == 0
    box = turn.bounding_box()
    return box["y"] + box["height"]


@pytest.mark.parametrize("study", first_in_ci(["pilot", "open"]))
def test_the_first_turn_is_on_the_first_screen_of_a_phone(live, open_page, locale, question, study):
    """In the second task: the first one begins with the instructions."""
    for _ in range(2):
        live.service.publish(question, title="Welche Äußerung ist am ähnlichsten? Kurze Dialoge")
    page = open_page(locale=locale, **PHONE)
    begin(live, page, locale, study)
    page.wait_for_url("**/work/assignment/*")
    submit(page)
    page.wait_for_url("**/work/assignment/*")
    bottom = bottom_of_first_turn(page)
    assert bottom <= PHONE["viewport"]["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]


def test_the_instructions_are_open_for_the_first_task_only(live, open_page, question, locale):
    for _ in range(2):
        live.service.publish(question)
    page = open_page(locale=locale)
    begin(live, page, locale, "pilot")
    page.wait_for_url("**/work/assignment/*")
    instruction = page.frame_locator("#question").locator("#instruction")
    assert instruction.locator(".example").is_visible()
    page.reload()
    assert instruction.locator(".example").is_visible()
    submit(page)
    page.wait_for_url("**/work/assignment/*")
    instruction.wait_for()
    assert not instruction.locator(".example").is_visible()
    instruction.locator("summary").click()
    assert instruction.locator(".example").is_visible()


def test_the_instructions_are_open_for_the_first_task_outside_of_studies_too(
    live, open_page, german_question
):
    for _ in range(2):
        live.service.publish(german_question)
    page = open_page()
    enter(live, page)
    for is_open in (True, False):
        page.get_by_role("button", name="Accept").first.click()
        page.wait_for_url("**/work/assignment/*")
        example = page.frame_locator("#question").locator("#instruction .example")
        example.wait_for(state="visible" if is_open else "attached")
        assert example.is_visible() == is_open
        choose(frame := page.frame_locator("#question"))
        frame.locator("form button[type=submit]").click()
        page.get_by_text("your answer has been received").wait_for()
