"""The page on coverage, made from the tables of the simulations."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tabulate import tabulate

from benchmarks.coverage.cells import FAILURES
from benchmarks.coverage.printed_intervals import reasons
from bws.base.text import write_atomic

Row = dict[str, str]

SECTIONS = (
    "scores",
    "extremes",
    "ranks",
    "prediction_powered",
    "powered_correlations",
    "powered_accuracies",
    "alpha",
    "components",
    "ceiling",
    "model_ceiling",
    "correlations",
    "annotators",
    "domains",
    "annotator_effects",
    "comparison",
    "random_cells",
)
"""Modules of this package with ``cells()`` and perhaps ``further()``: names of the tables."""
TEMPLATE = Path(__file__).with_name("page.md")
"""The text of the page, with a field for the summary and for each table."""


def read_rows(path: Path) -> list[Row]:
    """Read a table."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def write_rows(path: Path | None, rows: Sequence[Row]) -> None:
    """Write a table as CSV to a file or, for None, to standard output; create the folder."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    if path is None:
        sys.stdout.write(text.getvalue() + "\n")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue())


def page(folder: Path) -> str:
    """Return the page of the tables in a folder."""
    tables = {
        name: read_rows(path) for name in SECTIONS if (path := folder / f"{name}.csv").exists()
    }
    headers = ("table", "cells", "coverage", "verdicts", "too narrow or too wide, without a note")
    rows = [_summary(name, table) for name, table in tables.items()]
    fields = dict.fromkeys(SECTIONS, "not simulated") | {
        name: f"[{name}.csv]({folder.name}/{name}.csv), {_codes(table)}."
        for name, table in tables.items()
    }
    fields["reasons"] = reasons()
    fields["result"] = _result(tables)
    fields["summary"] = str(tabulate(rows, headers, "github", disable_numparse=True))
    return TEMPLATE.read_text(encoding="utf-8").format_map(fields)


def _result(tables: Mapping[str, Sequence[Row]]) -> str:
    """Return the sentence on all verdicts."""
    verdicts = Counter(row["verdict"] for table in tables.values() for row in table)
    failed = Counter(
        name for name, table in tables.items() for row in table if row["verdict"] in FAILURES
    )
    places = "; ".join(f"{count} in *{name}*" for name, count in failed.items()) or "0"
    noted = sum(count for verdict, count in verdicts.items() if verdict.endswith(", noted"))
    return (
        f"Of {verdicts.total()} cells, {verdicts['holds'] + verdicts['as required']} hold or are as required "
        f"without a note, {verdicts['undecided']} are undecided without one, {noted} have a note, and "
        f"{verdicts['refused']} are refused. Cells that fail without a note: {places}."
    )


def _summary(name: str, rows: list[Row]) -> tuple[str, int, str, str, str]:
    """Return the row of a table in the summary."""
    shares = sorted(
        float(row["coverage"]) for row in rows if row["coverage"] and not row["required"]
    )
    span = f"{100 * shares[0]:.1f}–{100 * shares[-1]:.1f} %" if shares else ""
    verdicts = Counter(row["verdict"] for row in rows)
    unmarked = Counter(row["statement"] for row in rows if row["verdict"] in FAILURES)
    return (
        name,
        len(rows),
        span,
        "; ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()),
        "; ".join(f"{statement} ({count})" for statement, count in unmarked.items()),
    )


def _codes(rows: list[Row]) -> str:
    """Return the versions of the code that computed the rows."""
    return "; ".join(dict.fromkeys(row["code"] for row in rows))
