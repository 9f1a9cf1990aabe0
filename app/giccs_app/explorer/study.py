"""The study shown by the explorer: a benchmark and, optionally, judgments, results and a ledger."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.files import read_judgments, read_scores
from bws.files.item_texts import read_item_texts
from bws.model_annotators import is_model, is_simulated
from bws.raw_agreement import item_disagreement
from bws.records import Judgments, Scores, Tuples
from bws.scoring import score
from bws.scoring.rank_sets import rank_texts
from giccs.benchmark import SAMPLE, SAMPLES, Benchmark, read_benchmark, sample_file
from giccs.benchmark.items import ABSOLUTE_TARGET, Turn
from giccs.measures.results import Store
from giccs.tasks import open_tasks, result_kind, task_names
from giccs_app.explorer.plain_items import absolute_limits_of, plain_benchmark

if TYPE_CHECKING:
    from bws.absolute.files import Anchors
    from bws.absolute.scores import AbsoluteScale
    from giccs.measures.results import Limits

COLUMNS = (
    "item_id", "dialogue_id", "source", "domain", "n_turns", "last_turn",
    "utterance_id", "utterance", "score",
)  # fmt: skip
PSEUDONYM = re.compile(r"w-[0-9a-f]{16}|#[0-9]+")
"""Pseudonyms assigned by mturk.study.privacy and by `under_pseudonyms`."""
OTHER_SCORES = "page.other_scores"
"""Label of a note."""
ROUNDING = 0.005 + 1e-9
"""Tolerance for scores written with two decimals."""


@dataclass(frozen=True)
class TaskData:
    """Data of tasks that are not a benchmark of dialogues."""

    tasks: tuple[str, ...]
    """Tasks that read the data."""
    fingerprints: frozenset[str]
    """Contents of the data as the tasks read them."""


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that the pages show."""

    benchmark: Benchmark
    """Without items for the data of other tasks, see `task_data`."""
    items: pl.DataFrame
    """One row per item, in the order of the benchmark: item_id, dialogue_id, source, domain, n_turns,
    last_turn, utterance_id, utterance, score; with judgments also low, high (95 % intervals, as in giccs
    score), rank_set (such as 2–5), appearances, best, worst and disagreement, null without judgments."""
    judgments: Judgments | None = None
    """Judgments of people, with pseudonymous annotators."""
    model_judgments: tuple[Judgments, ...] = ()
    """Judgments of language models, one element per file."""
    store: Store | None = None
    ledger: str | None = None
    problems: tuple[Problem, ...] = ()
    """Problems in the judgments or results, which are skipped."""
    unreadable: tuple[Problem, ...] = ()
    """Those of `problems` for which a whole file or folder is skipped."""
    notes: tuple[str, ...] = ()
    """Keys of the labels of notes on the scores."""
    interval_notes: tuple[str, ...] = ()
    """Reasons why intervals are approximate or missing."""
    annotator_names: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Displayed name -> name in the file of judgments, of annotators whose names differ; not displayed."""
    is_plain: bool = False
    """Whether the items have no dialogues."""
    key: str = ""
    """Cache key; changes if the benchmark or the judgments change, and with the scale of the scores."""
    judgments_key: str = ""
    """Cache key; changes if the benchmark or the judgments change."""
    anchors: Anchors | None = None
    """Answers of people to anchors, by the displayed names."""
    absolute_limits: pl.DataFrame | None = None
    """item_id, low, high of absolute scores from a file."""
    published: Benchmark | None = None
    """The benchmark with the published scores, if the scores are the absolute ones."""
    scale: AbsoluteScale | None = None
    """The absolute scale with its draws, if it was requested."""
    limits: Limits = field(default_factory=dict)
    """What limits correlations with published and absolute scores, as far as it is known."""
    task_data: TaskData | None = None
    matches: dict[object, Any] = field(default_factory=dict, repr=False)
    """Cache of `giccs_app.explorer.results`."""

    @property
    def fingerprints(self) -> frozenset[str]:
        """Fingerprints of the data that are shown."""
        if self.task_data is not None:
            return self.task_data.fingerprints
        return frozenset([self.benchmark.fingerprint])

    @property
    def is_simulated(self) -> bool:
        """Whether the scores are known to come from simulated annotators."""
        by_name = self.judgments is not None and self.judgments.is_simulated
        return by_name or self.benchmark.name in SAMPLES

    @cached_property
    def has_absolute_scores(self) -> bool:
        """Whether every item has an absolute score."""
        items = (self.published or self.benchmark).items
        return bool(items) and all(item.absolute_score is not None for item in items)

    @cached_property
    def turns(self) -> Mapping[str, tuple[Turn, ...]]:
        """The turns of each dialogue."""
        return {item.dialogue_id: item.turns for item in self.benchmark.items}

    @cached_property
    def index_in_judgments(self) -> NDArray[np.int64]:
        """(N,) index of each item in `judgments.tuples.items`; -1 if it has no judgments."""
        if self.judgments is None:
            return np.full(len(self.benchmark.items), -1)
        return index_in_judgments(self.benchmark, self.judgments.tuples)

    @cached_property
    def index_in_model_judgments(self) -> tuple[NDArray[np.int64], ...]:
        """`index_in_judgments` of each element of `model_judgments`."""
        return tuple(
            index_in_judgments(self.benchmark, source.tuples) for source in self.model_judgments
        )


def load(
    data: str = SAMPLE,
    judgments: str | None = None,
    results: str | None = None,
    ledger: str | None = None,
    model_judgments: Sequence[str] = (),
    item_texts: str | None = None,
    scores: str | None = None,
    absolute: str | None = None,
) -> Study:
    """Read a study; the packaged samples include judgments and anchors. The ledger is read by its page.

    model_judgments: files of judgments of language models, as from giccs judge. item_texts, scores: texts and
    scores of items without dialogues, whose judgments replace the data. absolute: anchors.

    Raises InputError if the data can be read neither as a benchmark nor by a task. Other unreadable files are
    skipped and reported in `Study.problems`.

    >>> study = load()
    >>> study.items.columns[-7:], study.is_simulated
    (['low', 'high', 'rank_set', 'appearances', 'best', 'worst', 'disagreement'], True)
    """
    is_plain = bool(judgments and (item_texts or scores))
    benchmark, task_data = (Benchmark(data, ()), None) if is_plain else _read_data(data)
    problems: list[Problem] = []
    try:
        source_judgments, annotator_names = _judgments(data, judgments)
    except InputError as error:
        if is_plain:
            raise
        source_judgments, annotator_names = None, {}
        problems += error.problems
    limits = None
    if is_plain and source_judgments is not None:
        table = read_scores(scores) if scores else None
        texts = read_item_texts(item_texts) if item_texts else {}
        benchmark = plain_benchmark(str(judgments), source_judgments, texts, table)
        limits = absolute_limits_of(table)
    anchors = None
    try:
        if absolute or judgments is None:
            anchors = _anchors(benchmark, absolute, annotator_names)
    except InputError as error:
        problems += error.problems
    try:
        store = Store(results) if results else None
    except InputError as error:
        store = None
        problems += error.problems
    models, model_problems, skipped_rows = _model_judgments(model_judgments)
    problems += model_problems
    unreadable = tuple(problems)
    problems += skipped_rows
    study = Study(
        benchmark,
        items_of(benchmark),
        source_judgments,
        models,
        store,
        ledger,
        unreadable=unreadable,
        annotator_names=annotator_names,
        is_plain=is_plain,
        task_data=task_data,
        anchors=anchors if source_judgments is not None else None,
        absolute_limits=limits,
    )
    key = stamp(
        None if is_plain else data, judgments, item_texts, scores, absolute, *model_judgments
    )
    study = replace(study, key=key, judgments_key=key)
    if source_judgments is None:
        return replace(study, problems=tuple(problems))
    problems += source_judgments.left_out
    problems += source_judgments.copies
    if source_judgments.variants:
        problems.append(Problem(source_judgments.source, None, source_judgments.variants.message()))
    computed = _scores(source_judgments)
    items = _with_scores(study, computed, item_disagreement(source_judgments))
    return replace(
        study,
        items=items.drop("counted"),
        problems=tuple(problems),
        notes=tuple(_notes(items)),
        interval_notes=tuple(computed.notes),
    )


def with_absolute_scores(study: Study, drawn: tuple[AbsoluteScale, Limits] | None = None) -> Study:
    """Return the study with the absolute scores of its items as scores.

    drawn: the absolute scale and the limits of correlations; without them, items have the intervals of a
    file of scores, or none. Ranks, choices and disagreement remain those of the judgments.

    >>> study = with_absolute_scores(load())
    >>> study.items["score"].max() < 1, study.items["low"].null_count()
    (True, 300)
    """
    benchmark = study.benchmark.with_target(ABSOLUTE_TARGET)
    scale, limits = drawn or (None, {})
    intervals = study.absolute_limits if scale is None else _intervals(study, scale)
    items = study.items.with_columns(score=pl.Series([item.score for item in benchmark.items]))
    if intervals is not None:
        items = items.drop("low", "high", strict=False)
        items = items.join(intervals, on="item_id", how="left", maintain_order="left")
    elif "low" in items.columns:
        items = items.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("low", "high"))
    return replace(
        study,
        benchmark=benchmark,
        items=items,
        notes=tuple(note for note in study.notes if note != OTHER_SCORES),
        interval_notes=() if scale is None else scale.notes,
        key=f"{study.key}\nabsolute {scale is not None}",
        published=study.benchmark,
        scale=scale,
        limits=limits,
        matches={},
    )


def _intervals(study: Study, scale: AbsoluteScale) -> pl.DataFrame:
    """Return item_id, low and high of the items of a benchmark."""
    from giccs.measures.judged_items import item_keys

    assert study.judgments is not None
    index_of = {key: index for index, key in enumerate(scale.keys)}
    keys = item_keys(study.benchmark, grouped=any(study.judgments.tuples.groups))
    index = [index_of[key] for key in keys]
    return pl.DataFrame(
        {"item_id": study.items["item_id"], "low": scale.low[index], "high": scale.high[index]}
    )


def check_files(study: Study, judgments: str | None, model_judgments: Sequence[str] = ()) -> None:
    """Raise InputError for files that `load` has skipped, for judgments of none of the study's items, and for
    anchors that do not belong to the judgments, or without absolute scores.

    judgments, model_judgments: the names of the files.
    """
    if study.unreadable:
        raise InputError(study.unreadable)
    indices = [*([(judgments, study.index_in_judgments)] if judgments else [])]
    indices += zip(model_judgments, study.index_in_model_judgments, strict=True)
    message = (
        f"judgments of none of the items of {study.benchmark.name}; expected judgments of its items, or "
        "--items FILE for items without dialogues"
    )
    if problems := [Problem(file, None, message) for file, index in indices if (index < 0).all()]:
        raise InputError(problems)
    if study.anchors is not None and study.judgments is not None:
        from bws.absolute.files import check_anchors, of_annotators

        study.benchmark.with_target(ABSOLUTE_TARGET)
        check_anchors(of_annotators(study.anchors, study.judgments)[0], study.judgments)


def _read_data(data: str) -> tuple[Benchmark, TaskData | None]:
    """Return the benchmark; one without items, and the tasks, for the data of other tasks."""
    try:
        return read_benchmark(data), None
    except InputError:
        task_data = _task_data(data)
        if task_data is None:
            raise
        return Benchmark(data, ()), task_data


def _task_data(data: str) -> TaskData | None:
    """Return which tasks with data of their own (`giccs.tasks.METRICS`) read a file, folder or sample."""
    fingerprints: dict[str, str] = {}
    for name in task_names():
        if result_kind(name).tables != "metrics":
            continue
        (task, *_) = open_tasks(name)
        if Path(data).exists() or data == task.default_data:
            with suppress(InputError, OSError):
                fingerprints[name] = task.read(data).fingerprint
    return TaskData(tuple(fingerprints), frozenset(fingerprints.values())) if fingerprints else None


def _scores(judgments: Judgments) -> Scores:
    """Return the scores in [0, 1]: counting with intervals, or the choice model for an adaptive study."""
    if not judgments.is_adaptive:
        return score(judgments, scale="unit", interval="model", ranks=True)
    scores = score(judgments, "best-worst-logit", scale="counting")
    return replace(scores, score=(scores.score + 1) / 2)


def items_of(benchmark: Benchmark) -> pl.DataFrame:
    """Return one row per item, without the columns computed from judgments."""
    items = benchmark.items
    return pl.DataFrame({name: [getattr(item, name) for item in items] for name in COLUMNS})


def stamp(*paths: str | None) -> str:
    """Return a text that changes with the files (or directories): paths, sizes and modification times."""
    return "\n".join(f"{path}\t{_state(path)}" for path in paths if path is not None)


def _state(path: str) -> str:
    location = Path(path)
    files = (
        sorted(location.iterdir()) if location.is_dir() else [location] if location.exists() else []
    )
    states = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return json.dumps(states)


def _judgments(data: str, path: str | None) -> tuple[Judgments | None, dict[str, str]]:
    """Return the judgments under pseudonyms, and the names in the file of those that were replaced."""
    if path is not None:
        judgments = read_judgments(path, on_invalid="skip", allow_copies=True)
        judgments.check_kind("people")
        displayed = under_pseudonyms(judgments)[0]
        names = zip(displayed.annotators.tolist(), judgments.annotators.tolist(), strict=True)
        return displayed, {name: in_file for name, in_file in names if name != in_file}
    if data not in SAMPLES:
        return None, {}
    with sample_file(data, "judgments.csv") as file:
        return read_judgments(file), {}


def _anchors(
    benchmark: Benchmark, path: str | None, annotator_names: Mapping[str, str]
) -> Anchors | None:
    """Return the anchors in a file or of a sample, by the displayed names of annotators."""
    from giccs.measures.absolute_ceiling import load_anchors

    anchors = load_anchors(benchmark, path)
    if anchors is None or not annotator_names:
        return anchors
    displayed = {in_file: name for name, in_file in annotator_names.items()}
    rows = [
        replace(row, annotator=displayed.get(row.annotator, row.annotator)) for row in anchors.rows
    ]
    return replace(anchors, rows=rows)


def _model_judgments(
    paths: Sequence[str],
) -> tuple[tuple[Judgments, ...], list[Problem], list[Problem]]:
    """Return the judgments of each readable file of judgments of models, and the problems of unreadable files
    and of skipped rows."""
    sources: list[Judgments] = []
    problems: list[Problem] = []
    skipped_rows: list[Problem] = []
    for path in paths:
        try:
            judgments = read_judgments(path, on_invalid="skip", allow_copies=True)
            judgments.check_kind("language models")
        except InputError as error:
            problems += error.problems
        else:
            sources.append(judgments)
            skipped_rows += (*judgments.left_out, *judgments.copies)
    return tuple(sources), problems, skipped_rows


def under_pseudonyms(judgments: Judgments) -> tuple[Judgments, int]:
    """Replace names that are not pseudonyms by numbers; return the judgments and the number of replacements.

    ``#n`` is the n-th annotator in the order of first judgments, in all languages. The names can be looked up
    in the file but are not shown on the screen. Names of language models are no personal data and remain.
    """
    first = np.full(len(judgments.annotators), len(judgments), dtype=np.int64)
    named_rows = np.flatnonzero(judgments.annotator_of >= 0)
    np.minimum.at(first, judgments.annotator_of[named_rows], named_rows)
    order = np.argsort(np.argsort(first, kind="stable"))
    names = judgments.annotators.tolist()
    displayed = [
        name
        if PSEUDONYM.fullmatch(name) or is_simulated(name) or is_model(name)
        else f"#{order[a] + 1}"
        for a, name in enumerate(names)
    ]
    n_numbered = sum(name.startswith("#") for name in displayed)
    if displayed == names:
        return judgments, n_numbered
    return replace(judgments, annotators=np.array(displayed, dtype=object)), n_numbered


def index_in_judgments(benchmark: Benchmark, tuples: Tuples) -> NDArray[np.int64]:
    """Return (N,) the index of each item in `tuples.items`, matched by dialogue and utterance; -1 if missing.

    Judgments without groups are matched by utterance if it occurs in one dialogue only.
    """
    grouped = any(tuples.groups)
    index_of = {key: index for index, key in enumerate(tuples.item_keys[: tuples.n_scored])}
    keys = [
        (normal_id(item.dialogue_id) if grouped else "", normal_id(item.utterance_id))
        for item in benchmark.items
    ]
    indices = np.array([index_of.get(key, -1) for key in keys], dtype=np.int64)
    if not grouped:
        _, inverse, counts = np.unique(indices, return_inverse=True, return_counts=True)
        indices[counts[inverse] > 1] = -1
    return indices


def _notes(items: pl.DataFrame) -> Iterator[str]:
    """Yield the keys of the notes on the scores."""
    counting_scores, scores = items["counted"].to_numpy(), items["score"].to_numpy()
    if np.isnan(counting_scores).any():
        yield "page.not_all_judged"
    if (np.abs(counting_scores - scores) > ROUNDING).any():
        yield OTHER_SCORES


def _with_scores(study: Study, scores: Scores, disagreement: NDArray[np.float64]) -> pl.DataFrame:
    """Return the items with the columns computed from the judgments.

    Adds low, high, rank_set, appearances, best, worst, disagreement, and counted, the counting score
    (1 + (best - worst) / appearances) / 2, NaN for items without judgments.
    """
    undefined = np.full(len(scores), np.nan)
    values_by_name = {
        "low": undefined if scores.low is None else scores.low,
        "high": undefined if scores.high is None else scores.high,
        "rank_set": np.array(rank_texts(scores) or ["–"] * len(scores)),
        "appearances": scores.appearances,
        "best": scores.best,
        "worst": scores.worst,
        "disagreement": disagreement,
    }
    index = study.index_in_judgments
    columns = [_as_column(values, index, name) for name, values in values_by_name.items()]
    counting_scores = np.where(index >= 0, scores.score[index], np.nan)
    return study.items.with_columns(*columns, pl.Series("counted", counting_scores))


def _as_column(values: NDArray[Any], index: NDArray[np.int64], name: str) -> pl.Series:
    """Return the values of the items as a column; null for items without judgments or values."""
    column = pl.Series(name, values[index])
    missing = pl.Series(index < 0) | (column.is_nan() if column.dtype.is_float() else False)
    return pl.select(pl.when(~missing).then(column).alias(name)).to_series()
