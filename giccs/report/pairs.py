"""Tables of pairwise STS: correlations with the noise ceiling, and breakdowns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bws.base.notes import note
from bws.base.tables import Cell, Column, ResultTable, keyed_columns, part_name
from bws.stats.estimates import Estimate
from giccs.measures.clusters import CLUSTERS, DIALOGUES
from giccs.measures.formatting import few_clusters_note, other_reasons
from giccs.measures.results import (
    Limits,
    Result,
    condition_of,
    history_of,
    model_of,
    postprocess_warnings,
)
from giccs.models.vocabulary import TokenCounts
from giccs.report.clustering import domain_notes, population_note, unit_of
from giccs.report.metric_titles import metric_title
from giccs.report.setting_effects import history_table, prompt_table

METRICS = ("pearson", "spearman", "rank_spearman")
"""The metrics of the leaderboard, in the order of its columns."""
ORDER_METRICS = ("spearman_target_first", "spearman_candidate_first", "order_difference")
ORDER_NOTE = note(
    "Spearman ρ per order is that of the predictions with one order of the texts; the other tables are about "
    "the mean of both. The rank difference is the mean difference of an item's ranks in the two orders, "
    "divided by the number of items: 0 if the order does not matter, about 0.33 if they are independent."
)
BREAKDOWN_METRIC = "spearman"
MAX_BREAKDOWN_MODELS = 4
"""Largest number of results with a column in a table by group; JSON and CSV have all."""
CEILING_LABEL = "noise ceiling"
"""Label of the ceiling in the column of models."""
LIMIT_LABELS = {
    "absolute_ceiling": CEILING_LABEL,
    "ipsative_limit": "ipsative limit",
}
"""Name of a row of `giccs.measures.absolute_ceiling.Limits` -> its label; the ceiling has the others."""
LIMIT_NOTES = {
    "within_ceiling": note(
        "The noise ceiling within dialogues is the mean correlation of the scores with draws from the model "
        "of the anchors."
    ),
    "absolute_ceiling": note(
        "The noise ceiling of absolute scores is their correlation with draws from the model of the anchors."
    ),
    "ipsative_limit": note(
        "The ipsative limit is what a model reaches over all items that knows the absolute similarity, "
        "because the scores of every dialogue have the same mean."
    ),
}
NO_LIMITS: Limits = {}
OVER_ANNOTATORS_TITLE = "Intervals over {unit} and annotators"


def pairwise_tables(
    results: Sequence[Result],
    ceiling: Mapping[str, Estimate],
    over_annotators: Sequence[Result] = (),
    limits: Limits = NO_LIMITS,
) -> list[ResultTable]:
    """Return the tables of one data set with notes on missing values, the ceiling and the limits."""
    tables = [main_table(results, ceiling, limits=limits)]
    if over_annotators:
        title = OVER_ANNOTATORS_TITLE.format(unit=unit_of(results))
        tables.append(replace(main_table(over_annotators), title=title))
    if orders := order_table(results):
        tables.append(orders)
    effects = [history_table(results), prompt_table(results)]
    tables += filter(None, effects)
    if subsets := breakdown_table(results):
        tables.append(subsets)
    all_results = [*results, *over_annotators]
    estimates = [
        *ceiling.values(),
        *(estimate for result in all_results for estimate in _estimates(result)),
    ]
    reasons = dict.fromkeys(_reasons(all_results))
    order_notes = [ORDER_NOTE] if order_table(results) else []
    effect_notes = [remark for table in effects if table for remark in table.notes]
    further = []
    if over_annotators:
        further.append(note("those over annotators, also to other annotators"))
    if ceiling and unit_of(results) != CLUSTERS[DIALOGUES]:
        further.append(note("that of the noise ceiling, to other dialogues of the same domains"))
    notes = [
        *_ceiling_remarks(ceiling), *limit_notes(limits), *order_notes, *effect_notes, *reasons,
        *few_clusters_note(estimates), population_note(results, further), *domain_notes(results),
    ]  # fmt: skip
    return [replace(table, notes=notes) for table in tables]


def best_models_notes(total: int) -> list[str]:
    """Return that a table by group has columns of the best results only, if there are more."""
    if total <= MAX_BREAKDOWN_MODELS:
        return []
    remark = note(
        "by group: the best {n:d} of {total:d} results; JSON and CSV have all",
        n=MAX_BREAKDOWN_MODELS,
        total=total,
    )
    return [remark]


def main_table(
    results: Sequence[Result],
    ceiling: Mapping[str, Estimate] | None = None,
    models: Sequence[str] = (),
    sources: Sequence[str] = (),
    limits: Limits = NO_LIMITS,
) -> ResultTable:
    """Return one row per result, best Spearman first: metrics with 95 % intervals; the ceiling is last.

    models: names of the results' models, by default those in the results. sources: JSON Pointer of each
    result's metrics; that of the ceiling is ``/ceiling``. limits: further rows below the ceiling, whose JSON
    Pointers are their names.
    """
    names = [name for name in METRICS if any(name in result.metrics for result in results)]
    order = sorted(range(len(results)), key=lambda index: _sort_key(results[index]))
    rows: list[Sequence[Cell]] = [
        [
            models[index] if models else model_of(results[index]),
            history_of(results[index]),
            *(results[index].metrics[name] for name in names),
            results[index].metrics[BREAKDOWN_METRIC].size,
        ]
        for index in order
    ]
    references = {"ceiling": ceiling or {}} | {name: limits.get(name, {}) for name in LIMIT_LABELS}
    references = {name: estimates for name, estimates in references.items() if estimates}
    for name, estimates in references.items():
        label = LIMIT_LABELS.get(name, CEILING_LABEL)
        n = estimates[BREAKDOWN_METRIC].size
        rows.append([label, "", *(estimates.get(metric) for metric in names), n])
    columns = [
        Column("model", "model"),
        Column("history", "history"),
        *(
            Column(name, f"{metric_title(name)} [95 %]", ".3f", source=name, best="max")
            for name in names
        ),
        Column("items", "items", source=f"{BREAKDOWN_METRIC}/n"),
    ]
    row_sources = [sources[index] for index in order] if sources else []
    return ResultTable(
        columns,
        rows,
        sources=[*row_sources, *(f"/{name}" for name in references if sources)],
        reference_rows=len(references),
        families=[condition_of(history_of(results[index])) for index in order],
    )


def order_table(
    results: Sequence[Result], models: Sequence[str] = (), sources: Sequence[str] = ()
) -> ResultTable | None:
    """Return the correlations per order of the texts, best Spearman first; None without such models.

    models, sources: as in `main_table`.
    """
    order = sorted(
        (n for n, result in enumerate(results) if "order_difference" in result.metrics),
        key=lambda index: _sort_key(results[index]),
    )
    rows: list[Sequence[Cell]] = [
        [
            models[index] if models else model_of(results[index]),
            history_of(results[index]),
            *(results[index].metrics[name] for name in ORDER_METRICS),
        ]
        for index in order
    ]
    columns = [Column("model", "model"), Column("history", "history")]
    columns += [
        Column(name, f"{metric_title(name)} [95 %]", ".3f", source=name) for name in ORDER_METRICS
    ]
    row_sources = [sources[index] for index in order] if sources else []
    if not rows:
        return None
    return ResultTable(columns, rows, title="Order of the texts", sources=row_sources)


def breakdown_table(
    results: Sequence[Result], models: Sequence[str] = (), sources: Sequence[str] = ()
) -> ResultTable | None:
    """Return Spearman's rho by group (rows) and model (columns); None without groups.

    models: as in `main_table`. sources: JSON Pointer of each result. Of many results, the best
    `MAX_BREAKDOWN_MODELS` have a column.
    """
    order = sorted(range(len(results)), key=lambda index: _sort_key(results[index]))
    order = order[:MAX_BREAKDOWN_MODELS]
    groups = {
        (index, tuple(group.by.items())): (n, group.metrics[BREAKDOWN_METRIC])
        for index in order
        for n, group in enumerate(results[index].groups)
        if BREAKDOWN_METRIC in group.metrics
    }
    if not groups:
        return None
    parts = list(dict.fromkeys(part for _, part in groups))
    cells = [[groups.get((index, part), (0, None)) for index in order] for part in parts]
    rows: list[Sequence[Cell]] = [
        [
            dict(part) if sources else part_name(dict(part)),
            max(estimate.size for _, estimate in line if estimate),
            *(estimate for _, estimate in line),
        ]
        for part, line in zip(parts, cells, strict=True)
    ]
    titles = [
        _with_history(models[index] if models else model_of(results[index]), results[index])
        for index in order
    ]
    columns = [Column("subset", "subset"), Column("items", "items")]
    columns += [
        replace(column, family=condition_of(history_of(results[index])), source=BREAKDOWN_METRIC)
        for column, index in zip(keyed_columns(titles, ".2f", best="max"), order, strict=True)
    ]
    cell_sources = [
        ["", "", *(f"{sources[i]}/groups/{n}/metrics" for i, (n, _) in zip(order, line, strict=True))]
        for line in cells if sources
    ]  # fmt: skip
    title = f"{metric_title(BREAKDOWN_METRIC)} by group"
    return ResultTable(
        columns, rows, title=title, compares_rows=True, sources=cell_sources,
        introduction=best_models_notes(len(results)),
    )  # fmt: skip


def _estimates(result: Result) -> list[Estimate]:
    """Return all estimates in the tables."""
    parts = [group.metrics.get(BREAKDOWN_METRIC) for group in result.groups]
    return [*result.metrics.values(), *filter(None, parts)]


def _sort_key(result: Result) -> tuple[float, str, str]:
    value = result.metrics[BREAKDOWN_METRIC].value
    return (math.inf if math.isnan(value) else -value, model_of(result), history_of(result))


def _with_history(model: str, result: Result) -> str:
    if result.signature.get("history") != "with":
        return model
    encoding = result.signature.get("history_encoding")
    return f"{model} (with history{f', {encoding}' if encoding else ''})"


def limit_notes(limits: Limits) -> list[str]:
    """Return what the rows of limits are."""
    return [text for name, text in LIMIT_NOTES.items() if limits.get(name)]


def _ceiling_remarks(ceiling: Mapping[str, Estimate]) -> list[str]:
    from giccs.measures.ceiling import explain_ceiling

    lines = [
        f"{CEILING_LABEL}: {metric_title(name)}: {other_reasons(estimate)}"
        for name, estimate in ceiling.items()
        if other_reasons(estimate)
    ]
    defined = {
        name: estimate
        for name, estimate in ceiling.items()
        if not math.isnan(estimate.extra.get("reliability", math.nan))
    }
    if defined:
        sentence, *more = explain_ceiling(defined)
        shares = ", ".join(
            f"{estimate.extra['reliability']:.3f} ({metric_title(name)})"
            for name, estimate in defined.items()
        )
        lines += [
            f"{sentence} Their reliability is {shares}; the ceiling is its square root.",
            *more,
        ]
    return lines


def _reasons(results: Sequence[Result]) -> list[str]:
    """Return one line per missing number or exclusion in the main table."""
    return [
        f"{model_of(result)}: {metric_title(name)}: {other_reasons(estimate)}"
        for result in results
        for name, estimate in result.metrics.items()
        if other_reasons(estimate)
    ] + [
        f"{model_of(result)}: {warning}"
        for result in results
        for warning in result_warnings(result)
    ]


def result_warnings(result: Result) -> list[str]:
    """Return warnings of steps that could only be fitted partly, and of inputs that are too long."""
    warning = TokenCounts(**result.environment.get("tokens", {})).length_warning()
    history = f"history {history_of(result)}: " if history_of(result) else ""
    return postprocess_warnings(result) + ([f"{history}{warning}"] if warning else [])
