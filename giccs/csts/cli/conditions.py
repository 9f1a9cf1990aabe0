"""giccs csts conditions: frequencies of features and entities in conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

import click

from bws.base.charts import check_chart_path, write_chart
from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, OUTPUT, Choice
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.tables import remarks, tabulated
from bws.cli.options import drawn_figure, format_option
from giccs.csts.conditions import MAX_LISTED_ROWS, Analysis, Count, analyse, frequent_parts
from giccs.csts.data import SPLITS, read_csts

PUBLISHED = {"features": 0.88, "entities": 0.45}
"""Share of the ten most frequent parts in the full C-STS (L-CSTS, 3.1)."""


@command(
    "giccs csts conditions",
    example="""
    giccs csts conditions folder/
    giccs csts conditions csts_train.csv --top 20 --format csv
    giccs csts conditions folder/ --figure conditions.svg
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "--split",
    type=Choice(SPLITS),
    help="Read only this file of a folder; default: all files.",
)
@click.option(
    "--top", type=click.IntRange(1, MAX_COUNT), default=MAX_LISTED_ROWS, show_default=True, metavar="N",
    help="Number of features and entities to show.",
)  # fmt: skip
@click.option(
    "--figure", type=OUTPUT, metavar="FILE", help="Also draw Figure 2: .svg, .png, .json."
)
@format_option("CSV has full precision.")
def conditions(
    console: Console, data: str, split: str | None, top: int, figure: str | None, form: str
) -> None:  # fmt: skip
    """Count the features and entities in conditions, as in Figure 2 of L-CSTS.

    DATA is a C-STS CSV file, or a folder with csts_train.csv, csts_validation.csv, csts_test.csv. "The color
    of the dogs" has the feature color and the entity dog; a single entity is counted with the feature type.
    """
    if figure:
        _check_figure(figure)
    dataset = read_csts(data, split)
    console.warn(dataset.warnings)
    try:
        analysis = analyse(instance.condition for instance in dataset.instances)
    except ValueError as error:
        raise InputError(Problem(data, None, str(error))) from None
    if figure:
        with drawn_figure(console, "of frequent parts", data):
            write_chart(frequent_parts(analysis, top), figure)
            console.note(f"Figure 2 written to {figure}")
    document = _document(analysis, top) | {
        "signature": {"data": dataset.fingerprint, "giccs": version("giccs")}
    }
    text = _csv(analysis, top) if form == "csv" else _table(analysis, top, form, document)
    console.answer(text, document)


def _check_figure(path: str) -> None:
    check_chart_path(path)
    if missing := [name for name in ("altair", "vl_convert") if find_spec(name) is None]:
        message = f"--figure needs {missing[0]}; install it with: pip install 'giccs[charts]'"
        raise click.ClickException(message)


def _document(analysis: Analysis, top: int) -> dict[str, Any]:
    return {
        "conditions": analysis.total,
        "empty": analysis.empty,
        "different": analysis.different,
        "forms": analysis.forms,
        "features": [asdict(count) for count in analysis.features[:top]],
        "entities": [asdict(entity) for entity in analysis.entities[:top]],
        "top_share": {
            "features": _share(analysis.features[:top], analysis.total),
            "entities": _share(analysis.entities[:top], analysis.total),
        },
        "different_features": len(analysis.features),
        "different_entities": len(analysis.entities),
    }


def _share(counts: Sequence[Count], total: int) -> float:
    return sum(count.count for count in counts) / total


def _table(analysis: Analysis, top: int, form: str, document: dict[str, Any]) -> str:
    headers = ["", "Feature", "Conditions", "%", "Entity", "Conditions", "%"]
    row_pairs = zip_longest(analysis.features[:top], analysis.entities[:top])
    rows = [
        [str(rank), *_cells(feature), *_cells(entity)]
        for rank, (feature, entity) in enumerate(row_pairs, 1)
    ]
    return "\n".join([tabulated(rows, headers, form), "", *remarks(_summary(document, top), form)])


def _cells(count: Count | None) -> list[str]:
    return [count.name, str(count.count), f"{100 * count.share:.1f}"] if count else ["", "", ""]


def _summary(document: dict[str, Any], top: int) -> list[str]:
    forms = ", ".join(f"{name} {count}" for name, count in document["forms"].items())
    lines = [
        f"{document['conditions']} conditions, {document['different']} distinct; "
        f"{document['empty']} empty conditions are ignored.",
        f"Forms: {forms}.",
    ]
    for part, share in document["top_share"].items():
        published = (
            f" (L-CSTS, on all of C-STS: {PUBLISHED[part]:.0%})" if top == MAX_LISTED_ROWS else ""
        )
        of = document[f"different_{part}"]
        lines.append(
            f"The {min(top, of)} most frequent of {of} {part} have a share of {share:.1%}{published}."
        )
    signature = document["signature"]
    return [*lines, f"Data {signature['data'][:12]}, giccs {signature['giccs']}."]


def _csv(analysis: Analysis, top: int) -> str:
    rows = [
        (part, rank, count.name, count.count, repr(count.share))
        for part, counts in (("feature", analysis.features), ("entity", analysis.entities))
        for rank, count in enumerate(counts[:top], start=1)
    ]
    return csv_text(rows, ("part", "rank", "name", "conditions", "share")).rstrip("\n")
