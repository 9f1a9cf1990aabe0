"""Multiple-choice STS as tables: accuracies, their parts, and what they do and do not show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bws.tables import heading, part_name, remarks, tabulated
from giccs.measures.formatting import few_clusters_note, interval, limits, other_reasons, plus_minus
from giccs.measures.metrics import Estimate
from giccs.measures.results import Group, Result, history_of, model_of, prompt_of

__all__ = ["choice_breakdown", "choice_table", "choices", "turns_table"]

SIGNIFICANT = 0.05
TITLES = {
    "accuracy": "accuracy ± SE [95 %]",
    "accuracy_tokens": "per token",
    "accuracy_bytes": "per byte",
    "accuracy_pmi": "PMI",
    "rank_spearman": "ρ inside dialogues [95 %]",
}


def choices(results: Sequence[Result], form: str) -> list[str]:
    """Return the tables of one data set, most accurate first, and sentences below them."""
    ordered = sorted(results, key=_most_accurate_first)
    parts = [choice_table(ordered, form)]
    if by_turns := turns_table(ordered, form):
        parts += [f"\n{heading(_turns_title(ordered), form)}\n", by_turns]
    if by_part := choice_breakdown(ordered, form):
        parts += [f"\n{heading('Accuracy by part of the data', form)}\n", by_part]
    parts += [""]
    for result in ordered:
        said = [_asked_how(result), *(f"- {sentence}" for sentence in _sentences(result))]
        parts += remarks(said, form)
    shown = [one for result in ordered for one in result.metrics.values()]
    shown += [
        m for result in ordered for _, metrics in _histories(result) for m in metrics.values()
    ]
    return [*parts, *remarks(few_clusters_note(shown), form)]


def choice_table(results: Sequence[Result], form: str = "table") -> str:
    """Return a row a multiple-choice result and history: accuracies with standard errors (n-1)."""
    names = [name for name in TITLES if any(name in result.metrics for result in results)]
    rows = [
        [
            model_of(result),
            prompt_of(result),
            history,
            *(_choice_cell(name, metrics.get(name)) for name in names),
            metrics["accuracy"].n,
        ]
        for result in results
        for history, metrics in _histories(result)
    ]
    titles = [TITLES[name] for name in names]
    return tabulated(rows, ["model", "prompt", "history", *titles, "questions"], form)


def turns_table(results: Sequence[Result], form: str = "table") -> str:
    """Return the paper's Table 6: accuracy ± standard error, a row per model.

    Its columns are the lengths of the dialogues, each with and without history; empty without lengths.
    """
    cells = [_by_turns(result) for result in results]
    columns = sorted({column for found in cells for column in found}, key=_turns_order)
    if not columns:
        return ""
    names = {"with": "w/ history", "without": "w/o history"}
    titles = [f"{n_turns}-turn {names[history]}" for n_turns, history in columns]
    rows = [
        [model_of(result), prompt_of(result), *(plus_minus(found.get(one)) for one in columns)]
        for result, found in zip(results, cells, strict=True)
    ]
    return tabulated(rows, ["model", "prompt", *titles], form)


def _by_turns(result: Result) -> dict[tuple[int, str], Estimate]:
    """Return the accuracy of dialogues of so many turns, asked with or without history."""
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
    questions = {
        n_turns: found.n for one in results for (n_turns, _), found in _by_turns(one).items()
    }
    counts = ", ".join(f"{n} of {n_turns} turns" for n_turns, n in sorted(questions.items()))
    return f"Accuracy ± SE by turns and history (Table 6); questions: {counts}"


def choice_breakdown(results: Sequence[Result], form: str = "table") -> str:
    """Return the accuracy per part of the data (rows) and model with history (columns); empty without parts.

    The number of turns is no part here: `turns_table` has it.
    """
    cells: dict[str, dict[tuple[int, str], Estimate]] = {}
    columns: dict[tuple[int, str], str] = {}
    for place, result in enumerate(results):  # two may be called alike
        for group in result.groups:
            if "history" not in group.by or len(group.by) < 2 or _is_of_turns(group):
                continue
            column = place, str(group.by["history"])
            part = part_name({key: of for key, of in group.by.items() if key != "history"})
            cells.setdefault(part, {})[column] = group.metrics["accuracy"]
            columns[column] = f"{_asked_how(result)} {group.by['history']}"
    rows = [
        [
            part,
            max(estimate.n for estimate in found.values()),
            *(plus_minus(found.get(column), decimals=2) for column in columns),
        ]
        for part, found in cells.items()
    ]
    return tabulated(rows, ["part", "questions", *columns.values()], form) if rows else ""


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
        yield f"{history_of(result)} history: {'; '.join(_of_history(found))}."
        return
    for history, metrics in _histories(result):
        yield f"{history} history: {'; '.join(_of_history(metrics['accuracy']))}."
    yield _of_difference(result.metrics["accuracy_difference"])
    yield _of_rank_difference(result.metrics["rank_spearman_difference"])
    if remark := other_reasons(result.metrics["accuracy"]):
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
    if math.isnan(found.value):
        return f"ρ inside dialogues cannot be compared: {found.reason or 'not defined'}."
    if math.isnan(found.low):
        return f"ρ inside dialogues changes by {found.value:+.3f} {limits(found)} with history."
    apart = found.low > 0 or found.high < 0
    verdict = "the two differ" if apart else "the two cannot be told apart"
    change = f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
    return f"ρ inside dialogues changes by {change} with history: {verdict}."


def _choice_cell(name: str, estimate: Estimate | None) -> str:
    if estimate is None or math.isnan(estimate.value):
        return "" if estimate is None else "not defined"
    if name == "accuracy":
        return f"{plus_minus(estimate)} {limits(estimate)}"
    return interval(estimate) if name == "rank_spearman" else plus_minus(estimate)


def _most_accurate_first(result: Result) -> tuple[float, str, str]:
    value = result.metrics["accuracy"].value
    return (math.inf if math.isnan(value) else -value, model_of(result), prompt_of(result))


def _asked_how(result: Result) -> str:
    return f"{model_of(result)} ({prompt_of(result)})"
