"""The explorer in a real browser, from opening to downloads, in front of a server that really runs."""

import csv
import io
import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.cli.evaluation import evaluate

AXE = Path(__file__).parents[3] / ".cache" / "axe" / "axe.min.js"
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> **bold** $x^2$ [a](https://example.org/leak) "
    "![i](https://example.org/leak.png) `code` :red[r] :material/home: <b id=injected>"
)
CHARTS = '[data-testid="stVegaLiteChart"]'
FIRST_VIEW = "Distribution of scores"
TIMEOUT = 300_000  # milliseconds; a busy machine needs minutes


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of the baselines, with and without history."""
    from click.testing import CliRunner

    folder = tmp_path_factory.mktemp("results")
    arguments = ["baseline:char-ngram", "baseline:chance", "--history", "both", "--quiet"]
    done = CliRunner().invoke(evaluate, [*arguments, "-o", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


@contextmanager
def serving(log, *arguments):
    """Start the command as a person would; give its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = "from giccs_app.explorer.cli import explore; explore()"
    command = [sys.executable, "-c", code, "--no-browser", "--port", str(port), *arguments]
    with log.open("w") as log_file:
        server = subprocess.Popen(command, stdout=log_file, stderr=subprocess.STDOUT)
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.wait(120)
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("log") / "server.log", "--results", results) as address:
        yield address


@pytest.fixture(scope="module")
def extreme_site(extreme_study, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("log") / "server.log", *extreme_study) as address:
        yield address


def wait_for(health, server, log):
    for _ in range(6000):  # ten minutes on a busy machine
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(health) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.1)  # nothing tells when it listens
    pytest.fail(f"the server does not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def window(chromium, site):
    """Return a window for the pages of all tests, which load the scripts of Streamlit once."""
    with one_window(chromium) as window:
        yield window


@pytest.fixture(scope="module")
def extreme_window(chromium, extreme_site):
    """Return the same for the study at the limits of the pages, whose server has another address."""
    with one_window(chromium) as window:
        yield window


@contextmanager
def one_window(chromium):
    window = chromium.new_context(accept_downloads=True)
    window.set_default_timeout(TIMEOUT)
    yield window
    window.close()


@pytest.fixture
def open_page(window, site):
    """Return a function that opens the explorer afresh; at the end, nothing may have gone wrong or out."""
    with opening(window, site) as opened:
        yield opened


@pytest.fixture
def open_extreme_page(extreme_window, extreme_site):
    """Return the same function for the study at the limits of the pages."""
    with opening(extreme_window, extreme_site) as opened:
        yield opened


@contextmanager
def opening(window, site):
    wrong = []

    def opened(path="", *, scheme="light", width=1280):
        page = window.new_page()
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900 if width < 1280 else 720})
        page.on("request", lambda request: wrong.extend(foreign(request.url, site)))
        page.on(
            "dialog", lambda dialog: (wrong.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.goto(site + path)
        return page

    yield opened
    for page in window.pages:
        page.close()
    assert wrong == []


def foreign(url, site):
    """The address, where it is on another machine."""
    parts = urlsplit(url)
    here = parts.scheme in ("data", "blob") or parts.netloc == urlsplit(site).netloc
    return [] if here else [f"request to {url}"]


def at_rest(page):
    """Wait until the server has nothing more to say."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def radio(page, group, name):
    page.get_by_role("radiogroup", name=group, exact=True).get_by_role(
        "radio", name=name, exact=True
    ).click()


def chat(page):
    """What is said in the dialogue that is shown."""
    page.locator('[data-testid="stChatMessage"]').first.wait_for()
    return page.locator('[data-testid="stChatMessage"]').all_inner_texts()


def download(page, file):
    """Click the download of a file; return the name it is given and its content.

    Parts of a page appear in no fixed order, so the button is found by its key, not by its place.
    """
    key = "st-key-" + re.sub(r"[^\w-]", "-", f"download {file}")
    with page.expect_download() as waiting:
        page.locator(f".{key}").get_by_role("button").click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def drop(page, kind, path):
    """Put a file on the uploader of a kind of file."""
    uploads = page.get_by_text("Upload files", exact=True)
    field = page.locator(f'[class*="st-key-upload-{kind}"] input[type=file]')
    if not field.count():
        uploads.click()
    field.set_input_files(path)


def test_open_filter_leaf_and_follow_the_link(open_page, capsys):
    from playwright.sync_api import expect

    start = time.perf_counter()
    page = open_page()
    page.get_by_role("heading", name=FIRST_VIEW).wait_for()
    with capsys.disabled():
        print(f"\ntime to first view: {time.perf_counter() - start:.2f} s")
    radio(page, "Page", "Dialogues")
    page.get_by_text("1 of 60", exact=True).wait_for()
    search = page.get_by_role("textbox", name="Search", exact=True)
    search.fill("Hotel")
    search.press("Enter")
    page.get_by_text("1 of 60", exact=True).wait_for(state="detached")
    result = page.get_by_text(re.compile(r"^1 of \d+$")).inner_text().split()[-1]
    assert 1 < int(result) < 60
    search.blur()
    page.keyboard.press("n")
    page.get_by_text(f"2 of {result}", exact=True).wait_for()
    at_rest(page)  # a key that is pressed while the page is being drawn is lost
    page.keyboard.press("n")
    page.get_by_text(f"3 of {result}", exact=True).wait_for()
    at_rest(page)
    page.keyboard.press("p")
    page.get_by_text(f"2 of {result}", exact=True).wait_for()
    at_rest(page)
    chat_hits = '[data-testid="stChatMessage"] mark'
    said, address, n_hits = chat(page), page.url, page.locator(chat_hits).count()
    assert {text.lower() for text in page.locator("mark").all_inner_texts()} == {"hotel"}
    other = open_page(urlsplit(address)._replace(scheme="", netloc="").geturl().lstrip("/"))
    other.get_by_text(f"2 of {result}", exact=True).wait_for()
    expect(other.get_by_role("textbox", name="Search", exact=True)).to_have_value(
        "Hotel", timeout=TIMEOUT
    )
    expect(other.locator(chat_hits)).to_have_count(n_hits)
    assert chat(other) == said


def test_evidence_of_the_verdict_opens_its_section_or_dialogue(open_page):
    page = open_page()
    page.get_by_role("heading", name=FIRST_VIEW).wait_for()
    at_rest(page)
    overview = page.url
    for name in ("scores", "annotators"):
        page.locator(f".st-key-overview-evidence-{name} button").click()
        page.wait_for_url(lambda url: url != overview)
        section = page.locator(f".st-key-section-{name}")
        section.wait_for(state="attached")
        at_rest(page)
        page.wait_for_function(
            "element => { const top = element.getBoundingClientRect().top;"
            " return 0 <= top && top < innerHeight / 2; }",
            arg=section.element_handle(),
        )
        page.go_back()
        page.wait_for_url(overview)
        at_rest(page)
    page.locator(".st-key-overview-evidence-items button").click()
    page.wait_for_url("**page=dialogues&dialogue=*")


def test_german_and_back(open_page):
    from playwright.sync_api import expect

    page = open_page("?page=dialogues")
    radio(page, "Language", "Deutsch")
    page.get_by_role("radio", name="Dialoge", exact=True).wait_for()
    page.get_by_text("1 von 60", exact=True).wait_for()
    page.wait_for_url("**lang=de**")
    expect(page).to_have_title("giccs-Explorer", timeout=TIMEOUT)
    expect(page.locator("html")).to_have_attribute("lang", "de", timeout=TIMEOUT)
    radio(page, "Sprache", "English")
    page.get_by_text("1 of 60", exact=True).wait_for()
    expect(page).to_have_title("giccs explorer", timeout=TIMEOUT)
    expect(page.locator("html")).to_have_attribute("lang", "en", timeout=TIMEOUT)


def test_tables_and_charts_can_be_downloaded(open_page):
    from PIL import Image

    page = open_page()
    page.get_by_role("heading", name=FIRST_VIEW).wait_for()
    at_rest(page)
    name, content = download(page, "scores.svg")
    assert name == "scores.svg"
    svg = content.decode("utf-8")
    assert svg.startswith("<svg")
    assert svg.count('aria-roledescription="bar"') == 5
    name, content = download(page, "scores.png")
    image = Image.open(io.BytesIO(content))
    image.load()
    assert name == "scores.png"
    assert image.width > 300
    _, content = download(page, "scores.csv")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"))))
    assert sum(int(row["items"]) for row in rows) == 300
    name, content = download(page, "reliability.json")
    assert name == "reliability.json"
    assert isinstance(json.loads(content)[0], dict)


def test_two_models_are_compared(open_page):
    page = open_page("?page=models")
    radio(page, "View", "Two models")
    page.get_by_role("combobox", name=re.compile("First model")).wait_for()
    at_rest(page)
    page.wait_for_url("**view=against**")
    estimate = re.compile(r"Spearman ρ [+−-]\d\.\d+")
    page.get_by_text(estimate).first.wait_for()
    before = page.get_by_text(estimate).first.inner_text()
    page.get_by_role("combobox", name=re.compile("Second model")).click()
    page.get_by_role("option").last.click()
    page.wait_for_url("**second=**")
    page.get_by_text(before, exact=True).wait_for(state="detached")
    assert page.get_by_text(estimate).first.inner_text() != before


def test_a_point_and_a_row_open_dialogues_and_back_closes_them(open_page):
    page = open_page("?page=models&view=predictions")
    points = page.locator(".mark-symbol path[aria-label*='item: ']")
    points.first.wait_for()
    at_rest(page)
    label = points.nth(11).get_attribute("aria-label")
    points.nth(11).click(force=True)  # points may lie upon each other
    page.wait_for_url("**item=**")
    selected = page.get_by_text(re.compile("^▶ "))
    selected.wait_for()
    item = selected.inner_text().removeprefix("▶ ").split(":")[0]
    assert f"item: {item};" in f"{label};"
    assert len(chat(page)) >= 2
    at_rest(page)
    table = page.locator('[data-testid="stDataFrame"]').first
    table.scroll_into_view_if_needed()
    table.click(position={"x": 15, "y": 35 + 35 // 2})  # the box of the first row, below the titles
    page.wait_for_url("**item=restaurant-01-a**")
    page.get_by_text(re.compile("^▶ restaurant-01-a")).wait_for()
    at_rest(page)
    page.go_back()
    page.get_by_text(re.compile(f"^▶ {item}:")).wait_for()
    at_rest(page)
    page.go_back()
    selected.wait_for(state="detached")
    at_rest(page)
    assert "item=" not in page.url
    page.go_forward()
    page.get_by_text(re.compile(f"^▶ {item}:")).wait_for()
    at_rest(page)
    page.get_by_role("button", name="Open dialogue").press("Enter")
    page.wait_for_url("**page=dialogues**")
    page.get_by_text(re.compile(r"^\d+ of 60$")).wait_for()
    assert chat(page)


def own_benchmark(path):
    """A benchmark whose every text is hostile."""
    turns = (Turn("user", f"{HOSTILE} first"), Turn("system", f"{HOSTILE} last"))
    items = [
        Item(
            f"i{n}",
            "d <b>1</b>",
            HOSTILE[:40],
            "<i>dom</i>",
            turns,
            f"u{n}",
            f"{HOSTILE} {n}",
            n / 2,
        )
        for n in range(3)
    ]
    write_benchmark(items, path)
    assert len(read_benchmark(path).items) == 3


def test_uploaded_texts_are_shown_as_they_are(open_page, tmp_path):
    own_benchmark(tmp_path / "mine.jsonl")
    page = open_page("?page=dialogues")
    page.get_by_text("1 of 60", exact=True).wait_for()
    drop(page, "benchmark", tmp_path / "mine.jsonl")
    page.get_by_text("1 of 1", exact=True).wait_for()
    at_rest(page)
    assert [HOSTILE in one for one in chat(page)] == [True, True]
    assert page.locator("#injected, [data-testid=stMain] img[src='x']").count() == 0
    assert page.locator('a[href*="example.org"], img[src*="example.org"]').count() == 0
    for name in ("Overview", "Annotation", "Models", "Errors"):
        radio(page, "Page", name)
        page.wait_for_url(f"**page={name.lower()}**" if name != "Overview" else "**")
        at_rest(page)
        assert page.locator("#injected").count() == 0


def test_a_broken_upload_is_told_and_the_page_goes_on(open_page, tmp_path):
    write_benchmark(read_benchmark("giccs-sample").items[:1], tmp_path / "broken.jsonl")
    with (tmp_path / "broken.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"item_id": "<b>x</b>"}\n')
    page = open_page()
    page.get_by_role("heading", name=FIRST_VIEW).wait_for()
    drop(page, "benchmark", tmp_path / "broken.jsonl")
    alert = page.locator('[data-testid="stAlert"]').filter(has_text="broken.jsonl:2")
    alert.wait_for()
    assert "Traceback" not in alert.inner_text()
    (tmp_path / "notes.exe").write_bytes(b"MZ")
    drop(page, "judgments", tmp_path / "notes.exe")
    page.get_by_text(re.compile("not allowed")).first.wait_for(state="attached")


PAGES = ("overview", "dialogues", "annotation", "models", "errors")
VIEWS = (
    {"page": "dialogues", "words": "Hotel"},
    {"page": "models", "metrics": "pearson"},
    *({"page": "models", "view": v} for v in ("predictions", "parts", "histories", "against")),
    *({"page": "models", "view": "figures", "figure": f} for f in ("differences", "subsets")),
)
"""Views behind the first ones of the pages."""


def go(tab, **link):
    """Open another page in the same tab, and wait for its tables and charts."""
    tab.goto(urlsplit(tab.url)._replace(query=query(link)).geturl())
    drawn(tab)


def query(link):
    return "&".join(f"{name}={value}" for name, value in link.items())


def drawn(tab):
    tab.locator(f'{CHARTS} svg, [data-testid="stDataFrame"] canvas').first.wait_for()
    at_rest(tab)


WIDTHS = "[...document.querySelectorAll(selector)].map(e => [e.scrollWidth, e.clientWidth])"


IS_RIGHT_TO_LEFT = """element => {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const text = texts.nextNode(), range = document.createRange();
    const left = index => (range.setStart(text, index), range.setEnd(text, index + 1),
                           range.getBoundingClientRect().left);
    return left(0) > left(text.length - 1);
}"""
"""Whether the last character is to the left of the first one, for a text of one line."""


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.nightly)])
def test_no_text_is_cut_or_sideways(open_extreme_page, extremes, width):
    page = open_extreme_page("?page=dialogues&dialogue=long", width=width)
    for name, (turns, candidates) in extremes.dialogues().items():
        if name != "long":
            go(page, page="dialogues", dialogue=name)
        page.locator(".giccs-texts td.text").nth(len(candidates) - 1).wait_for()
        for more in page.get_by_text(re.compile("more characters")).all():
            more.click()
        at_rest(page)
        said = chat(page)[-1].replace(" …", "")
        assert "".join(said.split()).endswith("".join(turns[-1].split())[-3000:])
        texts = page.locator(".giccs-texts td.text").all_inner_texts()
        assert sorted(texts) == sorted(candidates)
        for selector in ("[data-testid=stMain]", "[data-testid=stText]", ".giccs-texts, td.text"):
            for scroll, client in page.evaluate(f"selector => {WIDTHS}", selector):
                assert scroll <= client, (name, selector)
        if name in extremes.RIGHT_TO_LEFT:
            assert_right_to_left(page, name)


def assert_right_to_left(page, dialogue):
    """Check the turns and the first candidate, each of which is on one line also on a small phone."""
    for selector in ("[data-testid=stText]", ".giccs-texts tr:nth-child(2) td.text"):
        for element in page.locator(selector).all():
            assert element.evaluate(IS_RIGHT_TO_LEFT), (dialogue, element.inner_text())
            assert element.evaluate("e => getComputedStyle(e).textAlign") == "start"


CHART_COLOURS = """() => [  // texts in cells of a matrix are on the colour of the cell
    getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor,
    ...[...document.querySelectorAll("[data-testid=stVegaLiteChart] svg text")]
        .filter(text => text.textContent.trim() && !text.closest(".role-mark"))
        .map(text => getComputedStyle(text).fill),
]"""


def luminance(colour):
    """Return the relative luminance of a CSS colour, as in WCAG 2."""
    channels = [int(channel) / 255 for channel in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def assert_contrast_of_charts(page, place):
    """Check the texts of the charts, which axe-core does not look at."""
    background, *texts = map(luminance, page.evaluate(CHART_COLOURS))
    for text in texts:
        low, high = sorted([background, text])
        assert (high + 0.05) / (low + 0.05) >= 4.5, place


def violations(page):
    """Run axe-core; return what it finds, Streamlit's own markup included."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate(
        "() => axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)"
    )
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]}"
        for one in result
        for node in one["nodes"]
    ]


LINKS = tuple({"page": name} for name in PAGES)


@pytest.mark.parametrize(
    ("language", "scheme", "links", "extreme_links"),
    [
        ("de", "dark", LINKS, ()),
        ("en", "light", VIEWS, ()),
        pytest.param("de", "dark", VIEWS, LINKS, marks=pytest.mark.nightly),
        pytest.param("en", "light", LINKS, LINKS, marks=pytest.mark.nightly),
    ],
)
def test_no_page_keeps_people_out(
    open_page, open_extreme_page, language, scheme, links, extreme_links
):
    """No violation that axe-core finds, and texts of charts with the contrast of WCAG AA."""
    wrong = {}
    for opened, pages in ((open_page, links), (open_extreme_page, extreme_links)):
        page = None
        for link in pages:
            if page is None:
                page = opened(f"?{query({'lang': language, **link})}", scheme=scheme)
                drawn(page)
            else:
                go(page, lang=language, **link)
            place = f"{opened is open_page} {link}"
            if link in LINKS or page.locator(CHARTS).count():
                page.locator(f"{CHARTS} svg text").first.wait_for()
            assert_contrast_of_charts(page, place)
            wrong[place] = violations(page) if AXE.exists() else []
    wrong = {name: result for name, result in wrong.items() if result}
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)
    if not AXE.exists():
        pytest.skip("axe-core is not there; `make test` fetches it with npm into .cache/axe")
