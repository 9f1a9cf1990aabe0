"""Charts of scores, reliability and agreement, and the output of charts to files."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.problems import InputError, Problem
from bws.simulation import is_simulated
from bws.tables import part_name
from bws.textio import write_atomic

if TYPE_CHECKING:
    import altair as alt

    from bws.chance_agreement import Agreement
    from bws.records import Judgments, Scores
    from bws.split_half import Correlation, ReliabilityCurve

__all__ = [
    "CHART_SUFFIXES",
    "agreement_chart",
    "chart_bytes",
    "chart_svg",
    "check_chart_path",
    "reliability_chart",
    "score_chart",
    "write_chart",
]

BLUE = "#0072B2"
"""Blue of the colour-blind-safe palette of Okabe and Ito, with a contrast of 5.2:1 on white."""
VERMILION, GREEN, PURPLE = "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK = "#E69F00", "#56B4E9", "#F0E442", "#000000"
PNG_SCALE = 2
CHART_SUFFIXES = (".svg", ".png", ".json")
MAX_NAMED_ITEMS = 60
"""Largest number of items whose names are shown in a chart of scores."""
BAR_SHIFT = 0.03
"""Shift of the bars of Pearson's and Spearman's correlation in opposite directions, in annotations."""
FONT: dict[str, Any] = {
    "labelFontSize": 12,
    "titleFontSize": 13,
    "labelLimit": 320,
    "titleLimit": 500,
}
ANSWERS = {"both": BLACK, "best": BLUE, "worst": VERMILION, "joint": GREEN}


def score_chart(scores: Scores, judgments: Judgments) -> alt.TopLevelMixin:
    """Return the scores in descending order, with their intervals if there are any.

    Items without score are left out. Names are shown for up to `MAX_NAMED_ITEMS` items.
    """
    import altair as alt

    scored = np.flatnonzero(~np.isnan(scores.score))
    order = scored[np.argsort(-scores.score[scored], kind="stable")]
    has_groups = any(scores.groups)
    rows: list[dict[str, Any]] = [
        {
            "rank": rank,
            "item": f"{scores.groups[n]}: {scores.items[n]}" if has_groups else scores.items[n],
            "score": float(scores.score[n]),
        }
        for rank, n in enumerate(order, start=1)
    ]
    if scores.low is not None and scores.high is not None:
        for row, low, high in zip(rows, scores.low[order], scores.high[order], strict=True):
            row |= _limits(float(low), float(high))
    are_named = len(rows) <= MAX_NAMED_ITEMS
    y = (
        alt.Y("item:N", sort=None, title="Item")
        if are_named
        else alt.Y("rank:Q", title="Rank of the item").scale(reverse=True, zero=False)
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    points = base.mark_point(filled=True, opacity=1, color=BLUE, size=45 if are_named else 10)
    layers = [points.encode(x=alt.X("score:Q", title="Score"))]
    title = f"Scores of {len(rows)} items"
    if any("low" in row for row in rows):
        layers.insert(0, base.mark_rule(color=BLUE).encode(x=alt.X("low:Q"), x2="high:Q"))
        title += " with 95 % intervals"
    height = 16 * max(len(rows), 3) if are_named else 640
    return _finished(alt.layer(*layers), title, judgments, height=height)


def reliability_chart(curve: ReliabilityCurve, judgments: Judgments) -> alt.TopLevelMixin:
    """Return the Spearman–Brown corrected reliability against the number of annotations per tuple.

    The bars contain the middle 95 % of the random splits; they are no confidence intervals.
    """
    import altair as alt

    names = ["Pearson", "Spearman"]
    rows = [
        {"annotations": point.annotations + shift, "correlation": name} | _split_limits(correlation)
        for point in curve.points
        for name, correlation, shift in (
            ("Pearson", point.pearson, -BAR_SHIFT),
            ("Spearman", point.spearman, BAR_SHIFT),
        )
        if not math.isnan(correlation.spearman_brown)
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("annotations:Q", title="Annotations per tuple", axis=alt.Axis(tickMinStep=1)).scale(
            zero=False, padding=16
        ),
        color=alt.Color("correlation:N", title="Correlation").scale(
            domain=names, range=[BLUE, VERMILION]
        ),
    )
    y = alt.Y("value:Q", title="Reliability (Spearman–Brown corrected)").scale(zero=False)
    shape = alt.Shape("correlation:N", title="Correlation").scale(domain=names)
    layers = [
        base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line().encode(y=y),
        base.mark_point(filled=True, opacity=1, size=60).encode(y=y, shape=shape),
    ]
    remark = "Bars: middle 95 % of the random splits, not confidence intervals"
    title = "Split-half reliability by number of annotations"
    return _finished(alt.layer(*layers), title, judgments, remark)


def agreement_chart(agreement: Agreement) -> alt.TopLevelMixin:
    """Return Krippendorff's alpha of each group and answer, with the intervals that were computed."""
    import altair as alt

    rows = [
        {"part": part_name(group.by), "answer": answer, "alpha": group.alpha[answer].value}
        | _limits(group.alpha[answer].low, group.alpha[answer].high)
        for group in agreement.groups
        for answer in ANSWERS
        if not math.isnan(group.alpha[answer].value)
    ]
    answers = list(ANSWERS)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("part:N", sort=None, title="Part of the tuples"),
        yOffset=alt.YOffset("answer:N", sort=answers),
        color=alt.Color(
            "answer:N", title="Answer", sort=answers,
            scale=alt.Scale(domain=answers, range=list(ANSWERS.values())),
        ),
    )  # fmt: skip
    points = base.mark_point(filled=True, opacity=1, size=60).encode(
        x=alt.X("alpha:Q", title="Krippendorff's alpha"),
        shape=alt.Shape("answer:N", title="Answer", sort=answers, scale=alt.Scale(domain=answers)),
    )
    layers = [points]
    title = "Agreement of annotators"
    if any("low" in row for row in rows):
        layers.insert(0, base.mark_rule().encode(x=alt.X("low:Q"), x2="high:Q"))
        title += " with 95 % intervals"
    height = 64 * len(agreement.groups)
    return _finished(alt.layer(*layers), title, agreement.judgments, height=max(height, 120))


def _limits(low: float, high: float) -> dict[str, float]:
    return {} if math.isnan(low) or math.isnan(high) else {"low": low, "high": high}


def _split_limits(correlation: Correlation) -> dict[str, float]:
    """Return the corrected reliability, and the corrected quantiles of the trials if they are defined."""
    from bws.split_half import spearman_brown

    low, high = np.nanquantile(correlation.trials, (0.025, 0.975)).tolist()
    return {"value": correlation.spearman_brown} | _limits(
        spearman_brown(low), spearman_brown(high)
    )


def _finished(
    chart: alt.LayerChart | alt.FacetChart,
    title: str,
    judgments: Judgments,
    remark: str = "",
    height: int = 280,
) -> alt.TopLevelMixin:
    """Return a chart with its title; the subtitle names the judgments, and says if they are simulated."""
    import altair as alt

    names = [str(name) for name in judgments.annotators]
    source = "Simulated judgments" if names and all(map(is_simulated, names)) else "Judgments"
    source += f": {len(judgments)} of {len(judgments.tuples)} tuples by {len(names)} annotators"
    titles = alt.TitleParams(
        title,
        subtitle=[source, *filter(None, [remark])],
        anchor="start",
        fontSize=15,
        subtitleFontSize=12,
    )
    finished: alt.TopLevelMixin = (
        chart.properties(title=titles, width=440, height=height)
        .configure_axis(**FONT)
        .configure_legend(**FONT)
    )
    return finished


def write_chart(chart: alt.TopLevelMixin, path: str | os.PathLike[str]) -> None:
    """Write a chart atomically in the format of the suffix: .svg, .png (double size) or .json (Vega-Lite).

    Raises InputError for other suffixes.
    """
    check_chart_path(path)
    write_atomic(path, chart_bytes(chart, Path(path).suffix.lower()))


def check_chart_path(path: str | os.PathLike[str]) -> None:
    """Raise InputError if `write_chart` does not support the suffix of this file name."""
    if Path(path).suffix.lower() not in CHART_SUFFIXES:
        message = f"unsupported file type; expected a name that ends in one of {', '.join(CHART_SUFFIXES)}"
        raise InputError(Problem(os.fspath(path), None, message))


def chart_bytes(chart: alt.TopLevelMixin, suffix: str) -> bytes:
    """Return the content of a chart file; `suffix` is one of `CHART_SUFFIXES`."""
    if suffix == ".svg":
        return chart_svg(chart).encode("utf-8")
    if suffix == ".json":
        return (json.dumps(chart.to_dict(), ensure_ascii=False, indent=2) + "\n").encode("utf-8")
    import vl_convert

    png: bytes = vl_convert.vegalite_to_png(
        _specification(chart), scale=PNG_SCALE, allowed_base_urls=[]
    )
    return png


def chart_svg(chart: alt.TopLevelMixin) -> str:
    """Return a chart as an SVG element, rendered offline."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(_specification(chart), allowed_base_urls=[])
    return svg


def _specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    specification: dict[str, Any] = chart.to_dict()
    return specification
