"""The installation without extras, on every Python and system of pyproject.toml: from items to results."""

import json
import os
import subprocess
import sys

import pytest

JUDGMENTS = "item1,item2,best,worst,annotator\na,b,a,b,w1\nb,c,b,c,w1\na,c,a,c,w2\nb,c,c,b,w2\n"
WITHOUT_HUB = """
import sys
sys.modules["huggingface_hub"] = None
from giccs_app.cli import main
main(["validate", "owner/name"])
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "judgments.csv").write_text(JUDGMENTS, "utf-8")

    def called(*arguments):
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, encoding="utf-8",
            env=os.environ | {"PYTHONUTF8": "1"},
        )  # fmt: skip

    return called


def test_scores_of_own_judgments(run):
    done = run("-m", "giccs", "score", "judgments.csv", "--json")
    assert done.returncode == 0, done.stderr
    scores = {row["item"]: row["score"] for row in json.loads(done.stdout)["scores"]}
    assert scores == {"a": 1, "b": pytest.approx(-1 / 3), "c": pytest.approx(-1 / 3)}


def test_from_dialogues_to_a_comparison_of_models(run):
    for line in (
        "data copy giccs-sample",
        "design giccs-sample/dialogues.jsonl -k 3 --tuples 10 -o tuples.csv",
        "simulate tuples.csv --truth giccs-sample/dialogues.jsonl --annotators 3 -o judged.csv",
        "reliability judged.csv",
        "agreement judged.csv",
        "score judged.csv --scale unit -o scores.csv",
        "build --dialogues giccs-sample/dialogues.jsonl --scores scores.csv -o benchmark.jsonl",
        "validate benchmark.jsonl",
        "eval baseline:chance baseline:char-ngram --data benchmark.jsonl -o results",
        "compare results",
        "report results",
    ):
        done = run("-m", "giccs", *line.split())
        assert done.returncode == 0, (line, done.stderr)


def test_addresses_of_the_hub_name_their_extra(run):
    done = run("-c", WITHOUT_HUB)
    assert done.returncode == 1
    assert (
        done.stderr.strip()
        == "Error: needs huggingface_hub; install it with: pip install 'giccs[hub]'"
    )
