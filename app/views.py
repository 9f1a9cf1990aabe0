"""Charts: pure functions from a data frame to an Altair chart. No widgets here."""

from __future__ import annotations

import altair as alt
import polars as pl

__all__ = ["candidates_chart", "histogram", "models_chart", "predictions_chart"]

BLUE, ORANGE = "#0072B2", "#D55E00"  # of Okabe and Ito's palette, told apart by the colour-blind
BINS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")


def histogram(scores: pl.Series) -> alt.Chart:
    """Return the paper's Figure 1: how many items have a score in each fifth of [0, 1].

    A score on a boundary counts in the upper bin, 1 in the last.
    """
    bins = (scores * len(BINS)).floor().clip(0, len(BINS) - 1).cast(pl.Int64)
    counts = [(bins == place).sum() for place in range(len(BINS))]
    frame = pl.DataFrame({"score": list(BINS), "items": counts})
    return (
        alt.Chart(frame)
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X(
                "score:N", sort=list(BINS), title="similarity score", axis=alt.Axis(labelAngle=0)
            ),
            y=alt.Y("items:Q", title="items"),
            tooltip=["score", "items"],
        )
    )


def candidates_chart(candidates: pl.DataFrame) -> alt.Chart:
    """Return the candidates of one dialogue, highest score first; columns utterance and score."""
    return (
        alt.Chart(candidates)
        .mark_circle(size=120, color=BLUE, opacity=1)
        .encode(
            x=alt.X("score:Q", scale=alt.Scale(domain=[0, 1]), title="similarity to the last turn"),
            y=alt.Y("utterance:N", sort="-x", title=None, axis=alt.Axis(labelLimit=420)),
            tooltip=["utterance", "score"],
        )
    )


def models_chart(estimates: pl.DataFrame) -> alt.LayerChart:
    """Return models with 95 % intervals, best first; columns model, value, low, high."""
    best_first = estimates.sort("value", descending=True)["model"].to_list()
    axis = alt.Axis(labelLimit=420)
    base = alt.Chart(estimates).encode(y=alt.Y("model:N", sort=best_first, title=None, axis=axis))
    points = base.mark_circle(size=120, color=BLUE, opacity=1).encode(
        x=alt.X("value:Q", title="Spearman's ρ"),
        tooltip=["model", alt.Tooltip("value", format=".3f")],
    )
    return base.mark_rule(color=BLUE).encode(x="low:Q", x2="high:Q") + points


def predictions_chart(items: pl.DataFrame) -> alt.Chart:
    """Return predictions against scores; columns score, prediction, and texts for the tooltip."""
    return (
        alt.Chart(items)
        .mark_circle(color=ORANGE, opacity=0.6)
        .encode(
            x=alt.X("score:Q", scale=alt.Scale(domain=[0, 1]), title="score"),
            y=alt.Y("prediction:Q", title="prediction"),
            tooltip=["last turn", "utterance", alt.Tooltip("prediction", format=".3f"), "score"],
        )
    )
