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
FIRST_VIEW = "Distribution of scores"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of the baselines, with and without history."""
    from click.testing import CliRunner

    folder = tmp_path_factory.mktemp("results")
    arguments = ["baseline:char-ngram", "baseline:chance", "--history", "both", "--quiet"]
    done = CliRunner().invoke(evaluate, [*arguments, "-o", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    """Start the command as a person would; return its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = "from giccs_app.explorer.cli import explore; explore()"
    arguments = ["--no-browser", "--port", str(port), "--results", str(results)]
    log = tmp_path_factory.mktemp("log") / "server.log"
    with log.open("w") as log_file:
        server = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdout=log_file, stderr=subprocess.STDOUT
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.wait(120)
    assert "Traceback" not in log.read_text()


def wait_for(health, server, log):
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(health) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.1)  # nothing tells when it listens
    pytest.fail(f"the server does not answer: {log.read_text()}")


@pytest.fixture
def open_page(chromium, site):
    """Return a function that opens the explorer afresh; at the end, nothing may have gone wrong or out."""
    contexts, wrong = [], []

    def opened(path="", **options):
        context = chromium.new_context(accept_downloads=True, **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: wrong.extend(foreign(request.url, site)))
        page.on(
            "dialog", lambda dialog: (wrong.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.goto(site + path)
        return page

    yield opened
    for context in contexts:
        context.close()
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
    said, address = chat(page), page.url
    other = open_page(urlsplit(address)._replace(scheme="", netloc="").geturl().lstrip("/"))
    other.get_by_text(f"2 of {result}", exact=True).wait_for()
    expect(other.get_by_role("textbox", name="Search", exact=True)).to_have_value(
        "Hotel", timeout=60_000
    )
    assert chat(other) == said


def test_german_and_back(open_page):
    page = open_page("?page=dialogues")
    radio(page, "Language", "Deutsch")
    page.get_by_role("radio", name="Dialoge", exact=True).wait_for()
    page.get_by_text("1 von 60", exact=True).wait_for()
    page.wait_for_url("**lang=de**")
    radio(page, "Sprache", "English")
    page.get_by_text("1 of 60", exact=True).wait_for()


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
    estimate = re.compile(r"Spearman's ρ [+−-]\d\.\d+")
    page.get_by_text(estimate).first.wait_for()
    before = page.get_by_text(estimate).first.inner_text()
    page.get_by_role("combobox", name=re.compile("Second model")).click()
    page.get_by_role("option").last.click()
    page.wait_for_url("**second=**")
    page.get_by_text(before, exact=True).wait_for(state="detached")
    assert page.get_by_text(estimate).first.inner_text() != before


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


def violations(page, **options):
    """Run axe-core; return what it calls serious or critical, Streamlit's own markup included."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate(
        "options => axe.run(document, options).then(result => result.violations)",
        {"resultTypes": ["violations"], **options},
    )
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]}"
        for one in result
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_no_page_keeps_people_out(open_page):
    if not AXE.exists():
        pytest.skip("axe-core is not there; `make test` fetches it with npm into .cache/axe")
    wrong = {}
    page = open_page("?lang=de", color_scheme="light")
    for name in ("overview", "dialogues", "annotation", "models", "errors"):
        page.goto(urlsplit(page.url)._replace(query=f"lang=de&page={name}").geturl())
        page.locator('[data-testid="stDataFrame"]').first.wait_for()
        at_rest(page)
        wrong[name] = violations(page)
        page.emulate_media(color_scheme="dark")
        wrong[f"{name}, dark"] = violations(page, runOnly=["color-contrast"])
        page.emulate_media(color_scheme="light")
    wrong = {name: result for name, result in wrong.items() if result}
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)
