"""The report as a page: its numbers are found again, it opens without network, and reads well everywhere."""

import json
import math
import os
import re
import shlex
from functools import cache
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from bws.analysis.analysis import Answers
from bws.analysis.judgments import AGREEMENT
from bws.base.commands import Console
from bws.chance_agreement import agreement
from bws.files import read_judgments
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models.abilities import Response
from giccs.tasks.multiple_choice import MultipleChoice
from giccs_app.demo.pipeline import run_pipeline
from giccs_app.demo.plan import Plan, sample_dialogues
from giccs_app.report.content import Number, Source, chart_svg_for_page, resolve_pointer
from giccs_app.report.html import write_page
from giccs_app.report.inputs import Inputs
from giccs_app.report.sections import STUDY_ANALYSES, _analysis_section, _study_answers
from giccs_app.report.study_figures import analysis_figures
from tests import in_process

REQUIRED = (
    "boto3",
    "uvicorn",
    "altair",
    "vl_convert",
    "jinja2",
    "spacy",
    "lexicalrichness",
    "torch",
)
pytestmark = pytest.mark.skipif(  # found, not imported, which would take seconds
    None in map(find_spec, REQUIRED), reason="the extra giccs[demo] is not installed"
)
AXE = Path(os.environ.get("GICCS_AXE", Path(__file__).parents[3] / ".cache/axe/axe.min.js"))
TITLES = {
    "verdict": "Verdict",
    "study": "The study",
    "statistics": "The dialogues",
    "agreement": "Agreement",
    "reliability": "Reliability",
    "scores": "The scores",
    "models": "Models: pairs of utterances",
    "absolute": "Models: over all items",
    "choices": "Models: multiple choice",
    "signatures": "Signatures",
    "reading": "All dialogues",
    "cite": "How to cite",
}


class Reader(HTMLParser):
    """Reads headings, table cells with where they come from, and whatever would be loaded."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.numbers, self.loaded = [], [], []
        self.inside, self.text = None, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.loaded += [
            (tag, name, value)
            for name, value in attrs
            if name in ("src", "href", "xlink:href", "action", "srcset") and value[0] != "#"
        ]
        self.loaded += [(tag, "", "")] if tag in ("script", "link", "iframe", "object") else []
        if tag in ("h1", "h2"):
            self.inside, self.text = (tag, attributes.get("id")), ""
        elif "data-command" in attributes:
            where = attributes["data-command"], attributes["data-path"]
            self.inside, self.text = where, ""

    def handle_data(self, data):
        self.text += data

    def handle_endtag(self, tag):
        if self.inside and tag in ("h1", "h2"):
            self.headings.append(self.text)
            self.inside = None
        elif self.inside and tag == "span":
            self.numbers.append((*self.inside, self.text))
            self.inside = None


def printed_by(command, folder):
    """Run a command that the page names, in the page's folder, and return its JSON."""
    done = in_process.run(*shlex.split(command), cwd=folder)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return json.loads(done.stdout)


def as_shown(value, text):
    """Return a value with as many decimals as the page shows."""
    if value is None:
        return "–"
    decimals = len(text.partition(".")[2])
    return f"{value:.{decimals}f}" if isinstance(value, (int, float)) else str(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study with simulated workers, baselines, and a causal model with random weights."""
    from ...giccs.causal_models import make_model

    model = make_model(tmp_path_factory.mktemp("models") / "tiny", n_positions=1024)
    lines = sample_dialogues().splitlines(keepends=True)
    plan = Plan(
        "".join(lines[place] for place in (0, 12, 24, 42)), workers=3,
        pairs=("baseline:chance", "baseline:char-ngram"), causal=(str(model),), every=2,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("study")
    run_pipeline(folder, plan, Console(as_json=False, quiet=True))
    return folder


@pytest.fixture(scope="module")
def read(folder):
    return Reader((folder / "report.html").read_text("utf-8"))


def test_every_number_is_found_again_by_the_command_beside_it(folder, read):
    document = cache(lambda command: printed_by(command, folder))
    assert len(read.numbers) > 150
    for command, path, text in read.numbers:
        assert as_shown(resolve_pointer(document(command), path), text) == text, f"{command} {path}"
    shown = (folder / "report.html").read_text("utf-8")
    for command in {command for command, _, _ in read.numbers}:
        words = "".join(f"<span>{word}</span> " for word in command.split(" "))
        assert f"<code>{words}</code>" in shown, command


def test_intervals_of_four_dialogues_are_dashes_with_a_note(folder, read):
    limits = [text for _, path, text in read.numbers if path.endswith("metrics/spearman/low")]
    assert limits == []
    shown = (folder / "report.html").read_text("utf-8")
    notes = re.findall(r"\[–\]: (.*?): no interval, which needs 5", shown)
    assert notes == ["4 dialogues", "2 dialogues, 1 dialogues", "4 dialogues", "2 dialogues"]
    assert "[–]" in shown


def test_the_sections_are_all_there(read):
    assert read.headings[1:] == list(TITLES.values())


def test_scores_and_absolute_scores_have_a_ceiling_each(folder):
    shown = (folder / "report.html").read_text("utf-8")
    _, within, over_all = re.split('<section[^>]*id="(?:models|absolute)"', shown)
    assert "ipsative limit" in within
    assert "noise ceiling" in over_all
    assert "--target absolute_score" in re.sub("</?span>", "", over_all)
    (chart,) = re.findall(r'aria-label="(Chart of Spearman’s rho[^"]*)"', over_all)
    assert re.search(r"noise ceiling 0\.\d\d\.$", chart)
    assert chart not in within


def test_the_study_has_its_figures(folder):
    text = (folder / "report.html").read_text("utf-8")
    labels = re.findall(r'class="chart" role="img" aria-label="([^"]*)"', text)
    scores = [json.loads(line)["score"] for line in (folder / "benchmark.jsonl").open()]
    for label in (
        "Chart of Krippendorff’s alpha: all, both 0.",
        "Matrix of the agreement of 3 annotators",
        "Chart of the reliability (Pearson) by annotations per tuple: 2 annotations",
        "Bar chart of the variance components: items 0.",
        f"Scores from {max(scores):.2f} to {min(scores):.2f}.",
        "Heat map of the scores by domain.",
    ):
        assert sum(each.startswith(label) for each in labels) == 1, label
    assert "All items, the highest score first" in text


def test_it_begins_with_the_sentences_of_the_command(folder):
    text = (folder / "report.html").read_text("utf-8")
    section = text.partition('<section id="verdict"')[2].partition("</section>")[0]
    (command,) = re.findall(r"<code>(.*?)</code>", section)
    printed = printed_by(unescape(re.sub("<[^>]*>", "", command)).strip(), folder)["verdict"]
    assert [*printed] == ["scores", "items", "annotators", "models"]
    for finding in printed.values():
        assert finding["question"] in section
        for sentence in finding["sentences"]:
            assert sentence[1:] in unescape(section)


def test_it_has_the_paragraph_of_the_command_for_a_methods_section(folder):
    from click.testing import CliRunner

    from bws.cli import agreement

    options = [str(folder / "judgments.csv"), "--intervals", "--paragraph", "--quiet"]
    done = CliRunner().invoke(agreement, options)
    prose = " ".join(done.stdout.partition("\n\n")[0].split())
    body = prose.removesuffix(" Computed with giccs 0.1.0.")
    text = unescape((folder / "report.html").read_text("utf-8"))
    assert f"For a methods section: {body}" in " ".join(text.split())


def test_figures_without_their_data_are_left_out(folder, tmp_path):
    lines = (folder / "judgments.csv").read_text("utf-8").splitlines(keepends=True)
    first = {line.split(",")[0]: line for line in reversed(lines[1:])}
    path = tmp_path / "judgments.csv"
    path.write_text(lines[0] + "".join(first.values()), "utf-8")
    single = read_judgments(path)
    figures = [
        figure.alternative
        for analysis, settings in STUDY_ANALYSES
        for figure in analysis_figures(analysis, Answers(single, settings))
    ]
    scales, components = figures
    assert scales.startswith("Chart of the scales of 3 annotators")
    assert components.startswith("Bar chart of the variance components")


def test_it_loads_nothing_and_runs_nothing(read):
    assert read.loaded == []


def test_the_scores_are_called_simulated_beside_all_that_is_made_of_them(folder, read):
    text = (folder / "report.html").read_text("utf-8")
    assert "annotators of these data are simulated" in text.partition("</header>")[0]
    for name in ("agreement", "reliability", "scores", "models", "choices"):
        section = text.partition(f'<section id="{name}"')[2].partition("</section>")[0]
        titles = section.count("<h3 ") + section.count("<figcaption>")
        assert titles == section.count('<span class="mark">simulated scores</span>') > 0


def test_of_real_annotators_it_does_not_say_that_they_are_simulated(folder, tmp_path):
    assert write_page(Inputs(folder), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert 'role="note"' not in text
    assert "simulated scores" not in text


def test_it_is_written_again_only_where_something_changed(tmp_path):
    """Of few data: what is compared is the digest of all inputs."""
    path = tmp_path / "report.html"
    write_benchmark(read_benchmark("giccs-sample").first(1).items, tmp_path / "benchmark.jsonl")
    assert write_page(Inputs(tmp_path), path)
    assert not write_page(Inputs(tmp_path), path)
    assert write_page(Inputs(tmp_path, simulated=True), path)
    path.write_text("broken")
    assert write_page(Inputs(tmp_path), path)
    write_benchmark(read_benchmark("giccs-sample").first(2).items, tmp_path / "benchmark.jsonl")
    assert write_page(Inputs(tmp_path), path)


def test_sections_without_files_are_left_out(folder, tmp_path):
    (tmp_path / "benchmark.jsonl").write_bytes((folder / "benchmark.jsonl").read_bytes())
    assert write_page(Inputs(tmp_path), tmp_path / "report.html")
    result = Reader((tmp_path / "report.html").read_text("utf-8"))
    assert result.headings[1:] == [
        "The dialogues",
        "The scores",
        "Signatures",
        "All dialogues",
        "How to cite",
    ]


def test_hostile_names_are_text(folder, tmp_path):
    name = "<script>alert(1)</script>&\"'"
    text = (folder / "benchmark.jsonl").read_text("utf-8")
    changed = text.replace('"source": "written"', f'"source": {json.dumps(name)}')
    assert changed != text
    (tmp_path / "benchmark.jsonl").write_text(changed, "utf-8")
    from giccs.benchmark import read_benchmark
    from giccs.evaluation.run import run
    from giccs.measures.results import Store
    from giccs.models import open_model
    from giccs.tasks.pairwise import PairwiseSTS

    benchmark = read_benchmark(tmp_path / "benchmark.jsonl")
    models = [open_model("baseline:char-ngram")]
    list(run(models, [PairwiseSTS()], benchmark, Store(tmp_path / "results")))
    write_page(Inputs(tmp_path), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_copied_judgments_have_a_warning_and_a_command_that_accepts_them(tmp_path):
    rows = (files("giccs.data") / "judgments.csv").read_text().splitlines()[:201]
    (tmp_path / "judgments.csv").write_text(
        "\n".join([*rows, *(f"again-{row}" for row in rows[1:])])
    )
    write_benchmark(read_benchmark("giccs-sample").items, tmp_path / "benchmark.jsonl")
    inputs = Inputs(tmp_path, metadata_file="benchmark.jsonl")
    section, source = _analysis_section(inputs, AGREEMENT, _study_answers(inputs)["agreement"])
    assert section.text[-1].startswith("Warning: 200 of 400 judgments repeat annotator")
    assert source.command.startswith("giccs agreement judgments.csv --allow-copies --metadata")
    assert source.command.endswith(" --by source,n_turns --intervals --json")


def test_the_interval_of_agreement_names_its_source():
    judgments = read_judgments(files("giccs.data") / "judgments.csv")
    document = (result := agreement(judgments, intervals=True)).document()
    table = Source("x --json", document).table(result.result_table())
    alpha = table.rows[0][3]
    numbers = [part for part in alpha if isinstance(part, Number)]
    assert [part.path for part in numbers] == [
        "/groups/0/alpha/both",
        "/groups/0/intervals/alpha/both/low", "/groups/0/intervals/alpha/both/high",
    ]  # fmt: skip
    for part in numbers:
        assert part.text == f"{resolve_pointer(document, part.path):.3f}"


def test_an_interval_of_agreement_that_is_missing_is_a_dash():
    judgments = read_judgments(files("giccs.data") / "judgments.csv")
    few = judgments.select(np.arange(6))
    result = agreement(few, intervals=True)
    assert math.isnan(result.groups[0].alpha["both"].low)
    alpha = Source("x --json", result.document()).table(result.result_table()).rows[0][3]
    assert alpha[-1] == " [–]"


def test_a_number_that_is_not_defined_is_a_dash():
    source = Source("x --json", {"a/b": [{"value": float("nan"), "low": 0.1, "high": None}]})
    assert source.number("/a~1b/0/value", ".2f").text == "–"
    assert source.number("/a~1b/0/low", ".2f").text == "0.10"
    assert [part.text for part in source.interval("/a~1b/0")[:1]] == ["–"]


def test_charts_of_a_page_share_no_ids():
    import altair as alt

    first, second = (
        chart_svg_for_page(
            alt.Chart(alt.Data(values=[{"x": x}])).mark_point(clip=True).encode(x="x:Q")
        )
        for x in (1, 2)
    )
    ids = [set(Ids(svg).found) for svg in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert all(f"url(#{name})" in first for name in ids[0])


class Ids(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name == "id"]


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "dark"),
        pytest.param(1280, "light", marks=pytest.mark.nightly),
        pytest.param(390, "light", marks=pytest.mark.nightly),
        pytest.param(1280, "dark", marks=pytest.mark.nightly),
    ],
)
def test_in_chromium_without_network(chromium, folder, width, scheme):
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    page = context.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((folder / "report.html").as_uri())
    assert asked == [(folder / "report.html").as_uri()]
    assert said == []
    for chart in (charts := page.locator(".chart").all()):
        box = chart.locator("svg").bounding_box()
        assert box["width"] > 250
        assert box["height"] > 60
        assert box["x"] + box["width"] <= width
        assert chart.get_attribute("aria-label")
    marks = ".role-mark.mark-symbol path, .role-mark.mark-rect path"
    bins, models, histories = 5, 2, 2  # the ceiling of so few dialogues has no band
    expected = {"Bar chart of the scores": bins, "Chart of Spearman": models}
    expected |= {"Ranks in ": 2 * 5}  # people and the model
    expected |= {"Chart of accuracies": histories, "Matrix of the agreement of 3 annotators": 6}
    assert any("errors of" in each.get_attribute("aria-label") for each in charts)
    for label, count in expected.items():
        chart, *others = (
            each for each in charts if each.get_attribute("aria-label").startswith(label)
        )
        assert len(others) == (label == "Chart of Spearman")  # also on absolute scores
        assert chart.locator(marks).count() == count
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, "the page itself scrolls sideways"
    for text in page.locator(".chart svg text").all():  # wider in the browser's font than measured
        box = text.bounding_box()
        assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= width)
    assert contrast(page, "#study h2") > 7
    assert contrast(page, ".chart svg .role-axis-label text", "fill") > 4.5
    context.close()


def contrast(page, selector, part="color"):
    """Return WCAG's contrast of an element with the page's background."""
    style = "element => [getComputedStyle(element)[PART], getComputedStyle(document.body).backgroundColor]"
    shown = page.locator(selector).first.evaluate(style.replace("PART", repr(part)))
    light, dark = sorted((luminance(one) for one in shown), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core: make test fetches it")
def test_axe_finds_no_barrier(chromium, folder, scheme):
    window = {"width": 390, "height": 900}
    # the page forbids all scripts, and axe is one
    context = chromium.new_context(viewport=window, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto((folder / "report.html").as_uri())
    page.add_script_tag(content=AXE.read_text("utf-8"))
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    said = [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]])
        for rule in result["violations"]
    ]
    assert said == []
    context.close()


def test_models_without_a_value_are_named_below_the_leaderboard():
    import polars as pl

    from giccs_app.report.sections import _alternative_text, _without_value

    rows = [("a", "with", 0.5, ""), ("b", "with", float("nan"), "every prediction is equal")]
    frame = pl.DataFrame(rows, ["model", "history", "value", "reason"], orient="row")
    assert _without_value(frame) == " Without a value: b with history (every prediction is equal)."
    assert _without_value(frame[:1]) == ""
    assert _alternative_text(frame) == "a with history 0.50"


class FirstOption:
    """Generates the letter of the first option."""

    name, identity = "chat:first", {"kind": "chat"}

    def respond(self, prompts, max_tokens, progress):
        return [Response("A")] * len(prompts)

    def response_settings(self):
        return {}

    def environment(self):
        return {}


def test_generated_answers_have_a_consistency_and_no_likelihoods(tmp_path):
    benchmark = read_benchmark("giccs-sample").first(4)
    write_benchmark(benchmark.items, tmp_path / "benchmark.jsonl")
    task = MultipleChoice(answer="letter", permutations=2, choose_by="generation")
    read_again = read_benchmark(str(tmp_path / "benchmark.jsonl"))
    (result,) = run([FirstOption()], [task], read_again, Store(tmp_path / "results"))
    assert "rank_spearman" not in result.metrics
    write_page(Inputs(tmp_path), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    read = Reader(page)
    names = {path.split("/")[-2] for _, path, _ in read.numbers if "/groups/" in path}
    assert {"accuracy", "invalid", "consistency"} <= names
    assert "per token" not in page
