"""The chart of the page "Overview": items per domain."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from giccs.report.model_names import WRAPPED_LABELS, wrap_names
from giccs_app.explorer.theme import PALETTE

BAR_HEIGHT = 26
"""Height of a bar in pixels."""
NAME_WIDTH = 24
"""Longest line of a domain in characters; domains have at most two lines."""


def sizes_chart(sizes: pl.DataFrame, titles: Mapping[str, str]) -> alt.Chart:
    """Return a bar chart of the items per domain, coloured by the number of turns.

    sizes: domain, n_turns, items, dialogues. The largest domain comes first.
    titles: titles of domain, turns, items and dialogues.
    """
    lengths = sorted(sizes["n_turns"].unique())
    colours = [PALETTE[n % len(PALETTE)] for n in range(len(lengths))]
    labels = wrap_names({name: name for name in sizes["domain"].unique()}, NAME_WIDTH)
    return (
        alt.Chart(sizes.with_columns(label=pl.col("domain").replace(labels)))
        .mark_bar()
        .encode(
            x=alt.X("items:Q", title=titles["items"]),
            y=alt.Y("label:N", sort="-x", title=None, axis=alt.Axis(ticks=False, **WRAPPED_LABELS)),
            color=alt.Color(
                "n_turns:O",
                title=titles["turns"],
                scale=alt.Scale(domain=lengths, range=colours),
                legend=alt.Legend(orient="bottom", columns=8),
            ),
            order=alt.Order("n_turns:O"),
            tooltip=[
                alt.Tooltip("domain:N", title=titles["domain"]),
                alt.Tooltip("n_turns:O", title=titles["turns"]),
                alt.Tooltip("items:Q", title=titles["items"]),
                alt.Tooltip("dialogues:Q", title=titles["dialogues"]),
            ],
        )
        .properties(height=alt.Step(BAR_HEIGHT))
    )
