"""What the explorer reads: a benchmark, and, where they are given, judgments, results and a ledger."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.files import read_judgments
from bws.problems import InputError, Problem
from bws.records import Judgments, Scores, Tuples, normal_id
from bws.scoring import score
from bws.simulate import is_simulated
from bws.textio import read_text
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.items import Turn
from giccs.measures.results import Result, Store
from giccs.tasks import result_kind

__all__ = [
    "Study",
    "load",
    "place_in_judgments",
    "results_of",
    "stamp",
    "under_pseudonyms",
]

COLUMNS = (
    "item_id", "dialogue_id", "source", "domain", "n_turns", "last_turn",
    "utterance_id", "utterance", "score",
)  # fmt: skip
PSEUDONYM = re.compile(r"w-[0-9a-f]{16}|annotator [0-9]+")
"""What mturk.study.privacy and `under_pseudonyms` call annotators."""
ROUNDING = 0.005 + 1e-9
"""Scores may have been written with two decimals."""


@dataclass(frozen=True, eq=False)
class Study:
    """All that a page may show."""

    benchmark: Benchmark
    items: pl.DataFrame
    """A row an item, in the benchmark's order: item_id, dialogue_id, source, domain, n_turns, last_turn,
    utterance_id, utterance, score; with judgments also low, high (95 % intervals, as of bws-score),
    appearances, best, worst and disagreement. Null where an item was not judged."""
    judgments: Judgments | None = None
    """Their annotators under pseudonyms."""
    store: Store | None = None
    ledger: str | None = None
    problems: tuple[Problem, ...] = ()
    """What of the judgments or results could not be used."""
    notes: tuple[str, ...] = ()
    """Keys of labels: what a reader of the numbers must know."""
    interval_notes: tuple[str, ...] = ()
    """Why intervals are approximate or missing."""
    key: str = ""
    """Changes whenever one of the files does; what is computed is cached by it."""

    @property
    def simulated(self) -> bool:
        """Whether the scores are known to come from simulated annotators."""
        annotators = () if self.judgments is None else self.judgments.annotators
        simulated = len(annotators) > 0 and all(map(is_simulated, annotators))
        return simulated or self.benchmark.name == SAMPLE

    @cached_property
    def turns(self) -> Mapping[str, tuple[Turn, ...]]:
        """The turns of each dialogue."""
        return {item.dialogue_id: item.turns for item in self.benchmark.items}

    @cached_property
    def place_of(self) -> NDArray[np.int64]:
        """(N,) each item's index in `judgments.tuples.items`; -1 where it was not judged."""
        if self.judgments is None:
            return np.full(len(self.benchmark.items), -1)
        return place_in_judgments(self.benchmark, self.judgments.tuples)


def load(
    data: str = SAMPLE,
    judgments: str | None = None,
    results: str | None = None,
    ledger: str | None = None,
) -> Study:
    """Read everything; giccs-sample comes with its own judgments.

    InputError where the benchmark cannot be read. What else cannot be read is left out, and stands in
    `Study.problems`.

    >>> study = load()
    >>> study.items.columns[-6:], study.simulated
    (['low', 'high', 'appearances', 'best', 'worst', 'disagreement'], True)
    """
    benchmark = read_benchmark(data)
    problems: list[Problem] = []
    try:
        judged = _judgments(data, judgments)
    except InputError as error:
        judged = None
        problems += error.problems
    try:
        store = Store(results) if results else None
    except InputError as error:
        store = None
        problems += error.problems
    bare = Study(benchmark, items_of(benchmark), judged, store, ledger)
    key = stamp(data, judgments)
    if judged is None:
        return replace(bare, problems=tuple(problems), key=key)
    problems += judged.left_out
    if judged.variants:
        problems.append(Problem(judged.source, None, judged.variants.message()))
    scores = score(judged, scale="unit", interval="model")
    items = _with_scores(bare, scores, _disagreement(judged))
    return replace(
        bare,
        items=items.drop("counted"),
        problems=tuple(problems),
        notes=tuple(_notes(items)),
        interval_notes=tuple(scores.notes),
        key=key,
    )


def items_of(benchmark: Benchmark) -> pl.DataFrame:
    """Return a row an item, without what judgments say."""
    items = benchmark.items
    return pl.DataFrame({name: [getattr(item, name) for item in items] for name in COLUMNS})


def stamp(*paths: str | None) -> str:
    """Return what changes when the files do: their paths, sizes and times of change; of folders, too."""
    return "\n".join(f"{path}\t{_state(path)}" for path in paths if path is not None)


def _state(path: str) -> str:
    place = Path(path)
    files = sorted(place.iterdir()) if place.is_dir() else [place] if place.exists() else []
    states = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return json.dumps(states)


def _judgments(data: str, path: str | None) -> Judgments | None:
    if path is not None:
        return under_pseudonyms(read_judgments(path, on_invalid="skip"))[0]
    if data != SAMPLE:
        return None
    with resources.as_file(resources.files("giccs.data") / "judgments.csv") as own:
        return read_judgments(own)


def under_pseudonyms(judgments: Judgments) -> tuple[Judgments, int]:
    """Number the annotators whose names are no pseudonyms; return how many have a number.

    The n-th of all annotators to appear is ``annotator n``: who has the file can find them, a
    reader of the screen cannot.
    """
    first = np.full(len(judgments.annotators), len(judgments), dtype=np.int64)
    named = np.flatnonzero(judgments.annotator_of >= 0)
    np.minimum.at(first, judgments.annotator_of[named], named)
    place = np.argsort(np.argsort(first, kind="stable"))
    names = judgments.annotators.tolist()
    shown = [
        name if PSEUDONYM.fullmatch(name) or is_simulated(name) else f"annotator {place[a] + 1}"
        for a, name in enumerate(names)
    ]
    numbered = sum(name.startswith("annotator ") for name in shown)
    return replace(judgments, annotators=np.array(shown, dtype=object)), numbered


def place_in_judgments(benchmark: Benchmark, tuples: Tuples) -> NDArray[np.int64]:
    """Return (N,) each item's index in `tuples.items`, found by dialogue and utterance; -1: not there.

    Judgments without groups are found by the utterance alone, where it occurs in one dialogue only.
    """
    grouped = any(tuples.groups)
    groups = tuples.groups[tuples.group_of_item]
    known = {key: place for place, key in enumerate(zip(groups, tuples.items, strict=True))}
    keys = [
        (normal_id(item.dialogue_id) if grouped else "", normal_id(item.utterance_id))
        for item in benchmark.items
    ]
    places = np.array([known.get(key, -1) for key in keys], dtype=np.int64)
    if not grouped:
        _, back, times = np.unique(places, return_inverse=True, return_counts=True)
        places[times[back] > 1] = -1
    return places


def _notes(items: pl.DataFrame) -> Iterator[str]:
    """Yield the keys of what a reader of the scores must know."""
    counted, given = items["counted"].to_numpy(), items["score"].to_numpy()
    if np.isnan(counted).any():
        yield "page.not_all_judged"
    if (np.abs(counted - given) > ROUNDING).any():
        yield "page.other_scores"


def _with_scores(study: Study, scores: Scores, disagreement: NDArray[np.float64]) -> pl.DataFrame:
    """Return the items with what the judgments say of them.

    Adds low, high, appearances, best, worst, disagreement, and counted, the score by counting:
    (1 + (best - worst) / appearances) / 2, NaN where an item was not judged.
    """
    no_end = np.full(len(scores), np.nan)
    found = {
        "low": no_end if scores.low is None else scores.low,
        "high": no_end if scores.high is None else scores.high,
        "appearances": scores.appearances,
        "best": scores.best,
        "worst": scores.worst,
        "disagreement": disagreement,
    }
    place = study.place_of
    columns = [_spread(values, place, name) for name, values in found.items()]
    counted = np.where(place >= 0, scores.score[place], np.nan)
    return study.items.with_columns(*columns, pl.Series("counted", counted))


def _spread(values: NDArray[Any], place: NDArray[np.int64], name: str) -> pl.Series:
    """Return the items' values as a column; null where an item was not judged, or has none."""
    column = pl.Series(name, values[place])
    missing = pl.Series(place < 0) | (column.is_nan() if column.dtype.is_float() else False)
    return pl.select(pl.when(~missing).then(column).alias(name)).to_series()


def _disagreement(judgments: Judgments) -> NDArray[np.float64]:
    """Return (N,) the share of an item's judgments that place it elsewhere than most of its tuple's.

    A judgment places an item best, worst or neither. In each tuple the most frequent place of the item is the
    majority's; the share is taken over all judgments of the item's tuples. 0: everybody agrees; at most 2/3.
    NaN for an item that was not judged.
    """
    tuples = judgments.tuples
    placed = np.zeros((*tuples.members.shape, 3), dtype=np.int64)  # best, worst, neither
    for answer, chosen in enumerate((judgments.best, judgments.worst)):
        np.add.at(placed[:, :, answer], (judgments.tuple_of, chosen), 1)
    judged = np.bincount(judgments.tuple_of, minlength=len(tuples))
    placed[:, :, 2] = judged[:, np.newaxis] - placed.sum(axis=2)
    against = judged[:, np.newaxis] - placed.max(axis=2)
    members, n = tuples.members.ravel(), len(tuples.items)
    total = np.bincount(members, weights=np.repeat(judged, tuples.k), minlength=n)
    differing = np.bincount(members, weights=against.ravel(), minlength=n)
    return np.divide(differing, total, out=np.full(n, np.nan), where=total > 0)


def results_of(study: Study) -> tuple[list[Result], list[Problem]]:
    """Return the results on exactly this benchmark, in the order of their file names, and broken files.

    Results of tasks that are not about its items (`giccs.tasks.METRICS`) are returned whatever their data.
    The folder is read anew in each call: new results are found.
    """
    if study.store is None:
        return [], []
    results: list[Result] = []
    problems: list[Problem] = []
    for found in _stored(study.store):
        if isinstance(found, Problem):
            problems.append(found)
        elif (
            found.signature.get("data") == study.benchmark.fingerprint
            or result_kind(found.task).tables == "metrics"
        ):
            results.append(found)
    return results, problems


def _stored(store: Store) -> Iterator[Result | Problem]:
    if not store.folder.is_dir():
        yield Problem(str(store.folder), None, "no such folder of results")
        return
    for path in sorted(store.folder.glob("*--*--*.json")):
        try:
            result = Result.from_document(json.loads(read_text(path)))
            if not isinstance(result.signature, Mapping):
                raise TypeError(result.signature)
            yield result
        except InputError as error:
            yield from error.problems
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            message = "is not a result of giccs-eval; remove it, or name another folder"
            yield Problem(str(path), None, message)
