"""Results selected by model, task, history and data, in Python and by the options of both commands."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import giccs
from giccs.cli.reporting import compare_models, report
from giccs.report.selection import select_results


class Likelihoods:
    """Prefers options that share characters with the prompt, and differs by history."""

    revision = "1"

    def __call__(self, prompts, options):
        return [
            [len(set(prompt) & set(answer)) - 200.0 - len(answer) / 9 for answer in answers]
            for prompt, answers in zip(prompts, options, strict=True)
        ]


def choices(history):
    return giccs.evaluate(
        Likelihoods(), "giccs-sample", "multiple-choice-sts", name="m", limit=8, history=history
    )[0]


@pytest.fixture(scope="module")
def results():
    models = ["baseline:chance", "baseline:char-ngram"]
    pairwise = giccs.evaluate(models, "giccs-sample", "pairwise-sts", history="both", limit=8)
    return [*pairwise, choices("both")]


def labels(results):
    return {(r.model, r.task, r.signature["history"]) for r in results}


def test_each_field_selects_and_empty_ones_do_not(results):
    assert select_results(results) == results
    chance = select_results(results, model=["baseline:chance"])
    assert labels(chance) == {
        ("baseline:chance", "pairwise-sts", "with"),
        ("baseline:chance", "pairwise-sts", "without"),
    }
    assert labels(select_results(results, task=["multiple-choice-sts"])) == {
        ("m", "multiple-choice-sts", "both")
    }
    content = results[0].signature["data"]
    assert select_results(results, data=["giccs-sample"]) == results
    assert select_results(results, data=[content[:6]]) == results
    assert select_results(results, history=["with", "without"]) == results
    both = select_results(results, model=["baseline:chance", "m"], history=["without"])
    assert labels(both) == {
        ("baseline:chance", "pairwise-sts", "without"),
        ("m", "multiple-choice-sts", "without"),
    }


@pytest.mark.parametrize("history", ["with", "without"])
def test_one_condition_of_multiple_choice_is_the_result_of_that_condition(results, history):
    (result,) = select_results(results, task=["multiple-choice-sts"], history=[history])
    alone = choices(history)
    assert result.signature == alone.signature
    assert (result.metrics, result.groups) == (alone.metrics, alone.groups)
    order = ["dialogue_id", "utterance_id"]
    assert result.predictions.sort(order).equals(alone.predictions.sort(order))
    twice = select_results([*results, alone], task=["multiple-choice-sts"], history=[history])
    assert len(twice) == 1


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"model": ["baseline:chanse"]}, "--model: no result of 'baseline:chanse'; did you mean"),
        ({"task": ["csts"]}, "expected pairwise-sts, multiple-choice-sts"),
        ({"data": ["other"]}, "--data: no result of 'other'"),
        ({"model": ["m"], "task": ["pairwise-sts"]}, "no result matches --model, --task together"),
    ],
)
def test_what_selects_nothing_is_refused(results, selection, message):
    with pytest.raises(ValueError, match="--") as error:
        select_results(results, **selection)
    assert message in str(error.value)


def test_results_without_histories_have_none_to_select(results):
    other = replace(results[0], signature={"data": "d"})
    with pytest.raises(ValueError, match="expected nothing: no result has one"):
        select_results([other], history=["with"])


@pytest.mark.parametrize("command", [compare_models, report])
def test_the_options_of_the_commands_select(results, tmp_path, command):
    giccs.Results(results).save(tmp_path)
    call = [str(tmp_path), "--json", "--history", "with", "--data", "giccs-sample"]
    call += ["--task", "pairwise-sts", "--task", "multiple-choice-sts"]
    compared = json.loads(CliRunner().invoke(command, call).stdout)
    if command is report:
        histories = [result["signature"]["history"] for result in compared["results"]]
        assert histories == ["with"] * 3
    else:
        assert {board["history"] for board in compared["comparisons"]} == {"with"}
        assert compared["history_effects"] == []
    wrong = CliRunner().invoke(command, [str(tmp_path), "--model", "nobody"])
    assert wrong.exit_code == 2
    assert "--model: no result of 'nobody'" in wrong.output
