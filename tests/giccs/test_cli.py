"""The commands as a person calls them: answers, exit codes, and what stands after a failure."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


def giccs(*arguments, cwd, **options):
    command = [str(BIN / arguments[0]), *map(str, arguments[1:])]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=120, env=environment, **options
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
    done = giccs("giccs-eval", "baseline:chance", "--data", benchmark_file, "--json", cwd=tmp_path)
    (result,) = json.loads(done.stdout)["results"]
    assert set(result) == {
        "model", "task", "metrics", "groups", "signature", "environment", "seconds",
    }  # fmt: skip
    assert set(result["metrics"]) == {"pearson", "spearman", "rank_spearman"}
    assert set(result["metrics"]["pearson"]) == {"value", "low", "high", "n"}
    report = giccs("giccs-report", "results", "--json", cwd=tmp_path)
    assert json.loads(report.stdout) == json.loads(done.stdout)


def test_quiet_says_nothing_but_the_answer(tmp_path, benchmark_file):
    done = giccs("giccs-eval", "baseline:chance", "--data", benchmark_file, "--quiet", cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout


def test_standard_input_is_a_benchmark(tmp_path, benchmark_file):
    text = benchmark_file.read_text("utf-8")
    done = giccs("giccs-validate", "-", "--json", cwd=tmp_path, input=text)
    assert json.loads(done.stdout)["items"] == 30


def test_validate_reports_every_problem_and_fails(tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text('{"score": 2}\nnonsense\n')
    done = giccs("giccs-validate", path, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{path}:1: score is 2; it must be a number from 0 to 1" in done.stderr
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
            "'0' is not allowed; auto or a number from 1 is",
        ),
        (["baseline:chance", "--task", "sing"], "'sing' is not one of 'pairwise-sts'"),
        (
            ["baseline:chance", "--task", "multiple-choice-sts"],
            "baseline:chance: gives no likelihoods; multiple-choice-sts needs a causal language model",
        ),
        (["baseline:chance", "--permutations", "27"], "27 is not in the range 1<=x<=26"),
        (["baseline:chance", "--template", "x.txt"], "x.txt: is neither a file nor a template"),
        (["baseline:chance", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["--json", "export-mteb"], "is a command and comes first: giccs-eval export-mteb ..."),
        (["baseline:chance", "--limit", "0"], "0 is not in the range"),
        (["baseline:chance", "--data", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["baseline:chance", "--data", "."], "holds 0 .jsonl files"),
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
    done = giccs("giccs-eval", "baseline:chance", "--data", benchmark_file, "-o", "r", cwd=tmp_path,
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
    assert "r: is a file; results need a folder" in done.stderr


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
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:  # the encoder's frameworks take seconds to load
        if str(plain_encoder) in line:
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "baseline:chance" in out
    assert [name.split(".")[-1] for name in files(tmp_path / "r")] == ["json", "parquet"]
    done = giccs("giccs-eval", "baseline:chance", plain_encoder, "--data", benchmark_file, "-o", "r",
                 cwd=tmp_path)  # fmt: skip
    assert "baseline:chance: pairwise-sts, kept from before" in done.stderr
    assert len(files(tmp_path / "r")) == 4


def test_report_of_nothing_says_what_writes_it(tmp_path):
    done = giccs("giccs-report", tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert "holds no results; giccs-eval -o writes them" in done.stderr
