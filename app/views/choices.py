"""Charts about models that choose: accuracies beside guessing, the options of a question, letters."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from app.views.models import dots
from app.views.theme import BLUE, GREEN, GREY, ORANGE

__all__ = ["accuracies", "likelihoods", "positions"]

Titles = Mapping[str, str]


def accuracies(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return accuracies with their 95 % intervals, best first, and guessing as a dashed line.

    frame: what `app.frames.choices.accuracies` returns. titles: of value, model, history, n and chance.
    """
    chance = alt.Chart(
        frame.select(pl.lit(titles["chance"]).alias("line"), "chance").fill_nan(None).unique()
    )
    line = chance.mark_rule(color=GREY, strokeWidth=2).encode(
        x="chance:Q",
        strokeDash=alt.StrokeDash(
            "line:N",
            scale=alt.Scale(range=[[5, 3]]),
            legend=alt.Legend(title=None, orient="bottom", symbolSize=400),
        ),
        tooltip=[alt.Tooltip("chance:Q", title=titles["chance"], format=".3f")],
    )
    return dots(frame, "model", titles, line=[line])


def likelihoods(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return how likely a model finds each option of a question, the likeliest first.

    frame: of what `app.frames.choices.options` returns the rows of a question under a history, with
    `utterance` and `role`: whether the option was chosen or is right, in the words of the legend. titles:
    of letter, utterance, likelihood, role and score; and as ``roles`` those of both, chosen, right and
    neither, joined by ``|``.
    """
    roles = titles["roles"].split("|")
    y = alt.Y(
        "letter:N",
        sort=frame.sort("likelihood", descending=True)["letter"].to_list(),
        title=None,
    )
    tooltip = [
        alt.Tooltip(f"{name}:N", title=titles[name]) for name in ("letter", "utterance", "role")
    ] + [
        alt.Tooltip(f"{name}:Q", title=titles[name], format=".3f")
        for name in ("likelihood", "score")
    ]
    base = alt.Chart(frame).encode(y=y, tooltip=tooltip)
    legend = alt.Legend(title=None, orient="top", columns=2, labelLimit=300)
    points = base.mark_point(filled=True, size=130, opacity=1).encode(
        x=alt.X("likelihood:Q", title=titles["likelihood"], scale=alt.Scale(zero=False)),
        color=alt.Color(
            "role:N",
            legend=legend,
            scale=alt.Scale(domain=roles, range=[BLUE, ORANGE, GREEN, GREY]),
        ),
        shape=alt.Shape(
            "role:N",
            legend=legend,
            scale=alt.Scale(domain=roles, range=["circle", "diamond", "square", "triangle-up"]),
        ),
    )
    return alt.LayerChart(layer=[points]).properties(height=130 + 26 * len(frame))


def positions(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return how often each letter was chosen (bars) and was right (ticks).

    frame: `app.frames.choices.Letters.frame`. titles: of letter, count, chosen and gold.
    """
    named = frame.select(
        "letter",
        pl.col("chosen").cast(pl.Float64),
        "gold",
        chosen_name=pl.lit(titles["chosen"]),
        gold_name=pl.lit(titles["gold"]),
    )
    tooltip = [
        alt.Tooltip("letter:N", title=titles["letter"]),
        alt.Tooltip("chosen:Q", title=titles["chosen"]),
        alt.Tooltip("gold:Q", title=titles["gold"], format=".3~g"),
    ]
    base = alt.Chart(named).encode(
        x=alt.X("letter:N", title=titles["letter"], axis=alt.Axis(labelAngle=0)), tooltip=tooltip
    )
    colour = alt.Scale(domain=[titles["chosen"], titles["gold"]], range=[BLUE, ORANGE])
    legend = alt.Legend(title=None, symbolType="square", orient="top")
    bars = base.mark_bar().encode(
        y=alt.Y("chosen:Q", title=titles["count"]),
        color=alt.Color("chosen_name:N", scale=colour, legend=legend),
    )
    ticks = base.mark_tick(thickness=4, size=34, opacity=1).encode(
        y="gold:Q", color=alt.Color("gold_name:N", scale=colour, legend=legend)
    )
    return alt.LayerChart(layer=[bars, ticks]).properties(height=260)
