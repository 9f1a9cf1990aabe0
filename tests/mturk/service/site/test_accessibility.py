"""axe-core finds nothing serious on any kind of page, in both languages and both colour schemes."""

import json
from pathlib import Path

import pytest

from tests.nightly import first_in_ci

AXE = Path(__file__).parents[4] / ".cache" / "axe" / "axe.min.js"
COLOUR_RULES = ["color-contrast", "link-in-text-block"]  # those on which a scheme bears
GERMAN_ONLY = {
    "QualificationTypeId": "00000000000000000071", "Comparator": "EqualTo",
    "LocaleValues": [{"Country": "DE"}],
}  # fmt: skip
FORM = (
    '<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2017-11-06/'
    'QuestionForm.xsd"><Overview><Title>About you</Title><Text>A few questions.</Text><List>'
    "<ListItem>Short</ListItem><ListItem>Voluntary</ListItem></List></Overview>"
    "<Question><QuestionIdentifier>q1</QuestionIdentifier><IsRequired>true</IsRequired><QuestionContent>"
    "<Text>What does „deshalb“ mean?</Text></QuestionContent><AnswerSpecification><SelectionAnswer>"
    "<StyleSuggestion>radiobutton</StyleSuggestion><Selections><Selection><SelectionIdentifier>a"
    "</SelectionIdentifier><Text>therefore</Text></Selection><Selection><SelectionIdentifier>b"
    "</SelectionIdentifier><Text>although</Text></Selection></Selections></SelectionAnswer>"
    "</AnswerSpecification></Question>"
    "<Question><QuestionIdentifier>q2</QuestionIdentifier><QuestionContent><Text>Which languages do you "
    "speak?</Text></QuestionContent><AnswerSpecification><SelectionAnswer><MinSelectionCount>0"
    "</MinSelectionCount><MaxSelectionCount>2</MaxSelectionCount><StyleSuggestion>checkbox"
    "</StyleSuggestion><Selections><Selection><SelectionIdentifier>de</SelectionIdentifier><Text>German"
    "</Text></Selection><Selection><SelectionIdentifier>en</SelectionIdentifier><Text>English</Text>"
    "</Selection><OtherSelection/></Selections></SelectionAnswer></AnswerSpecification></Question>"
    "<Question><QuestionIdentifier>q3</QuestionIdentifier><QuestionContent><Text>Anything else?</Text>"
    "</QuestionContent><AnswerSpecification><FreeTextAnswer><Constraints><Length minLength='3' "
    "maxLength='200'/></Constraints><NumberOfLinesSuggestion>3</NumberOfLinesSuggestion>"
    "</FreeTextAnswer></AnswerSpecification></Question></QuestionForm>"
)


def fill(service, question):
    """Create an object of every kind for the pages."""
    for _ in range(3):
        service.publish(
            question, title="Welche Äußerung ist am ähnlichsten?",
            description="Lesen Sie zwei kurze Dialoge und vergleichen Sie je drei Äußerungen.",
            keywords="Deutsch, Dialog, Ähnlichkeit",
        )  # fmt: skip
    service.publish(FORM, title="About you", reward=120, duration=5400)
    service.publish(title="Nur aus Deutschland", qualifications=[GERMAN_ONLY])
    service.qualify("Deutschkenntnisse", test=FORM)
    service.qualify("Zuverlässigkeit")
    service.write(
        "AALICE1", "Vielen Dank!", "Ihre Antworten waren sehr sorgfältig.\n\nIhre Studienleitung"
    )


def tour(live, page):
    """Visit every kind of page as a worker from Austria; yield the name of each."""
    page.goto(live.site + "/work/")
    yield "entry"
    page.locator("#worker").fill("no body")
    page.locator("button.main").click()
    yield "entry-wrong"
    page.locator("#worker").fill("AALICE1")
    page.locator("button.main").click()
    page.wait_for_url("**/work/start")
    yield "start"
    page.locator("#country").select_option("AT")
    page.locator("button.main").click()
    page.wait_for_url("**/work/")
    yield "list"
    page.goto(live.site + "/work/nowhere")
    yield "error"
    yield from working(live, page)
    for name in ("history", "messages", "qualifications"):
        page.goto(f"{live.site}/work/{name}")
        yield name
    page.locator("a.main").click()
    page.wait_for_url("**/work/qualification/*")
    yield "test"
    page.locator("form.questions").evaluate(
        "form => { form.noValidate = true; form.requestSubmit(); }"
    )
    page.locator("[role=alert]").wait_for()
    yield "test-wrong"
    yield from study(live, page)


def working(live, page):
    card = page.locator(".card", has_text="Welche Äußerung")
    page.goto(live.site + "/work/")
    card.locator("a.button").click()
    frame = page.frame_locator("#question")
    frame.locator("#answers").wait_for()
    yield "preview"
    page.goto(live.site + "/work/")
    card.locator("button.main").click()
    frame.locator("#answers").wait_for()
    yield "assignment"
    frame.locator("#answers").evaluate("form => HTMLFormElement.prototype.submit.call(form)")
    frame.locator(".outcome").wait_for()
    yield "refused"
    page.reload()
    address = page.locator("#question").get_attribute("src")
    for part in range(2):
        for choice, index in (("best", 0), ("worst", 1)):
            frame.locator(f"form fieldset.{choice}").nth(part).locator("input").nth(index).check()
    frame.locator("form button[type=submit]").click()
    page.locator(".notice").wait_for()
    yield "received"
    page.goto(live.site + "/work/")
    page.locator(".card", has_text="About you").locator("button.main").click()
    frame.locator("form.questions").wait_for()
    yield "question-form"
    page.locator("#question").evaluate("(frame, address) => { frame.src = address; }", address)
    frame.locator("#answers").wait_for()
    page.locator("#continue").evaluate("form => form.remove()")  # so that the answer stays in view
    frame.locator("#answers").evaluate("form => HTMLFormElement.prototype.submit.call(form)")
    frame.locator(".outcome").wait_for()
    yield "received-again"


def study(live, page):
    page.goto(live.study_link("pilot", "5f3c1a2b4d5e6f708192a3b4"))
    yield "study-start"
    page.locator("#country").select_option("DE")
    page.locator("[name=consent]").check()
    page.locator("button.main").click()
    page.wait_for_url("**/work/assignment/*")
    worker = "APROLIFIC5F3C1A2B4D5E6F708192A3B4"
    for _ in range(2):  # the question is tried elsewhere; here what comes after it counts
        if not (open_assignments := live.service.work.open_assignments(worker)):
            page.goto(live.site + "/work/next")
            open_assignments = live.service.work.open_assignments(worker)
        live.service.work.submit(open_assignments[0].assignment_id, worker, [("answer", "x")])
    page.goto(live.site + "/work/next")
    yield "finished"
    page.goto(live.site + "/work/withdraw")
    yield "withdraw"
    yield from volunteer(live, page)
    page.goto(live.study_link("asking", "6f3c1a2b4d5e6f708192a3b4"))
    page.locator("[name=consent]").check()
    page.locator("#question-age").fill("12")
    page.locator("form.card").evaluate("form => { form.noValidate = true; }")
    page.locator("form.card button.main").click()
    page.locator(".wrong").first.wait_for()
    yield "questions"
    page.locator("[name=decline]").click()
    page.locator(".code").wait_for()
    yield "ended"


def volunteer(live, page):
    page.goto(live.study_link("open", "").partition("?")[0])
    page.locator("#worker").fill("no body")
    page.locator("button.main").click()
    page.locator("#worker-wrong").wait_for()
    yield "volunteer-name"
    page.locator("#worker").fill("anna")
    page.locator("button.main").click()
    page.wait_for_url("**/work/start")
    yield "volunteer-start"
    page.locator("[name=consent]").check()
    page.locator("button.main").click()
    page.wait_for_url("**/work/assignment/*")
    page.frame_locator("#question").locator("form").wait_for()
    yield "volunteer-assignment"
    page.context.set_offline(True)
    page.frame_locator("#question").locator("form").evaluate(
        "form => HTMLFormElement.prototype.submit.call(form)"
    )
    page.locator("#sending button").wait_for()
    yield "offline"
    page.context.set_offline(False)
    page.goto(live.site + "/work/history")
    yield "volunteer-history"


def violations(frame, **options):
    """Run axe-core in a document and return serious and critical violations."""
    options |= {"iframes": False, "resultTypes": ["violations"]}
    result = frame.evaluate(
        "options => axe.run(document, options).then(result => result.violations)", options
    )
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]}"
        for one in result
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


PHONE, DESKTOP = {"width": 320, "height": 568}, {"width": 1280, "height": 720}
"""Sizes in CSS pixels; 320 is also the width of a page of 1280 pixels at a zoom of 400 % (WCAG 1.4.10)."""
SIDEWAYS = """() => [document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ...Array.from(document.querySelectorAll("main *"), element => element.closest(".scroll, .hidden") ? 0
        : element.getBoundingClientRect().right - document.documentElement.clientWidth)]
    .reduce((one, other) => Math.max(one, other))"""


@pytest.mark.parametrize("locale", first_in_ci(["de-DE", "en-GB"]))
def test_no_page_keeps_people_out_or_scrolls_sideways_on_a_phone(
    live, open_page, german_question, locale
):
    fill(live.service, german_question)
    page = open_page(locale=locale, reduced_motion="reduce", viewport=DESKTOP)
    if AXE.exists():
        page.add_init_script(path=AXE)
    seen, wide, wrong = [], {}, {}
    for name in tour(live, page):
        seen.append(name)
        for number, frame in enumerate(page.frames):
            frame.wait_for_load_state()
            place = f"{name}, document {number}"
            page.set_viewport_size(PHONE)
            if (excess := frame.evaluate(SIDEWAYS)) > 0.5:
                wide[place] = excess
            page.set_viewport_size(DESKTOP)
            if AXE.exists():
                wrong |= violations_of_schemes(page, frame, place)
    assert len(seen) == 26
    assert wide == {}
    if not AXE.exists():
        pytest.skip("axe-core is not there; `make test` fetches it with npm into .cache/axe")
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


def violations_of_schemes(page, frame, place):
    """Return the violations of a document with each colour scheme that has some."""
    result = {}
    for scheme, rules in (("light", {}), ("dark", {"runOnly": COLOUR_RULES})):
        page.emulate_media(color_scheme=scheme)
        if found := violations(frame, **rules):
            result[f"{place}, {scheme}"] = found
    return result
