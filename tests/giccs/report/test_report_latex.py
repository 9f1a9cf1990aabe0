"""Tables of the commands for papers: their options, and their LaTeX typeset by pdflatex."""

import re
from dataclasses import replace
from string import ascii_lowercase

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.tables import TableStyle
from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark
from giccs.cli.reporting import compare_models
from giccs.cli.reporting import report as report_command
from giccs.evaluation.recipe import PublishedNumber, Recipe, Run
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Group, Result, Store
from giccs.models import open_model
from giccs.models.objects import model_of_object
from giccs.report import report
from giccs.report.published import compare_with_published, published_table
from giccs.tasks.pairwise import PairwiseSTS
from tests.stacked_cells import on_one_line

NASTY = r"org/a_b&c%d#e{f}~g^h\i$j--k"
UMLAUTS = "Ähnlichkeit–größer ρ"
CHANCE = "baseline:chance"


def letter_counts(texts):
    return np.array([[text.count(letter) for letter in ascii_lowercase] for text in texts], float)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of pairwise STS with predictions, of models with names that LaTeX could misread."""
    path = tmp_path_factory.mktemp("results")
    task = PairwiseSTS(resamples=20)
    sample = read_benchmark("giccs-sample")
    models = {
        UMLAUTS: open_model("baseline:char-ngram"),
        NASTY: model_of_object(letter_counts),
        CHANCE: open_model(CHANCE),
    }
    for name, model in models.items():
        result = evaluate_task(task, model, sample)
        Store(path).add(replace(result, model=name, signature=result.signature | {"model": name}))
    return str(path)


def run(command, *arguments, code=0):
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def squeezed(text):
    return "".join(text.replace("_", "").split())


@pytest.mark.parametrize("command", [report_command, compare_models])
def test_tables_are_typeset_with_nasty_names(folder, command, typeset):
    latex = run(
        command,
        folder,
        "--format",
        "latex",
        "--caption",
        "50 % & ρ",
        "--label",
        "tab:a_b",
        "--bold-best",
    )
    text = typeset(latex)
    assert "Table1:50%&ρ" in text
    assert squeezed(NASTY.removeprefix("org/")) in text
    assert squeezed(NASTY) not in text  # The short name; the full one is in a comment.
    assert f"\n% {NASTY.removeprefix('org/')}: {NASTY}" in latex
    assert squeezed(UMLAUTS) in text
    assert "undefined" not in text
    numbers = re.findall(r"\\textbf\{([^}]*)\}", latex)
    assert numbers
    assert all(number.replace("$-$", "-") in text.replace("\u2212", "-") for number in numbers)
    assert re.search(r"label\{tab:a_b-2\}", latex)


def test_a_model_that_does_not_differ_from_the_best_has_a_dagger_beside_its_name(folder, typeset):
    names = ["--model-name", f"{UMLAUTS}=ours"]
    columns = ["--columns", "model,spearman"]
    latex = run(compare_models, folder, "--format", "latex", "--bold-best", *names, *columns)
    assert r"ours & \textbf{" in latex  # The best has no mark.
    (marked,) = [line for line in latex.splitlines() if r"$^\dagger$" in line]
    assert re.search(r"-k\$\^\\dagger\$ & 0\.", marked)  # The second, NASTY.
    assert "†: not significantly different from the best model" in latex
    assert "p & Holm" not in latex
    assert typeset(latex).count("†") == 1
    assert f"ours: {UMLAUTS}" in latex


def test_names_of_models_are_known_and_differ(folder):
    done = run(report_command, folder, "--model-name", "baseline:chanse=x", code=2)
    assert f"no result of 'baseline:chanse'; did you mean '{CHANCE}'?" in done
    same = [*("--model-name", f"{CHANCE}=x"), *("--model-name", f"{UMLAUTS}=x")]
    assert "'x' would be the name of several models" in run(report_command, folder, *same, code=2)
    named = run(report_command, folder, "--model-name", f"{CHANCE}=guessing")
    assert "guessing" in named
    assert CHANCE not in named
    assert NASTY in named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--caption", "x"], "--caption requires --format latex"),
        (["--format", "markdown", "--bold-best"], "--bold-best requires --format latex"),
        (["--format", "csv", "--columns", "model"], "--columns is for tables"),
        (["--format", "csv", "--model-name", f"{CHANCE}=x"], "--model-name is for tables"),
        (["--format", "latex", "--label", "a{b"], "expected letters, digits"),
        (["--columns", "model,sperman"], "did you mean 'spearman'?"),
    ],
)
def test_options_that_make_no_sense_are_refused(folder, options, message):
    assert message in run(report_command, folder, *options, code=2)


def test_the_best_value_is_that_of_the_row_where_models_are_columns(folder):
    latex = on_one_line(run(report_command, folder, "--format", "latex", "--bold-best"))
    subsets = latex.partition("subset & items")[2].partition("\\bottomrule")[0]
    rows = [line for line in subsets.splitlines() if "=" in line]
    assert len(rows) == 10
    for row in rows:
        cells = [cell.removesuffix("\\\\").strip() for cell in row.split("&")[2:]]
        values = [float(re.sub(r"\\textbf\{|[{}$]", "", cell).partition(" ")[0]) for cell in cells]
        bold = [cell.startswith("\\textbf") for cell in cells]
        assert bold == [value == max(values) for value in values]
    ceiling = next(line for line in latex.splitlines() if line.startswith("noise ceiling"))
    assert "textbf" not in ceiling


def test_lower_values_are_better_for_some_metrics():
    def result(model, mrr, rank):
        metrics = {"mrr": Estimate(mrr, 0, 1, 9), "mean_rank": Estimate(rank, 0, 9, 9)}
        groups = (Group({"level": 1}, metrics),)
        return Result(model, "evalrank-word", metrics, groups, {"data": "d"}, {"data": "w"}, 0.0)

    latex = report(
        [result("a", 0.5, 7.0), result("b", 0.25, 3.0)], TableStyle("latex", bold_best=True)
    )
    lines = [line for line in latex.splitlines() if line.startswith(("a &", "b &"))]
    assert [re.findall(r"textbf\{(.*?)\}", line) for line in lines[:2]] == [["0.500"], ["3.000"]]


def test_published_numbers_are_typeset(folder, typeset):
    results = [result for result in Store(folder).results() if result.model == CHANCE]
    number = PublishedNumber("spearman", 0.5, {"source": "spoken"}, 0.01)
    run_of_model = Run(CHANCE, None, "pairwise-sts", {}, (replace(number, by={}), number))
    recipe = Recipe("a_b.toml", "50 % & more", "A paper", "giccs-sample", (run_of_model,))
    latex = published_table(compare_with_published(results, recipe), "latex")
    assert "0.500±0.010" in typeset(on_one_line(latex))
