"""Tasks and kinds of models of other packages, which name them as entry points, are used like our own."""

import json
import os
import subprocess
import sys

import pytest

MODULE = """
from dataclasses import dataclass, field
import numpy as np
from giccs.tasks import PAIR_SCORES, TaskKind
from giccs.tasks.pairwise import PairwiseSTS

@dataclass(frozen=True)
class Renamed(PairwiseSTS):
    name: str = field(default="length", init=False)

def open_tasks(options):
    return [Renamed(options.history or "without", options.seed)]

LENGTH = TaskKind(open_tasks, option_names=("history",), results=PAIR_SCORES)

class Shorter:
    identity = {"kind": "extra"}
    def __init__(self, name):
        self.name = name
    def environment(self):
        return {}
    def pair_scores(self, left, right, progress):
        return np.array([-float(len(text)) for text in right])

def open_extra(name, place, options):
    return Shorter(name)
"""

ENTRY_POINTS = """[giccs.tasks]
length = extra_task:LENGTH
[giccs.models]
extra = extra_task:open_extra
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs giccs-eval where the other package is installed."""
    (tmp_path / "extra_task.py").write_text(MODULE)
    info = tmp_path / "extra_task-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-task\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def run(*arguments):
        code = "import sys; from giccs.cli.evaluation import evaluate; evaluate(sys.argv[1:], prog_name='x')"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        )  # fmt: skip

    return run


def test_a_task_of_another_package_is_asked(run):
    done = run("baseline:char-ngram", "--task", "length", "--limit", "6", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["task"] == "length"
    assert result["metrics"]["spearman"]["n"] == 30


def test_its_options_are_checked(run):
    done = run("baseline:char-ngram", "--task", "length", "--shots", "2")
    assert done.returncode == 2
    assert "--shots is for csts-prompt, not for length" in done.stderr


def test_a_model_of_another_package_is_asked(run):
    done = run("extra:shorter", "--task", "pairwise-sts", "--limit", "6", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["model"] == "extra:shorter"
    assert result["signature"]["kind"] == "extra"
