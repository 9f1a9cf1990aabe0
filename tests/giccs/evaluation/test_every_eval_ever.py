"""Records of Every Eval Ever fit its published schema, 0.3.0 (MIT licence, in every_eval_ever/)."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark
from giccs.evaluation.interop.every_eval_ever import METRICS, records, write_results
from giccs.evaluation.task_results import evaluate_task
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS

SCHEMA = json.loads(
    (Path(__file__).parent / "every_eval_ever" / "eval.schema.json").read_text("utf-8")
)
UUID4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
NOW = 1_790_000_000.5


@pytest.fixture
def pairs(benchmark_file):
    task = PairwiseSTS("with", resamples=2)
    return evaluate_task(task, open_model("baseline:char-ngram"), read_benchmark(benchmark_file))


@pytest.fixture
def choices(tiny_gpt, benchmark_file):
    task = MultipleChoice(open_template("figure2-de-1"))
    return evaluate_task(task, open_model(str(tiny_gpt)), read_benchmark(benchmark_file))


def record_of(result, organization="University of X"):
    ((path, document, n_undefined),) = records([result], organization, NOW)
    return path, document, n_undefined


def check(document):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(SCHEMA).validate(
        json.loads(json.dumps(document, allow_nan=False))
    )


def test_pairwise_results_fit_the_schema_and_have_their_numbers(pairs):
    path, document, _ = record_of(pairs)
    check(document)
    assert re.fullmatch(
        rf"data/giccs_benchmark/giccs-local/baseline_char-ngram/{UUID4}\.json", path
    )
    scores = {
        score["metric_config"]["metric_id"]: score for score in document["evaluation_results"]
    }
    assert scores.keys() == pairs.metrics.keys() & METRICS.keys()
    for name, score in scores.items():
        estimate = pairs.metrics[name]
        assert score["score_details"]["score"] == estimate.value
        assert score["score_details"]["uncertainty"]["num_samples"] == estimate.n
        if math.isfinite(estimate.low):
            interval = score["score_details"]["uncertainty"]["confidence_interval"]
            assert (interval["lower"], interval["upper"]) == (estimate.low, estimate.high)
        assert score["evaluation_name"] == "giccs_benchmark_pairwise_with_history"
    assert document["retrieved_timestamp"] == "1790000000.5"
    source = document["evaluation_results"][0]["source_data"]
    assert source["additional_details"]["fingerprint"] == pairs.signature["data"]


def test_multiple_choice_has_a_score_per_history(choices):
    _, document, _ = record_of(choices)
    check(document)
    names = {score["evaluation_name"] for score in document["evaluation_results"]}
    assert names == {
        f"giccs_benchmark_multiple_choice_{history}_history" for history in ("with", "without")
    }
    for group in choices.groups:
        if set(group.by) == {"history"}:
            name = f"giccs_benchmark_multiple_choice_{group.by['history']}_history/accuracy"
            (score,) = [
                s for s in document["evaluation_results"] if s["evaluation_result_id"] == name
            ]
            assert score["score_details"]["score"] == group.metrics["accuracy"].value
            error = score["score_details"]["uncertainty"]["standard_error"]["value"]
            assert error == group.metrics["accuracy"].extra["stderr"]


def test_undefined_scores_are_left_out_and_counted(pairs, tmp_path):
    undefined = Estimate(math.nan, math.nan, math.nan, 5, "constant predictions")
    some = replace(pairs, metrics={**pairs.metrics, "spearman": undefined})
    _, document, n_undefined = record_of(some)
    check(document)
    assert n_undefined == 1
    assert "spearman" not in {
        s["metric_config"]["metric_id"] for s in document["evaluation_results"]
    }
    none = replace(pairs, metrics=dict.fromkeys(pairs.metrics, undefined))
    assert write_results([none], tmp_path, "X", NOW) == (
        [],
        len(pairs.metrics.keys() & METRICS.keys()),
    )


def test_models_of_the_hub_are_named_by_their_id_and_local_ones_are_not(pairs):
    hub = replace(
        pairs, model="encoder:acme/bert", signature={**pairs.signature, "revision": "0" * 40}
    )
    path, document, _ = record_of(hub)
    check(document)
    assert path.startswith("data/giccs_benchmark/acme/bert/")
    assert document["model_info"]["id"] == "acme/bert"
    assert document["model_info"]["additional_details"]["model_availability"] == "open_weights"
    assert record_of(hub, "ACME")[1]["source_metadata"]["evaluator_relationship"] == "first_party"
    assert document["source_metadata"]["evaluator_relationship"] == "third_party"

    folder = replace(
        pairs, model="models/bert", signature={**pairs.signature, "revision": "sha256:1"}
    )
    assert record_of(folder)[1]["model_info"]["id"] == "giccs-local/models_bert"
    served = record_of(replace(pairs, model="embeddings:acme/e5"))[1]["model_info"]
    assert served["additional_details"]["deployment_type"] == "unknown"
    check(record_of(replace(pairs, model="../../.ssh"))[1])
    assert ".." not in record_of(replace(pairs, model="../../.ssh"))[0]


def test_a_second_export_replaces_the_first_and_another_signature_does_not(pairs, tmp_path):
    first, _ = write_results([pairs], tmp_path, "X", NOW)
    assert write_results([pairs], tmp_path, "X", NOW + 1)[0] == first
    other = replace(pairs, signature={**pairs.signature, "history": "without"})
    assert write_results([other], tmp_path, "X", NOW)[0] != first


def test_scores_of_simulated_judgments_say_so(pairs):
    sample = replace(pairs, environment={**pairs.environment, "data": "giccs-sample"})
    source = record_of(sample)[1]["evaluation_results"][0]["source_data"]
    assert source["additional_details"]["annotators"] == "simulated"
    source = record_of(pairs)[1]["evaluation_results"][0]["source_data"]
    assert "annotators" not in source["additional_details"]


def test_other_tasks_have_no_record(pairs):
    assert list(records([replace(pairs, task="csts")], "X", NOW)) == []
