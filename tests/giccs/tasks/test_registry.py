"""The registry of tasks, what it says of their results, and signatures by which earlier results are found."""

import pytest

import giccs.tasks as tasks
from giccs.evaluation.task_results import signature_of
from giccs.measures.results import digest
from giccs.models import open_model
from giccs.tasks import METRICS, TASKS, open_tasks, result_kind


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_a_kind_and_opens_under_its_name(name):
    assert {task.name for task in open_tasks(name)} == {name}
    kind = result_kind(name)
    assert not set(kind.comparison_metrics) - {"spearman", "rank_spearman", "accuracy"}


def test_results_of_tasks_that_are_not_installed_have_metrics():
    assert result_kind("csts-train") == result_kind("of another package") == METRICS


@pytest.mark.parametrize("value", ["giccs.tasks.pairwise", "giccs.tasks.pairwise:PairwiseSTS"])
def test_what_is_no_task_kind_is_named(monkeypatch, value):
    monkeypatch.setattr(tasks, "_task_modules", lambda: {"mine": value})
    with pytest.raises(
        TypeError, match=f"task mine: {value} is not a TaskKind; expected module:name"
    ):
        open_tasks("mine")


@pytest.mark.parametrize(
    ("name", "expected"), [("pairwise-sts", "7f7d51ad2fd7"), ("csts", "fc2c85b04505")]
)
def test_signatures_are_those_of_earlier_results(name, expected):
    (task,) = open_tasks(name)
    signature = signature_of(task, open_model("baseline:chance"), task.read(task.default_data))
    assert digest({**signature, "giccs": ""})[:12] == expected
