"""Anchors of dialogues in a browser: by keyboard, by mouse, killed and resumed, and on small screens."""

import os
import signal

import pytest

from bws.absolute.design import plan_anchors as design
from bws.absolute.files import write_plan
from bws.files import read_tuples
from mturk.answers import expected_tuples, from_xml
from mturk.cli.publish import plan_of
from mturk.kinds.tuples.anchors import MARK, RATING
from mturk.kinds.tuples.anchors.plan import plan_anchors
from mturk.question_xml import read_question
from tests.mturk.service.site.test_accessibility import AXE, SIDEWAYS, violations
from tests.mturk.service.site.test_browser import accept, enter, stored, tab_to
from tests.mturk.service.site.test_drafts_browser import PHONE, wait_for_draft
from tests.nightly import first_in_ci

SLIDER, VALUE = "[data-role=slider]:visible", "[data-role=value]:visible"


@pytest.fixture
def question(files, tmp_path):
    """Function from a design to the question with the anchors of two dialogues."""

    def build(name):
        path = tmp_path / "plan.csv"
        write_plan(design(read_tuples(files.tuples), name), path)
        study = plan_of(str(files.tuples), str(files.dialogues), None, None)
        (hit,) = plan_anchors(path, study).hits
        return hit.question

    return build


def answers(live, xml, kind, assignment=-1):
    """Return group -> answers of a submitted assignment."""
    _, status, answer = stored(live)[assignment]
    assert status == "Submitted"
    fields = from_xml(answer)
    assert all(kind.problems(expected, fields) == [] for expected in expected_tuples(xml))
    return {expected.group: kind.answers(expected, fields) for expected in expected_tuples(xml)}


def kill(page):
    """Kill the processes of all pages of the browser; return a new page."""
    context = page.context
    session = context.browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    with page.expect_event("crash"):
        for process in processes:
            if process["type"] == "renderer":
                os.kill(process["id"], signal.SIGKILL)
    page.close()
    return context.new_page()


def resume(live, page):
    page.goto(live.site + "/work/")
    page.get_by_role("link", name="Continue").first.click()
    return page.frame_locator("#question")


def test_ratings_by_keyboard_killed_and_resumed(live, open_page, question):
    xml = question("rating:2")
    live.service.publish(xml)
    page = open_page()
    enter(live, page)
    frame = accept(page)
    frame.locator(SLIDER).wait_for()
    assert frame.locator(SLIDER).count() == 1  # the other sentence is hidden
    assert frame.locator(VALUE).input_value() == ""  # nothing is preset
    assert frame.locator(SLIDER).get_attribute("aria-valuetext") == "noch keine Antwort"
    assert frame.locator("#submit").inner_text() == "Weiter"
    tab_to(page, "[data-role=slider]", page.frames[-1])
    page.keyboard.press("Enter")  # refused without an answer
    assert "Hier fehlt eine Antwort" in frame.locator(".problem:visible").inner_text()
    page.keyboard.press("Home")
    assert frame.locator("[data-role=question]:visible .problem").inner_text() == ""
    assert frame.locator(VALUE).input_value() == "0"
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    wait_for_draft(page, '"99"')
    page = kill(page)
    frame = resume(live, page)
    frame.get_by_role("heading", name="Dialog 2 von 2").wait_for()  # the first open question
    frame.locator("#back").click()
    assert frame.locator(VALUE).input_value() == "99"
    assert frame.locator(SLIDER).input_value() == "99"
    assert frame.locator(SLIDER).evaluate("slider => document.activeElement === slider")
    page.keyboard.press("Enter")
    page.keyboard.press("Space")  # the middle, where the slider is already
    assert frame.locator(VALUE).input_value() == "50"
    page.keyboard.press("Enter")
    tab_to(page, "[data-role=skip]", page.frames[-1])
    page.keyboard.press("Space")
    assert frame.locator("#submit").inner_text() == "Antworten absenden"
    page.keyboard.press("Enter")
    page.get_by_text("your answer has been received").wait_for()
    expected = {one.group: one for one in expected_tuples(xml)}
    first, second = (one.group for one in expected_tuples(xml))
    result = answers(live, xml, RATING)
    assert list(result[first].values()) == [0, 99]
    assert list(result[second].values()) == [50]
    assert {*result[first]} == {
        *expected[first].items[:2]
    }  # the first assignment has the first slot
    assert float(dict(from_xml(stored(live)[0][2]))[f"seconds-anchor:{first}"]) > 0


def test_marks_by_keyboard_killed_and_resumed(live, open_page, question):
    xml = question("mark")
    live.service.publish(xml)
    page = open_page()
    enter(live, page)
    frame = accept(page)
    first, second = expected_tuples(xml)
    boxes = frame.locator("input[type=checkbox]:visible")
    boxes.first.wait_for()
    shown = [box.get_attribute("value") for box in boxes.all()]
    assert shown == [*first.items[:3], "yes", "yes"]  # the order of the first slot, none, skip
    tab_to(page, "[data-role=mark]", page.frames[-1])
    page.keyboard.press("Enter")
    assert "Hier fehlt eine Antwort" in frame.locator(".problem:visible").inner_text()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    wait_for_draft(page, f'"{shown[1]}"')
    page = kill(page)
    frame = resume(live, page)
    frame.get_by_role("heading", name="Dialog 2 von 2").wait_for()
    frame.get_by_role("checkbox", name="keiner").check()
    frame.locator("input[data-role=mark]:visible").nth(1).check()
    assert frame.locator("input:checked:visible").count() == 1  # instead of none
    frame.get_by_role("checkbox", name="keiner").check()
    assert frame.locator("input:checked:visible").count() == 1  # instead of marks
    frame.locator("#submit").click()
    page.get_by_text("your answer has been received").wait_for()
    result = answers(live, xml, MARK)
    assert result[first.group] == {shown[0]: 1, shown[1]: 1, shown[2]: 0}
    assert result[second.group] == dict.fromkeys(second.items[:3], 0)


def test_slots_rotate_over_the_assignments(live, open_page, question):
    xml = question("rating:2")
    live.service.publish(xml, places=4)
    slots = []
    for number in range(4):
        page = open_page()
        enter(live, page, f"AWORKER{number}")
        frame = accept(page)
        slots.append(frame.locator("[data-role=slot]").first.input_value())
        page.reload()
        assert frame.locator("[data-role=slot]").first.input_value() == slots[-1]
    assert slots == ["1", "2", "3", "1"]


def test_slots_of_other_services_depend_on_the_assignment(open_page, question, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(read_question(question("rating:2")).html, encoding="utf-8")
    page = open_page()
    slots = []
    for number in range(36):
        page.goto(f"file://{path}?assignmentId=3{number:029X}&turkSubmitTo=http://127.0.0.1:9")
        slots.append(page.locator("[data-role=slot]").first.input_value())
    counts = [slots.count(slot) for slot in ("1", "2", "3")]
    assert sum(counts) == 36
    assert min(counts) >= 4  # 12 expected, standard deviation 2.8


def test_a_click_in_the_middle_and_skipping(live, open_page, question):
    live.service.publish(question("rating:2"))
    page = open_page()
    enter(live, page)
    frame = accept(page)
    frame.locator(SLIDER).click()
    assert frame.locator(VALUE).input_value() == "50"
    frame.locator("[data-role=skip]:visible").check()
    assert frame.locator(VALUE).input_value() == ""
    assert frame.locator(".unset:visible").count() == 1
    frame.locator(SLIDER).press("PageUp")
    assert frame.locator(VALUE).input_value() == "60"
    assert not frame.locator("[data-role=skip]:visible").is_checked()


def test_a_preview_shows_the_first_question_and_sends_nothing(live, open_page, question):
    live.service.publish(question("mark"))
    page = open_page()
    enter(live, page)
    page.get_by_role("link", name="Preview").click()
    frame = page.frame_locator("#question")
    frame.locator("#submit:disabled").wait_for()
    assert frame.locator("[data-role=question]:visible").count() == 1


@pytest.mark.skipif(not AXE.exists(), reason=f"needs axe-core at {AXE}")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["rating:2", "mark"])
@pytest.mark.parametrize("size", first_in_ci([PHONE, {}], 1), ids=["phone", "desktop"])
def test_axe_finds_nothing_and_the_page_fits(open_page, question, tmp_path, scheme, name, size):
    path = tmp_path / "page.html"
    path.write_text(read_question(question(name)).html, encoding="utf-8")
    page = open_page(color_scheme=scheme, **size)
    page.goto(f"file://{path}?assignmentId=A1&turkSubmitTo=http://127.0.0.1:9")
    page.add_script_tag(path=AXE)
    assert violations(page) == []
    page.locator("#submit").click()  # the problem
    assert violations(page) == []
    page.locator("[data-role=skip]:visible").check()
    page.locator("#submit").click()
    if name != "mark":
        page.locator(SLIDER).press("End")
    assert page.locator("#back").is_visible()
    assert violations(page) == []
    assert page.evaluate(SIDEWAYS) <= 0
