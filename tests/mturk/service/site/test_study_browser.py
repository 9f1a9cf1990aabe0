"""Consent, questions, codes and messages of a study in a real browser, in German and English."""

import pytest

from mturk.cli import main
from mturk.service.rules.inquiries import Inquiries
from tests.mturk.service.site.test_browser import choose, our_question, stored
from tests.nightly import first_in_ci

WORDS = {
    "en-GB": {
        "age": "How old are you", "language": "first language", "german": "German", "yes": "Yes",
        "begin": "Start", "decline": "I do not agree", "out": "Thank you for your interest",
        "write": "Write to the researchers (new tab)", "subject": "Subject", "text": "Message",
        "send": "Send message", "sent": "Your message has been sent.", "messages": "Messages",
        "refused": "You are not taking part",
    },
    "de-DE": {
        "age": "Wie alt sind Sie", "language": "Erstsprache", "german": "Deutsch", "yes": "Yes",
        "begin": "Beginnen", "decline": "Ich bin nicht einverstanden",
        "out": "Vielen Dank für Ihr Interesse",
        "write": "An die Studienleitung schreiben (neuer Tab)", "subject": "Betreff", "text": "Nachricht",
        "send": "Nachricht senden", "sent": "Ihre Nachricht wurde gesendet.", "messages": "Nachrichten",
        "refused": "Sie nehmen nicht teil",
    },
}  # fmt: skip


@pytest.fixture(params=first_in_ci(sorted(WORDS)))
def browser(request, live, open_page):
    """A page in a language, with its texts, and a function that opens the start page."""
    for _ in range(3):
        live.service.publish(our_question())
    page = open_page(locale=request.param)

    def start(digit):
        page.goto(live.study_link("asking", digit * 24))
        return page

    return start, WORDS[request.param]


def answer(page, words, age):
    page.get_by_role("checkbox").check()
    page.get_by_label(words["age"]).fill(age)
    page.get_by_label(words["language"]).select_option(label=words["german"])
    page.get_by_role("radio", name=words["yes"]).check()
    page.get_by_role("button", name=words["begin"]).click()


def test_from_consent_and_questions_to_the_code_of_each_outcome(live, browser):
    start, words = browser
    page = start("a")
    page.get_by_role("button", name=words["decline"]).click()
    page.get_by_role("heading", name=words["refused"]).wait_for()
    assert page.locator("code").inner_text() == "NO-42"

    page = start("b")
    answer(page, words, "17")
    page.get_by_role("heading", name=words["out"]).wait_for()
    assert page.locator("code").inner_text() == "OUT-42"
    page.go_back()
    page.goto(live.site + "/work/start")
    page.goto(live.site + "/work/next")
    assert page.locator("code").inner_text() == "OUT-42"
    assert stored(live) == []

    page = start("c")
    answer(page, words, "18")
    page.wait_for_url("**/work/assignment/*")
    choose(frame := page.frame_locator("#question"))
    frame.locator("form button[type=submit]").click()
    page.wait_for_url("**/work/next*")
    assert page.locator("code").inner_text() == "C1"


def test_writing_to_the_researchers_keeps_the_answers_of_the_task(live, browser):
    start, words = browser
    page = start("d")
    answer(page, words, "30")
    page.wait_for_url("**/work/assignment/*")
    choose(frame := page.frame_locator("#question"))
    with page.expect_popup() as opened:
        page.get_by_role("link", name=words["write"]).click()
    letter = opened.value
    letter.get_by_label(words["subject"]).fill("<b>The page</b>")
    letter.get_by_label(words["text"], exact=True).fill("One.\nTwo & three.")
    letter.get_by_role("button", name=words["send"]).click()
    letter.get_by_text(words["sent"]).wait_for()
    with page.expect_popup():
        page.get_by_role("navigation").get_by_role("link", name=words["messages"]).click()
    assert frame.locator("#answers input:checked").count() == 4

    [row] = Inquiries(live.service.database, live.service.clock).rows(actor="test")
    assert (row.subject, row.text) == ("<b>The page</b>", "One.\nTwo & three.")
    db = str(live.service.database.url.database)
    main(["reply", str(row.number), "Thank <you>.", "--db", db], standalone_mode=False)
    letter.reload()
    assert letter.locator(".letter").text_content() == "Thank <you>."
    assert letter.locator("h2").first.text_content() == "Re: <b>The page</b>"
