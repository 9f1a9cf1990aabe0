"""Results as tables: for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from giccs.metrics import Estimate
from giccs.results import Result

__all__ = [
    "FORMATS",
    "breakdown_table",
    "choice_breakdown",
    "choice_table",
    "long_csv",
    "main_table",
    "report",
]

FORMATS = {"table": "simple", "markdown": "github", "latex": "latex_booktabs"}
"""Our name of a format -> tabulate's; csv has a writer of its own."""
TITLES = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "rank_spearman": "ρ inside dialogues",
}
BROKEN_DOWN = "spearman"
SIGNIFICANT = 0.05
CHOICE_TITLES = {
    "accuracy": "accuracy ± SE [95 %]",
    "accuracy_tokens": "per token",
    "accuracy_bytes": "per byte",
    "accuracy_pmi": "PMI",
    "rank_spearman": "ρ inside dialogues [95 %]",
}


def report(results: Sequence[Result], form: str) -> str:
    """Return all tables in a format of `FORMATS`, or one long ``csv``.

    A table a task and data set, best model first; then its main metric by length, source and domain.
    """
    if form == "csv":
        return long_csv(results)
    parts: list[str] = []
    for asked in dict.fromkeys(map(_asked, results)):
        chosen = [result for result in results if _asked(result) == asked]
        title = f"{chosen[0].task} on {_data(chosen[0])}"
        parts += [("\n" if parts else "") + f"{_heading(title, form)}\n"]
        parts += _of_choices(chosen, form) if _chooses(chosen[0]) else _of_pairs(chosen, form)
    return "\n".join(parts)


def _of_pairs(results: Sequence[Result], form: str) -> list[str]:
    parts = [main_table(results, form)]
    if broken_down := breakdown_table(results, form):
        subtitle = f"{TITLES[BROKEN_DOWN]} by part of the data"
        parts += [f"\n{_heading(subtitle, form)}\n", broken_down]
    return parts + _reasons(results)


def _of_choices(results: Sequence[Result], form: str) -> list[str]:
    ordered = sorted(results, key=_most_accurate_first)
    parts = [choice_table(ordered, form)]
    subtitle = f"{_heading('Accuracy by part of the data', form)}\n"
    parts += [f"\n{subtitle}", choice_breakdown(ordered, form), ""]
    for result in ordered:
        said = [_asked_how(result), *(f"- {sentence}" for sentence in _sentences(result))]
        parts += [f"% {line}" for line in said] if form == "latex" else said
    return parts


def choice_table(results: Sequence[Result], form: str = "table") -> str:
    """Return a row a multiple-choice result and history: accuracies with standard errors (n-1)."""
    names = [name for name in CHOICE_TITLES if any(name in result.metrics for result in results)]
    rows = [
        [
            result.model,
            _prompt(result),
            history,
            *(_choice_cell(name, metrics.get(name)) for name in names),
            metrics["accuracy"].n,
        ]
        for result in results
        for history, metrics in _histories(result)
    ]
    titles = [CHOICE_TITLES[name] for name in names]
    return _tabulated(rows, ["model", "prompt", "history", *titles, "questions"], form)


def choice_breakdown(results: Sequence[Result], form: str = "table") -> str:
    """Return the accuracy a part of the data (rows) and model with history (columns)."""
    cells: dict[str, dict[str, Estimate]] = {}
    columns: dict[str, None] = {}
    for result in results:
        for group in result.groups:
            if "history" not in group.by or len(group.by) < 2:
                continue
            column = f"{_asked_how(result)} {group.by['history']}"
            part = ", ".join(f"{key}={of}" for key, of in group.by.items() if key != "history")
            cells.setdefault(part, {})[column] = group.metrics["accuracy"]
            columns[column] = None
    rows = [
        [
            part,
            max(estimate.n for estimate in found.values()),
            *(_plus_minus(found.get(column), decimals=2) for column in columns),
        ]
        for part, found in cells.items()
    ]
    return _tabulated(rows, ["part", "questions", *columns], form)


def _histories(result: Result) -> list[tuple[str, Mapping[str, Estimate]]]:
    return [
        (str(group.by["history"]), group.metrics)
        for group in result.groups
        if set(group.by) == {"history"}
    ]


def _sentences(result: Result) -> Iterator[str]:
    """Say what the numbers do and do not show: guessing, letters, ties and cuts, what the history changes."""
    if "accuracy_difference" not in result.metrics:
        found = result.metrics["accuracy"]
        yield f"{_history(result)} history: {'; '.join(_of_history(found))}."
        return
    for history, metrics in _histories(result):
        yield f"{history} history: {'; '.join(_of_history(metrics['accuracy']))}."
    yield _of_difference(result.metrics["accuracy_difference"])
    yield _of_rank_difference(result.metrics["rank_spearman_difference"])
    if remark := result.metrics["accuracy"].reason:
        yield f"{remark}."


def _of_history(found: Estimate) -> Iterator[str]:
    chance = found.extra["chance"]
    if found.low <= chance <= found.high:
        yield (
            f"{found.value:.3f} cannot be told apart from guessing ({chance:.3f}; "
            f"a question is {100 / found.n:.1f} points)"
        )
    letters = ", ".join(f"{letter} {count}" for letter, count in found.extra["chosen"].items())
    yield f"letters chosen: {letters}"
    if "same_choice" in found.extra:
        same, single = found.extra["same_choice"], found.extra["single_order"]
        yield f"same choice in every order: {same} of {found.n}"
        yield f"accuracy of a single order: {single:.3f}"
    if found.reason:
        yield found.reason


def _of_difference(found: Estimate) -> str:
    p = found.extra["p"]
    more = "more" if found.value > 0 else "fewer"
    verdict = (
        f"the model answers {more} questions rightly with history"
        if p < SIGNIFICANT
        else "with and without history cannot be told apart"
    )
    return (
        f"right only with history: {found.extra['only_with']}, only without: "
        f"{found.extra['only_without']} (exact McNemar p = {p:.3f}): {verdict}."
    )


def _of_rank_difference(found: Estimate) -> str:
    if math.isnan(found.low):
        return f"ρ inside dialogues cannot be compared: {found.reason or 'not defined'}."
    apart = found.low > 0 or found.high < 0
    verdict = "the two differ" if apart else "the two cannot be told apart"
    interval = f"[{found.low:+.3f}, {found.high:+.3f}]"
    return f"ρ inside dialogues changes by {found.value:+.3f} {interval} with history: {verdict}."


def _choice_cell(name: str, estimate: Estimate | None) -> str:
    if estimate is None or math.isnan(estimate.value):
        return "" if estimate is None else "not defined"
    if name == "accuracy":
        return f"{_plus_minus(estimate)} [{estimate.low:.3f}, {estimate.high:.3f}]"
    return _interval(estimate) if name == "rank_spearman" else _plus_minus(estimate)


def _plus_minus(estimate: Estimate | None, decimals: int = 3) -> str:
    if estimate is None:
        return ""
    stderr = estimate.extra.get("stderr", math.nan)
    error = "" if math.isnan(stderr) else f" ± {stderr:.{decimals}f}"
    return "not defined" if math.isnan(estimate.value) else f"{estimate.value:.{decimals}f}{error}"


def _chooses(result: Result) -> bool:
    return "accuracy" in result.metrics


def _most_accurate_first(result: Result) -> tuple[float, str, str]:
    value = result.metrics["accuracy"].value
    return (math.inf if math.isnan(value) else -value, result.model, _prompt(result))


def _prompt(result: Result) -> str:
    """Return how the question was put: template, and what differs from a plain question."""
    how = result.signature
    said = [str(how["template"]["name"])]
    said += ["letter"] if how["answer"] == "letter" else []
    said += ["chat"] if how["chat_template"] else []
    said += [f"{how['permutations']} orders"] if how["permutations"] > 1 else []
    return ", ".join(said)


def _asked_how(result: Result) -> str:
    return f"{result.model} ({_prompt(result)})"


def main_table(results: Sequence[Result], form: str = "table") -> str:
    """Return a row a result: each metric with its 95 % interval, best Spearman first."""
    names = [name for name in TITLES if any(name in result.metrics for result in results)]
    rows = [
        [
            *_name_of(result),
            *(_interval(result.metrics[name]) for name in names),
            max(estimate.n for estimate in result.metrics.values()),
        ]
        for result in sorted(results, key=_best_first)
    ]
    headers = ["model", "history", *(f"{TITLES[name]} [95 %]" for name in names), "items"]
    return _tabulated(rows, headers, form)


def breakdown_table(results: Sequence[Result], form: str = "table") -> str:
    """Return Spearman's rho a part of the data (rows) and model (columns); empty without parts."""
    ordered = sorted(results, key=_best_first)
    parts = {tuple(group.by.items()): None for result in ordered for group in result.groups}
    rows = []
    for part in parts:
        cells = [_of_part(result, part) for result in ordered]
        sizes = [cell.n for cell in cells if cell]
        label = ", ".join(f"{name}={value}" for name, value in part)
        shown = [_interval(cell, decimals=2) if cell else "" for cell in cells]
        rows.append([label, max(sizes), *shown])
    headers = ["part", "items", *(_column_of(result) for result in ordered)]
    return _tabulated(rows, headers, form) if rows else ""


def long_csv(results: Sequence[Result]) -> str:
    """Return a row a number: what was measured, on what part of which data, with its interval."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "model",
            "task",
            "data",
            "history",
            "part",
            "metric",
            "value",
            "low",
            "high",
            "n",
            "reason",
            "stderr",
            "p",
        ]
    )
    for result in results:
        parts = [("", result.metrics)] + [
            (";".join(f"{name}={value}" for name, value in group.by.items()), group.metrics)
            for group in result.groups
        ]
        for part, metrics in parts:
            for name, e in metrics.items():
                place = [result.model, result.task, _data(result), _history(result), part, name]
                more = (e.extra.get(key, math.nan) for key in ("stderr", "p"))
                writer.writerow(
                    [
                        *place,
                        *map(_cell, (e.value, e.low, e.high)),
                        e.n,
                        e.reason,
                        *map(_cell, more),
                    ]
                )
    return out.getvalue()


def _best_first(result: Result) -> tuple[float, str, str]:
    value = result.metrics[BROKEN_DOWN].value
    return (math.inf if math.isnan(value) else -value, result.model, _history(result))


def _asked(result: Result) -> tuple[str, str]:
    """Return what results must share to stand in one table."""
    return result.task, str(result.signature.get("data", ""))


def _data(result: Result) -> str:
    return str(result.environment.get("data", "unknown data"))


def _history(result: Result) -> str:
    return str(result.signature.get("history", ""))


def _name_of(result: Result) -> tuple[str, str]:
    return result.model, _history(result)


def _column_of(result: Result) -> str:
    return result.model if _history(result) != "with" else f"{result.model} (with history)"


def _of_part(result: Result, part: tuple[tuple[str, Any], ...]) -> Estimate | None:
    for group in result.groups:
        if tuple(group.by.items()) == part:
            return group.metrics.get(BROKEN_DOWN)
    return None


def _interval(estimate: Estimate, decimals: int = 3) -> str:
    if math.isnan(estimate.value):
        return "not defined"
    value, low, high = (
        f"{number:.{decimals}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    return value if math.isnan(estimate.low) else f"{value} [{low}, {high}]"


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _reasons(results: Sequence[Result]) -> list[str]:
    """Return a line for each number of the main table that is missing or leaves something out."""
    return [
        f"{result.model}: {TITLES.get(name, name)}: {estimate.reason}"
        for result in results
        for name, estimate in result.metrics.items()
        if estimate.reason
    ]


def _heading(text: str, form: str) -> str:
    return {"markdown": f"### {text}", "latex": f"% {text}"}.get(form, text)


def _tabulated(rows: Sequence[Sequence[Any]], headers: Sequence[str], form: str) -> str:
    from tabulate import tabulate

    return str(tabulate(rows, headers, tablefmt=FORMATS[form], disable_numparse=True))
