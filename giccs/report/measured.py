"""Results of any other task as tables: every metric with its interval, then the parts of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bws.tables import heading, part_name, remarks, tabulated
from giccs.measures.formatting import few_clusters_note, interval, other_reasons
from giccs.measures.metrics import LOWER_IS_BETTER, SELECTED, Estimate
from giccs.measures.results import Result, model_of, setting_of, steps_not_as_asked

__all__ = ["measured"]

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


def measured(results: Sequence[Result], form: str, main: str = "") -> list[str]:
    """Return the tables of one task and data set: a row per model and setting, best first.

    main: the metric that ranks the models; empty for the first one.
    """
    main = main or next(iter(results[0].metrics))
    ordered = sorted(results, key=lambda result: _best_first(result, main))
    parts = [_metrics_table(ordered, form)]
    if broken_down := _parts_table(ordered, main, form):
        subtitle = f"{TITLES.get(main, main)} by part of the data"
        parts += [f"\n{heading(subtitle, form)}\n", broken_down]
    estimates = [one for result in ordered for one in result.metrics.values()]
    estimates += [g.metrics[main] for result in ordered for g in result.groups if main in g.metrics]
    said = [*_reasons(ordered, main), *few_clusters_note(estimates), *_of_ties(ordered, main)]
    return [*parts, "", *remarks(said, form)] if said else parts


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
    of_sets = any("set" in group.by for result in results for group in result.groups)
    return tabulated(rows, ["model", "setting", *titles, "sets" if of_sets else "n"], form)


def _parts_table(results: Sequence[Result], main: str, form: str) -> str:
    """Return the main metric by part of the data and model, whichever way is narrower; empty without parts.

    Where models have a part's number of different n, the smaller n stand beside their numbers.
    """
    cells: dict[str, dict[int, Estimate]] = {}
    for place, result in enumerate(results):
        for group in result.groups:
            if main in group.metrics:
                cells.setdefault(part_name(group.by), {})[place] = group.metrics[main]
    if not cells:
        return ""
    size = {part: max(one.n for one in found.values()) for part, found in cells.items()}
    rows = [
        [_cell(found.get(place), 2, size[part]) for place in range(len(results))]
        for part, found in cells.items()
    ]
    models = [_column(result) for result in results]
    down = [[part, size[part], *row] for part, row in zip(cells, rows, strict=True)]
    across = [
        [model, *column] for model, column in zip(models, zip(*rows, strict=True), strict=True)
    ]
    return min(
        tabulated(down, ["part", "n", *models], form),
        tabulated(across, ["model", *(f"{part} (n={size[part]})" for part in cells)], form),
        key=lambda table: max(map(len, table.splitlines())),
    )


def _column(result: Result) -> str:
    return f"{model_of(result)} ({setting_of(result)})" if setting_of(result) else model_of(result)


def _cell(estimate: Estimate | None, decimals: int = 3, n: int | None = None) -> str:
    """Return a number with its interval; where it is a mean over seeds, their standard deviation too.

    n: on how much it usually rests; a number that rests on less has its own beside it.
    """
    if estimate is None:
        return ""
    sd = estimate.extra.get("sd")
    shown = interval(estimate, decimals) + ("" if sd is None else f", SD {sd:.{decimals}f}")
    return shown if n is None or estimate.n == n else f"{shown} n={estimate.n}"


def _best_first(result: Result, main: str) -> tuple[float, str, str]:
    value = _value(result.metrics, main)
    order = value if main in LOWER_IS_BETTER else -value
    return (math.inf if math.isnan(value) else order, model_of(result), setting_of(result))


def _value(metrics: Mapping[str, Estimate], name: str) -> float:
    return metrics[name].value if name in metrics else math.nan


def _reasons(results: Sequence[Result], main: str) -> list[str]:
    """Return a line a result and reason: which numbers are missing or leave something out.

    Of the parts of the data only those are named that have no number or a mark.
    """
    said: dict[tuple[str, str], list[str]] = {}
    for result in results:
        whole = [(TITLES.get(name, name), one) for name, one in result.metrics.items()]
        parts = [(part_name(group.by), group.metrics.get(main)) for group in result.groups]
        lost = [
            (part, one)
            for part, one in parts
            if one and (math.isnan(one.value) or SELECTED in one.extra)
        ]
        for what, one in [*whole, *lost]:
            if reason := other_reasons(one):
                said.setdefault((_column(result), reason), []).append(what)
    lines = [f"{model}: {', '.join(whats)}: {reason}" for (model, reason), whats in said.items()]
    steps = [(_column(result), step) for result in results for step in steps_not_as_asked(result)]
    return lines + [f"{model}: {step}" for model, step in steps]


def _of_ties(results: Sequence[Result], main: str) -> Iterator[str]:
    """Say what becomes of a number when all ties, which count for it, are counted against it."""
    for result in results:
        found = result.metrics[main]
        if ties := found.extra.get("ties") if "pessimistic" in found.extra else 0:
            against = f"{TITLES.get(main, main)} with all of them against it {found.extra['pessimistic']:.3f}"
            yield f"{_column(result)}: {ties} of {found.n} have ties; {against}"
        if copies := result.environment.get("own_copy_above"):
            yield f"{_column(result)}: {copies} positives stand below their own copy"
