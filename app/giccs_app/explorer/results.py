"""The results that belong to a study, and the reasons why others in the folder do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import polars as pl

from bws.base.problems import InputError, Problem
from bws.base.text import read_text
from giccs.benchmark import Benchmark
from giccs.benchmark.parquet import polars_errors_as_value_errors, read_table
from giccs.measures.results import Result, digest, is_on_absolute_scores
from giccs.tasks import result_kind
from giccs_app.explorer.study import Study

IDS = ("item_id", "dialogue_id")
"""Columns of predictions that identify items of a benchmark, the first existing one is used."""
Reason = Literal["other_data", "other_version", "other_scale", "partly_other", "no_ids"]


@dataclass(frozen=True)
class HiddenResult:
    """A result on items other than those of the study."""

    result: Result
    reason: Reason
    """``other_data``: no item of the result is in the benchmark. ``other_version``: all are, but its data
    have other texts, scores or further dialogues. ``other_scale``: published instead of absolute scores, or
    the reverse. ``partly_other``: only some are. ``no_ids``: the items are unknown because its predictions
    are missing."""
    shared: int = 0
    """Number of the result's items (for multiple choice, dialogues) that the benchmark has, too."""
    total: int = 0


@dataclass(frozen=True)
class StudyResults:
    """The results of a folder."""

    results: tuple[Result, ...] = ()
    """Those on the benchmark or on a part of it, and those of tasks with data of their own
    (`giccs.tasks.METRICS`), in the order of their file names."""
    subsets: Mapping[str, Benchmark] | None = None
    """Fingerprint of the data of a result -> the part of the benchmark that it is."""
    hidden: tuple[HiddenResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Unreadable files."""


def results_of(study: Study) -> StudyResults:
    """Return the results in the folder of a study; unchanged files are not read again.

    A result is on a part of the benchmark if the items in its predictions have, in this benchmark, the
    fingerprint that the result states.
    """
    if study.store is None:
        return StudyResults()
    if not study.store.folder.is_dir():
        problem = Problem(str(study.store.folder), None, "no such folder of results")
        return StudyResults(problems=(problem,))
    results: list[Result] = []
    subsets: dict[str, Benchmark] = {}
    hidden: list[HiddenResult] = []
    problems: list[Problem] = []
    for path in sorted(study.store.folder.glob("*--*--*.json")):
        result = _read_result(str(path), *_state(path))
        if not isinstance(result, Result):
            problems += result
            continue
        match = _match(study, result)
        if isinstance(match, HiddenResult):
            hidden.append(match)
            continue
        results.append(result)
        if match is not None:
            subsets[str(result.signature["data"])] = match
    return StudyResults(tuple(results), subsets, tuple(hidden), tuple(problems))


def on_subset(study: Study, subset: Benchmark) -> Study:
    """Return the study with the items of a part of its benchmark only."""
    item_ids = [item.item_id for item in subset.items]
    return replace(
        study,
        benchmark=subset,
        items=study.items.filter(pl.col("item_id").is_in(item_ids)),
        key=f"{study.key}\n{subset.fingerprint}",
        matches={},
    )


@lru_cache(maxsize=4096)
def _read_result(path: str, modified_at: int, size: int) -> Result | Sequence[Problem]:
    """Return the result in a file, or its problems."""
    try:
        result = Result.from_document(json.loads(read_text(path)))
    except InputError as error:
        return error.problems
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        message = "is not a result of giccs eval, or damaged; remove it, or name another folder"
        return [Problem(path, None, message)]
    if not Path(path).stem.endswith(digest(result.signature)[:12]):
        return [Problem(path, None, "its content does not match its name; remove it")]
    if not result.metrics:
        return [Problem(path, None, "has no metrics")]
    return result


def _match(study: Study, result: Result) -> HiddenResult | Benchmark | None:
    """Return why a result does not belong to the study, or the part of the benchmark that it is on.

    None for results on the whole benchmark, and of tasks with data of their own.
    """
    fingerprint = result.signature.get("data")
    if result_kind(result.task).tables == "metrics" or fingerprint == study.benchmark.fingerprint:
        return None
    assert study.store is not None
    path = study.store.path(result.model, result.task, result.signature).with_suffix(".parquet")
    key = (str(path), *_state(path))
    if key not in study.matches:
        study.matches[key] = _match_items(study.benchmark, result, path)
    match = study.matches[key]
    if isinstance(match, Benchmark):
        return match
    reason, *counts = match
    is_other = is_on_absolute_scores(result) != (study.published is not None)
    if reason == "other_version" and is_other and study.has_absolute_scores:
        reason = "other_scale"
    return HiddenResult(result, reason, *counts)


def _match_items(
    benchmark: Benchmark, result: Result, path: Path
) -> Benchmark | tuple[Reason, int, int]:
    """Return the part of the benchmark that a result is on, or the fields of a `HiddenResult`."""
    ids = _predicted_ids(path)
    if ids is None:
        return "no_ids", 0, 0
    column = ids.name
    known = set(ids)
    items = tuple(item for item in benchmark.items if getattr(item, column) in known)
    shared = len({getattr(item, column) for item in items})
    if shared < len(ids):
        return ("partly_other" if shared else "other_data"), shared, len(ids)
    subset = replace(benchmark, items=items)
    is_subset = subset.fingerprint == result.signature.get("data")
    return subset if is_subset else ("other_version", shared, len(ids))


def _predicted_ids(path: Path) -> pl.Series | None:
    """Return the distinct ids of the items (else, of the dialogues) in a file of predictions."""
    for name in IDS:
        with suppress(ValueError, OSError), polars_errors_as_value_errors():
            return read_table(path, [name])[name].cast(pl.String).unique()
    return None


def _state(path: Path) -> tuple[int, int]:
    """Return time of modification and size, which change with the content; zeros without a file."""
    if not path.exists():
        return 0, 0
    state = path.stat()
    return state.st_mtime_ns, state.st_size
