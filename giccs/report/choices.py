"""Tables of multiple-choice STS: accuracies, breakdowns, and remarks on their interpretation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bws.base.notes import p_text
from bws.base.tables import Cell, Column, ResultTable, keyed_columns, part_name
from bws.stats.estimates import Estimate
from giccs.measures.formatting import few_clusters_note, limits, other_reasons
from giccs.measures.results import Group, Result, history_of, model_of, prompt_of
from giccs.report.clustering import domain_notes, population_note
from giccs.report.pairs import MAX_BREAKDOWN_MODELS, best_models_notes

SIGNIFICANCE_LEVEL = 0.05
TITLES = {
    "accuracy": "accuracy ± SE [95 %]",
    "accuracy_tokens": "per token",
    "accuracy_bytes": "per byte",
    "accuracy_pmi": "dialogue PMI",
    "rank_spearman": "ρ within dialogues [95 %]",
    "invalid": "no option [95 %]",
    "consistency": "same choice in two orders [95 %]",
}
LENGTH_NORMALISED = frozenset({"accuracy_tokens", "accuracy_bytes", "accuracy_pmi"})
CHOICE_NOTE = (
    "Per token, per byte, dialogue PMI: likelihoods that are normalised for the length of an option, or for "
    "its likelihood without the dialogue."
)
PLAIN = ("rank_spearman", "invalid", "consistency")
"""Metrics that are printed with their interval, without standard error."""


def choice_tables(results: Sequence[Result]) -> list[ResultTable]:
    """Return the tables of one data set, most accurate first, with sentences on each result."""
    ordered = sorted(results, key=_sort_key)
    by_group = choice_breakdown(ordered[:MAX_BREAKDOWN_MODELS])
    if by_group:
        by_group = replace(by_group, introduction=best_models_notes(len(ordered)))
    tables = [choice_table(ordered), turns_table(ordered), by_group]
    notes = [
        line
        for result in ordered
        for line in (
            _model_and_prompt(result),
            *(f"- {sentence}" for sentence in _result_sentences(result)),
        )
    ]
    estimates = [estimate for result in ordered for estimate in result.metrics.values()]
    estimates += [
        estimate
        for result in ordered
        for _, metrics in _histories(result)
        for estimate in metrics.values()
    ]
    notes += [*few_clusters_note(estimates), population_note(ordered), *domain_notes(ordered)]
    return [replace(table, notes=notes) for table in tables if table]


def choice_table(
    results: Sequence[Result], models: Sequence[str] = (), sources: Sequence[str] = ()
) -> ResultTable:
    """Return a table with one row per multiple-choice result and history: accuracies with standard errors
    (n-1).

    models: names of the results' models, by default those in the results. sources: JSON Pointer of each
    result.
    """
    names = [name for name in TITLES if any(name in result.metrics for result in results)]
    lines = [
        (n, group, f"{sources[n]}/groups/{g}/metrics" if sources else "")
        for n, result in enumerate(results)
        for g, group in enumerate(result.groups)
        if set(group.by) == {"history"}
    ]
    rows: list[Sequence[Cell]] = [
        [
            models[n] if models else model_of(results[n]),
            prompt_of(results[n]),
            str(group.by["history"]),
            *(group.metrics.get(name) for name in names),
            group.metrics["accuracy"].extra.get("chance", math.nan),
            group.metrics["accuracy"].n,
        ]
        for n, group, _ in lines
    ]
    columns = [
        *(Column(name, name) for name in ("model", "prompt", "history")),
        *map(_metric_column, names),
        Column("chance", "chance level", ".3f", source="accuracy/chance"),
        Column("questions", "questions", source="accuracy/n"),
    ]
    return ResultTable(
        columns,
        rows,
        sources=[source for *_, source in lines if source],
        families=[str(group.by["history"]) for _, group, _ in lines],
    )


def _metric_column(name: str) -> Column:
    return Column(
        name,
        TITLES[name],
        ".3f",
        source=name,
        error="" if name in PLAIN else "stderr",
        has_limits=name in ("accuracy", *PLAIN),
        best="min" if name == "invalid" else "max",
    )


def turns_table(results: Sequence[Result]) -> ResultTable | None:
    """Return the paper's Table 6: accuracy ± standard error, one row per model.

    Its columns are the lengths of the dialogues, each with and without history; None without lengths.
    """
    cells = [_accuracies_by_turns(result) for result in results]
    lengths = sorted({column for accuracies in cells for column in accuracies}, key=_turns_order)
    if not lengths:
        return None
    names = {"with": "w/ history", "without": "w/o history"}
    columns = [Column("model", "model"), Column("prompt", "prompt")]
    columns += [
        Column(
            f"{n_turns}-{history}",
            f"{n_turns}-turn {names[history]}",
            ".3f",
            error="stderr",
            has_limits=False,
            best="max",
        )
        for n_turns, history in lengths
    ]
    rows = [
        [
            model_of(result),
            prompt_of(result),
            *map(accuracies.get, lengths),
        ]
        for result, accuracies in zip(results, cells, strict=True)
    ]
    return ResultTable(columns, rows, title=_turns_title(results))


def _accuracies_by_turns(result: Result) -> dict[tuple[int, str], Estimate]:
    """Return the accuracies by number of turns and history."""
    return {
        (int(group.by["n_turns"]), str(group.by["history"])): group.metrics["accuracy"]
        for group in result.groups
        if _is_of_turns(group)
    }


def _is_of_turns(group: Group) -> bool:
    return set(group.by) == {"history", "n_turns"}


def _turns_order(column: tuple[int, str]) -> tuple[int, bool]:
    n_turns, history = column
    return n_turns, history == "without"


def _turns_title(results: Sequence[Result]) -> str:
    questions: dict[int, set[int]] = {}
    for result in results:
        for (n_turns, _), accuracy in _accuracies_by_turns(result).items():
            questions.setdefault(n_turns, set()).add(accuracy.size)
    counts = ", ".join(
        f"{' or '.join(map(str, sorted(numbers)))} of {n_turns} turns"
        for n_turns, numbers in sorted(questions.items())
    )
    return f"Accuracy ± SE by turns and history (Table 6); questions: {counts}"


def choice_breakdown(results: Sequence[Result]) -> ResultTable | None:
    """Return the accuracy by group (rows) and model with history (columns); None without groups.

    The number of turns is excluded, because `turns_table` has it.
    """
    cells: dict[str, dict[tuple[int, str], Estimate]] = {}
    titles: dict[tuple[int, str], str] = {}
    for index, result in enumerate(results):  # Names may be equal.
        for group in result.groups:
            if "history" not in group.by or len(group.by) < 2 or _is_of_turns(group):
                continue
            column = index, str(group.by["history"])
            part = part_name({key: value for key, value in group.by.items() if key != "history"})
            cells.setdefault(part, {})[column] = group.metrics["accuracy"]
            titles[column] = f"{_model_and_prompt(result)} {group.by['history']}"
    rows = [
        [
            part,
            max(estimate.size for estimate in accuracies.values()),
            *map(accuracies.get, titles),
        ]
        for part, accuracies in cells.items()
    ]
    columns = [Column("subset", "subset"), Column("questions", "questions")]
    columns += [
        replace(column, family=history, error="stderr", has_limits=False)
        for column, (_, history) in zip(
            keyed_columns(titles.values(), ".2f", best="max"), titles, strict=True
        )
    ]
    return (
        ResultTable(columns, rows, title="Accuracy by group", compares_rows=True) if rows else None
    )


def _histories(result: Result) -> list[tuple[str, Mapping[str, Estimate]]]:
    return [
        (str(group.by["history"]), group.metrics)
        for group in result.groups
        if set(group.by) == {"history"}
    ]


def _result_sentences(result: Result) -> Iterator[str]:
    """Return sentences about chance level, letters, ties, truncation, and the effect of history."""
    if "accuracy_difference" not in result.metrics:
        accuracy = result.metrics["accuracy"]
        yield f"{history_of(result)} history: {'; '.join(_accuracy_remarks(accuracy))}."
        return
    for history, metrics in _histories(result):
        yield f"{history} history: {'; '.join(_accuracy_remarks(metrics['accuracy']))}."
    yield _difference_sentence(result.metrics["accuracy_difference"])
    if "rank_spearman_difference" in result.metrics:
        yield _rank_difference_sentence(result.metrics["rank_spearman_difference"])
    if remark := other_reasons(result.metrics["accuracy"]):
        yield f"{remark}."


def _accuracy_remarks(accuracy: Estimate) -> Iterator[str]:
    chance = accuracy.extra["chance"]
    if accuracy.low <= chance <= accuracy.high:
        yield (
            f"{accuracy.value:.3f} is not significantly different from guessing ({chance:.3f}; a question "
            f"is {100 / accuracy.size:.1f} points)"
        )
    letters = ", ".join(f"{letter} {count}" for letter, count in accuracy.extra["chosen"].items())
    yield f"letters chosen: {letters}"
    if not math.isnan(bias := accuracy.extra.get("position_bias", math.nan)):
        p = accuracy.extra["position_p"]
        test = "untested" if math.isnan(p) else f"p {p_text(p)}"
        yield f"position bias: {bias:.3f} ({test})"
    if "same_choice" in accuracy.extra:
        yield f"same choice in all orders: {accuracy.extra['same_choice']} of {accuracy.n}"
    if "single_order" in accuracy.extra:
        yield f"accuracy of a single order: {accuracy.extra['single_order']:.3f}"
    if accuracy.reason:
        yield accuracy.reason


def _difference_sentence(difference: Estimate) -> str:
    p, is_t_test = difference.extra["p"], difference.extra.get("test") == "t"
    test, only = ("paired t-test", "in more orders") if is_t_test else ("exact McNemar", "only")
    more = "more" if difference.value > 0 else "fewer"
    verdict = (
        f"the model answers {more} questions correctly with history"
        if p < SIGNIFICANCE_LEVEL
        else "no significant difference between with and without history"
    )
    return (
        f"correct {only} with history: {difference.extra['only_with']}, {only} without: "
        f"{difference.extra['only_without']} ({test} p {p_text(p)}): {verdict}."
    )


def _rank_difference_sentence(difference: Estimate) -> str:
    if math.isnan(difference.value):
        return f"ρ within dialogues cannot be compared: {difference.reason or 'undefined'}."
    if math.isnan(difference.low):
        return f"ρ within dialogues changes by {difference.value:+.3f} {limits(difference)} with history."
    is_significant = difference.low > 0 or difference.high < 0
    verdict = "significant difference" if is_significant else "no significant difference"
    change = f"{difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
    return f"ρ within dialogues changes by {change} with history: {verdict}."


def _sort_key(result: Result) -> tuple[float, str, str]:
    value = result.metrics["accuracy"].value
    return (math.inf if math.isnan(value) else -value, model_of(result), prompt_of(result))


def _model_and_prompt(result: Result) -> str:
    return f"{model_of(result)} ({prompt_of(result)})"
