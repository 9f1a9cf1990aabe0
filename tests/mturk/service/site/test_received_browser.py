"""A cookie that is lost during a task, and a survey that redirects to the submission, in a browser."""

import pytest

from mturk.answers import from_xml
from mturk.service.site import texts
from mturk.service.site.studies import PanelStudy
from tests.mturk.service.site.test_browser import stored
from tests.mturk.service.site.test_received import SURVEY
from tests.nightly import first_in_ci

LANGUAGES = {"de": "de-DE", "en": "en-GB"}
STUDY = PanelStudy("pilot", "C0DE", country=False)


def begin(live, page):
    page.goto(live.study_link("pilot", "a" * 24))
    page.get_by_role("checkbox").check()
    page.locator("button.main").click()
    page.wait_for_url("**/work/assignment/*")


@pytest.mark.parametrize("language", first_in_ci(LANGUAGES))
def test_the_cookie_is_lost_during_a_task(timed_site, open_page, language):
    live = timed_site(STUDY)
    live.service.publish()
    page = open_page(locale=LANGUAGES[language])
    begin(live, page)
    frame = page.frame_locator("#question")
    frame.locator("input[name=answer]").fill("yes")
    page.context.clear_cookies()
    frame.locator("button").click()
    page.get_by_role("heading", name=texts.text(language, "submit.done")).wait_for()
    words = page.locator("main").inner_text()
    assert texts.text(language, "received.stored") in words
    assert texts.text(language, "received.link") in words
    assert [status for _, status, _ in stored(live)] == ["Submitted"]
    page.goto(live.study_link("pilot", "a" * 24))
    page.locator("button.main").click()
    assert page.locator("code").inner_text() == "C0DE"


@pytest.mark.parametrize("language", first_in_ci(reversed(LANGUAGES)))
def test_a_survey_ends_with_a_redirect(timed_site, open_page, elsewhere, language):
    live = timed_site(STUDY)
    live.service.publish(SURVEY.replace("https://survey.example/s", f"{elsewhere}/redirect"))
    page = open_page(locale=LANGUAGES[language])
    begin(live, page)
    page.frame_locator("#question").locator("button").click()
    page.wait_for_url("**/work/next*")
    assert page.locator("code").inner_text() == "C0DE"
    assert from_xml(stored(live)[0][2]) == [("code", "R_1")]
