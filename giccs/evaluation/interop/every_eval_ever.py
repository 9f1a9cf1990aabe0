"""Every Eval Ever: results as records of its schema 0.3.0, one file per result.

Source: eval.schema.json and CONTRIBUTING.md of github.com/evaleval/every_eval_ever. The file of a result is
``data/BENCHMARK/DEVELOPER/MODEL/UUID.json``; its UUID is derived from the signature of the result, so that a
second export replaces it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bws.base.text import write_atomic
from bws.stats.estimates import Estimate
from giccs.benchmark import SAMPLE_TERMS, SAMPLES
from giccs.description.card.eval_yaml import SHORT_TASK_NAMES
from giccs.evaluation.interop.metadata import (
    HUB_ID,
    hub_id_of_model,
    metrics_by_history,
    path_component,
    slug,
    task_name,
)
from giccs.measures.results import Result, data_of, digest, model_of

SCHEMA_VERSION = "0.3.0"
SERVED_KINDS = ("chat", "completions", "embeddings")
"""Kinds of models on servers, whose operator and weights are unknown."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric in the terms of the schema."""

    name: str
    kind: str
    unit: str = "proportion"
    min_score: float = 0.0
    max_score: float = 1.0


METRICS = {
    "pearson": Metric("Pearson r", "correlation", "coefficient", -1.0),
    "spearman": Metric("Spearman rho", "correlation", "coefficient", -1.0),
    "rank_spearman": Metric(
        "Spearman rho within dialogues, mean", "correlation", "coefficient", -1.0
    ),
    "accuracy": Metric("Accuracy", "accuracy"),
    "accuracy_tokens": Metric("Accuracy, log-likelihood per token", "accuracy"),
    "accuracy_bytes": Metric("Accuracy, log-likelihood per byte", "accuracy"),
    "accuracy_pmi": Metric(
        "Accuracy, pointwise mutual information of dialogue and option", "accuracy"
    ),
}
"""Exported metrics; higher is better for all of them."""


def write_results(
    results: Iterable[Result], folder: str | os.PathLike[str], organization: str, now: float
) -> tuple[list[Path], int]:
    """Write the records of pairwise and multiple-choice results; return the paths and the number of NaNs.

    organization: who ran the evaluation. now: seconds since 1970. The schema has no undefined scores, so
    those that are NaN are left out; a result without any score is not written.
    """
    paths, n_undefined = [], 0
    for path, record, n in records(results, organization, now):
        n_undefined += n
        if record["evaluation_results"]:
            paths.append(Path(folder) / path)
            paths[-1].parent.mkdir(parents=True, exist_ok=True)
            write_atomic(paths[-1], f"{json.dumps(record, ensure_ascii=False, indent=2)}\n")
    return paths, n_undefined


def records(
    results: Iterable[Result], organization: str, now: float
) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Yield path, record, and number of undefined scores of each result; see `write_results`."""
    for result in results:
        if result.task not in SHORT_TASK_NAMES:
            continue
        conditions = _conditions(result)
        estimates = [
            (name, metric, estimate)
            for name, metrics in conditions.items()
            for metric, estimate in metrics.items()
            if metric in METRICS
        ]
        defined = [row for row in estimates if math.isfinite(row[2].value)]
        model = _model(result)
        benchmark = slug(data_of(result))
        document = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": f"{benchmark}/{model['id']}/{now}",
            "evaluation_timestamp": str(_evaluation_time(result) or now),
            "retrieved_timestamp": str(now),
            "source_metadata": {
                "source_name": "giccs",
                "source_type": "evaluation_run",
                "source_organization_name": organization,
                "evaluator_relationship": _relationship(model["id"], organization),
            },
            "eval_library": {
                "name": "giccs",
                "version": str(result.signature.get("giccs", "unknown")),
                "additional_details": {"signature_sha256": digest(result.signature)},
            },
            "model_info": model,
            "evaluation_results": [_score(result, *row) for row in defined],
        }
        folders = [path_component(part).replace(":", "-") for part in model["id"].split("/", 1)]
        path = "/".join(("data", benchmark, *folders, f"{_uuid(result)}.json"))
        yield path, document, len(estimates) - len(defined)


def _conditions(result: Result) -> dict[str, Mapping[str, Estimate]]:
    """Return the name of each task as exported to other tools -> its metrics."""
    data, task = data_of(result), SHORT_TASK_NAMES[result.task]
    return {
        task_name(data, task, history): metrics
        for history, metrics in metrics_by_history(result).items()
    }


def _model(result: Result) -> dict[str, Any]:
    """Return the model; only hub ids with a commit have a developer other than giccs."""
    hub_id = hub_id_of_model(result)
    is_served = result.model.rpartition(":")[0] in SERVED_KINDS
    details = {
        "deployment_type": "unknown" if is_served else "self_deployed",
        "model_availability": "open_weights" if hub_id else "unknown",
        "giccs_name": result.model,
    }
    names = ("revision", "dtype", "quantised", "pooling", "dimensions", "embeddings", "similarity")
    details |= {name: str(result.signature.get(name)) for name in names if name in result.signature}
    local_name = result.model.replace("/", "_").replace(":", "_").strip("._ ")
    return {
        "name": model_of(result),
        "id": hub_id or f"giccs-local/{local_name}",
        "additional_details": details,
    }


def _relationship(model_id: str, organization: str) -> str:
    """Return first_party if the organization is the owner of the model on the hub.

    >>> _relationship("acme/model", "ACME"), _relationship("acme/model", "University of X")
    ('first_party', 'third_party')
    """
    return (
        "first_party" if model_id.split("/")[0].lower() == organization.lower() else "third_party"
    )


def _score(result: Result, name: str, key: str, estimate: Estimate) -> dict[str, Any]:
    metric = METRICS[key]
    return {
        "evaluation_result_id": f"{name}/{key}",
        "evaluation_name": name,
        "source_data": _source(result),
        "metric_config": {
            "evaluation_description": f"{result.task}, {metric.name}",
            "metric_id": key,
            "metric_name": metric.name,
            "metric_kind": metric.kind,
            "metric_unit": metric.unit,
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": metric.min_score,
            "max_score": metric.max_score,
        },
        "score_details": {"score": estimate.value, "uncertainty": _uncertainty(result, estimate)},
    }


def _uncertainty(result: Result, estimate: Estimate) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if math.isfinite(estimate.low) and math.isfinite(estimate.high):
        interval: Mapping[str, Any] = result.signature.get("interval") or {}
        unit = interval.get("unit", "item")
        uncertainty["confidence_interval"] = {
            "lower": estimate.low,
            "upper": estimate.high,
            "confidence_level": 0.95,
            "method": f"{interval.get('method', 'unknown')} over {unit}s",
        }
    stderr = estimate.extra.get("stderr")
    if stderr is not None and math.isfinite(stderr):
        uncertainty["standard_error"] = {"value": stderr, "method": "analytic"}
    return uncertainty


def _source(result: Result) -> dict[str, Any]:
    """Return the data: a repository of the hub, or its name, with its fingerprint."""
    data = data_of(result)
    details = {"fingerprint": str(result.signature.get("data", ""))}
    if "language" in result.environment:
        details["language"] = str(result.environment["language"])
    if data in SAMPLES:
        details["annotators"] = SAMPLE_TERMS.annotators
    source = {"dataset_name": slug(data), "additional_details": details}
    if HUB_ID.fullmatch(data.partition("@")[0]) and not Path(data).exists():
        return source | {"source_type": "hf_dataset", "hf_repo": data.partition("@")[0]}
    return source | {"source_type": "other"}


def _evaluation_time(result: Result) -> float | None:
    try:
        return datetime.fromisoformat(str(result.environment.get("when"))).timestamp()
    except ValueError:
        return None


def _uuid(result: Result) -> uuid.UUID:
    """Return a UUID in the form of version 4, as the schema's folder requires."""
    identity = digest(
        {"model": result.model, "task": result.task, "signature": dict(result.signature)}
    )
    return uuid.UUID(bytes=hashlib.sha256(identity.encode("ascii")).digest()[:16], version=4)
