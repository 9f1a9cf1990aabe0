"""Files of .eval_results are what huggingface_hub reads, with the numbers and sources of the results."""

import json
import math
from dataclasses import replace

import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import parse_eval_result_entries

from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark
from giccs.cli.reporting import report
from giccs.description.card.eval_yaml import task_ids_of
from giccs.evaluation.interop.eval_results import HubData, write_results
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store, digest
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS
from tests import in_process

from ..benchmark.test_hub import hub_settings, run
from ..conftest import rows, write
from ..description.test_push import LICENSED, WritableHub, hub

__all__ = ["hub"]

MODEL_COMMIT, DATA_COMMIT = "a" * 40, "b" * 40
FIELDS = {"dataset", "value", "date", "notes"}


def of_hub(result, model="encoder:acme/bert"):
    """The result as if its model were that of a commit of the hub."""
    return replace(result, model=model, signature={**result.signature, "revision": MODEL_COMMIT})


@pytest.fixture
def pairs(benchmark_file):
    task = PairwiseSTS("with", resamples=20, history_encoding="speakers")
    model = open_model("baseline:char-ngram")
    return of_hub(evaluate_task(task, model, read_benchmark(benchmark_file)))


@pytest.fixture
def choices(tiny_gpt, benchmark_file):
    task = MultipleChoice(open_template("figure2-de-1"))
    result = evaluate_task(task, open_model(str(tiny_gpt)), read_benchmark(benchmark_file))
    return of_hub(result, "causal:acme/gpt")


@pytest.fixture
def data(benchmark_file):
    benchmark = read_benchmark(benchmark_file)
    return HubData("lab/b", DATA_COMMIT, benchmark.fingerprint, task_ids_of(benchmark))


def written(results, data, folder):
    """The paths in the folder, the entries that the hub's library reads, and what is left out."""
    paths, left_out = write_results(results, data, folder)
    documents = [yaml.safe_load(path.read_text("utf-8")) for path in paths]
    entries = [entry for document in documents for entry in parse_eval_result_entries(document)]
    assert all(entry.keys() <= FIELDS for document in documents for entry in document)
    return [str(path.relative_to(folder)) for path in paths], entries, dict(left_out)


def test_a_pairwise_result_is_one_entry(pairs, data, tmp_path):
    signature = digest(pairs.signature)
    (path,), (entry,), left_out = written([pairs], data, tmp_path)
    assert path == f"acme/bert/.eval_results/giccs_b_pairwise_{signature[:12]}.yaml"
    assert (entry.dataset_id, entry.dataset_revision) == ("lab/b", DATA_COMMIT)
    assert entry.task_id == "pairwise_with_history"
    assert entry.value == pairs.metrics["spearman"].value
    assert entry.date == pairs.environment["when"]
    assert entry.source_url is entry.verify_token is None  # unknown
    for note in (
        f"Spearman's rho over {pairs.predictions.height} items",
        "history with (speakers)",
        f"model revision {MODEL_COMMIT}",
        f"signature sha256 {signature}",
    ):
        assert note in entry.notes.split("; ")
    assert "simulated" not in entry.notes
    assert left_out == {}


def test_multiple_choice_has_an_entry_per_history(choices, data, tmp_path):
    paths, entries, _ = written([choices], data, tmp_path)
    assert len(paths) == 1
    accuracies = {
        f"multiple_choice_{group.by['history']}_history": group.metrics["accuracy"]
        for group in choices.groups
        if set(group.by) == {"history"}
    }
    assert {entry.task_id: entry.value for entry in entries} == {
        task: accuracy.value for task, accuracy in accuracies.items()
    }
    assert len(entries) == 2
    for entry in entries:
        assert f"accuracy over {accuracies[entry.task_id].n} dialogues" in entry.notes
        assert "figure2-de-1" in entry.notes.split("; ")


def test_the_interval_is_that_of_the_result(pairs, data, tmp_path):
    estimate = Estimate(0.25, 0.1234, 0.5, 10)
    result = replace(pairs, metrics={"spearman": estimate})
    _, (entry,), _ = written([result], replace(data, is_simulated=True), tmp_path)
    assert "95 % interval 0.123 to 0.500" in entry.notes.split("; ")
    assert entry.notes.startswith("simulated annotations; ")
    result = replace(pairs, metrics={"spearman": replace(estimate, low=math.nan)})
    _, (entry,), _ = written([result], data, tmp_path)
    assert "interval" not in entry.notes


def test_what_is_unknown_is_left_out_and_counted(pairs, choices, data, tmp_path):
    local = replace(pairs, signature={**pairs.signature, "revision": "sha256:1"})
    other_data = replace(pairs, signature={**pairs.signature, "data": "0" * 64})
    undefined = Estimate(math.nan, math.nan, math.nan, 5, "constant predictions")
    absent = {"pearson": pairs.metrics["pearson"]}
    results = [
        local, replace(local, model="baseline:char-ngram"), other_data, replace(pairs, task="csts"),
        replace(pairs, metrics={"spearman": undefined}), replace(pairs, metrics=absent), choices,
    ]  # fmt: skip
    declared = replace(data, task_ids=("pairwise_with_history", "multiple_choice_with_history"))
    paths, entries, left_out = written(results, declared, tmp_path)
    assert left_out == {
        "results of models that are not a commit of the hub": 2,
        "results on other data": 1,
        "results of other tasks": 1,
        "undefined values of pairwise_with_history": 2,
        "values of multiple_choice_without_history, which the data set does not declare": 1,
    }
    assert [entry.task_id for entry in entries] == ["multiple_choice_with_history"]
    assert len(paths) == len([*tmp_path.rglob("*.yaml")]) == 1


def test_an_unknown_date_is_left_out(pairs, data, tmp_path):
    result = replace(pairs, environment={**pairs.environment, "when": "yesterday"})
    _, (entry,), _ = written([result], data, tmp_path)
    assert entry.date is None


def test_names_of_models_stay_in_the_folder(pairs, data, tmp_path):
    (path,), _, _ = written([of_hub(pairs, "encoder:../..")], data, tmp_path)
    assert path.startswith("_/_/.eval_results/")


def test_settings_are_in_files_of_their_own(pairs, data, tmp_path):
    pooled = replace(pairs, signature={**pairs.signature, "pooling": "cls"})
    paths, (_, entry), _ = written([pairs, pooled], data, tmp_path)
    assert len(set(paths)) == 2
    assert "cls pooling" in entry.notes.split("; ")
    assert written([pairs], data, tmp_path)[0] == paths[:1]  # replaced


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--eval-results", "out"], "--eval-results requires --data OWNER/NAME"),
        (["--eval-results", "out", "--data", "b.jsonl"], "b.jsonl: is not a data set of the hub"),
        (["--eval-results", "out", "--data", "giccs-sample"], "is not a data set of the hub"),
    ],
)
def test_the_data_are_those_of_the_hub(pairs, tmp_path, arguments, message):
    Store(tmp_path / "results").add(pairs)
    done = CliRunner().invoke(report, [str(tmp_path / "results"), *arguments])
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_published_benchmark_and_an_evaluated_model(tmp_path, hub, static_encoder):
    """Publish, evaluate a model of the hub on the local file, and export its result for the hub."""
    write(tmp_path / "b.jsonl", rows(dialogues=2))
    (tmp_path / "card.toml").write_text(LICENSED)
    WritableHub.folders["models", "lab/encoder"] = static_encoder
    publish = ["giccs-card", "b.jsonl", "--config", "card.toml", "-o", "out", "--push", "lab/b"]
    export = ["giccs-report", "results", "--eval-results", "export", "--data", "lab/b"]
    for command in (publish, ["giccs-eval", "lab/encoder", "--data", "b.jsonl", "-o", "results"]):
        done = run(tmp_path, hub, *command)
        assert done.returncode == 0, done.stderr
    done = run(tmp_path, hub, *export)
    assert done.returncode == 2
    assert "lab/b: has no eval.yaml, which defines its tasks" in done.stderr
    assert not (tmp_path / "export").exists()

    assert run(tmp_path, hub, *publish, "--eval-yaml").returncode == 0
    # the cache is by commit, of which this hub has only one
    with hub_settings(tmp_path / "other-cache", hub):
        done = in_process.run(*export, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 results on lab/b at 0123456789ab written to export" in done.stderr
    (path,) = (tmp_path / "export").rglob("*.yaml")
    assert path.parent == tmp_path / "export/lab/encoder/.eval_results"
    (entry,) = parse_eval_result_entries(yaml.safe_load(path.read_text("utf-8")))
    (result,) = json.loads(done.stdout)["results"]
    assert entry.value == result["metrics"]["spearman"]["value"]
    assert (entry.dataset_id, entry.dataset_revision) == ("lab/b", WritableHub.commit)
    assert entry.task_id == "pairwise_without_history"
