"""Tables of what the history and the prompts of encoders change in pairwise STS, with paired intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from bws.base.notes import note
from bws.base.progress import tracked
from bws.base.tables import Cell, Column, ResultTable
from bws.stats.estimates import Estimate
from giccs.measures.comparison import paired_correlations
from giccs.measures.results import (
    Result,
    comparison_key,
    data_of,
    digest,
    history_of,
    model_of,
    prompt_name_of,
    variant_of,
)
from giccs.report.clustering import clusters_of

METRIC = "spearman"
METRICS = (METRIC, "rank_spearman")
HISTORY_FIELDS = ("history", "history_encoding", "template")
"""Fields of a pairwise signature that depend on the history condition."""
NO_PROMPT = "none"


def history_pairs(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Return the pairs (with history, without history) of results that are otherwise equal."""
    return [
        (result, without)
        for group in _groups(results, HISTORY_FIELDS)
        for without in group
        if history_of(without) == "without"
        for result in group
        if result is not without
    ]


def history_table(results: Sequence[Result]) -> ResultTable | None:
    """Return the differences that the history makes, one row per model and encoding of the history.

    Differences are paired by item, with the interval of `paired_correlations`: dialogues are independent,
    items of a dialogue are not. Differences without an interval are in the notes. None if there are no
    others.
    """
    rows: list[Sequence[Cell]] = []
    notes = [
        note(
            "Effect of the history: Spearman ρ with history minus that without, of the same items; the "
            "intervals are paired, by omitting dialogues (jackknife)."
        )
    ]
    pairs = sorted(history_pairs(_defined(results)), key=_best_without_history)
    for result, without in tracked(pairs, "effects of the history", len(pairs)):
        difference, within = map(paired_difference(result, without).get, METRICS)
        values = [each.metrics[METRIC].value for each in (without, result)]
        if difference is None or math.isnan(difference.low):
            reason = difference.reason if difference else note("predictions are missing")
            remark = note("no difference: {reason}", reason=reason)
            notes.append(f"{model_of(result)}, {history_of(result)}: {remark}")
        else:
            rows.append([model_of(result), history_of(result), *values, difference, within])
    columns = [
        Column("model", "model"),
        Column("history", "history"),
        Column("without", "ρ without", ".3f", source="without"),
        Column("with", "ρ with", ".3f", source="with"),
        Column("difference", "difference [95 %]", "+.3f", source="difference"),
        Column(
            "within_difference",
            "ρ within dialogues, difference [95 %]",
            "+.3f",
            source="within_difference",
        ),
    ]
    return ResultTable(columns, rows, notes, title="Effect of the history") if rows else None


def _best_without_history(pair: tuple[Result, Result]) -> tuple[float, str, float]:
    with_history, without = (-result.metrics[METRIC].value for result in pair)
    return without, model_of(pair[1]), with_history


@dataclass(frozen=True)
class _Prompts:
    """The results of a model with its prompts, under one history condition."""

    results: Sequence[Result]
    """Lowest correlation first."""

    @property
    def values(self) -> list[float]:
        return [result.metrics[METRIC].value for result in self.results]

    @property
    def model(self) -> str:
        return variant_of(self.results[0])

    @property
    def range(self) -> tuple[float, float]:
        return self.values[0], self.values[-1]


def prompt_table(results: Sequence[Result]) -> ResultTable | None:
    """Return minimum, median and maximum over the prompts of each model, and the ranks that they allow.

    A rank is that among the models of the table under the same history condition, if each may have any of its
    prompts. Results without a correlation are excluded. None if no model has several prompts.
    """
    groups = [
        _Prompts(sorted(group, key=lambda result: result.metrics[METRIC].value))
        for group in _groups(_defined(results), ("prompt",))
    ]
    rows: list[Sequence[Cell]] = []
    notes = [
        note(
            "Sensitivity to prompts: ranks are those that a model can have if each model may have any of its "
            "prompts. The interval of maximum - minimum is paired, by omitting dialogues (jackknife); it "
            "does not account for the selection of the two prompts, and is therefore too far from 0."
        )
    ]
    histories = {history_of(group.results[0]) for group in groups}
    for history in sorted(histories, key=lambda name: (name != "without", name)):
        models = [group for group in groups if history_of(group.results[0]) == history]
        if all(len(group.results) == 1 for group in models):
            continue
        models.sort(key=lambda group: -median(group.values))
        rows += [_prompt_row(group, models) for group in tracked(models, "prompts", len(models))]
        notes += [f"{history} history: {sentence}" for sentence in _order_sentences(models)]
    columns = [
        Column("model", "model"),
        Column("history", "history"),
        Column("prompts", "prompts"),
        *(
            Column(name, f"{name} ρ", ".3f", source=name)
            for name in ("minimum", "median", "maximum")
        ),
        Column("range", "maximum - minimum [95 %]", ".3f", source="range"),
        Column("lowest", "lowest"),
        Column("highest", "highest"),
        Column("ranks", "ranks"),
    ]
    return ResultTable(columns, rows, notes, title="Sensitivity to prompts") if rows else None


def _prompt_row(group: _Prompts, models: Sequence[_Prompts]) -> list[Cell]:
    first, last = group.results[0], group.results[-1]
    low, high = _possible_ranks(group, models)
    is_single = first is last
    return [
        group.model,
        history_of(first),
        len(group.results),
        first.metrics[METRIC].value,
        median(group.values),
        last.metrics[METRIC].value,
        None if is_single else paired_difference(last, first).get(METRIC),
        _prompt_label(first),
        "" if is_single else _prompt_label(last),
        str(low) if low == high else f"{low}–{high}",
    ]


def _possible_ranks(group: _Prompts, models: Sequence[_Prompts]) -> tuple[int, int]:
    """Return the highest and the lowest rank of a model, 1 for the best."""
    others = [other.range for other in models if other is not group]
    low, high = group.range
    always_better = sum(other_low > high for other_low, _ in others)
    sometimes_better = sum(other_high > low for _, other_high in others)
    return 1 + always_better, 1 + sometimes_better


def _order_sentences(models: Sequence[_Prompts]) -> Iterator[str]:
    """Yield whether and how far the prompts change the order of the models."""
    pairs = list(combinations(models, 2))
    if not pairs:
        yield note("one model, so that prompts change no order")
        return
    changing = [
        (first, second)
        for first, second in pairs
        if first.range[0] < second.range[1] and second.range[0] < first.range[1]
    ]
    firsts = [group.model for group in models if _possible_ranks(group, models)[0] == 1]
    if not changing:
        yield note(
            "prompts change the order of none of {total:d} pairs of models; the first is {model}",
            total=len(pairs),
            model=firsts[0],
        )
        return
    names = "; ".join(f"{first.model} and {second.model}" for first, second in changing)
    changes = note(
        "prompts change the order of {n:d} of {total:d} pairs of models",
        n=len(changing),
        total=len(pairs),
    )
    yield f"{changes} ({names})"
    if len(firsts) == 1:
        yield note("the first place is that of {model}", model=firsts[0])
    else:
        models_text = " or ".join(firsts)
        yield note("the first place is that of {models}, by prompt", models=models_text)
    shifts = [high - low for low, high in (_possible_ranks(group, models) for group in models)]
    yield note(
        "a model's rank changes by up to {n:d} of {most:d}", n=max(shifts), most=len(models) - 1
    )


def _prompt_label(result: Result) -> str:
    return prompt_name_of(result) or NO_PROMPT


def paired_difference(first: Result, second: Result) -> Mapping[str, Estimate]:
    """Return the differences of correlations of two results on the same items; empty without predictions."""
    first_table, second_table = first.predictions, second.predictions
    if first_table is None or second_table is None:
        return {}
    joined = first_table.join(
        second_table.select("item_id", other="prediction"), on="item_id", maintain_order="left"
    )
    dialogue = (joined["dialogue_id"].rank("dense") - 1).to_numpy().astype(np.intp)
    first_values, second_values, score = (
        joined[name].to_numpy() for name in ("prediction", "other", "score")
    )
    ids = np.unique(joined["dialogue_id"].to_numpy())
    clusters = clusters_of(first, ids.tolist())
    return paired_correlations(first_values, second_values, score, dialogue, clusters=clusters)


EFFECT_TABLES = {"history_effects": history_table, "prompts": prompt_table}
"""Key of the rows of a table in JSON -> the table of the results of one task and data set."""


def effects_document(results: Sequence[Result]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of both tables per task and data set, for JSON; empty without such results."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if METRIC in result.metrics:
            groups.setdefault(comparison_key(result), []).append(result)
    document: dict[str, list[dict[str, Any]]] = {}
    for group in groups.values():
        for name, table in EFFECT_TABLES.items():
            if effects := table(group):
                task, content = comparison_key(group[0])
                labels = {"task": task, "data": data_of(group[0]), "content": content}
                document.setdefault(name, []).extend(
                    labels | _row_document(effects, row) for row in effects.rows
                )
    return document


def _row_document(table: ResultTable, row: Sequence[Cell]) -> dict[str, Any]:
    return {
        column.key: cell.document() if isinstance(cell, Estimate) else cell
        for column, cell in zip(table.columns, row, strict=True)
    }


def _defined(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if not math.isnan(result.metrics[METRIC].value)]


def _groups(results: Sequence[Result], fields: Sequence[str]) -> list[list[Result]]:
    """Return the results whose signatures are equal except for some fields, in order of appearance."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(setting_key(result, fields), []).append(result)
    return list(groups.values())


def setting_key(result: Result, fields: Sequence[str]) -> str:
    """Return the digest of a signature without some fields."""
    return digest({name: value for name, value in result.signature.items() if name not in fields})
