"""Studies of plain items: files, pages, images and other languages in Chromium, judgments and scores."""

import csv
import json
import runpy
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from bws.cli.scores import score
from giccs.benchmark.languages import text_direction
from mturk.cli import main
from mturk.kinds.items import PRESETS
from mturk.kinds.texts import built_in_languages, built_in_texts, read_built_in_file, read_texts
from mturk.service.server import ServerOptions

running_service = runpy.run_path(str(Path(__file__).parents[1] / "service" / "running.py"))[
    "running"
]
PACKAGE = "mturk.kinds.items"
WORDS = "tuple_id,group,item1,item2,item3\nt1,,joy,war <b>,table\nt2,,table,joy,grief\n"
PIXEL = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "texts.toml").write_text(read_built_in_file(PACKAGE, "en", "sentiment"), "utf-8")
    config = 'kind = "items"\ntexts = "texts.toml"\nitem_language = "en"\n'
    config += "approval_rate_above = -1\nassignments = 1\n"
    (tmp_path / "hits.toml").write_text(config, "utf-8")
    (tmp_path / "tuples.csv").write_text(WORDS, "utf-8")
    return tmp_path


def run(folder, command, *more, code=0):
    arguments = [command, folder / "tuples.csv", "--config", folder / "hits.toml", *more]
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def items(folder, text):
    (folder / "items.csv").write_text(text, "utf-8")
    return "--items", folder / "items.csv"


def preview(folder, *more):
    return run(folder, "preview", "-o", "-", *more).stdout


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_complete_texts(tmp_path, preset, language):
    path = tmp_path / "texts.toml"
    path.write_text(read_built_in_file(PACKAGE, language, preset), "utf-8")
    read_texts(path, PACKAGE)
    assert {"de", "en"} <= {*built_in_languages(PACKAGE, preset)}
    assert built_in_texts(PACKAGE, language, preset)["language"] == language


def test_words_are_shown_and_escaped(folder):
    page = preview(folder)
    assert page.count(">war &lt;b&gt;</span>") == 2
    assert "Which is <em>most positive</em>?" in page
    assert '<html lang="en">' in page


def test_sentence_pairs_come_from_the_items_file(folder):
    table = "item,sentence1,sentence2\n" + "".join(
        f"{word},First of {word}.,Second of {word}.\n"
        for word in ("joy", "war <b>", "table", "grief")
    )
    page = preview(folder, *items(folder, table))
    assert page.count('>First of joy.</span><span class="line" lang="en" dir="auto">Second') == 4


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("item,text\njoy,\n", "items.csv:2: text is empty; expected a text"),
        ("item,text\na,same\nb,same\n", "items.csv:3: the text or image repeats line 2"),
        ("item,text\na,x\na,y\n", "items.csv:3: the item repeats line 2"),
        ("item,text\njoy,x\n", "tuple 't1': item 'table' is missing from"),
        ("item,word\njoy,x\n", "items.csv:1: columns are item, word; expected item, and text"),
        ("item,image,text\njoy,http://a.example/x.png,a\n", "items.csv:2: image is 'http://a.ex"),
        ("item,image,text\njoy,javascript:1,a\n", "items.csv:2: image is 'javascript:1'; expected"),
        (
            "item,image,text\njoy,https://a.example/x.png,\n",
            "text is empty; expected a description",
        ),
    ],
)
def test_problems_of_the_items_file_are_located(folder, table, message):
    assert message in run(folder, "estimate", *items(folder, table), code=2).stderr


def test_a_study_without_its_own_question_is_refused(folder):
    (folder / "texts.toml").write_text(read_built_in_file(PACKAGE, "en"), "utf-8")
    assert "instruction has the placeholder" in run(folder, "estimate", code=2).stderr
    (folder / "hits.toml").write_text('kind = "items"\n', "utf-8")
    stderr = run(folder, "estimate", "--language", "en", code=2).stderr
    assert 'no question of its own; expected texts = "texts.toml"' in stderr


def test_items_of_a_study_without_its_settings_are_explained(folder):
    table = items(folder, "item,text\njoy,joy\n")
    arguments = ["estimate", folder / "tuples.csv", "--language", "en", *table]
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 2
    assert (
        'items.csv: a table of items is for kind "items", which --config can set' in result.stderr
    )


def test_missing_texts_are_named(folder):
    text = (folder / "texts.toml").read_text("utf-8").replace("heading =", "# heading =", 1)
    (folder / "texts.toml").write_text(text, "utf-8")
    stderr = run(folder, "estimate", code=2).stderr
    assert "texts.toml: heading is missing; expected a text" in stderr


def test_right_to_left_language(folder):
    text = (folder / "texts.toml").read_text("utf-8")
    text = text.replace('language = "en"', 'language = "ar"').replace("Which is most", "ما الأكثر")
    (folder / "texts.toml").write_text(text, "utf-8")
    config = (folder / "hits.toml").read_text("utf-8").replace('"en"', '"ar"')
    (folder / "hits.toml").write_text(config, "utf-8")
    assert '<html lang="ar" dir="rtl">' in preview(folder)
    assert [text_direction(tag) for tag in ("he", "fa-IR", "ur", "de", "fr")] == [
        "rtl", "rtl", "rtl", "ltr", "ltr",
    ]  # fmt: skip


class Images(BaseHTTPRequestHandler):
    """Server of images, absent while `server.absent`."""

    def do_GET(self):
        self.send_response(404 if self.server.absent else 200)
        self.send_header("Content-Type", "image/svg+xml")
        self.end_headers()
        self.wfile.write(b"" if self.server.absent else PIXEL)

    def log_message(self, *args):
        pass


@pytest.fixture
def images():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Images)
    server.absent = False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_submission_waits_for_images(folder, images, chromium):
    rows = [
        f"{word},http://127.0.0.1:{images.server_port}/{n}.svg,picture {n}\n"
        for n, word in enumerate(("joy", "war <b>", "table", "grief"))
    ]
    images.absent = True
    result = run(folder, "preview", *items(folder, "item,image,text\n" + "".join(rows)),
                 "-o", folder / "page.html", "--no-browser")  # fmt: skip
    assert "4 images are on this machine" in result.stderr
    page = chromium.new_page()
    page.goto(f"{(folder / 'page.html').as_uri()}?assignmentId=A1&turkSubmitTo=http://127.0.0.1:9")
    for name in page.eval_on_selector_all(
        "#answers input[type=radio]", "all => [...new Set(all.map(one => one.name))]"
    ):
        position = 0 if name.startswith("best") else 1
        page.locator(f'#answers input[name="{name}"]').nth(position).check()
    page.wait_for_function("document.getElementById('problem-images').textContent")
    images.absent = False
    page.locator("#submit").click()  # blocked, and loads the images again
    page.wait_for_function("!document.getElementById('problem-images').textContent")
    assert page.url.startswith("file:")
    with page.expect_request("**/mturk/externalSubmit"):
        page.locator("#submit").click()
    page.close()


def test_words_from_publishing_to_scores(folder, running, chromium, tmp_path):
    pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")
    from mturk.service.rules.work import WorkerService

    ledger = str(tmp_path / "ledger.db")
    run(folder, "publish", "--endpoint", running.url, "--ledger", ledger)
    work = WorkerService(running.database, running.clock)
    work.register("W1", country="DE")
    [(hit_id,)] = running.rows("SELECT hit_id FROM hit")
    accepted = work.accept("W1", hit_id)
    run(folder, "preview", "-o", tmp_path / "page.html", "--no-browser")
    page = chromium.new_page()
    page.goto(
        f"{(tmp_path / 'page.html').as_uri()}?assignmentId=A1&turkSubmitTo=http://127.0.0.1:9"
    )
    page.locator("#instruction summary").focus()
    page.keyboard.press("Tab")
    for question in ("best", "worst", "best", "worst"):
        assert page.evaluate("document.activeElement.name").startswith(f"{question}-")
        page.keyboard.press("Space")
        if question == "worst":
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
    fields = page.evaluate("[...new FormData(document.getElementById('answers'))]")
    page.close()
    assert work.submit(accepted.assignment_id, "W1", [tuple(pair) for pair in fields])
    judgments = str(tmp_path / "judgments.csv")
    collected = CliRunner().invoke(main, ["collect", "--ledger", ledger, "-o", judgments])
    assert collected.exit_code == 0, collected.output
    result = CliRunner().invoke(score, [judgments, "--json"])
    assert result.exit_code == 0, result.output
    scores = {row["item"] for row in json.loads(result.stdout)["scores"]}
    assert scores == {"joy", "war <b>", "table", "grief"}


def test_images_from_publishing_at_the_service_to_scores(folder, images, chromium, tmp_path):
    pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")
    origin = f"http://127.0.0.1:{images.server_port}"
    ids = ("joy", "war <b>", "table", "grief")
    table = "".join(f"{item},{origin}/{n}.svg,picture {n}\n" for n, item in enumerate(ids))
    ledger = str(tmp_path / "ledger.db")
    options = ServerOptions(port=0, image_origins=[origin])
    with running_service(tmp_path, options) as service:
        run(folder, "publish", *items(folder, f"item,image,text\n{table}"),
            "--endpoint", service.api, "--ledger", ledger)  # fmt: skip
        page = chromium.new_page()
        page.goto(f"{service.site}/work/")
        page.get_by_label("Worker ID").fill("AALICE1")
        page.get_by_role("button", name="Continue").click()
        page.get_by_label("In which country do you live?").select_option("DE")
        page.get_by_role("button", name="Start").click()
        page.get_by_role("button", name="Accept").first.click()
        page.wait_for_url("**/work/assignment/*")
        frame = page.frame_locator("#question")
        for part in range(2):
            for question, alternative in (("best", "picture 0"), ("worst", "picture 2")):
                choice = frame.locator(f"#answers fieldset.{question}").nth(part)
                choice.locator("label", has=frame.get_by_alt_text(alternative)).click()
        width = frame.get_by_alt_text("picture 0").last.evaluate("image => image.naturalWidth")
        frame.locator("#submit").click()
        page.get_by_text("your answer has been received").wait_for()
        page.close()
        judgments = str(tmp_path / "judgments.csv")
        collected = CliRunner().invoke(main, ["collect", "--ledger", ledger, "-o", judgments])
        assert collected.exit_code == 0, collected.output
    assert width == 9  # It was loaded.
    result = CliRunner().invoke(score, [judgments, "--json"])
    scores = {row["item"]: row["score"] for row in json.loads(result.stdout)["scores"]}
    assert (scores["joy"], scores["table"]) == (1, -1)


CONTROLS = """\
tuple_id,item1,item2,item3,item4,control
t1,joy,war,table,grief,
t2,joy,grief,table,apple,apple=worst
"""


def test_control_items_are_known_when_answers_are_collected(folder, running, tmp_path):
    pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")
    from mturk.kinds.tuples.form import best_field, worst_field
    from mturk.service.rules.work import WorkerService

    (folder / "tuples.csv").write_text(CONTROLS, "utf-8")
    ledger, judgments = str(tmp_path / "ledger.db"), str(tmp_path / "judgments.csv")
    run(folder, "publish", "--endpoint", running.url, "--ledger", ledger)
    work = WorkerService(running.database, running.clock)
    work.register("W1", country="DE")
    for (hit_id,) in running.rows("SELECT hit_id FROM hit"):
        accepted = work.accept("W1", hit_id)
        fields = [
            pair
            for name, worst in (("t1", "grief"), ("t2", "apple"))
            for pair in ((best_field(name), "joy"), (worst_field(name), worst))
        ]
        assert work.submit(accepted.assignment_id, "W1", fields)
    collected = CliRunner().invoke(main, ["collect", "--ledger", ledger, "-o", judgments])
    assert collected.exit_code == 0, collected.output
    with open(judgments, encoding="utf-8") as file:
        cells = {row["tuple_id"]: row["control"] for row in csv.DictReader(file)}
    assert cells == {"t1": "", "t2": "apple=worst"}
    result = CliRunner().invoke(score, [judgments, "--json"])
    rows = {row["item"]: row["appearances"] for row in json.loads(result.stdout)["scores"]}
    assert rows == {"joy": 2, "war": 1, "table": 2, "grief": 2}


def test_an_item_is_once_on_a_page(folder):
    tuples = CONTROLS.replace("joy,grief,table,apple", "joy,apple,table,apple")
    (folder / "tuples.csv").write_text(tuples, "utf-8")
    result = run(folder, "preview", "-o", "-", code=2)
    assert "tuple 't2' has an item twice" in result.output
