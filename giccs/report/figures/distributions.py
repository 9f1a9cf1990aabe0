"""Distribution of the scores in subsets of the data: a heat map of the shares in the bins of Figure 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from giccs.description.distribution import distribution
from giccs.report.figures.panels import MissingFigureError, Panel, Titles, with_titles
from giccs.report.figures.subsets import DARK_TEXT

if TYPE_CHECKING:
    import altair as alt

MAX_SUBSETS = 40
"""Largest number of subsets of a chart, those with the most items."""
MAX_LABEL_CHARACTERS = 32
SHARE_COLOURS = ("#56B4E9", "#FFFFFF", "#E69F00")
"""Colours of no items, of an equal share of each bin, and of twice that share or more; dark text has a
contrast of at least 7:1 on all of them."""
TITLES = {
    "subset": "subset",
    "score": "score",
    "share": "share of items",
    "items": "items",
    "n": "of",
}
SCHEMA = {
    "subset": pl.String,
    "score": pl.String,
    "items": pl.Int64,
    "n": pl.Int64,
    "share": pl.Float64,
}


def distribution_frame(values: Sequence[object], scores: Sequence[float]) -> pl.DataFrame:
    """Return one row per subset and bin of scores: subset, score (bin), items, n (of the subset), share.

    values: (N,) the subset of each item. Subsets are in ascending order, numbers by their value. Raises
    ValueError for scores outside [0, 1].

    >>> distribution_frame([10, 9, 9], [0.1, 0.5, 0.9]).filter(pl.col("items") > 0).rows()
    [('9', '0.4–0.6', 1, 2, 0.5), ('9', '0.8–1', 1, 2, 0.5), ('10', '0–0.2', 1, 1, 1.0)]
    """
    groups: dict[Any, list[float]] = {}
    for value, score in zip(values, scores, strict=True):
        groups.setdefault(value, []).append(score)
    are_numbers = all(isinstance(value, (int, float)) for value in groups)
    rows = [
        (str(value), score_bin.label, score_bin.items, len(group), score_bin.items / len(group))
        for value, group in sorted(groups.items(), key=None if are_numbers else _text_key)
        for score_bin in distribution(group)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _text_key(entry: tuple[object, Sequence[float]]) -> str:
    return str(entry[0])


def largest_subsets(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of at most `MAX_SUBSETS` subsets, those with the most items, in the same order."""
    sizes = frame.unique("subset", keep="first", maintain_order=True)
    largest = sizes.sort("n", descending=True, maintain_order=True)["subset"].head(MAX_SUBSETS)
    return frame.filter(pl.col("subset").is_in(largest.implode()))


def distribution_chart(frame: pl.DataFrame, titles: Titles | None = None) -> alt.LayerChart:
    """Return a heat map of the share of each subset's items in each bin, with the share in the cell.

    White: the share of items that are spread evenly over the bins; blue: fewer; orange: more.

    frame: as returned by `distribution_frame`, with at least one row; the numbers of items are beside the
    subsets.
    """
    import altair as alt

    labels = with_titles(TITLES, titles)
    named = frame.with_columns(
        label=pl.when(pl.col("subset").str.len_chars() > MAX_LABEL_CHARACTERS)
        .then(pl.col("subset").str.head(MAX_LABEL_CHARACTERS - 1) + "…")
        .otherwise("subset")
        + pl.format(" (n = {})", "n")
    )
    expected = 1 / frame["score"].n_unique()
    base = alt.Chart(named).encode(
        x=alt.X("score:O", sort=None, title=labels["score"]).axis(
            labelAngle=0, grid=False, ticks=False, domain=False
        ),
        y=alt.Y("label:N", sort=None, title=None).axis(
            grid=False, ticks=False, domain=False, labelLimit=300, labelOverlap=False
        ),
        tooltip=[
            alt.Tooltip("subset:N", title=labels["subset"]),
            alt.Tooltip("score:N", title=labels["score"]),
            alt.Tooltip("share:Q", title=labels["share"], format=".1%"),
            alt.Tooltip("items:Q", title=labels["items"]),
            alt.Tooltip("n:Q", title=labels["n"]),
        ],
    )
    colour = alt.Color("share:Q", legend=None).scale(
        domain=[0, expected, 2 * expected],
        range=list(SHARE_COLOURS),
        interpolate="rgb",
        clamp=True,
    )
    layers = [
        base.mark_rect(stroke="#FFFFFF").encode(color=colour),
        base.mark_text(fontSize=11, color=DARK_TEXT).encode(text=alt.Text("share:Q", format=".0%")),
    ]
    return alt.LayerChart(layer=layers).properties(height=alt.Step(22))


def distribution_panels(
    columns: Mapping[str, Sequence[object]], scores: Sequence[float]
) -> list[Panel]:
    """Return a panel per column (``domain``) with several values; raises MissingFigureError without one."""
    panels = []
    for name, values in columns.items():
        frame = distribution_frame(values, scores)
        n_subsets = frame["subset"].n_unique()
        if n_subsets < 2:
            continue
        drawn = largest_subsets(frame)
        notes = [
            "Share of the items of a subset in each fifth of the scale. White: a fifth of the items; blue: "
            "fewer; orange: more."
        ]
        if n_subsets > MAX_SUBSETS:
            notes.append(f"Drawn: the {MAX_SUBSETS} largest of {n_subsets} subsets.")
        panels.append(Panel(f"Scores by {name}", distribution_chart(drawn), frame, notes))
    if not panels:
        names = ", ".join(columns)
        raise MissingFigureError(f"no column has two values to compare ({names})")
    return panels
