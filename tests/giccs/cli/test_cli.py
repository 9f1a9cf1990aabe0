"""The commands as a person calls them: answers, exit codes, and what stands after a failure."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import fields
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from giccs.cli import evaluation, reporting
from giccs.tasks import TASKS, TaskOptions, task_option_names
from tests.in_process import run as giccs

from ..benchmark.test_release import write_release

BIN = Path(sys.executable).parent


def process(*arguments, cwd, **options):
    """Run a command in a process of its own: where streams, signals or limits of the system matter."""
    command = [str(BIN / arguments[0]), *map(str, arguments[1:])]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env=environment, **options
    )


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_eval_prints_a_table_and_keeps_results(tmp_path, benchmark_file):
    done = giccs("giccs-eval", "baseline:chance", "baseline:char-ngram", "--data", benchmark_file,
                 "--history", "both", "-o", "r", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Spearman ρ [95 %]" in done.stdout
    assert "n_turns=3" in done.stdout
    assert len(files(tmp_path / "r")) == 2 * 2 * 2  # models × histories × (JSON and Parquet)
    again = giccs("giccs-report", "r", cwd=tmp_path)
    assert again.returncode == 0
    for line in done.stdout.splitlines():
        if line.startswith("baseline:"):
            assert line in again.stdout


def test_json_is_the_whole_of_standard_output(tmp_path, benchmark_file):
    done = process(
        "giccs-eval", "baseline:chance", "--data", benchmark_file, "--json", cwd=tmp_path
    )
    (result,) = json.loads(done.stdout)["results"]
    assert set(result) == {
        "model", "task", "metrics", "groups", "signature", "environment", "seconds", "sha256",
    }  # fmt: skip
    assert set(result["metrics"]) == {"pearson", "spearman", "rank_spearman"}
    assert set(result["metrics"]["pearson"]) == {"value", "low", "high", "n", "reason"}
    report = giccs("giccs-report", "results", "--json", cwd=tmp_path)
    assert json.loads(report.stdout) == json.loads(done.stdout)


def test_quiet_says_nothing_but_the_answer(tmp_path, benchmark_file):
    done = process(
        "giccs-eval", "baseline:chance", "--data", benchmark_file, "--quiet", cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout


def test_standard_input_is_a_benchmark(tmp_path, benchmark_file):
    text = benchmark_file.read_text("utf-8")
    done = process("giccs-validate", "-", "--json", cwd=tmp_path, input=text)
    assert json.loads(done.stdout)["items"] == 30


def test_validate_reports_every_problem_and_fails(tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text('{"score": 2}\nnonsense\n')
    done = giccs("giccs-validate", path, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{path}:1: score is 2; expected a number from 0 to 1" in done.stderr
    assert f"{path}:2: not a JSON object" in done.stderr
    as_json = giccs("giccs-validate", path, "--json", cwd=tmp_path)
    assert as_json.returncode == 2
    assert len(json.loads(as_json.stdout)["problems"]) == len(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'MODEL...'"),
        (["baseline:x"], "baseline:x: no such baseline"),
        (["baseline:x", "package:y"], "package:y: no such packaged model"),
        (
            ["baseline:chance", "--batch-size", "0"],
            "'0' is invalid; expected auto or a number from 1 to 1000000000",
        ),
        (["baseline:chance", "--task", "sing"], "'sing' is not one of 'pairwise-sts'"),
        (
            ["baseline:chance", "--task", "multiple-choice-sts"],
            "baseline:chance: returns no likelihoods; multiple-choice-sts requires a causal language model",
        ),
        (["baseline:chance", "--permutations", "27"], "27 is not in the range 1<=x<=26"),
        (
            ["baseline:chance", "--template", "x.txt"],
            "x.txt: is neither a file nor a built-in template",
        ),
        (["baseline:chance", "--seed", "-1"], "-1 is not in the range 0<=x<=4294967295"),
        (
            ["--json", "export-mteb"],
            "is a subcommand and must come first: giccs eval export-mteb ...",
        ),
        (["baseline:chance", "--limit", "0"], "0 is not in the range"),
        (["baseline:chance", "--data", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["baseline:chance", "--data", "."], "contains 0 .jsonl files"),
    ],
)
def test_a_wrong_call_is_exit_code_2_and_leaves_nothing(tmp_path, arguments, message):
    done = giccs("giccs-eval", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert files(tmp_path) == []


def test_a_disk_that_is_full_is_exit_code_1_and_leaves_no_half_file(tmp_path, benchmark_file):
    """No write may pass 512 bytes: the system refuses it, as a full disk does."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))  # noqa: E731
    done = process("giccs-eval", "baseline:chance", "--data", benchmark_file, "-o", "r", cwd=tmp_path,
                 preexec_fn=limit)  # fmt: skip
    assert done.returncode == 1
    assert ".parquet: File too large" in done.stderr
    assert ".part" not in done.stderr
    assert "Traceback" not in done.stderr
    assert files(tmp_path / "r") == []


def test_a_folder_without_permission_is_told(tmp_path, benchmark_file):
    (tmp_path / "r").write_text("a file")
    done = giccs("giccs-eval", "baseline:chance", "--data", benchmark_file, "-o", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert "r: is a file; expected a folder for results" in done.stderr


def test_ctrl_c_keeps_what_was_done(tmp_path, benchmark_file, plain_encoder):
    command = [
        BIN / "giccs-eval",
        "baseline:chance",
        plain_encoder,
        "--data",
        benchmark_file,
        "-o",
        "r",
    ]
    running = subprocess.Popen(
        list(map(str, command)),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in running.stderr:  # the encoder's frameworks take seconds to load
        if str(plain_encoder) in line:
            break
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate()
    assert running.returncode == 130
    assert "baseline:chance" in out
    assert [name.split(".")[-1] for name in files(tmp_path / "r")] == ["json", "parquet"]
    done = giccs("giccs-eval", "baseline:chance", plain_encoder, "--data", benchmark_file, "-o", "r",
                 cwd=tmp_path)  # fmt: skip
    assert "baseline:chance: pairwise-sts: existing result" in done.stderr
    assert len(files(tmp_path / "r")) == 4


def test_report_of_nothing_says_what_writes_it(tmp_path):
    done = giccs("giccs-report", tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert "contains no results; create them with giccs eval -o" in done.stderr


def test_the_sample_brings_its_noise_ceiling(tmp_path):
    done = giccs("giccs-eval", "baseline:chance", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["ceiling"].keys() == {"pearson", "spearman"}
    assert document["ceiling"]["pearson"]["value"] > 0.9
    assert document["ceiling"]["pearson"]["n"] == 300
    again = giccs("giccs-report", "results", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == document


def test_a_part_of_the_sample_has_a_ceiling_of_its_own(tmp_path):
    part = giccs("giccs-eval", "baseline:chance", "--limit", "6", "-o", "part", cwd=tmp_path)
    assert "noise ceiling" in part.stdout
    assert "The noise ceiling is the correlation of a model that predicts" in part.stdout
    later = giccs("giccs-report", "part", cwd=tmp_path)
    assert later.returncode == 0
    assert later.stdout.strip() == part.stdout.strip()  # the ceiling is stored with the results


def test_the_ceilings_of_two_samples_are_not_confused(tmp_path):
    for data in ("giccs-sample", "giccs-sample-en"):
        done = giccs("giccs-eval", "baseline:chance", "--data", data, "-o", "r", cwd=tmp_path)
        assert "noise ceiling" in done.stdout
    report = giccs("giccs-report", "r", cwd=tmp_path)
    assert report.returncode == 0
    assert "noise ceiling" not in report.stdout
    assert "2 data sets have a stored noise ceiling" in report.stderr


@pytest.fixture
def own_study(tmp_path):
    """A benchmark of another name than giccs-sample, and the judgments behind its scores."""
    for name in ("benchmark.jsonl", "judgments.csv"):
        (tmp_path / name).write_bytes((resources.files("giccs.data") / name).read_bytes())
    return tmp_path


def test_judgments_show_the_ceiling_of_a_benchmark(own_study):
    call = ("giccs-eval", "baseline:chance", "--data", "benchmark.jsonl", "-o", "r")
    assert "noise ceiling" not in giccs(*call, cwd=own_study).stdout
    done = giccs(*call, "--judgments", "judgments.csv", cwd=own_study)
    assert "noise ceiling" in done.stdout
    shown = ("giccs-report", "r", "--judgments", "judgments.csv")
    both = giccs(*shown, cwd=own_study).stdout
    own = both[
        both.index("Intervals over dialogues and annotators") : both.index("Spearman ρ by group")
    ]
    assert "baseline:chance  without" in own
    annotators = "; those over annotators, also to other annotators"
    assert annotators in both
    assert both.replace(own, "").replace(annotators, "").strip() == done.stdout.strip()
    assert giccs("giccs-report", "r", cwd=own_study).stdout.strip() == done.stdout.strip()
    (own_study / "benchmark.jsonl").rename(own_study / "moved.jsonl")
    lost = giccs(*shown, cwd=own_study)
    assert lost.returncode == 2
    assert "benchmark.jsonl: no such file" in lost.stderr
    result = giccs(*shown, "--data", "moved.jsonl", "--json", cwd=own_study)
    document = json.loads(result.stdout)
    assert document["ceiling"]["spearman"]["reliability"] > 0.9
    (over_both,) = document["over_annotators"]
    assert (over_both["model"], over_both["history"]) == ("baseline:chance", "without")
    assert over_both["metrics"]["pearson"]["annotators"] == 5
    for path in (own_study / "r").glob("*.parquet"):
        path.unlink()
    bare = giccs(*shown, "--data", "moved.jsonl", cwd=own_study)
    assert (
        "baseline:chance: no interval over annotators: its predictions are missing" in bare.stderr
    )
    assert "Intervals over dialogues and annotators" not in bare.stdout


def test_judgments_of_other_scores_are_refused_before_any_model_works(own_study):
    lines = (own_study / "benchmark.jsonl").read_text("utf-8").splitlines()
    changed = [json.dumps(json.loads(line) | {"score": 0.123}) for line in lines[:2]]
    (own_study / "other.jsonl").write_text("\n".join([*changed, *lines[2:]]), "utf-8")
    call = ("giccs-eval", "baseline:chance", "-o", "r", "--data")
    done = giccs(*call, "other.jsonl", "--judgments", "judgments.csv", cwd=own_study)
    assert done.returncode == 2
    assert "2 of 300 items have another score than that of counting (restaurant-01-a" in done.stderr
    assert files(own_study / "r") == []
    giccs(*call, "other.jsonl", cwd=own_study)
    shown = ("giccs-report", "r", "--judgments", "judgments.csv")
    report = giccs(*shown, "--data", "benchmark.jsonl", cwd=own_study)
    assert report.returncode == 2
    assert (
        "benchmark.jsonl: its content differs from the data of the pairwise results"
        in report.stderr
    )
    giccs(*call, "benchmark.jsonl", cwd=own_study)
    which = giccs(*shown, cwd=own_study)
    assert which.returncode == 2
    assert "specify that of the judgments with --data" in which.stderr


RECIPE = """
title = "A paper"
data = "sasaadi/GiCCS"
[[model]]
name = "baseline:char-ngram"
task = "pairwise-sts"
published = [{ metric = "pearson", value = 0.2, n = 300 }, { metric = "kendall", value = 0.1 }]
[[model]]
name = "ENCODER"
task = "pairwise-sts"
published = [{ metric = "spearman", value = 0.99, n = 300 }]
[[model]]
name = "CAUSAL"
task = "multiple-choice-sts"
history = "both"

[[model.published]]
metric = "accuracy"
value = 0.133
stderr = 0.063
n = 30
by = { n_turns = 3, history = "with" }
"""


def test_files_of_the_releases_shape_go_through_everything(
    monkeypatch, tmp_path, static_encoder, tiny_gpt
):
    """Models of random weights under a recipe of their own: the paper's cannot be had offline."""
    release = write_release(tmp_path / "release")
    recipe = tmp_path / "recipe.toml"
    text = RECIPE.replace("ENCODER", str(static_encoder)).replace("CAUSAL", str(tiny_gpt))
    recipe.write_text(text, "utf-8")
    checked = giccs("giccs-validate", release, "--json", cwd=tmp_path)
    assert json.loads(checked.stdout)["items"] == 300
    done = giccs("giccs-eval", "--recipe", recipe, "--data", release, "-o", "r", "--json",
                 cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    ngram, encoder, causal = json.loads(done.stdout)["results"]
    report = giccs("giccs-report", "r", cwd=tmp_path)
    for part in ("pairwise-sts on", "multiple-choice-sts on", "source=CROWDSS", "n_turns=5"):
        assert part in report.stdout

    compare = ("giccs-report", "r", "--against", recipe)
    document = json.loads(giccs(*compare, "--json", cwd=tmp_path).stdout)
    verdicts = [line["verdict"] for line in document["against"]]
    assert verdicts == ["other items", "not computed", "other items", "other items"]
    assert any("not a reproduction" in note for note in document["notes"])

    compare = (*compare, "--data", release)  # it is taken for a copy of what the recipe names
    lines = json.loads(giccs(*compare, "--json", cwd=tmp_path).stdout)["against"]
    pearson = ngram["metrics"]["pearson"]
    assert lines[0]["ours"] == pearson
    assert lines[0]["difference"] == pytest.approx(pearson["value"] - 0.2)
    within = pearson["low"] <= 0.2 <= pearson["high"]
    assert lines[0]["verdict"] == ("inside" if within else "outside")
    assert lines[2]["ours"] == encoder["metrics"]["spearman"]
    assert lines[2]["verdict"] == "outside"  # no random vectors reach 0.99
    groups = {json.dumps(group["by"], sort_keys=True): group for group in causal["groups"]}
    accuracy = groups['{"history": "with", "n_turns": 3}']["metrics"]["accuracy"]
    assert lines[3]["ours"] == accuracy
    assert accuracy["n"] == 30
    monkeypatch.chdir(tmp_path)
    for form in ("table", "markdown", "latex", "csv"):
        shown = CliRunner().invoke(reporting.report, [*map(str, compare[1:]), "--format", form])
        assert shown.exit_code == 0
        assert "outside" in shown.stdout


def test_a_recipe_says_models_tasks_and_history(tmp_path, benchmark_file):
    (tmp_path / "r.toml").write_text(
        f'data = "{benchmark_file}"\n[[model]]\nname = "baseline:chance"\ntask = "pairwise-sts"\n'
        'history = "with"\n[[model]]\nname = "baseline:char-ngram"\ntask = "pairwise-sts"\n'
    )
    call = ("giccs-eval", "--recipe", "r.toml")
    done = giccs(*call, "--json", cwd=tmp_path)
    assert [
        (result["model"], result["signature"]["history"], result["environment"]["data"])
        for result in json.loads(done.stdout)["results"]
    ] == [
        ("baseline:chance", "with", str(benchmark_file)),
        ("baseline:char-ngram", "without", str(benchmark_file)),
    ]
    one = giccs(*call, "baseline:chance", "--data", "giccs-sample", "--json", cwd=tmp_path)
    (result,) = json.loads(one.stdout)["results"]
    assert (result["model"], result["environment"]["data"]) == ("baseline:chance", "giccs-sample")
    for arguments, message in (
        (["--history", "both"], "--history is set by the recipe"),
        (["--revision", "main"], "--revision is set by the recipe"),
        (
            ["baseline:x"],
            "r.toml: does not contain baseline:x; expected one of baseline:chance, baseline:char-ngram",
        ),
        (["--task", "multiple-choice-sts"], "r.toml: does not contain multiple-choice-sts"),
    ):
        wrong = giccs(*call, *arguments, cwd=tmp_path)
        assert wrong.returncode == 2
        assert message in wrong.stderr


def test_report_compares_all_pairs_of_models_on_the_same_items(tmp_path, benchmark_file):
    models = ("baseline:chance", "baseline:char-ngram")
    evaluate = ("giccs-eval", *models, "--data", benchmark_file, "-o", "r", "--quiet")
    giccs(*evaluate, "--history", "both", cwd=tmp_path)
    giccs(*evaluate, "--limit", "3", cwd=tmp_path)
    compare = ("giccs-report", "r", "--compare", "--detect", "0.05")
    document = json.loads(giccs(*compare, "--json", cwd=tmp_path).stdout)
    boards = document["comparisons"]
    assert [(board["metric"], board["history"]) for board in boards] == [
        (metric, history)
        for metric in ("spearman", "rank_spearman")
        for history in ("without", "with")
    ]
    assert [len(board["models"]) for board in boards] == [2, 2, 2, 2]
    families = document["history_effects"]
    assert [len(family["effects"]) for family in families] == [2, 2]
    assert {board["target"] for board in boards} == {0.05}
    assert {(one["model"], one["reason"]) for one in document["skipped"]} == {
        (model, "3 dialogues: a comparison requires 5") for model in models
    }
    for form in ("table", "markdown", "latex", "csv"):
        done = giccs(*compare, "--format", form, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "a comparison requires 5" in done.stdout
        assert form == "csv" or "difference of 0.05" in done.stdout
    table = next((tmp_path / "r").glob("*chance*.parquet"))
    table.write_bytes(b"no table")
    done = giccs(*compare, cwd=tmp_path)
    assert done.returncode == 2
    assert table.name in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--judgments", "j.csv", "--data", "a.jsonl", "--data", "b.jsonl"],
            "--data cannot be repeated with --judgments, --against, --dialogue or --eval-results",
        ),
        (
            ["--judgments", "j.csv", "--against", "r.toml"],
            "--against cannot be combined with --judgments",
        ),
        (["--against", "nowhere.toml"], "nowhere.toml: no such file"),
        (["--compare", "--against", "r.toml"], "--compare cannot be combined with --against"),
        (["--compare", "--judgments", "j.csv"], "--compare cannot be combined with --against or"),
        (
            ["--compare", "--data", "b.jsonl"],
            "--data: no result of 'b.jsonl'; expected benchmark.jsonl",
        ),
        (["--detect", "0.1"], "--detect requires --compare"),
        (["--compare", "--detect", "0"], "Invalid value for '--detect'"),
    ],
)
def test_a_wrong_call_of_report_says_so(monkeypatch, tmp_path, benchmark_file, arguments, message):
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(
        evaluation.evaluate, ["baseline:chance", "--data", "benchmark.jsonl", "-o", "r"]
    )
    assert made.exit_code == 0, made.output
    done = CliRunner().invoke(reporting.report, ["r", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr


def test_every_option_concerns_some_task():
    options = {field.name for field in fields(TaskOptions)}
    assert {name for task in TASKS for name in task_option_names(task)} == options - {"seed"}


def test_an_option_that_concerns_no_task_is_refused(tmp_path):
    done = giccs("giccs-eval", "baseline:chance", "--task", "csts", "--shots", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "--shots is for csts-prompt, not for csts" in done.stderr
    assert files(tmp_path) == []
