"""Tasks and kinds of models of other packages, which name them as entry points, are used like our own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import giccs

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "giccs-plugin"
HOW_TO = ROOT / "docs" / "how-to" / "python.md"
FILES = ("pyproject.toml", "giccs_plugin.py", "hard_tuples.py")


CALLS = {
    "task": ("baseline:char-ngram", "--task", "top-candidate", "--json"),
    "option": ("baseline:char-ngram", "--task", "top-candidate", "--shots", "2"),
    "refused": ("package:smollm2", "--task", "top-candidate"),
    "model": ("words:jaccard", "--task", "pairwise-sts", "--limit", "6", "--json"),
}
PROGRAM = """
import json
import sys
from click.testing import CliRunner
from giccs.cli.evaluation import evaluate

calls = json.loads(sys.argv[1])
done = {name: CliRunner().invoke(evaluate, arguments) for name, arguments in calls.items()}
results = {name: [one.exit_code, one.stdout, one.stderr] for name, one in done.items()}
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """Return exit code, output and errors of giccs eval where the example project is installed."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source")
    for file in FILES:
        (source / file).write_bytes((EXAMPLE / file).read_bytes())
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(folder), str(source)], check=True
    )
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(CALLS)],
        cwd=tmp_path_factory.mktemp("run"), env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_task_of_another_package_is_evaluated(called):
    code, output, errors = called["task"]
    assert code == 0, errors
    (result,) = json.loads(output)["results"]
    assert result["task"] == "top-candidate"
    accuracy = result["metrics"]["accuracy"]
    frame = giccs.evaluate("baseline:char-ngram").predictions()
    best = frame.loc[frame.groupby("dialogue_id")["prediction"].idxmax()]
    highest = frame.groupby("dialogue_id")["score"].max().loc[best["dialogue_id"]]
    assert accuracy["n"] == 60
    assert accuracy["value"] == pytest.approx((best["score"].array == highest.array).mean())


def test_its_options_are_checked(called):
    code, _, errors = called["option"]
    assert code == 2
    assert "--shots is for csts-prompt, not for top-candidate" in errors


def test_it_refuses_models_that_do_not_compare_texts(called):
    code, _, errors = called["refused"]
    assert code == 2
    assert "top-candidate requires an encoder" in errors


def test_a_model_of_another_package_is_evaluated(called):
    code, output, errors = called["model"]
    assert code == 0, errors
    (result,) = json.loads(output)["results"]
    assert result["model"] == "words:jaccard"
    assert result["signature"]["kind"] == "words"


def test_the_documentation_shows_the_example():
    page = HOW_TO.read_text("utf-8")
    for file in FILES:
        assert (EXAMPLE / file).read_text("utf-8").strip() in page
