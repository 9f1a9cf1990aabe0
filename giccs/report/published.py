"""Ours beside theirs, as a table in every format."""

from __future__ import annotations

import csv
import io
import math

from bws.tables import heading, remarks, tabulated
from giccs.measures.formatting import few_clusters_note, interval, limits, number, plus_minus
from giccs.measures.result_labels import data_of, is_choice, prompt_of, setting_of
from giccs.report.against import Comparison, Line

__all__ = ["published_csv", "published_table"]

HEADERS = ["model", "task", "part", "metric", "published", "ours [95 %]", "difference", "verdict"]
COLUMNS = [
    "model", "task", "data", "prompt", "part", "metric", "published", "published_stderr",
    "ours", "low", "high", "n", "difference", "verdict",
]  # fmt: skip


def published_table(comparison: Comparison, form: str) -> str:
    """Return a table a data set, a row a published number, and the notes; ``csv`` is one long table."""
    if form == "csv":
        return published_csv(comparison)
    recipe = comparison.recipe
    parts = [heading(f"Against {recipe.title or recipe.file}", form)]
    parts += [*remarks([recipe.source], form)] if recipe.source else []
    compared = [line for line in comparison.lines if line.result]
    for data in dict.fromkeys(data_of(line.result) for line in compared if line.result):
        rows = [_row(line) for line in compared if line.result and data_of(line.result) == data]
        parts += [f"\n{heading(f'ours on {data}', form)}\n", tabulated(rows, HEADERS, form)]
    notes = [*comparison.notes(), *few_clusters_note(line.ours for line in compared)]
    return "\n".join([*parts, "", *remarks(notes, form)])


def published_csv(comparison: Comparison) -> str:
    """Return a row a published number as CSV, also those without a result."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(_values, comparison.lines))
    return out.getvalue()


def _row(line: Line) -> list[str]:
    part = ", ".join(f"{name}={value}" for name, value in line.published.by.items())
    difference = "" if math.isnan(line.difference) else f"{line.difference:+.3f}"
    place = [_model(line), line.run.task, part, line.published.metric]
    return [*place, _theirs(line), _ours(line), difference, line.verdict]


def _model(line: Line) -> str:
    if line.result is None or not line.run.ask.keys() - {"history"}:
        how = prompt_of(line.result) if line.result and is_choice(line.result) else ""
    else:
        how = setting_of(line.result)
    return f"{line.run.model} ({how})" if how else line.run.model


def _theirs(line: Line) -> str:
    stderr = line.published.stderr
    return f"{line.published.value:.3f}" + ("" if stderr is None else f" ± {stderr:.3f}")


def _ours(line: Line) -> str:
    if line.ours is None:
        return "not computed"
    if "stderr" not in line.ours.extra:
        return interval(line.ours)
    return f"{plus_minus(line.ours)} {limits(line.ours)}"


def _values(line: Line) -> list[object]:
    found, published = line.document(), line.published
    ours = found["ours"] or {}
    numbers = [number(ours.get(name, math.nan)) for name in ("value", "low", "high")]
    return [
        *(found[name] or "" for name in ("model", "task", "data", "prompt")),
        ";".join(f"{name}={value}" for name, value in published.by.items()),
        published.metric,
        number(published.value),
        "" if published.stderr is None else number(published.stderr),
        *numbers,
        ours.get("n", ""),
        number(line.difference),
        line.verdict,
    ]
