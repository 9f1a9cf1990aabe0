"""Formats of judgments and scoring methods of other packages, which name them as entry points."""

import json
import os
import subprocess
import sys

import pytest

MODULE = """
import numpy as np
from bws.files.rows import Format, rows_of
from bws.scoring.methods import Method, Utilities

def rows(table):
    return rows_of(table, "left-right", ["left", "right"], "better", "poorer")

FORM = Format("left-right", "left, right, better, poorer", lambda columns: "poorer" in columns, rows)

def fit(answers, *, clusters, seed):
    return Utilities(answers.counts.best / answers.counts.appearances)

METHOD = Method("share of best answers", fit, lambda u: 2 * u - 1)
"""
ENTRY_POINTS = """[bws.formats]
left-right = extra_bws:FORM
[bws.scoring_methods]
share-best = extra_bws:METHOD
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs giccs score where the other package is installed."""
    (tmp_path / "extra_bws.py").write_text(MODULE)
    info = tmp_path / "extra_bws-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-bws\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "judged.csv").write_text("left,right,better,poorer\na,b,a,b\na,c,c,a\nb,c,c,b\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def run(*arguments):
        code = "import sys; from bws.cli import score; score(sys.argv[1:], prog_name='bws-score')"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_format_and_a_method_of_another_package_are_used(run):
    assert "share-best" in run("--help").replace("\n", "").replace(" ", "")
    result = json.loads(run("judged.csv", "--method", "share-best", "--json"))
    assert result["source"] == "judged.csv (left-right)"
    assert {row["item"]: row["score"] for row in result["scores"]} == {
        "a": 0.0,
        "b": -1.0,
        "c": 1.0,
    }
    assert json.loads(run("judged.csv", "--from", "left-right", "--json"))["scores"]
