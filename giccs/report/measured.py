"""Tables of results of other tasks: all metrics with intervals, followed by breakdowns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bws.tables import heading, part_name, remarks, tabulated
from giccs.measures.formatting import few_clusters_note, interval, other_reasons
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS, SELECTED_KEY, Estimate
from giccs.measures.results import Result, model_of, postprocess_warnings, setting_of

__all__ = ["metric_sections"]

TITLES = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "pair_accuracy": "pairs in order",
    "invalid": "invalid answers",
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "mean_rank": "mean rank",
}


def metric_sections(results: Sequence[Result], form: str, main_metric: str = "") -> list[str]:
    """Return the tables of one task and data set: one row per model and setting, best first.

    main_metric: the metric that ranks the models; empty for the first one.
    """
    main_metric = main_metric or next(iter(results[0].metrics))
    ordered = sorted(results, key=lambda result: _sort_key(result, main_metric))
    sections = [_metrics_table(ordered, form)]
    if parts_table := _parts_table(ordered, main_metric, form):
        subtitle = f"{TITLES.get(main_metric, main_metric)} by group"
        sections += [f"\n{heading(subtitle, form)}\n", parts_table]
    estimates = [estimate for result in ordered for estimate in result.metrics.values()]
    estimates += [
        g.metrics[main_metric]
        for result in ordered
        for g in result.groups
        if main_metric in g.metrics
    ]
    remark_lines = [
        *_reasons(ordered, main_metric),
        *few_clusters_note(estimates),
        *_tie_remarks(ordered, main_metric),
    ]
    return [*sections, "", *remarks(remark_lines, form)] if remark_lines else sections


def _metrics_table(results: Sequence[Result], form: str) -> str:
    names = list(dict.fromkeys(name for result in results for name in result.metrics))
    rows = [
        [
            model_of(result),
            setting_of(result),
            *(_cell(result.metrics.get(name)) for name in names),
            max(estimate.n for estimate in result.metrics.values()),
        ]
        for result in results
    ]
    titles = [f"{TITLES.get(name, name)} [95 %]" for name in names]
    has_sets = any("set" in group.by for result in results for group in result.groups)
    return tabulated(rows, ["model", "setting", *titles, "sets" if has_sets else "n"], form)


def _parts_table(results: Sequence[Result], main_metric: str, form: str) -> str:
    """Return the main metric by group and model, in the narrower orientation; empty without groups.

    If models have different n for a group, the smaller n are shown with their numbers.
    """
    cells: dict[str, dict[int, Estimate]] = {}
    for index, result in enumerate(results):
        for group in result.groups:
            if main_metric in group.metrics:
                cells.setdefault(part_name(group.by), {})[index] = group.metrics[main_metric]
    if not cells:
        return ""
    size = {
        part: max(estimate.n for estimate in estimates.values())
        for part, estimates in cells.items()
    }
    rows = [
        [_cell(estimates.get(index), 2, size[part]) for index in range(len(results))]
        for part, estimates in cells.items()
    ]
    models = [_column_title(result) for result in results]
    part_rows = [[part, size[part], *row] for part, row in zip(cells, rows, strict=True)]
    model_rows = [
        [model, *column] for model, column in zip(models, zip(*rows, strict=True), strict=True)
    ]
    return min(
        tabulated(part_rows, ["part", "n", *models], form),
        tabulated(model_rows, ["model", *(f"{part} (n={size[part]})" for part in cells)], form),
        key=lambda table: max(map(len, table.splitlines())),
    )


def _column_title(result: Result) -> str:
    return f"{model_of(result)} ({setting_of(result)})" if setting_of(result) else model_of(result)


def _cell(estimate: Estimate | None, decimals: int = 3, n: int | None = None) -> str:
    """Return a number with its interval, and for a mean over seeds with their standard deviation.

    n: the usual sample size; a number with a smaller one shows it.
    """
    if estimate is None:
        return ""
    sd = estimate.extra.get("sd")
    text = interval(estimate, decimals) + ("" if sd is None else f", SD {sd:.{decimals}f}")
    return text if n is None or estimate.n == n else f"{text} n={estimate.n}"


def _sort_key(result: Result, main_metric: str) -> tuple[float, str, str]:
    value = _value(result.metrics, main_metric)
    order = value if main_metric in LOWER_IS_BETTER_METRICS else -value
    return (math.inf if math.isnan(value) else order, model_of(result), setting_of(result))


def _value(metrics: Mapping[str, Estimate], name: str) -> float:
    return metrics[name].value if name in metrics else math.nan


def _reasons(results: Sequence[Result], main_metric: str) -> list[str]:
    """Return one line per result and reason for missing numbers and exclusions.

    For breakdowns, only groups without a number or with a mark are listed.
    """
    names_of_reason: dict[tuple[str, str], list[str]] = {}
    for result in results:
        overall = [(TITLES.get(name, name), estimate) for name, estimate in result.metrics.items()]
        parts = [(part_name(group.by), group.metrics.get(main_metric)) for group in result.groups]
        remarkable_parts = [
            (part, estimate)
            for part, estimate in parts
            if estimate and (math.isnan(estimate.value) or SELECTED_KEY in estimate.extra)
        ]
        for name, estimate in [*overall, *remarkable_parts]:
            if reason := other_reasons(estimate):
                names_of_reason.setdefault((_column_title(result), reason), []).append(name)
    lines = [
        f"{model}: {', '.join(names)}: {reason}"
        for (model, reason), names in names_of_reason.items()
    ]
    steps = [
        (_column_title(result), step) for result in results for step in postprocess_warnings(result)
    ]
    return lines + [f"{model}: {step}" for model, step in steps]


def _tie_remarks(results: Sequence[Result], main_metric: str) -> Iterator[str]:
    """Yield remarks on the value of a metric if all ties were counted against it."""
    for result in results:
        estimate = result.metrics[main_metric]
        if ties := estimate.extra.get("ties") if "pessimistic" in estimate.extra else 0:
            value = estimate.extra["pessimistic"]
            title = TITLES.get(main_metric, main_metric)
            pessimistic = f"{title} with all ties counted against it: {value:.3f}"
            yield f"{_column_title(result)}: {ties} of {estimate.n} have ties; {pessimistic}"
        if copies := result.environment.get("own_copy_above"):
            yield f"{_column_title(result)}: {copies} positives rank below their own copy"
