"""Every view of the explorer in a browser with four studies, from the sample to 100,000 items."""

from contextlib import suppress
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

import bws
from benchmarks.explorer import add_copies, prepare
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Turn
from tests.giccs.report.test_verdict import LARGE, planted_study

from .test_browser import (
    CHARTS,
    VIEWS,
    WIDTHS,
    assert_contrast_of_charts,
    at_rest,
    one_window,
    opening,
    query,
    serving,
    violations,
)

pytestmark = pytest.mark.nightly

LOOKS = (("en", "light", 1280), ("de", "dark", 390), ("de", "light", 1280), ("en", "dark", 390))
"""Language, colour scheme and width; consecutive views take the next one, so that each view has two."""
DIALOGUES = (
    {"page": "overview"},
    {"page": "dialogues"},
    {"page": "annotation"},
    {"page": "errors"},
    *VIEWS,
)
CLICKED = []
"""Link and number of the charts of which a mark was clicked."""
PLAIN = ({"page": "overview"}, {"page": "annotation"})


def sample(folder):
    return add_copies(folder, "giccs-sample", 4)


def many_annotators(folder):
    """Return 40 dialogues of 12 candidates with 300 annotators of four kinds and 115 results."""
    study = planted_study(**LARGE).judgments
    bws.write_judgments(study, folder / "judgments.csv")
    scores = bws.score(study, scale="unit")
    template = read_benchmark("giccs-sample").items[0]
    benchmark = folder / "benchmark.jsonl"
    write_benchmark(
        [
            replace(
                template, dialogue_id=str(group), item_id=str(item), utterance_id=str(item),
                score=float(score), utterance=f"Wir suchen {item}.",
                turns=(Turn("user", "Guten Tag."), Turn("system", f"Was tun in {group}?")),
            )
            for group, item, score in zip(scores.groups, scores.items, scores.score, strict=True)
        ],
        benchmark,
    )  # fmt: skip
    return [
        *add_copies(folder, benchmark, 115), "--data", str(benchmark),
        "--judgments", str(folder / "judgments.csv"),
    ]  # fmt: skip


def many_items(folder):
    return prepare(folder, 20_000, 3, 4)


def plain_items(folder):
    items = [f"item {n}" for n in range(120)]
    judged = bws.simulate(bws.make_tuples(items, 4, factor=2), np.linspace(-1, 1, 120), 30)
    bws.write_judgments(judged, folder / "judgments.csv")
    rows = "".join(f"{item},The text of {item}.\n" for item in items)
    (folder / "items.csv").write_text(f"item,text\n{rows}", "utf-8")
    return ["--judgments", str(folder / "judgments.csv"), "--items", str(folder / "items.csv")]


@pytest.mark.parametrize(
    ("study", "views"),
    [(sample, DIALOGUES), (many_annotators, DIALOGUES), (many_items, DIALOGUES), (plain_items, PLAIN)],
)  # fmt: skip
def test_every_view_is_without_fault(study, views, chromium, tmp_path):
    """No error, no sideways scrolling, nothing for axe-core, and each kind of mark can be clicked."""
    wrong, before = {}, len(CLICKED)
    arguments = study(tmp_path)
    looks = cycle(LOOKS)
    with (
        serving(tmp_path / "server.log", *arguments) as site,
        one_window(chromium) as window,
        opening(window, site) as opened,
    ):
        for link in views:
            for language, scheme, width in (next(looks), next(looks)):
                place = f"{language} {scheme} {width} {link}"
                page = opened(f"?{query({'lang': language, **link})}", scheme=scheme, width=width)
                settled(page)
                wrong[place] = [*faults(page, place), *violations(page)]
                if width == 1280:
                    wrong[place] += dead_marks(page, {"lang": language, **link})
                page.close()
    wrong = {place: found for place, found in wrong.items() if found}
    assert not wrong, wrong
    assert len(CLICKED) - before >= len(views) // 2


def settled(page):
    """Wait until a page is complete; with many items, some views first ask whether to compute."""
    page.locator(PART).nth(3).wait_for(state="attached")
    at_rest(page)


def faults(page, place):
    """Yield errors on the page, and elements that scroll sideways."""
    for kind in ("stException", "stAlertContentError"):
        for text in page.locator(f"[data-testid={kind}]").all_inner_texts():
            yield f"{kind}: {text[:200]}"
    for scroll, client in page.evaluate(f"selector => {WIDTHS}", "[data-testid=stMain]"):
        if scroll > client:
            yield f"sideways: {scroll} > {client}"
    assert_contrast_of_charts(page, place)


PART = "[data-testid=stMainBlockContainer] [data-testid=stElementContainer]"
MARKS = 'g[class*="mark-symbol role-mark"] > path'
POINTS_AT = """element => {
    for (let node = element; node; node = node.parentElement)
        if (node.style && node.style.cursor === "pointer") return true;
    return false;
}"""
"""Whether Vega shows the hand of a mark that can be clicked, which it sets on an element around it."""


def dead_marks(page, link):
    """Click marks of each chart whose marks can be clicked; yield charts in which none selects anything."""
    for number in range(page.locator(CHARTS).count()):
        marks = page.locator(CHARTS).nth(number).locator(MARKS)
        clickable = [mark for mark in marks.all()[:20] if is_clickable(mark)][:5]
        before = page.url
        if clickable and not any(selects(page, mark) for mark in clickable):
            yield f"chart {number}: clicks select nothing"
        for text in page.locator("[data-testid=stException]").all_inner_texts():
            yield f"chart {number}: {text[:200]}"
        if page.url != before:
            CLICKED.append((str(link), number))
            page.goto(before)
            settled(page)


def selects(page, mark):
    """Click a mark, which others may cover; return whether the address has changed."""
    from playwright.sync_api import Error

    before = page.url
    mark.click(force=True)
    with suppress(Error):
        page.wait_for_url(lambda url: url != before, timeout=10_000)
    at_rest(page)
    return page.url != before


def is_clickable(mark):
    if not mark.is_visible():
        return False
    mark.evaluate("element => element.scrollIntoView({block: 'center'})")  # not below the header
    mark.hover(force=True)
    return mark.evaluate(POINTS_AT)
