"""Further analyses: a file and a line give a command, a section of the report, a part of the explorer."""

import json
import shlex
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from bws.analysis import registry
from giccs_app.cli import main

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "giccs-plugin"
COMMON = """
import altair as alt
import numpy as np
from bws.analysis.analysis import Analysis, Drawing, Picture
from bws.base.tables import Column, ResultTable
"""
INTERVAL = """
from bws.stats.clusters import clustered_share

class First:
    def __init__(self, estimate):
        self.estimate = estimate
    def document(self):
        return {"first": self.estimate}
    def result_table(self):
        columns = [Column("what", "what"), Column("share", "share [95 %]", ".3f", source="first")]
        return ResultTable(columns, [["first position", self.estimate]], sources=[""])

def run(answers):
    judgments = answers.judgments.canonical
    return First(clustered_share((judgments.best == 0).astype(float), judgments.annotator_of))

ANALYSIS = Analysis("first-position", run, title="First position", text="Share of best first items.")
"""
CURVE = """
class Curve:
    def __init__(self, rows):
        self.rows = rows
    def document(self):
        return {"curve": self.rows}
    def result_table(self):
        columns = [Column(name, name, source=name) for name in ("judgments", "tuples")]
        return ResultTable(columns, [list(row.values()) for row in self.rows],
                           sources=[f"/curve/{n}" for n in range(len(self.rows))])

def run(answers):
    counts = np.bincount(answers.judgments.tuple_of)
    return Curve([{"judgments": n, "tuples": int((counts >= n).sum())} for n in range(1, counts.max() + 1)])

def draw(result, t):
    chart = alt.Chart(alt.Data(values=result.rows)).mark_line(point=True)
    return Drawing(chart.encode(x="judgments:Q", y="tuples:Q"), "Tuples by judgments", result.rows)

ANALYSIS = Analysis("progress", run, pictures=[Picture("curve", "tuples by judgments", draw)],
                    title="Progress", text="Tuples with at least so many judgments.")
"""
MATRIX = """
from bws.raw_agreement import annotator_pairs

class Pairs:
    def __init__(self, pairs):
        names = pairs.annotators
        self.rows = [
            {"annotator": first, "other": second, "tuples": int(pairs.tuples[a, b])}
            for a, first in enumerate(names) for b, second in enumerate(names) if a != b
        ]
    def document(self):
        return {"pairs": self.rows}
    def result_table(self):
        columns = [Column(name, name) for name in ("annotator", "other")]
        columns.append(Column("tuples", "tuples", source="tuples"))
        return ResultTable(columns, [list(row.values()) for row in self.rows],
                           sources=[f"/pairs/{n}" for n in range(len(self.rows))])

def draw(result, t):
    chart = alt.Chart(alt.Data(values=result.rows)).mark_rect()
    return Drawing(chart.encode(x="annotator:N", y="other:N", color="tuples:Q"), "Common tuples", result.rows,
                   opens={"annotator": "annotator"})

ANALYSIS = Analysis("common-tuples", lambda answers: Pairs(annotator_pairs(answers.judgments)),
                    pictures=[Picture("matrix", "common tuples", draw)], title="Common tuples",
                    text="Tuples that two annotators judged.")
"""
BROKEN = "import a_module_that_is_missing"
REFUSING = """
def run(answers):
    raise ValueError("no judgment has a time")

ANALYSIS = Analysis("hurry", run, title="Hurry")
"""
FAULTY = """
def run(answers):
    return {}["missing"]

ANALYSIS = Analysis("faulty", run, title="Faulty")
"""
POINTING = """
class Result:
    def document(self):
        return {}
    def result_table(self):
        return ResultTable([Column("n", "n", source="n")], [[1]], sources=["/missing"])

def run(answers):
    return Result()

ANALYSIS = Analysis("pointing", run, title="Pointing")
"""
TAKEN = """
def run(answers):
    return None

ANALYSIS = Analysis("score", run, title="Score")
"""
OWN = "first-position"
"""Named in the table of this package; the others are named by the entry points of another package."""
MODULES = {
    "first-position": INTERVAL, "progress": CURVE, "common-tuples": MATRIX, "hurry": REFUSING,
    "broken": BROKEN, "faulty": FAULTY, "pointing": POINTING, "score": TAKEN,
}  # fmt: skip


@pytest.fixture
def installed(tmp_path_factory, monkeypatch):
    """Make the analyses importable, and name them."""
    folder = tmp_path_factory.mktemp("packages")
    lines = ["[giccs.analyses]", "hard-tuples = hard_tuples:HARD_TUPLES"]
    for name, code in MODULES.items():
        module = f"trial_{name.replace('-', '_')}"
        (folder / f"{module}.py").write_text(COMMON + code)
        if name == OWN:
            monkeypatch.setitem(registry.ANALYSES, name, f"{module}:ANALYSIS")
        else:
            lines.append(f"{name} = {module}:ANALYSIS")
    info = folder / "trial-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trial\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(EXAMPLE)
    for cached in (registry.further_analyses, registry.load_analysis):
        cached.cache_clear()
    yield
    for cached in (registry.further_analyses, registry.load_analysis):
        cached.cache_clear()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with the judgments of the sample and its benchmark."""
    folder = tmp_path_factory.mktemp("study")
    for name in ("judgments.csv", "benchmark.jsonl"):
        source = resources.files("giccs") / "data" / name
        (folder / name).write_bytes(source.read_bytes())
    return folder


def call(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)], prog_name="giccs")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "value", "figure"),
    [
        ("first-position", "0.", None),
        ("progress", "tuples", "curve"),
        ("common-tuples", "annotator", "matrix"),
        ("hard-tuples", "0.40", "tuples"),
    ],
)
def test_a_further_analysis_is_a_command(study, name, value, figure):
    judgments = study / "judgments.csv"
    for form in ("table", "latex", "markdown"):
        done = call(name, judgments, "--format", form)
        assert done.exit_code == 0, done.output
        assert value in done.stdout
    latex = call(name, judgments, "--format", "latex").stdout
    assert r"\begin{tabular}" in latex or r"\begin{longtable}" in latex
    document = call(name, judgments, "--json")
    assert json.loads(document.stdout)
    options = call(name, "--help").stdout
    assert ("--figure" in options) == bool(figure)
    assert "--by" not in options  # which it would ignore
    assert name in call("--help").stdout
    if figure:
        path = study / f"{name}.svg"
        done = call(name, judgments, "--figure", f"{figure}={path}")
        assert done.exit_code == 0, done.output
        assert "<svg" in path.read_text("utf-8")


@pytest.mark.usefixtures("installed")
def test_an_analysis_that_refuses_or_cannot_be_loaded_says_so_in_a_line(study):
    refused = call("hurry", study / "judgments.csv")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "no judgment has a time" in refused.stderr
    broken = call("broken", study / "judgments.csv")
    assert broken.exit_code == 2
    assert "trial_broken:ANALYSIS cannot be imported" in broken.stderr
    assert "Traceback" not in broken.stderr
    unknown = call("hard-tuple", study / "judgments.csv")
    assert "did you mean 'hard-tuples'" in unknown.stderr


@pytest.mark.usefixtures("installed")
def test_an_error_in_another_package_is_a_line_that_names_it(study):
    faulty = call("faulty", study / "judgments.csv", "--json")
    assert faulty.exit_code == 2
    assert "analysis faulty: KeyError in package trial_faulty: 'missing'" in faulty.stderr
    assert "Traceback" not in faulty.stderr


@pytest.mark.usefixtures("installed")
def test_the_name_of_a_command_of_giccs_is_not_that_of_another_package(study):
    assert "trial_score:ANALYSIS (not available" in call("--help").stdout
    assert call("score", study / "judgments.csv", "--format", "csv").stdout.startswith("item,group")


@pytest.mark.usefixtures("installed")
def test_the_report_has_a_section_for_each(study):
    pytest.importorskip("jinja2", reason="the extra giccs[demo] is not installed")
    from giccs_app.report.content import Number, resolve_pointer
    from giccs_app.report.inputs import Inputs
    from giccs_app.report.sections import _further_sections

    inputs = Inputs(study, metadata_file="benchmark.jsonl")
    sections = {each.name: each for each in _further_sections(inputs, inputs.judgments)}
    assert list(sections) == [OWN, *sorted({*MODULES, "hard-tuples"} - {OWN})]
    assert sections["hurry"].text == ["No result: no judgment has a time."]
    assert "cannot be imported" in sections["broken"].text[0]
    assert sections["faulty"].text == [
        "No result: analysis faulty: KeyError in package trial_faulty: 'missing'."
    ]
    assert "sources of its columns" in sections["pointing"].text[0]
    assert "is that of a command of giccs" in sections["score"].text[0]
    assert len(sections["common-tuples"].figures) == 1
    rows = [*sections["first-position"].tables[0].rows, *sections["hard-tuples"].tables[0].rows[:3]]
    numbers = [
        each for row in rows for cell in row
        for each in (cell if isinstance(cell, list) else [cell]) if isinstance(each, Number)
    ]  # fmt: skip
    assert len(numbers) == 3 + 3 * 2
    for number in numbers:
        command = shlex.split(number.command.replace("judgments.csv", str(study / "judgments.csv")))
        document = json.loads(call(*command[1:]).stdout)
        assert f"{resolve_pointer(document, number.path):.3f}".startswith(number.text)


@pytest.mark.usefixtures("installed")
def test_the_explorer_shows_each(study, monkeypatch):
    pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")
    from streamlit.testing.v1 import AppTest

    from tests.app.explorer.conftest import SCRIPT

    judgments = str(study / "judgments.csv")
    files = ["--data", str(study / "benchmark.jsonl"), "--judgments", judgments]
    monkeypatch.setattr("sys.argv", [SCRIPT, *files])
    app = AppTest.from_file(SCRIPT, default_timeout=180)
    app.query_params = {"page": "annotation"}
    app.run()
    assert not app.exception, app.exception[0].message
    titles = [each.value for each in app.subheader]
    assert {"First position", "Progress", "Common tuples", "Hurry", "Hard tuples"} <= set(titles)
    messages = [each.value for each in app.info]
    assert any("no judgment has a time" in each for each in messages)
    for reason in ("cannot be imported", "KeyError in package", "that of a command of giccs"):
        assert any(reason in each for each in messages)
    specifications = [each.proto.spec for each in app.get("vega_lite_chart")]
    (matrix,) = (spec for spec in specifications if '"other"' in spec and '"rect"' in spec)
    assert '"fields": ["annotator"]' in json.dumps(json.loads(matrix))
