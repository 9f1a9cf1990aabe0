"""The task of inspect_ai, run by inspect_ai, has the numbers of giccs eval.

The model is inspect_ai's own stand-in, which answers by a rule instead of a server.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("inspect_ai")
from inspect_ai import eval as run_inspect
from inspect_ai.model import ModelOutput, ModelUsage, get_model

import giccs
from giccs.evaluation.inspect_tasks import multiple_choice_sts

OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)


def longest(prompt):
    """Return the letter of the longest option in a prompt."""
    return max(OPTION.findall(prompt), key=lambda option: len(option[1]))[0]


def model_with(answer):
    """Return a model of inspect_ai; the usage is stated because counting tokens needs a download."""

    def output(messages, tools, tool_choice, config):
        result = ModelOutput.from_content("mockllm/model", answer(messages))
        result.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return result

    return get_model("mockllm/model", custom_outputs=output, memoize=False)


def run(answer, folder, epochs=1, **arguments):
    (log,) = run_inspect(
        multiple_choice_sts(**arguments),
        model=model_with(answer),
        epochs=epochs,
        log_dir=str(folder),
        display="none",
    )
    assert log.status == "success", log.error
    return log


def metrics_of(log):
    """Return accuracy, stderr, and the mean of no_letter."""
    return {
        score.name if name == "mean" else name: one.value
        for score in log.results.scores
        for name, one in score.metrics.items()
    }


@pytest.mark.parametrize("history", ["with", "without"])
@pytest.mark.parametrize("seed", [0, 3])
def test_the_accuracy_is_that_of_giccs(tmp_path, history, seed):
    log = run(lambda messages: longest(messages[-1].text), tmp_path, history=history, seed=seed)

    def likelihoods(prompts, options):
        rows = zip(prompts, options, strict=True)
        return [
            [0.0 if letter.strip() == longest(prompt) else -1.0 for letter in letters]
            for prompt, letters in rows
        ]

    (result,) = giccs.evaluate(
        likelihoods,
        "giccs-sample",
        "multiple-choice-sts",
        history=history,
        seed=seed,
        answer="letter",
    )
    accuracy = result.metrics["accuracy"]
    assert 0 < accuracy.value < 1
    assert metrics_of(log) == pytest.approx(
        {"accuracy": accuracy.value, "stderr": accuracy.extra["stderr"], "no_letter": 0.0}
    )
    chosen = result.predictions.filter(result.predictions["chosen"])
    theirs = {sample.id: sample for sample in log.samples}
    for row in chosen.iter_rows(named=True):
        sample = theirs[row["dialogue_id"]]
        score = sample.scores["letter_of_most_similar"]
        assert (score.answer, score.value) == (row["letter"], float(row["gold"]))
        assert score.metadata["score"] == row["score"]
        assert sample.input == row["prompt"]


def test_answers_without_a_letter_are_wrong_and_counted(tmp_path):
    log = run(lambda messages: "Das kann ich nicht beurteilen.", tmp_path)
    assert metrics_of(log) == {"accuracy": 0.0, "stderr": 0.0, "no_letter": 1.0}


@pytest.mark.parametrize(("answers", "share"), [("AB", 0.0), ("A?", 0.5)])
def test_answers_that_differ_between_epochs_are_averaged(tmp_path, answers, share):
    """inspect_ai removes such answers from the score of a sample; they are not answers without a letter."""
    n_asked = Counter()

    def answer(messages):
        question = messages[-1].text
        n_asked[question] += 1
        return answers[n_asked[question] - 1]

    assert metrics_of(run(answer, tmp_path, epochs=2))["no_letter"] == share


def test_the_linter_of_inspect_evals_accepts_the_package():
    """Its register takes repositories that its linter accepts."""
    program = Path(sys.executable).with_name("inspect-evals-lint")
    if not program.exists():
        pytest.skip("inspect-evals-lint is not installed")
    task = "giccs/evaluation/inspect_tasks/tasks.py"
    done = subprocess.run(
        [program, "--preset", "single-eval", "--task", task, "--output-format", "json"],
        cwd=Path(__file__).parents[3], capture_output=True, text=True,
    )  # fmt: skip
    summary = json.loads(done.stdout)["summary"]
    assert (done.returncode, summary["fail"]) == (0, 0), done.stdout
    assert summary["pass"] > 15


def test_the_instruction_is_in_the_language_of_the_prompt(tmp_path):
    seen = []

    def answer(messages):
        seen.append(messages[0].text)
        return "A"

    run(answer, tmp_path)
    run(answer, tmp_path, template="figure2-en-1")
    assert sorted(set(seen)) == [
        "Answer with the letter of the chosen utterance only.",
        "Antworten Sie nur mit dem Buchstaben der gewählten Äußerung.",
    ]


def test_an_explanation_below_the_letter_and_reasoning_are_allowed(tmp_path):
    answer = lambda messages: "<think>A?</think>B.\n\nIt is a question."  # noqa: E731
    assert metrics_of(run(answer, tmp_path))["no_letter"] == 0


def test_it_is_found_by_its_name(tmp_path):
    """In another folder: inspect_ai does not recognise packages in the current one as installed."""
    points = entry_points(group="inspect_ai")
    if "giccs" not in points.names:
        pytest.skip("the installed giccs has no entry point yet; install it again")
    script = tmp_path / "run.py"
    script.write_text(
        "from inspect_ai import eval\n"
        "from inspect_ai.model import ModelOutput, ModelUsage, get_model\n"
        "def output(*arguments):\n"
        "    result = ModelOutput.from_content('mockllm/model', 'A')\n"
        "    result.usage = ModelUsage()\n"
        "    return result\n"
        "model = get_model('mockllm/model', custom_outputs=output)\n"
        "(log,) = eval('giccs/multiple_choice_sts', model=model, limit=4, display='none')\n"
        "print(log.status, len(log.samples))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "success 4\n", done.stderr


def test_unknown_histories_are_refused():
    with pytest.raises(ValueError, match="history is 'past'; expected with or without"):
        multiple_choice_sts(history="past")


def test_stderr_is_that_of_the_paper():
    """sqrt(p(1-p)/(n-1)), as in `giccs.measures.comparison.share`."""
    from inspect_ai.scorer import SampleScore, Score, stderr

    values = [1.0] * 4 + [0.0] * 26
    scores = [SampleScore(score=Score(value=value)) for value in values]
    assert stderr()(scores) == pytest.approx(np.sqrt(4 / 30 * 26 / 30 / 29))
