"""Page of tuples in Chromium: keyboard, validation, order, preview, submitted fields, accessibility."""

import os
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from giccs.benchmark.items import Candidate, Dialogue, Turn
from mturk import answers
from mturk.kinds.tuples import form
from mturk.kinds.tuples.language_check import check_cloze, load_clozes
from mturk.kinds.tuples.page import Part, question_xml
from mturk.question_xml import read_question
from mturk.study.settings import Settings
from tests.nightly import first_in_ci

AXE = Path(os.environ.get("GICCS_AXE", Path(__file__).parents[4] / ".cache/axe/axe.min.js"))

HOSTILE = "<script>document.title='run'</script> ${B} ]]> \"'` \u202eabc 🙂 {{ 7*7 }}"
UNAVAILABLE = "ASSIGNMENT_ID_NOT_AVAILABLE"


def part(tuple_id, turns, names=("a;1", "b", "c%")):
    items = tuple(Candidate(name, f"Vorschlag {name} zu {tuple_id}") for name in names)
    spoken = tuple(Turn(("user", "system")[n % 2], f"Satz {n} {HOSTILE}") for n in range(turns))
    return Part(tuple_id, Dialogue(f"d-{tuple_id}", "", "", spoken, items), items)


PARTS = (part("t1", 3), part('t"2', 5, ("x", "y", "z")))
QUESTION = question_xml(PARTS, Settings(consent="Wir fragen."))
WORD = "#answers [data-role=check] input"
EXPECTED = answers.expected_tuples(QUESTION)


class Service(BaseHTTPRequestHandler):
    """Server of the page, directly or in a sandboxed frame like the service; stores submissions."""

    def do_GET(self):
        if self.path.startswith("/frame"):
            query = urlsplit(self.path).query.replace("&", "&amp;")
            self.reply(f'<iframe sandbox="allow-scripts allow-forms" src="/page?{query}"></iframe>')
        else:
            self.reply(read_question(QUESTION).html)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.sent.append((self.path, parse_qsl(body, keep_blank_values=True)))
        self.reply("<title>danke</title>")

    def reply(self, html):
        data = html.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.sent = []
    server.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(chromium, service):
    service.sent.clear()
    errors = []
    opened = chromium.new_page()
    opened.on("pageerror", lambda error: errors.append(error))
    opened.set_default_timeout(60_000)
    yield opened
    opened.close()
    assert not errors


def address(service, assignment="A1", path="page"):
    submit = f"{service.address}/submit/token"
    return f"{service.address}/{path}?assignmentId={assignment}&hitId=H&workerId=W&turkSubmitTo={submit}"


def radio(page, field, item):
    return page.locator(f'#answers input[name={quoted(field)}][value="{item}"]')


def quoted(text):
    return "'" + text + "'"


def answer(page, choices):
    for (best, worst), expected in zip(choices, EXPECTED, strict=True):
        radio(page, form.best_field(expected.tuple_id), best).check()
        radio(page, form.worst_field(expected.tuple_id), worst).check()
    page.locator(WORD).nth(1).check()


def test_answers_by_mouse(page, service):
    page.goto(address(service, "A7"))
    answer(page, [("a;1", "c%"), ("z", "x")])
    page.locator("#comment").fill("Schön 🙂\nund <gut>")
    page.locator("#submit").click()
    page.wait_for_url("**/mturk/externalSubmit")
    [(path, fields)] = service.sent
    assert path == "/submit/token/mturk/externalSubmit"
    first, second = form.tuple_answers(EXPECTED, fields)
    assert (first.best, first.worst, second.best, second.worst) == ("a;1", "c%", "z", "x")
    assert sorted(first.shown_order) == ["a;1", "b", "c%"]
    assert first.seconds >= 0
    assert second.seconds >= 0
    assert dict(fields)["assignmentId"] == "A7"
    assert check_cloze(fields, load_clozes(Settings())) is not None
    assert answers.read_comment(fields) == "Schön 🙂\r\nund <gut>"
    assert answers.from_xml(answers.to_xml(fields)) == fields


def test_answers_by_keyboard(page, service):
    page.goto(address(service))
    for keys in ("Tab", "Tab", "Tab"):  # the two details, then the first question
        page.keyboard.press(keys)
    for question in ("best", "worst", "best", "worst", "german"):
        assert page.evaluate("document.activeElement.name").startswith(f"{question}-")
        page.keyboard.press("Space")  # the first one shown
        page.keyboard.press("ArrowDown")  # the second
        if question == "worst":
            page.keyboard.press("ArrowDown")  # the third
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "comment"
    page.keyboard.type("getippt")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/mturk/externalSubmit")
    [(_, fields)] = service.sent
    for result in form.tuple_answers(EXPECTED, fields):
        assert (result.best, result.worst) == (result.shown_order[1], result.shown_order[2])


def problem(page, number):
    return page.locator(f"#problem-{number}").inner_text()


def test_equal_best_and_worst_are_refused(page, service):
    page.goto(address(service))
    answer(page, [("b", "b"), ("x", "y")])
    assert "dieselbe Äußerung" in problem(page, 1)
    assert problem(page, 2) == ""
    page.locator("#submit").click()
    assert page.evaluate("document.activeElement.name") == "worst-t1"
    assert service.sent == []
    fieldset = radio(page, "worst-t1", "b").locator("xpath=ancestor::fieldset")
    assert fieldset.get_attribute("aria-describedby") == "problem-1"
    radio(page, "worst-t1", "c%").check()
    assert problem(page, 1) == ""
    page.locator("#submit").click()
    page.wait_for_url("**/mturk/externalSubmit")
    assert len(service.sent) == 1


def test_missing_answers_are_reported_and_focused(page, service):
    page.goto(address(service))
    radio(page, "best-t1", "b").check()
    page.locator("#submit").click()
    assert "fehlt noch eine Antwort" in problem(page, 1)
    assert "fehlt noch eine Antwort" in problem(page, 2)
    assert page.evaluate("document.activeElement.name") == "worst-t1"
    assert service.sent == []


def test_language_check_is_required(page, service):
    page.goto(address(service))
    answer(page, [("b", "c%"), ("x", "y")])
    page.locator(WORD).nth(1).evaluate("box => { box.checked = false; }")
    page.locator("#submit").click()
    assert problem(page, "check") == "Bitte wählen Sie ein Wort für die Lücke aus."
    assert page.evaluate("document.activeElement.name").startswith("german-")
    page.locator(WORD).nth(0).check()
    assert problem(page, "check") == ""
    assert service.sent == []


@pytest.mark.parametrize(
    "query",
    [
        "",
        f"?assignmentId={UNAVAILABLE}&hitId=H&turkSubmitTo=http://127.0.0.1:9",
        "?assignmentId=A1",
        "?assignmentId=A1&turkSubmitTo=javascript:alert(1)",
    ],
)
def test_preview_cannot_be_submitted(page, service, query):
    page.goto(f"{service.address}/page{query}")
    assert page.locator("#submit").is_disabled()
    assert page.locator("#preview-note").is_visible()
    assert page.locator("#instruction").get_attribute("open") is not None
    answer(page, [("b", "c%"), ("x", "y")])
    page.evaluate("document.getElementById('answers').requestSubmit()")
    assert page.title() != "danke"
    assert service.sent == []


def orders(page):
    script = "Array.from(document.querySelectorAll('[data-role=shown]'), field => field.value)"
    recorded = [form.split_shown(value) for value in page.evaluate(script)]
    for expected, order in zip(EXPECTED, recorded, strict=True):
        for field in (form.best_field, form.worst_field):
            boxes = page.locator(f"#answers input[name={quoted(field(expected.tuple_id))}]")
            assert boxes.evaluate_all("all => all.map(one => one.value)") == [*order]
    return recorded


def test_order_is_recorded_and_stable(page, service):
    page.goto(address(service, "A1"))
    first = orders(page)
    page.reload()
    assert orders(page) == first


def test_orders_are_uniform_over_assignments(page, service):
    drawn = []
    for number in range(48):
        page.goto(address(service, f"3{number:029X}"))
        drawn += [("first", orders(page)[0]), ("second", orders(page)[1])]
    counts = Counter(drawn)
    assert len(counts) == 12  # six orders of each tuple
    assert max(counts.values()) < 20  # 8 expected of 48, standard deviation 2.6


def test_hostile_texts_are_inert(page, service):
    page.goto(address(service))
    texts = page.locator("#answers .utterance").all_text_contents()
    assert texts == [turn.text for part in PARTS for turn in part.dialogue.turns]
    assert page.title() == "Welche Äußerung ist am ähnlichsten?"


def test_questions_have_accessible_names(page, service):
    page.goto(address(service))
    name = "Welche Äußerung ist der letzten Äußerung am unähnlichsten?"
    groups = page.get_by_role("group", name=name, exact=True)
    assert groups.count() == 2
    option = groups.nth(0).get_by_role("radio", name="Vorschlag b zu t1", exact=True)
    option.check()
    assert radio(page, "worst-t1", "b").is_checked()
    last = page.locator("#answers .chat").nth(1).get_by_role("listitem").last
    assert last.inner_text().split("\n")[:2] == ["Letzte Äußerung", "Person"]


def test_example_is_not_submitted(page, service):
    page.goto(address(service))
    page.locator("#instruction summary").click()
    example = page.locator(".example")
    assert example.get_by_role("radio").count() == 6
    assert example.locator("input:checked").count() == 2
    assert all(not box.is_enabled() for box in example.get_by_role("radio").all())
    assert example.get_by_text("(richtige Antwort)").count() == 2


def test_page_in_sandboxed_frame(page, service):
    page.goto(address(service, path="frame"))
    frame = page.frame_locator("iframe")
    for expected in EXPECTED:
        boxes = frame.locator("#answers")
        best = quoted(form.best_field(expected.tuple_id))
        worst = quoted(form.worst_field(expected.tuple_id))
        boxes.locator(f"input[name={best}]").nth(0).check()
        boxes.locator(f"input[name={worst}]").nth(2).check()
    frame.locator(WORD).nth(0).check()
    with page.expect_response("**/mturk/externalSubmit"):
        frame.locator("#submit").click()
    [(_, fields)] = service.sent
    for result in form.tuple_answers(EXPECTED, fields):
        assert (result.best, result.worst) == (result.shown_order[0], result.shown_order[2])


def test_page_fits_window(page, service):
    page.goto(f"{service.address}/page")
    widths = (320, 390, 1200)
    needed = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        needed.append(page.evaluate("document.documentElement.scrollWidth"))
    assert all(one <= width for one, width in zip(needed, widths, strict=True)), needed


@pytest.mark.skipif(not AXE.exists(), reason=f"needs axe-core at {AXE} (or GICCS_AXE)")
@pytest.mark.parametrize(
    ("scheme", "width"),
    first_in_ci([("light", 390), ("dark", 1200), ("light", 1200), ("dark", 390)], 2),
)
def test_axe_finds_nothing(chromium, service, scheme, width):
    context = chromium.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 844}, bypass_csp=True
    )
    page = context.new_page()
    for view in (f"{service.address}/page", address(service)):
        page.goto(view)
        if view != address(service):
            page.locator("summary").first.click()
        else:
            answer(page, [("b", "b"), ("x", "y")])
            page.locator("#submit").click()
        page.add_script_tag(path=AXE)
        result = page.evaluate("axe.run()")
        assert len(result["passes"]) > 15
        assert [
            (violation["id"], violation["nodes"][0]["html"]) for violation in result["violations"]
        ] == []
    context.close()
