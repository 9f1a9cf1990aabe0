"""Hugging Face hub: results as files in ``.eval_results`` of the repositories of models.

Source: docs/hub/eval-results.md and eval_results.yaml of github.com/huggingface/hub-docs.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from bws.stats.estimates import Estimate
from giccs.benchmark import known_terms, read_benchmark
from giccs.benchmark.hub import data_folder
from giccs.description.card.eval_yaml import EVAL_YAML, SHORT_TASK_NAMES, read_task_ids, task_id
from giccs.evaluation.interop.metadata import (
    HUB_ID,
    hub_id_of_model,
    metrics_by_history,
    path_component,
    slug,
)
from giccs.measures.results import Result, digest, history_of, model_of, prompt_of
from giccs.tasks import result_kind

FOLDER = ".eval_results"
METRIC_NAMES = {"spearman": "Spearman's rho", "accuracy": "accuracy"}


@dataclass(frozen=True, slots=True)
class HubData:
    """A commit of a data set of the hub that declares tasks."""

    id: str
    revision: str
    fingerprint: str
    task_ids: tuple[str, ...]
    is_simulated: bool = False


def read_hub_data(name: str) -> HubData:
    """Return a data set of the hub, ``owner/name[@revision]``, from the cache if offline.

    Raises InputError if it is not on the hub, is not a benchmark, or has no eval.yaml.
    """
    hub_id = name.partition("@")[0]
    if not HUB_ID.fullmatch(hub_id) or Path(name).exists():
        message = "is not a data set of the hub; expected OWNER/NAME or OWNER/NAME@REVISION"
        raise InputError(Problem(name, None, message))
    folder = data_folder(name)
    benchmark = read_benchmark(name)
    return HubData(
        hub_id,
        folder.name,  # the commit
        benchmark.fingerprint,
        tuple(read_task_ids(folder / EVAL_YAML, name)),
        known_terms(benchmark).annotators == "simulated",
    )


def write_results(
    results: Iterable[Result], data: HubData, folder: str | os.PathLike[str]
) -> tuple[list[Path], Counter[str]]:
    """Write a file per result on the data; return the paths, and the number of those left out per reason.

    The path is ``OWNER/MODEL/.eval_results/NAME.yaml``. NAME contains the digest of the signature, so that a
    second export replaces the first. Undefined values, and values of undeclared tasks, are left out.
    """
    import yaml

    paths = []
    left_out: Counter[str] = Counter()
    for result in results:
        model = hub_id_of_model(result)
        if reason := _refusal(result, model, data):
            left_out[reason] += 1
            continue
        entries = [*_entries(result, data, left_out)]
        if model and entries:
            task = SHORT_TASK_NAMES[result.task]
            name = path_component(f"{slug(data.id)}_{task}_{digest(result.signature)[:12]}.yaml")
            path = Path(folder, *map(path_component, model.split("/")), FOLDER, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, yaml.safe_dump(entries, allow_unicode=True, sort_keys=False))
            paths.append(path)
    return paths, left_out


def _refusal(result: Result, model: str | None, data: HubData) -> str:
    """Return why a result is left out, or an empty string."""
    if result.task not in SHORT_TASK_NAMES:
        return "results of other tasks"
    if result.signature.get("data") != data.fingerprint:
        return "results on other data"
    return "" if model else "results of models that are not a commit of the hub"


def _entries(result: Result, data: HubData, left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield an entry per history condition; count those that are left out."""
    metric = result_kind(result.task).main_metric
    for history, metrics in metrics_by_history(result).items():
        task = task_id(result.task, history.partition(" ")[0])
        estimate = metrics.get(metric)
        if task not in data.task_ids:
            left_out[f"values of {task}, which the data set does not declare"] += 1
        elif estimate is None or not math.isfinite(estimate.value):
            left_out[f"undefined values of {task}"] += 1
        else:
            yield {
                "dataset": {"id": data.id, "task_id": task, "revision": data.revision},
                "value": estimate.value,
                **_date(result),
                "notes": "; ".join(_notes(result, metric, estimate, data)),
            }


def _date(result: Result) -> dict[str, str]:
    """Return the entry of the time of the evaluation, or nothing if it is unknown."""
    when = str(result.environment.get("when"))
    try:
        datetime.fromisoformat(when)
    except ValueError:
        return {}
    return {"date": when}


def _notes(result: Result, metric: str, estimate: Estimate, data: HubData) -> Iterator[str]:
    """Yield what the value is, and what determines it."""
    if data.is_simulated:
        yield "simulated annotations"
    unit = "items" if result.task == "pairwise-sts" else "dialogues"
    yield f"{METRIC_NAMES[metric]} over {estimate.n} {unit}"
    if math.isfinite(estimate.low) and math.isfinite(estimate.high):
        yield f"95 % interval {estimate.low:.3f} to {estimate.high:.3f}"
    if "history_encoding" in result.signature:
        yield f"history {history_of(result)}"
    settings = (model_of(result).removeprefix(result.model).strip(", "), prompt_of(result))
    yield from filter(None, settings)
    yield f"model revision {result.signature['revision']}"
    yield f"giccs {result.signature.get('giccs', 'unknown')}"
    yield f"signature sha256 {digest(result.signature)}"
