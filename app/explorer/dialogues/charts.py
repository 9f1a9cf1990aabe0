"""The chart of the page "Dialogues": the candidates of a dialogue with their scores."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import altair as alt
import polars as pl

from app.explorer.theme import BLUE, GREY

__all__ = ["LINES", "WIDTH", "candidates_chart"]

TITLES = {
    "score": "similarity to the last turn",
    "interval": "95 % interval",
    "candidate": "candidate",
    "best": "best",
    "worst": "worst",
    "appearances": "shown",
}
"""What a chart says where nothing else is given."""
WIDTH = 34
"""Characters in a line of a candidate's text beside the chart."""
LINES = 4
LINE, GAP = 14, 12
"""Pixels of a line of text and between two candidates."""
HALF_A_LINE = "slice(datum.label, -1) === '\\n'"


def candidates_chart(
    candidates: pl.DataFrame, titles: Mapping[str, str] | None = None, width: int = WIDTH
) -> alt.LayerChart:
    """Return the candidates of one dialogue as a dot plot, highest score first, with intervals.

    candidates: letter, utterance, score; low, high, best, worst and appearances where there are judgments.
    A candidate whose interval is null has a dot only. `score`, `low` and `high` are in [0, 1].
    """
    said = {**TITLES, **(titles or {})}
    judged = "low" in candidates.columns
    lines = [
        _lines(letter, text, width)
        for letter, text in candidates.select("letter", "utterance").iter_rows()
    ]
    most = max(map(len, lines), default=1)
    labels = [_centred(own, most) for own in lines]
    frame = candidates.with_columns(pl.Series("label", labels, pl.String))
    if judged:
        frame = _told(frame)
    order = frame.sort("score", descending=True, maintain_order=True)["label"].to_list()
    y = alt.Y("label:N", sort=order, title=None, axis=_axis_of_lines(most))
    base = alt.Chart(frame).encode(y=y)
    scale = alt.Scale(domain=[0, 1], nice=False)
    dots = base.mark_point(filled=True, size=110, color=BLUE, opacity=1).encode(
        x=alt.X("score:Q", scale=scale, title=said["score"], axis=alt.Axis(tickCount=5)),
        tooltip=_tooltip(judged, said),
    )
    layers = [dots]
    if judged:
        rule = base.transform_filter("isValid(datum.low) && isValid(datum.high)").mark_rule(
            color=GREY, strokeWidth=3
        )
        layers.insert(0, rule.encode(x=alt.X("low:Q", scale=scale), x2="high:Q"))
    chart = alt.LayerChart(layer=layers)
    return chart.properties(height=alt.Step(most * LINE + GAP))


def _axis_of_lines(most: int) -> alt.Axis:
    """Return an axis for labels that `_centred` made, of at most so many lines."""
    return alt.Axis(
        labelExpr="split(datum.label, '\\n')",
        labelBaseline={"condition": {"test": HALF_A_LINE, "value": "top"}, "value": "middle"},
        labelOffset=-LINE * (most - 1) / 2,
        labelLimit=400,
        labelLineHeight=LINE,
        ticks=False,
        domain=False,
    )


def _lines(letter: str, utterance: str, width: int) -> list[str]:
    """Return a candidate's letter and text in a few lines.

    >>> _lines("B", "eins zwei drei vier", 10)
    ['B\xa0 eins', 'zwei drei', 'vier']
    """
    return textwrap.wrap(f"{letter}\u00a0 {utterance}", width, max_lines=LINES, placeholder=" …")


def _centred(lines: list[str], most: int) -> str:
    """Return a label of so many lines that it stands in the middle of `most`; Vega starts all at the top.

    Half a line cannot be added; a line feed at the end says that it is missing.
    """
    above, half = divmod(most - len(lines), 2)
    return (
        "\n".join(
            [
                "",
            ]
            * above
            + lines
        )
        + "\n" * half
    )


def _told(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return what the tooltip tells of intervals and counts, as text; a dash for what there is not."""
    ends = candidates.select("low", "high").iter_rows()
    intervals = ["–" if None in both else f"{both[0]:.2f} – {both[1]:.2f}" for both in ends]
    counts = pl.col("best", "worst", "appearances").cast(pl.String).fill_null("–")
    return candidates.with_columns(counts, pl.Series("interval", intervals, pl.String))


def _tooltip(judged: bool, said: Mapping[str, str]) -> list[alt.Tooltip]:
    shown = {"utterance": "candidate", "score": "score"}
    if judged:
        shown |= {name: name for name in ("interval", "best", "worst", "appearances")}
    return [
        alt.Tooltip(field, title=said[title], format=".2f" if field == "score" else alt.Undefined)
        for field, title in shown.items()
    ]
