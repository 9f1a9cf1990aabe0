"""eval.yaml has the fields of the hub's specification (a schema of it is in eval_yaml/)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.cli.card import card
from giccs.description.card.eval_yaml import eval_yaml, read_task_ids, task_ids_of
from giccs.tasks import DEFAULT_TASKS, TaskOptions, open_tasks, result_kind

SCHEMA = json.loads((Path(__file__).parent / "eval_yaml" / "eval.schema.json").read_text("utf-8"))
SAMPLE = read_benchmark("giccs-sample")


def call(*arguments):
    return CliRunner().invoke(card, list(map(str, arguments)))


def check(text):
    jsonschema = pytest.importorskip("jsonschema")
    document = yaml.safe_load(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_the_command_writes_it_and_says_that_the_hub_does_not_know_giccs(tmp_path):
    done = call("giccs-sample", "--eval-yaml", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "the hub's list of evaluation frameworks had no entry 'giccs'" in done.stderr
    path = tmp_path / "out" / "eval.yaml"
    assert "The hub's list of evaluation frameworks had no entry 'giccs'" in path.read_text("utf-8")
    document = check(path.read_text("utf-8"))
    assert document["name"] == "Conversational STS benchmark (simulated annotations)"
    assert document["description"].startswith("Simulated annotations: ")
    assert document["evaluation_framework"] == "giccs"
    assert [task["id"] for task in document["tasks"]] == read_task_ids(path, "x")


def test_each_task_is_on_a_configuration_and_split_of_the_card(tmp_path):
    call("giccs-sample", "--eval-yaml", "-o", tmp_path)
    front = yaml.safe_load((tmp_path / "README.md").read_text("utf-8").split("---\n")[1])
    splits = {
        (config["config_name"], file["split"])
        for config in front["configs"]
        for file in config["data_files"]
    }
    tasks = yaml.safe_load((tmp_path / "eval.yaml").read_text("utf-8"))["tasks"]
    assert {(task["config"], task["split"]) for task in tasks} <= splits


def test_the_tasks_and_values_are_those_of_giccs_eval():
    histories = [
        (name, history)
        for name in DEFAULT_TASKS
        for task in open_tasks(name, TaskOptions(history="both"))
        for history in getattr(task, "histories", None) or (task.history,)
    ]
    assert len(task_ids_of(SAMPLE)) == len(set(histories)) == 4
    assert [result_kind(name).main_metric for name in DEFAULT_TASKS] == ["spearman", "accuracy"]


def test_one_utterance_per_dialogue_is_no_choice():
    first = {item.dialogue_id: item for item in SAMPLE.items}
    benchmark = replace(SAMPLE, items=tuple(first.values()))
    assert task_ids_of(benchmark) == ("pairwise_without_history", "pairwise_with_history")


def test_texts_are_quoted():
    name, description = "a: [b] # c", "- x\n\n'y': \"ü\"\t{z}"
    document = check(eval_yaml(name, description, ["pairwise_with_history"]))
    assert document["name"] == name
    assert document["description"].startswith("- x 'y': \"ü\" {z} ")


def test_a_file_of_an_earlier_card_is_removed_and_one_of_others_is_kept(tmp_path):
    call("giccs-sample", "--eval-yaml", "-o", tmp_path)
    assert call("giccs-sample", "-o", tmp_path).exit_code == 0
    assert not (tmp_path / "eval.yaml").exists()
    (tmp_path / "eval.yaml").write_text("name: mine\n")
    done = call("giccs-sample", "--eval-yaml", "-o", tmp_path)
    assert done.exit_code == 2
    assert "contains eval.yaml, not written by giccs card" in done.stderr
    assert (tmp_path / "eval.yaml").read_text() == "name: mine\n"


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "tasks:\n- name: x\n",
        "- 1\n",
        "name: x\n",
        "",
        "!!python/object:os.system {}\n",
        "tasks: 3\n",
        "tasks: []\n",
        "tasks:\n- id: [a]\n",
        "when: 2001-13-45\n",
        "[" * 10_000,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_an_invalid_file_is_reported(tmp_path, text):
    (tmp_path / "eval.yaml").write_text(text)
    with pytest.raises(InputError, match=r"lab/x: its eval.yaml is invalid; expected tasks"):
        read_task_ids(tmp_path / "eval.yaml", "lab/x")
    with pytest.raises(InputError, match=r"lab/x: has no eval.yaml"):
        read_task_ids(tmp_path / "none", "lab/x")
