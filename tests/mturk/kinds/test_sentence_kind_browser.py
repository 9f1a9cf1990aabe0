"""Pages of sentence pairs in Chromium at the worker website: keyboard, validation, accessibility."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from giccs.csts.cli import main as csts
from giccs.csts.data import read_relabelled
from mturk.kinds import get_kind
from mturk.kinds.conditions import find_remark
from mturk.kinds.pages import preview_page
from mturk.study.settings_file import SettingsFile
from tests.nightly import first_in_ci

AXE = Path(os.environ.get("GICCS_AXE", Path(__file__).parents[3] / ".cache/axe/axe.min.js"))
KITE = ('A <b>red</b> kite, "high".', "A red bus ${B} ]]> stops 🙂.")


@pytest.fixture
def page(chromium):
    errors = []
    context = chromium.new_context(locale="en-GB")
    context.set_default_timeout(60_000)
    opened = context.new_page()
    opened.on("pageerror", lambda error: errors.append(error))
    yield opened
    context.close()
    assert not errors


def accepted(page, study, worker="AALICE1"):
    """Enter, accept the first HIT, and return the frame with its question."""
    page.goto(f"{study.url}/work/")
    page.get_by_label("Worker ID").fill(worker)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("In which country do you live?").select_option("DE")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Accept").first.click()
    page.wait_for_url("**/work/assignment/*")
    frame = page.frame_locator("#question")
    frame.locator("#submit:enabled").wait_for()
    return frame


def said(frame, place):
    return frame.locator(f"#{place}").inner_text()


def focused(frame):
    return frame.locator(":focus").get_attribute("id") or frame.locator(":focus").get_attribute(
        "name"
    )


def sent_past_the_page(page, frame):
    """Submit the form without the validation of the page; return the server's response."""
    frame.locator("#answers").evaluate("form => HTMLFormElement.prototype.submit.call(form)")
    frame.locator("#answers").wait_for(state="detached")  # the page of the task has list items too
    frame.locator("li").first.wait_for()
    return frame.locator("li").all_inner_texts()


def test_conditions_by_keyboard(page, study, pairs_csv):
    study.publish("conditions", pairs_csv, pairs_per_hit=3)
    frame = accepted(page, study)
    order = frame.locator(".part[data-role=part]").count()
    assert order == 3
    shown = frame.locator("#answers .pair .text").all_text_contents()
    assert set(KITE) <= set(shown)
    frame.locator("#high-1").focus()
    for number in (1, 2, 3):
        page.keyboard.type(f"respect {'abc'[number - 1]}")
        page.keyboard.press("Tab")
        assert focused(frame) == f"low-{number}"
        if number > 1:
            page.keyboard.type("the mood")
        page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # past the comment
    assert focused(frame) == "submit"
    page.keyboard.press("Enter")
    assert "A phrase is missing here" in said(frame, "problem-1")
    assert said(frame, "problem-2") == ""
    assert focused(frame) == "low-1"
    page.keyboard.type("Respect A.")
    page.keyboard.press("Enter")
    assert "Both phrases are the same" in said(frame, "problem-1")
    assert study.answers() == []
    page.keyboard.press("Control+A")
    page.keyboard.type("the two sizes")
    assert said(frame, "problem-1") == ""
    page.keyboard.press("Enter")  # a remark holds it up once
    assert "“two” may already be a value" in said(frame, "remark-low-1")
    assert focused(frame) == "low-1"
    assert study.answers() == []
    page.keyboard.press("Enter")
    page.get_by_text("your answer has been received").wait_for()
    [fields] = study.answers()
    assert sorted(text for name, text in fields.items() if name.startswith("high")) == [
        "respect a", "respect b", "respect c",
    ]  # fmt: skip
    # rounded to 0.1 s: a fast machine fills in one part in 0.0 s
    assert sum(float(text) for name, text in fields.items() if name.startswith("seconds")) > 0


def test_server_validates_like_page(page, study, pairs_csv):
    study.publish("conditions", pairs_csv, pairs_per_hit=3)
    frame = accepted(page, study)
    for number in (1, 2):
        frame.locator(f"#high-{number}").fill("the size")
        frame.locator(f"#low-{number}").fill("The size.")
    result = sent_past_the_page(page, frame)
    assert sum("both conditions are the same" in one for one in result) == 2
    assert sum("similarity is missing" in one for one in result) == 2
    assert study.answers() == []


def test_verification_by_keyboard(page, study, triplets_csv):
    study.publish("verification", triplets_csv, pairs_per_hit=4)
    frame = accepted(page, study)
    frame.locator("#submit").press("Enter")
    problems = [said(frame, f"problem-{number}") for number in (1, 2, 3, 4)]
    assert all("An answer is missing here" in problem for problem in problems)
    assert focused(frame).startswith("label-")
    assert study.answers() == []
    page.keyboard.press("Space")  # level 1 of the first triplet
    page.keyboard.press("ArrowDown")
    assert said(frame, "problem-1") == ""
    for number in (2, 3):
        page.keyboard.press("Tab")  # the box
        assert focused(frame).startswith("not-applicable-")
        page.keyboard.press("Tab")  # the levels
        page.keyboard.press("Space")
        assert said(frame, f"problem-{number}") == ""
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # the last one does not apply
    assert frame.locator(".levels").nth(3).locator("input").first.is_disabled()
    page.keyboard.press("Tab")  # past the levels, to the comment
    assert focused(frame) == "comment"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("your answer has been received").wait_for()
    [fields] = study.answers()
    labels = sorted(text for name, text in fields.items() if name.startswith("label-"))
    assert labels == ["1", "1", "2"]
    assert [text for name, text in fields.items() if name.startswith("not-")] == ["yes"]


def test_box_clears_level_and_server_refuses_both(page, study, triplets_csv):
    study.publish("verification", triplets_csv, pairs_per_hit=4)
    frame = accepted(page, study)
    levels = frame.locator(".levels").first.locator("input")
    box = frame.locator("[data-role=not-applicable]").first
    levels.nth(4).check()
    box.check()
    assert not levels.nth(4).is_checked()
    box.uncheck()
    assert levels.nth(4).is_enabled()
    box.evaluate("box => { box.checked = true; }")
    levels.nth(4).evaluate("level => { level.checked = true; }")
    result = sent_past_the_page(page, frame)
    assert sum("has label 5 and does not apply; expected only one" in one for one in result) == 1
    assert sum("missing answer" in one for one in result) == 3
    assert study.answers() == []


RELABELLED = {  # (label, whether the condition is binary) of three annotators; None: invalid
    "u1": [(5, True), (5, True), (3, True)],
    "u2": [(1, True), (3, True), (2, False)],
    "u3": [(5, False), (4, False), (5, False)],
    "u4": [(None, False), (None, False), (2, False)],
}


def answer_by_keyboard(page, frame, answers):
    """Answer all triplets of a page of a relabelling from the keyboard, and submit."""
    names = [box.get_attribute("name") for box in frame.locator("[data-role=not-applicable]").all()]
    frame.locator("[data-role=not-applicable]").first.focus()
    for name in names:
        assert focused(frame) == name
        uid = name.removeprefix("not-applicable-")
        label, is_binary = answers[uid]
        if label is None:
            page.keyboard.press("Space")
        else:
            page.keyboard.press("Tab")
            assert focused(frame) == f"binary-{uid}"
            if is_binary:
                page.keyboard.press("Space")
            page.keyboard.press("Tab")
            page.keyboard.press("Space")  # level 1
            for _ in range((label - 1) // (2 if is_binary else 1)):  # levels 2 and 4 are disabled
                page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
    assert focused(frame) == "comment"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("your answer has been received").wait_for()


def test_relabelling_by_three_annotators_gives_the_reannotated_file(page, study, triplets_csv):
    study.publish("relabel", triplets_csv, pairs_per_hit=4)
    for number in range(3):
        frame = accepted(page, study, f"AANNOTATOR{number}")
        answers = {uid: labels[number] for uid, labels in RELABELLED.items()}
        answer_by_keyboard(page, frame, answers)
        page.context.clear_cookies()
    study.run("review", "--ledger", study.ledger, "--approve-submitted")
    collected, labels = study.collect("relabel.csv"), study.folder / "reannotated.tsv"

    def run(*arguments):
        done = CliRunner().invoke(csts, [*map(str, arguments), "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    document = run("verified", collected, "--relabelled", labels)
    assert labels.read_bytes().startswith(b"uid\treannotated-label\n")
    # medians 5, 2, 5; u2 is binary: 1 and 3 are equally near to its mean 2; u4: two of three are invalid
    assert read_relabelled(labels) == {"u1": 5, "u2": 1, "u3": 5, "u4": -1}
    kappas = {name: kappa["value"] for name, kappa in document["kappa"].items()}
    # u1 to u4 agree 2/6, 0, 2/6, 2/6; shares of 5, 3, 1, 2, 4, none: 4, 2, 1, 2, 1, 2 of 12
    assert kappas["answer"] == pytest.approx((36 - 30) / (144 - 30))
    # 1, 1, 1, 2/6; shares 10 and 2 of 12
    assert kappas["applies"] == pytest.approx((5 / 6 - 104 / 144) / (1 - 104 / 144))
    # u1 to u3, as everybody labels them: 1, 2/6, 1; shares 5 and 4 of 9
    assert kappas["binary"] == pytest.approx((7 / 9 - 41 / 81) / (1 - 41 / 81))
    checked = run("check", triplets_csv, "--relabelled", labels)["relabelled"]
    assert checked["labels"] == {"1": 1, "2": 0, "3": 0, "4": 0, "5": 2, "-1": 1}
    assert (checked["valid"], checked["changed"], checked["invalid"]) == (3, 1, 1)  # u3: 4 to 5


def test_binary_condition_clears_levels_and_server_refuses_them(page, study, triplets_csv):
    study.publish("relabel", triplets_csv, pairs_per_hit=4)
    frame = accepted(page, study)
    levels = frame.locator(".levels").first.locator("input")
    box = frame.locator("[data-role=not-applicable]").first
    binary = frame.locator("[data-role=binary]").first
    levels.nth(3).check()
    binary.check()
    assert not levels.nth(3).is_checked()
    assert [level.is_enabled() for level in levels.all()] == [True, False, True, False, True]
    box.check()
    assert not binary.is_checked()
    assert binary.is_disabled()
    assert levels.first.is_disabled()
    box.uncheck()
    assert all(level.is_enabled() for level in levels.all())
    binary.evaluate("box => { box.checked = true; }")
    levels.nth(3).evaluate("level => { level.checked = true; }")
    result = sent_past_the_page(page, frame)
    message = "the label is 4 for a binary condition; expected one of 1, 3, 5"
    assert sum(message in one for one in result) == 1
    assert sum("missing answer" in one for one in result) == 3
    assert study.answers() == []


CONDITIONS = (
    "the colour in the sentence", "the size is LARGE", "the kite is red", "the way it is moved",
    "3 of them", "The activity.", "the activity of the man", "die Zahl der Sätze", "L'âge_deux", "the mood",
)  # fmt: skip


def planned(kind, tmp_path, language="en"):
    path = tmp_path / f"{kind}.csv"
    condition = ("", "") if kind == "conditions" else (",condition", ",the <i>size</i>")
    quoted = ",".join('"' + one.replace('"', '""') + '"' for one in KITE)
    path.write_text(f"sentence1,sentence2{condition[0]}\n{quoted}{condition[1]}\n", "utf-8")
    settings = SettingsFile(kind=kind, values={"language": language, "consent": "We ask."})
    [plan] = get_kind(kind).plan(str(path), None, settings, "en").hits
    html = tmp_path / f"{kind}.{language}.html"
    html.write_text(preview_page(plan), "utf-8")
    return html.as_uri()


def test_page_and_python_remarks_agree(page, tmp_path):
    page.goto(planned("conditions", tmp_path))
    assert page.locator("#submit").is_disabled()
    assert page.locator("#instruction").get_attribute("open") is not None
    for condition in CONDITIONS:
        page.locator("#high-1").fill(condition)
        page.locator("#high-1").blur()
        remark = said(page, "remark-high-1")
        result = find_remark(condition, KITE)
        assert (f"“{result[1]}”" in remark) if result else remark == "", condition


@pytest.mark.skipif(not AXE.exists(), reason=f"needs axe-core at {AXE} (or GICCS_AXE)")
@pytest.mark.parametrize(
    ("kind", "scheme", "width", "language"),
    first_in_ci(
        [
            ("conditions", "light", 390, "en"),
            ("relabel", "light", 390, "de"),
            ("verification", "dark", 1200, "de"),
            ("verification", "light", 390, "en"),
            ("conditions", "dark", 1200, "de"),
            ("relabel", "dark", 1200, "en"),
        ],
        3,
    ),
)
def test_axe_finds_nothing(chromium, tmp_path, kind, scheme, width, language):
    context = chromium.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 844}, bypass_csp=True
    )
    page = context.new_page()
    page.goto(planned(kind, tmp_path, language))
    if kind == "conditions":
        page.locator("#high-1").fill("two sentences")
        page.locator("#low-1").fill("two sentences")
    page.locator("#answers").evaluate("form => form.requestSubmit()")
    assert said(page, "problem-1")
    page.add_script_tag(path=AXE)
    result = page.evaluate("axe.run()")
    assert len(result["passes"]) > 15
    assert [
        (violation["id"], violation["nodes"][0]["html"]) for violation in result["violations"]
    ] == []
    scrolled = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(scrolled)
    context.close()
