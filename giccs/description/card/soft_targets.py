"""Soft targets as they are published: checked against the benchmark, one Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bws.files.soft_targets import SoftTargets
from bws.problems import InputError, Problem
from bws.records import normal_id
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item
from giccs.description.card.tables import PublishedTable

__all__ = ["soft_targets_table"]

COLUMNS = {
    "tuple_id": "id of the tuple that was judged",
    "group": "dialogue of the tuple",
    "item": "an utterance of the tuple",
    "annotations": "how many annotators judged the tuple",
    "best": "how many of them judged this utterance most similar to the last turn",
    "worst": "how many judged it least similar",
    "p_best": "best / annotations: the raw share, not smoothed",
    "p_worst": "worst / annotations: the raw share, not smoothed",
}
MAX_SCORE_DIFFERENCE = 0.005
"""Between a score of the benchmark, which may be rounded to two decimals, and that of the counts."""
MAX_NAMED = 5


def soft_targets_table(targets: SoftTargets, benchmark: Benchmark) -> PublishedTable:
    """Return one row per tuple and utterance.

    InputError where an utterance is not in the benchmark, or where an item has no soft targets or another
    score than (1 + (best - worst) / appearances) / 2.
    """
    import polars as pl

    if faults := list(_faults(targets, benchmark)):
        file = targets.source or "soft targets"
        raise InputError([Problem(file, None, fault) for fault in faults])
    texts = {"tuple_id": targets.tuple_ids, "group": targets.groups, "item": targets.items}
    numbers = {name: getattr(targets, name) for name in COLUMNS if name not in texts}
    frame = pl.DataFrame(
        {name: pl.Series(column.tolist(), dtype=pl.String) for name, column in texts.items()}
        | {name: pl.Series(column) for name, column in numbers.items()}
    )
    return PublishedTable(
        "soft_targets",
        "data/soft-targets-00000-of-00001.parquet",
        "the shares of annotators who chose each utterance of a tuple as best and as worst",
        frame,
        columns=COLUMNS,
    )


def _faults(targets: SoftTargets, benchmark: Benchmark) -> Iterator[str]:
    grouped = any(targets.groups)
    items = {_key(item, grouped): item for item in benchmark.items}
    if len(items) < len(benchmark.items):
        yield "names no groups, but utterance ids occur in more than one dialogue; expected the column group"
        return
    keys = list(zip(targets.groups.tolist(), targets.items.tolist(), strict=True))
    if unknown := {item for group, item in keys if (group, item) not in items}:
        yield f"{len(unknown)} items are not in {benchmark.name}: {_listed(unknown)}"
    counted = _scores(targets, keys)
    if missing := [item.item_id for key, item in items.items() if key not in counted]:
        yield f"{len(missing)} items of {benchmark.name} are missing: {_listed(missing)}"
    other = [
        item.item_id
        for key, item in items.items()
        if abs(counted.get(key, item.score) - item.score) > MAX_SCORE_DIFFERENCE
    ]
    if other:
        yield (
            f"{len(other)} items have another score in {benchmark.name} than these counts give: "
            f"{_listed(other)}; expected the soft targets of the judgments behind the scores"
        )


def _key(item: Item, grouped: bool) -> tuple[str, str]:
    return normal_id(item.dialogue_id) if grouped else "", normal_id(item.utterance_id)


def _scores(targets: SoftTargets, keys: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the counting score in [0, 1] of each (group, item)."""
    number = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    row = np.array([number[key] for key in keys], np.int64)
    balance = np.bincount(row, targets.best - targets.worst)
    scores = (1 + balance / np.bincount(row, targets.annotations)) / 2
    return dict(zip(number, scores.tolist(), strict=True))


def _listed(ids: Iterable[str]) -> str:
    names = sorted(ids)
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")
