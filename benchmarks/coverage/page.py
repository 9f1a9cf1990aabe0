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

SECTIONS = {
    "scores": "`giccs score --intervals`, `--bootstrap`: 40 items, groups of five or 80 4-tuples",
    "extremes": "the same for counting, by size of the true score: all items, over .8, the highest",
    "ranks": "`giccs score --ranks`: share of groups whose true ranks are all within their ranges",
    "prediction_powered": "`giccs score --model-judgments`, `--pool`: good, noisy, biased, useless and "
    "equal judges",
    "powered_correlations": "`giccs report --people`: all dialogues scored by a judge, a part by people",
    "powered_accuracies": "the same for accuracies of multiple choice",
    "alpha": "`giccs agreement --intervals`: 30 dialogues, or the items of the scores",
    "components": "`giccs reliability --components`: groups of five, or one group with dependent items",
    "ceiling": "`giccs report --judgments`, noise ceiling of counting scores",
    "model_ceiling": "the same for scores of choice models",
    "correlations": "`giccs eval`, `giccs report`: correlations, and differences of two models",
    "annotators": "`giccs report --judgments`: over dialogues and annotators, or dialogues alone",
    "domains": "`--cluster domain`: new domains, with other errors of model and judge",
    "annotator_effects": "`giccs agreement --annotators`: scales and effects of positions",
    "comparison": "`giccs report --compare`, ten models: equal ones not told apart, ranks, power",
    "random_cells": "forty of the cells above with settings drawn at random after the methods were chosen",
}
"""Modules of this package with ``cells()`` and perhaps ``further()`` -> the studies that they simulate."""
TEMPLATE = Path(__file__).with_name("page.md")
"""The text of the page, with fields for the result and the summary of the tables."""


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
    headers = ("table", "studies", "cells", "coverage", "outside without a note")
    rows = [_summary(name, folder, tables.get(name)) for name in SECTIONS]
    fields = {
        "result": _result(tables),
        "summary": tabulate(rows, headers, "pipe", disable_numparse=True),
        "reasons": reasons(),
    }
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


def _summary(name: str, folder: Path, rows: list[Row] | None) -> tuple[str, str, str, str, str]:
    """Return the row of a table in the summary."""
    if rows is None:
        return (name, SECTIONS[name], "not simulated", "", "")
    shares = sorted(
        float(row["coverage"]) for row in rows if row["coverage"] and not row["required"]
    )
    span = f"{100 * shares[0]:.1f}–{100 * shares[-1]:.1f} %" if shares else ""
    failures = sum(row["verdict"] in FAILURES for row in rows)
    link = f"[{name}.csv]({folder.name}/{name}.csv)"
    return (link, SECTIONS[name], str(len(rows)), span, str(failures or ""))
