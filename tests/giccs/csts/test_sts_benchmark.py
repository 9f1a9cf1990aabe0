"""C-STS tasks on the STS Benchmark: reading, inputs, prompts, a training, and the numbers of the recipe."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import pearsonr, spearmanr

from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.cli.reporting import report
from giccs.csts.data import read_csts
from giccs.csts.encoders.splits import read_splits
from giccs.csts.prompting import Prompting
from giccs.csts.sts_benchmark import FILES
from giccs.evaluation.recipe import TRAINING, read_recipe

from . import tiny_bert
from .test_training import call

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
BENCHMARK = SHARED / "data" / "evalrank" / "sent_similarity" / "STS" / "STSBenchmark"
ROW = 'main\tfile\t2012test\t{n:04d}\t{score:.3f}\tA kite of {n} {a}.\tA "bus" of {n} {b}.{more}'
WORDS = [
    "sheep", "hills", "sky", "meadow", "grass", "summer", "spring", "landscape", "green", "pale",
    "wildflowers", "height",
]  # fmt: skip


def write_benchmark(folder, counts=(("train", 12), ("validation", 8), ("test", 8))):
    folder.mkdir()
    for split, count in counts:
        lines = [
            ROW.format(
                n=n, score=(n * 7 % 21) / 4, a=WORDS[n], b=WORDS[n * 5 % 12],
                more="\tsource\tsource" if n % 2 else "",
            )
            for n in range(count)
        ]  # fmt: skip
        (folder / FILES[split]).write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture
def benchmark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_benchmark(tmp_path / "STSBenchmark")


def test_rows_have_no_condition_and_labels_from_1_to_5(benchmark):
    dataset = read_csts(benchmark, "validation")
    assert (dataset.has_conditions, dataset.scale, len(dataset.instances)) == (False, (0, 5), 8)
    second = dataset.instances[1]
    assert (second.uid, second.condition, second.sentence2) == ("1", "", 'A "bus" of 1 summer.')
    assert second.label == 1 + 4 * 1.75 / 5
    splits = read_splits(benchmark)
    assert [len(rows) for rows in (splits.train, splits.validation, splits.test)] == [12, 8, 8]
    assert read_csts(benchmark / "sts-dev.csv").instances == dataset.instances


def test_invalid_lines_are_refused_with_their_numbers(benchmark):
    lines = [
        "a\tb\tc\t1\t5.1\tx\ty",
        "5\tx",
        "a\tb\tc\t1\thigh\tx\ty",
        "4.5\tx\ty",
        "nan\tx\ty",
        "4\tx\t",
    ]
    (benchmark / "sts-dev.csv").write_text("\n".join(lines), "utf-8")
    with pytest.raises(InputError) as caught:
        read_csts(benchmark, "validation")
    assert [problem.line for problem in caught.value.problems] == [1, 2, 3, 5, 6]
    (benchmark / "sts-dev.csv").write_text("", "utf-8")
    with pytest.raises(InputError, match="no rows; expected sentence pairs"):
        read_csts(benchmark, "validation")


def test_prompts_have_the_scale_and_examples_of_single_rows(benchmark):
    task = Prompting("short", shots=2)
    data = task.read(str(benchmark))
    lines = task.prompts(data)[0].split("\n")
    assert lines[0].startswith(
        "On a scale between 0 and 5, how similar are the following two sentences?"
    )
    assert (
        lines[-1] == 'Input: Sentence 1: A kite of 0 sheep. Sentence 2: A "bus" of 0 sheep. Output:'
    )
    scores = [float(re.search(r"Output: ([\d.]+)$", line)[1]) for line in lines[1:-1]]
    numbers = [int(re.search(r"kite of (\d+)", line)[1]) for line in lines[1:-1]]
    assert scores == [(n * 7 % 21) / 4 for n in numbers]
    assert len(lines) == 4
    signature = task.parameters(None, data)
    assert signature["replacement"]["by"] == "U[0, 5]"
    assert signature["query"]["name"] == "sts-query-1"
    of_csts = Prompting("long").parameters(None, Prompting().read("csts-sample"))
    assert (of_csts["replacement"]["by"], of_csts["instruction"]["name"]) == ("U[1, 5]", "long-1")


def test_scores_outside_0_to_5_are_counted(benchmark):
    task = Prompting("none")
    data = task.read(str(benchmark))
    numbers = np.array([5, 5, 5, 0, 5.5, 3, 4.5, 1.0])
    share = task._invalid(numbers, numbers != 3, ["5"] * 8, data)
    assert (share.value, share.extra["outside"]) == (1 / 8, 1)
    assert "1 of 8 answers are outside 0 to 5" in share.reason


@pytest.mark.parametrize("task", ["csts", "train"])
def test_a_condition_is_refused(benchmark, tmp_path, task):
    if task == "csts":
        done = CliRunner().invoke(
            evaluate, ["baseline:char-ngram", "--task", "csts", "--data", "STSBenchmark"]
        )
    else:
        model = str(tiny_bert.make(tmp_path / "tiny-bert"))
        done = call(benchmark, "--model", model, "-o", tmp_path / "results", "--device", "cpu")
    assert done.exit_code == 2
    assert "has no conditions; use --no-condition" in done.output


RECIPE = """
data = "STSBenchmark"

[[model]]
name = "baseline:char-ngram"
task = "csts"
ask = { condition = false }
published = [{ metric = "spearman", value = 0.5, n = 8 }]

[[model]]
name = "tiny-bert"
task = "csts-train"
ask = { condition = false, encoding = "%s", epochs = 1, batch = 4 }
published = [{ metric = "spearman", value = 0.5, n = 8, by = { split = "validation" } }]
"""


@pytest.mark.parametrize("encoding", ["bi", "cross"])
def test_a_recipe_is_evaluated_trained_and_compared(benchmark, tmp_path, encoding):
    pytest.importorskip("accelerate")
    tiny_bert.make(tmp_path / "tiny-bert")
    (tmp_path / "recipe.toml").write_text(RECIPE % encoding, "utf-8")
    evaluated = CliRunner().invoke(evaluate, ["--recipe", "recipe.toml", "-o", "results"])
    assert evaluated.exit_code == 0, evaluated.output
    trained = call(
        benchmark.name, "--recipe", "recipe.toml", "-o", "results", "--device", "cpu", "--json"
    )
    assert trained.exit_code == 0, trained.output
    (result,) = json.loads(trained.stdout)["results"]
    rows = read_splits(benchmark).test
    assert result["metrics"]["spearman"]["n"] == len(rows)
    assert result["metrics"]["pair_accuracy"]["value"] is None
    shown = CliRunner().invoke(report, ["results", "--against", "recipe.toml", "--json"])
    verdicts = [line["verdict"] for line in json.loads(shown.stdout)["against"]]
    assert len(verdicts) == 2
    assert set(verdicts) <= {"inside", "outside"}


def test_correlations_are_those_of_scipy_and_of_sentence_similarity(tmp_path, monkeypatch):
    if not BENCHMARK.is_dir():
        pytest.skip(f"{BENCHMARK} is missing; set GICCS_SHARED")
    monkeypatch.chdir(tmp_path)
    calls = (["csts", "--data", str(BENCHMARK), "--no-condition"],
             ["sentence-similarity", "--data", str(BENCHMARK / "sts-dev.csv")])  # fmt: skip
    results = []
    for arguments in calls:
        done = CliRunner().invoke(evaluate, ["baseline:char-ngram", "--json", "--task", *arguments])
        assert done.exit_code == 0, done.output
        results += json.loads(done.stdout)["results"]
    for metric in ("spearman", "pearson"):
        ours, theirs = (result["metrics"][metric] for result in results)
        assert ours["value"] == pytest.approx(theirs["value"], abs=1e-12)
        assert ours["n"] == theirs["n"] == 1500
    import polars

    (path,) = Path("results").glob("*csts*.parquet")
    table = polars.read_parquet(path)
    scores = [row.label for row in read_csts(BENCHMARK, "validation").instances]
    assert table["label"].to_list() == scores
    of_scipy = [of(table["prediction"], table["label"]).statistic for of in (spearmanr, pearsonr)]
    assert [
        results[0]["metrics"][name]["value"] for name in ("spearman", "pearson")
    ] == pytest.approx(of_scipy)


def test_the_german_translation_is_read(tmp_path):
    source = SHARED / "data" / "stsb-de" / "stsb_de_dev.csv"
    if not source.is_file():
        pytest.skip(f"{source} is missing; set GICCS_SHARED")
    (tmp_path / "sts-dev.csv").write_bytes(source.read_bytes())
    rows = read_csts(tmp_path, "validation").instances
    assert rows[0].sentence1 == "Ein Mann mit einem Schutzhelm tanzt."
    assert (len(rows), rows[1].label) == (1500, 1 + 4 * 4.75 / 5)


def published(task):
    return [
        (run.model.split("/")[-1], run.options, {n.metric: n.value for n in run.published})
        for run in read_recipe("c-sts-stsb-paper").runs
        if run.task == task
    ]


def test_the_recipe_has_the_numbers_of_tables_2_9_and_12():
    paper = SHARED / "papers" / "c-sts.txt"
    if not paper.is_file():
        pytest.skip(f"{paper} is missing; set GICCS_SHARED")
    lines = [line.split("\t") for line in paper.read_text("utf-8").splitlines()]

    def numbers(cells):
        return [round(float(re.sub(r"</?b>", "", cell)) / 100, 4) for cell in cells]

    table_2 = [numbers(cells[3:5]) for cells in lines if len(cells) == 5 and "BASE" in cells[0] + "BASE"
               and re.fullmatch(r"(DiffCSE|RoBERTa|SimCSE) <sub>\w+</sub>", cells[0])]  # fmt: skip
    assert [[n["spearman"], n["pearson"]] for *_, n in published("csts")] == table_2
    table_9 = [
        cells for cells in lines if len(cells) == 7 and cells[1] in ("Cross Encoder", "Bi Encoder")
    ]
    trained = published(TRAINING)
    assert [[n["spearman"], n["pearson"]] for *_, n in trained] == [numbers(c[5:]) for c in table_9]
    for (_, options, _), (_, encoding, rate, transform, *_) in zip(trained, table_9, strict=True):
        assert options["encoding"] == encoding.split()[0].lower()
        assert options["learning_rate"] == float(rate)
        assert str(options["transform"]) == transform
        assert options["condition"] is False
    prompted = [
        cells[2:] for cells in lines if len(cells) == 11 and re.fullmatch(r"[\d.]+", cells[2])
    ]
    table_12 = prompted[-30:]
    expected = [numbers(row[start : start + 3]) for row in table_12 for start in (0, 3, 6)]
    values = [[n["invalid"], n["pearson"], n["spearman"]] for *_, n in published("csts-prompt")]
    assert values == expected
    assert len(prompted) >= 60  # those of Table 11 come first
