"""Comparison of results with published numbers: differences, and whether the published number is in the
interval."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from bws.base.rows import csv_text
from bws.base.tables import Column, ResultTable, TableStyle, heading, remarks, rendered
from bws.stats.estimates import Estimate
from giccs.benchmark import SAMPLES
from giccs.evaluation.recipe import (
    ACROSS_MODELS,
    ANSWERS_KEY,
    TRAINING,
    PublishedNumber,
    Recipe,
    Run,
    data_in,
)
from giccs.measures.clusters import CLUSTERS, DIALOGUES
from giccs.measures.formatting import (
    SELECTED_REMARK,
    few_clusters_note,
    interval,
    limits,
    number,
    plus_minus,
)
from giccs.measures.metrics import SELECTED_KEY
from giccs.measures.results import Result, data_of, history_of, prompt_of, setting_of
from giccs.models.postprocess.steps import canonical_name
from giccs.report.clustering import over_clusters, unit_of
from giccs.tasks import DEFAULT_SIMILARITY

ACROSS_MODELS_MODULE = "giccs.evalrank.across_models"
"""Module of ``results_across_models``, imported on demand."""
COMPARED_VERDICTS = ("inside", "outside", "no interval")
HEADERS = ["model", "task", "subset", "metric", "published", "ours [95 %]", "difference", "verdict"]
COLUMNS = [
    "model", "task", "data", "prompt", "part", "metric", "published", "published_stderr",
    "ours", "low", "high", "n", "difference", "verdict",
]  # fmt: skip


@dataclass(frozen=True)
class ComparedNumber:
    """A published number, and the corresponding number of a result, if any."""

    run: Run
    published: PublishedNumber
    result: Result | None
    """The result; None if the model has none for this task."""
    same_data: bool

    @property
    def ours(self) -> Estimate | None:
        """The same metric of the same group, or None."""
        if self.result is None:
            return None
        by = _as_text(self.published.by.items())
        groups = [({}, self.result.metrics), *((g.by, g.metrics) for g in self.result.groups)]
        for part, metrics in groups:
            if _as_text(part.items()) == by:
                return metrics.get(self.published.metric)
        return None

    @property
    def difference(self) -> float:
        """Result minus published number; NaN without a result."""
        return self.ours.value - self.published.value if self.ours else math.nan

    @property
    def verdict(self) -> str:
        """Return whether the published number is ``inside`` or ``outside`` the interval of the result, or the
        reason for neither."""
        if self.result is None:
            return "no result"
        if self.ours is None or math.isnan(self.ours.value):
            return "not computed"
        if not self.same_data or self.published.n not in (None, self.ours.n):
            return "other items"
        if math.isnan(self.ours.low):
            return "no interval"
        inside = self.ours.low <= self.published.value <= self.ours.high
        return "inside" if inside else "outside"

    def document(self) -> dict[str, Any]:
        """Return the comparison as a JSON-serialisable dict; ``ours`` is null without a number."""
        published = self.published
        return {
            "model": self.run.model,
            "task": self.run.task,
            "data": data_of(self.result) if self.result else None,
            "prompt": prompt_of(self.result) or None if self.result else None,
            "history": history_of(self.result) if self.result else self.run.options.get("history"),
            "ask": {name: value for name, value in self.run.options.items() if name != "history"},
            "by": dict(published.by),
            "metric": published.metric,
            "published": {"value": published.value, "stderr": published.stderr, "n": published.n},
            "ours": self.ours.document() if self.ours else None,
            "difference": self.difference,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class PublishedComparison:
    """All published numbers of a recipe's models, with the corresponding results."""

    recipe: Recipe
    lines: tuple[ComparedNumber, ...]
    """One per published number and result; one without a result if there is none."""
    unpublished: tuple[Result, ...]
    """Results without published numbers in the recipe."""

    def notes(self) -> list[str]:
        """Return notes on missing comparisons and on the interpretation."""
        return [
            *self._data_notes(),
            *self._revision_notes(),
            *self._coverage_notes(),
            *self._interval_notes(),
            *self._selection_notes(),
        ]

    def document(self) -> dict[str, Any]:
        """Return the comparison as a JSON-serialisable dict."""
        return {"against": [line.document() for line in self.lines], "notes": self.notes()}

    def _data_notes(self) -> Iterator[str]:
        compared = [line for line in self.lines if line.result]
        for name in dict.fromkeys(data_of(line.result) for line in compared if line.result):
            data_lines = [line for line in compared if line.result and data_of(line.result) == name]
            numbers = f"on {name}; published on {self.recipe.data}"
            if not data_lines[0].same_data:
                hint = (
                    "" if name in SAMPLES else f", unless {name} is a copy (then use --data {name})"
                )
                yield f"{numbers}: different items{hint}; not a reproduction."
            elif any(line.verdict == "other items" for line in data_lines):
                yield f"{numbers}: the numbers of items differ; not a reproduction."

    def _revision_notes(self) -> Iterator[str]:
        for result, run in {
            id(line.result): (line.result, line.run) for line in self.lines
        }.values():
            revision = result.signature.get("revision") if result else None
            if revision and run.revision and revision != run.revision:
                yield f"{run.model}: revision {revision} instead of {run.revision} in the recipe."

    def _coverage_notes(self) -> Iterator[str]:
        missing_models = [line.run.model for line in self.lines if line.result is None]
        if missing_models:
            models = ", ".join(dict.fromkeys(missing_models))
            yield f"{len(missing_models)} published numbers have no result: {models}."
        n_not_computed = sum(line.verdict == "not computed" for line in self.lines)
        if n_not_computed:
            yield f"{n_not_computed} published numbers are not in the results of their models: not computed."
        if self.unpublished:
            models = ", ".join(dict.fromkeys(result.model for result in self.unpublished))
            yield f"{len(self.unpublished)} results have no published number: {models}."

    def _selection_notes(self) -> Iterator[str]:
        if any(line.ours and SELECTED_KEY in line.ours.extra for line in self.lines):
            yield SELECTED_REMARK

    def _interval_notes(self) -> Iterator[str]:
        compared = [line for line in self.lines if line.verdict in COMPARED_VERDICTS]
        if compared:
            units = [unit for line in compared if line.result and (unit := unit_of([line.result]))]
            unit = units[0] if units else CLUSTERS[DIALOGUES]
            yield (
                "inside, outside: whether the published number is in the 95 % interval of the result, "
                f"which is over {unit} or pairs, and Wilson's for accuracies."
            )
        for n in dict.fromkeys(
            line.ours.size for line in compared if _is_share(line) and line.ours
        ):
            yield (
                f"One question of {n} is {100 / n:.1f} points of accuracy; ± is the standard error "
                "sqrt(p(1-p)/(n-1)), for published numbers and results."
            )


def compare_with_published(
    results: Sequence[Result],
    recipe: Recipe,
    local_name: str | None = None,
    cluster: str = DIALOGUES,
) -> PublishedComparison:
    """Compare results with the published numbers of a recipe.

    A result corresponds to a run of the same model, task and options, as far as the run states them. Data
    match if their names are equal; a revision (``owner/name@revision``) may differ. Results on a folder of
    the recipe are compared with the runs on this folder only. `local_name`: another
    name of the recipe's data in results, such as the folder of a copy. Numbers over models are computed from
    the results on the recipe's data. cluster: column over whose clusters the intervals of results on
    dialogues are (`giccs.report.clustering.over_clusters`), which groups of items do not have.
    """
    results = _over_clusters(results, cluster)
    roots = [_repository(recipe.data), *([local_name] if local_name else [])]
    results = [*results, *_across_models(results, recipe, roots)]
    lines: list[ComparedNumber] = []
    used: set[int] = set()
    folders = {
        run.folder: {os.path.normpath(data_in(root, run.folder)) for root in roots}
        for run in recipe.runs
    }
    for run in recipe.runs:
        names = folders[run.folder]
        elsewhere = set[str]().union(*folders.values()) - names
        run_results = [
            result
            for result in results
            if _belongs(result, run)
            and _has_same_answers(result, run, recipe)
            and elsewhere.isdisjoint(_data_names(result))
        ]
        used |= set(map(id, run_results)) if run.published else set()
        for result in run_results:
            same_data = not names.isdisjoint(_data_names(result))
            lines += [
                ComparedNumber(run, published, result, same_data) for published in run.published
            ]
        if not run_results:
            lines += [ComparedNumber(run, published, None, False) for published in run.published]
    return PublishedComparison(
        recipe, tuple(lines), tuple(result for result in results if id(result) not in used)
    )


def _over_clusters(results: Sequence[Result], cluster: str) -> list[Result]:
    """Return results over clusters with all their groups; those of items have no interval."""
    reason = f"no interval over {CLUSTERS.get(cluster)} for a part of the items"
    with_groups = []
    for old, new in zip(results, over_clusters(results, cluster), strict=True):
        known = [group.by for group in new.groups]
        further = [
            replace(group, metrics=_without_intervals(group.metrics, reason))
            for group in old.groups
            if group.by not in known
        ]
        with_groups.append(replace(new, groups=(*new.groups, *further)))
    return with_groups


def _without_intervals(metrics: Mapping[str, Estimate], reason: str) -> dict[str, Estimate]:
    return {
        name: replace(estimate, low=math.nan, high=math.nan, reason=reason)
        for name, estimate in metrics.items()
    }


def _data_names(result: Result) -> set[str]:
    """Return the name of the data, with and without its revision and split."""
    return {os.path.normpath(name) for name in (data_of(result), _repository(data_of(result)))}


def _across_models(
    results: Sequence[Result], recipe: Recipe, roots: Sequence[str]
) -> Sequence[Result]:
    """Return the numbers over models that a recipe needs, as results of groups of models."""
    if all(run.task != ACROSS_MODELS for run in recipe.runs):
        return []
    folders = {run.folder for run in recipe.runs}
    names = {os.path.normpath(data_in(root, folder)) for root in roots for folder in folders}
    on_data = [result for result in results if not names.isdisjoint(_data_names(result))]
    across: Sequence[Result] = import_module(ACROSS_MODELS_MODULE).results_across_models(
        on_data, recipe.data
    )
    return across


def _belongs(result: Result, run: Run) -> bool:
    history = run.options.get("history")
    same_history = history in (None, "both", history_of(result)) or history_of(result) == "both"
    same_task = (result.model, result.task) == (canonical_name(run.model), run.task)
    return same_task and same_history and _has_same_options(result, run)


def _has_same_answers(result: Result, run: Run, recipe: Recipe) -> bool:
    """Return whether a training used the file of answers that the run names, or one that no run names."""
    file = str(result.environment.get(ANSWERS_KEY, ""))
    return run.task != TRAINING or run.answers == recipe.answers_of(file)


def _has_same_options(result: Result, run: Run) -> bool:
    """Return whether a result has the options of a run, with defaults for options that it does not state.

    Seeds may differ, and files of answers are not distinguished here. Results on dialogues record their
    options elsewhere: in the history, and in their names.
    """
    result_options = result.signature.get("asked") or result.signature.get("settings") or {}
    run_options = dict(run.all_options())
    run_options["similarity"] = run_options.get("similarity") or DEFAULT_SIMILARITY
    return all(
        bool(value) is bool(run_options[name]) if name == "answers" else value == run_options[name]
        for name, value in result_options.items()
        if name not in ("model", "revision", "seeds")
    )


def _repository(data: str) -> str:
    """Return the name of a data set without its revision and split."""
    return data.partition("@")[0].partition(" (")[0]


def _as_text(part: Any) -> dict[str, str]:
    """Return attributes as text, so that 3 in TOML equals "3" from other sources."""
    return {str(name): str(value) for name, value in part}


def _is_share(line: ComparedNumber) -> bool:
    return line.published.metric.startswith("accuracy")


def published_table(comparison: PublishedComparison, style: TableStyle | str = "table") -> str:
    """Return one table per data set with one row per published number, and the notes; ``csv`` is one long
    table.

    style: a `TableStyle`, or a format of `bws.base.tables.FORMATS`.
    """
    style = TableStyle(style) if isinstance(style, str) else style
    if style.form == "csv":
        return published_csv(comparison)
    recipe = comparison.recipe
    head = [heading(f"Against {recipe.title or recipe.file}", style.form)]
    head += remarks([recipe.source], style.form) if recipe.source else []
    compared = [line for line in comparison.lines if line.result]
    columns = [Column(title.partition(" ")[0], title) for title in HEADERS]
    tables = []
    for data in dict.fromkeys(data_of(line.result) for line in compared if line.result):
        rows = [_row(line) for line in compared if line.result and data_of(line.result) == data]
        tables.append(ResultTable(columns, rows, title=f"ours on {data}"))
    notes = [*comparison.notes(), *few_clusters_note(line.ours for line in compared)]
    parts = ["\n".join(head), rendered(tables, style), "\n".join(remarks(notes, style.form))]
    return "\n\n".join(filter(None, parts))


def with_names(comparison: PublishedComparison, names: Mapping[str, str]) -> PublishedComparison:
    """Return the comparison with other names of models."""
    lines = [
        replace(line, run=replace(line.run, model=names.get(line.run.model, line.run.model)))
        for line in comparison.lines
    ]
    results = [
        replace(each, model=names.get(each.model, each.model)) for each in comparison.unpublished
    ]
    return replace(comparison, lines=tuple(lines), unpublished=tuple(results))


def published_csv(comparison: PublishedComparison) -> str:
    """Return one row per published number as CSV, including those without a result."""
    return csv_text(map(_values, comparison.lines), COLUMNS)


def _row(line: ComparedNumber) -> list[str]:
    part = ", ".join(f"{name}={value}" for name, value in line.published.by.items())
    difference = "" if math.isnan(line.difference) else f"{line.difference:+.3f}"
    labels = [_model(line), line.run.task, part, line.published.metric]
    return [*labels, _published_cell(line), _own_cell(line), difference, line.verdict]


def _model(line: ComparedNumber) -> str:
    if line.result is None or not line.run.options.keys() - {"history"}:
        setting = prompt_of(line.result) if line.result else ""
    else:
        setting = setting_of(line.result)
    return f"{line.run.model} ({setting})" if setting else line.run.model


def _published_cell(line: ComparedNumber) -> str:
    stderr = line.published.stderr
    return f"{line.published.value:.3f}" + ("" if stderr is None else f" ± {stderr:.3f}")


def _own_cell(line: ComparedNumber) -> str:
    if line.ours is None:
        return "not computed"
    if "stderr" not in line.ours.extra:
        return interval(line.ours)
    return f"{plus_minus(line.ours)} {limits(line.ours)}"


def _values(line: ComparedNumber) -> list[object]:
    document, published = line.document(), line.published
    ours = document["ours"] or {}
    numbers = [number(ours.get(name, math.nan)) for name in ("value", "low", "high")]
    return [
        *(document[name] or "" for name in ("model", "task", "data", "prompt")),
        ";".join(f"{name}={value}" for name, value in published.by.items()),
        published.metric,
        number(published.value),
        "" if published.stderr is None else number(published.stderr),
        *numbers,
        ours.get("n", ""),
        number(line.difference),
        line.verdict,
    ]
