"""Charts of a study: reliability with a plan, ranked scores, pairs of annotators, variance components.

Each chart is a function of results and titles (for other languages; the defaults are English).
`bws.analysis.pictures` adds titles and remarks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.charts import BLACK, BLUE, GREEN, VERMILION, chart_rows, limits
from bws.base.tables import part_name

if TYPE_CHECKING:
    import altair as alt

    from bws.annotators import Annotator, AnnotatorReport
    from bws.chance_agreement import Agreement
    from bws.components import Generalisability
    from bws.planning import Planner
    from bws.raw_agreement import AnnotatorPairs
    from bws.split_half import Correlation, ReliabilityCurve

Titles = Mapping[str, str]
GREY = "#8C8C8C"
BAR_SHIFT = 0.03
"""Shift of the bars of Pearson's and Spearman's correlation in opposite directions, in annotations."""
MAX_PLANNED_ANNOTATIONS = 30
"""Largest number of annotations per tuple on the axis, unless the study has more."""
N_PREDICTIONS = 60
SERIES = {
    "pearson": (BLUE, (1, 0), "circle"),
    "spearman": (VERMILION, (1, 0), "diamond"),
    "predicted": (GREEN, (6, 3), "stroke"),
    "target": (GREY, (2, 3), "stroke"),
}
"""Series of a chart of reliability: colour, dash and shape."""
RELIABILITY_TITLES = {
    "annotations": "Annotations per tuple",
    "value": "Reliability (Spearman–Brown corrected)",
    "correlation": "Correlation",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "predicted": "predicted from variance components",
    "low": "2.5 %",
    "high": "97.5 %",
}
MAX_NAMED_ITEMS = 60
"""Largest number of items whose names are shown in a chart of scores."""
MAX_DRAWN_ITEMS = 400
"""Largest number of items of which each is drawn; of more, items at equal distances of rank are."""
RANKED_HEIGHT = 640
RANKED_TITLES = {
    "item": "Item",
    "rank": "Rank of the item",
    "score": "Score",
    "low": "2.5 %",
    "high": "97.5 %",
}
MAX_ANNOTATORS_WITH_TEXT = 12
"""Largest number of annotators with numbers in the cells of the matrix."""
MAX_NAMED_ANNOTATORS = 80
"""Largest number of annotators with names beside the matrix."""
RAMP = ("#F2F7FC", "#08306B")
"""Colours of chance agreement, or less, and of full agreement."""
TEXT_SWITCH = 0.643
"""Position on the ramp above which the text is light: both have a contrast of at least 4.5:1 there."""
MISSING_COLOUR = "#D9D9D9"
PAIRS_TITLES = {
    "agreement": "share of equal answers",
    "first": "annotator",
    "second": "other annotator",
    "tuples": "tuples of both",
}
SCALES_TITLES = {
    "annotator": "annotator",
    "scale": "Scale",
    "low": "2.5 %",
    "high": "97.5 %",
    "judgments": "judgments",
    "first": "first half",
    "second": "second half",
    "reasons": "reasons for review",
}
MAX_NAMED_SCALES = 60
"""Largest number of annotators of whom also those without a flag have a name beside the scales."""
SCALE_ROWS = ((MAX_NAMED_SCALES, 16), (150, 6), (math.inf, 2))
"""Up to so many annotators, the height of a row of the scales in pixels."""
AGREEMENT_TITLES = {
    "part": "part of the tuples",
    "answer": "answer",
    "alpha": "Krippendorff's alpha",
    "low": "2.5 %",
    "high": "97.5 %",
}
ANSWERS = {"both": BLACK, "best": BLUE, "worst": VERMILION, "joint": GREEN}
COMPONENTS_TITLES = {
    "component": "component",
    "value": "variance of one judgment",
    "low": "2.5 %",
    "high": "97.5 %",
    "item": "items",
    "design": "opponents in the tuples",
    "annotator": "annotators",
    "residual": "single answers",
}


def reliability_rows(curve: ReliabilityCurve) -> list[dict[str, Any]]:
    """Return a row per number of annotations and correlation: annotations, correlation, value, low, high.

    The limits contain the middle 95 % of the random splits; they are missing if undefined.
    """
    return [
        {"annotations": point.annotations + shift, "correlation": name} | _split_limits(correlation)
        for point in curve.points
        for name, correlation, shift in (
            ("pearson", point.pearson, -BAR_SHIFT),
            ("spearman", point.spearman, BAR_SHIFT),
        )
        if not math.isnan(correlation.spearman_brown)
    ]


def _split_limits(correlation: Correlation) -> dict[str, float]:
    """Return the corrected reliability, and the corrected quantiles of the trials if they are defined."""
    from bws.split_half import spearman_brown

    low, high = np.nanquantile(correlation.trials, (0.025, 0.975)).tolist()
    return {"value": correlation.spearman_brown} | limits(spearman_brown(low), spearman_brown(high))


def reliability_layers(
    curve: ReliabilityCurve,
    planner: Planner | None = None,
    target: float | None = None,
    titles: Titles = RELIABILITY_TITLES,
) -> alt.LayerChart:
    """Return the Spearman–Brown corrected reliability against the number of annotations per tuple.

    planner: adds the reliability predicted from variance components for the present tuples, and with a
    target a mark at the number of annotations that reaches it, if `reachable_annotations` has one. target:
    adds a line at this reliability. titles: also of ``target``.
    """
    import altair as alt

    labels = {"target": f"target {target:g}" if target else "", **titles}
    rows = [row | {"correlation": labels[row["correlation"]]} for row in reliability_rows(curve)]
    names = ["pearson", "spearman"]
    names += ["predicted"] * (planner is not None) + ["target"] * (target is not None)
    colour, dash, shape = _series_scales(names, labels)
    x = alt.X(
        "annotations:Q", title=labels["annotations"], axis=alt.Axis(tickMinStep=1, format="d")
    ).scale(zero=False, padding=16)
    y = alt.Y("value:Q", title=labels["value"]).scale(zero=False)
    tooltip = [
        alt.Tooltip("correlation:N", title=labels["correlation"]),
        alt.Tooltip("annotations:Q", title=labels["annotations"], format=".3~g"),
        alt.Tooltip("value:Q", title=labels["value"], format=".3f"),
    ]
    base = alt.Chart(chart_rows(rows)).encode(x=x, color=colour, tooltip=tooltip)
    layers = [
        base.mark_line().encode(y=y, strokeDash=dash),
        base.mark_point(filled=True, opacity=1, size=60).encode(y=y, shape=shape),
    ]
    if any("low" in row for row in rows):  # an empty layer would be an image without a name
        rule = base.mark_rule().encode(y=alt.Y("low:Q", title=labels["value"]), y2="high:Q")
        layers.insert(0, rule)
    if planner:
        predicted = [
            {"annotations": number, "correlation": labels["predicted"], "value": value}
            for number, value in _predictions(curve, planner, target)
        ]
        line = base.properties(data=chart_rows(predicted)).mark_line(strokeWidth=2)
        layers.append(line.encode(y=y, strokeDash=dash))
    if target is not None:
        line_of_target = chart_rows([{"value": target, "correlation": labels["target"]}])
        rule = alt.Chart(line_of_target).mark_rule(strokeWidth=2)
        layers.append(rule.encode(y=y, color=colour, strokeDash=dash))
    needed = reachable_annotations(planner, target)
    if needed is not None:
        point = {"annotations": needed, "value": target, "correlation": labels["predicted"]}
        mark = base.properties(data=chart_rows([point]))
        layers.append(mark.mark_point(shape="square", size=110, strokeWidth=2).encode(y=y))
    return alt.LayerChart(layer=layers)


def _series_scales(
    names: Sequence[str], labels: Titles
) -> tuple[alt.Color, alt.StrokeDash, alt.Shape]:
    """Return the encodings of the series in a chart of reliability, with one legend."""
    import altair as alt

    colours, dashes, shapes = zip(*map(SERIES.__getitem__, names), strict=True)
    domain, title = [labels[name] for name in names], labels["correlation"]
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=300)
    return (
        alt.Color("correlation:N", title=title, legend=legend).scale(domain=domain, range=colours),
        alt.StrokeDash("correlation:N", title=title, legend=legend).scale(
            domain=domain, range=dashes
        ),
        alt.Shape("correlation:N", title=title, legend=legend).scale(domain=domain, range=shapes),
    )


def _predictions(
    curve: ReliabilityCurve, planner: Planner, target: float | None
) -> Iterator[tuple[float, float]]:
    """Yield numbers of annotations, from one to those of a plan, and their predicted reliability."""
    last = max(2 * planner.annotations_per_tuple, *(point.annotations for point in curve.points))
    needed = reachable_annotations(planner, target)
    if needed is not None:
        last = max(last, needed + 1)
    tuples, per_annotator = planner.tuples_per_item, planner.judgments_per_annotator
    for number in np.linspace(1, last, N_PREDICTIONS).tolist():
        yield number, planner.reliability(tuples, number, per_annotator)


def reachable_annotations(planner: Planner | None, target: float | None) -> float | None:
    """Return the annotations per tuple for a target; None if they are undefined or too many for the chart."""
    if planner is None or target is None:
        return None
    needed = planner.annotations_for(target)
    most = max(MAX_PLANNED_ANNOTATIONS, 2 * planner.annotations_per_tuple)
    return needed if 1 <= needed <= most else None


def ranked_rows(
    names: Sequence[str],
    score: NDArray[np.float64],
    low: NDArray[np.float64] | None = None,
    high: NDArray[np.float64] | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the drawn items, highest score first, and the bands of their neighbours; ties keep their order.

    names, score, low and high: (N,); items with a NaN score are omitted, and undefined intervals have no
    limits. An item has rank (1 for the highest score), item and score. Of more than `MAX_DRAWN_ITEMS` items,
    those at equal distances of rank are drawn, with the first and the last. A band has from and to (ranks),
    low and high: the extreme limits of all intervals of items between two that are drawn, both included.

    >>> items, bands = ranked_rows(["a", "b"], np.array([0.1, 0.4]))
    >>> items, bands
    ([{'rank': 1, 'item': 'b', 'score': 0.4}, {'rank': 2, 'item': 'a', 'score': 0.1}], [])
    """
    scored = np.flatnonzero(~np.isnan(score))
    order = scored[np.argsort(-score[scored], kind="stable")]
    positions = np.arange(len(order))
    if len(order) > MAX_DRAWN_ITEMS:
        positions = np.linspace(0, len(order) - 1, MAX_DRAWN_ITEMS).round().astype(int)
    undefined = np.full(len(score), math.nan)
    lows, highs = (undefined if each is None else each for each in (low, high))
    rows: list[dict[str, Any]] = [
        {"rank": position + 1, "item": names[n], "score": float(score[n])}
        | limits(float(lows[n]), float(highs[n]))
        for position, n in zip(positions.tolist(), order[positions].tolist(), strict=True)
    ]
    bands: list[dict[str, Any]] = []
    if len(positions) < len(order):
        for start, end in zip(positions[:-1].tolist(), positions[1:].tolist(), strict=True):
            between = order[start : end + 1]
            defined = between[~np.isnan(lows[between]) & ~np.isnan(highs[between])]
            if len(defined):
                ends = {"low": float(lows[defined].min()), "high": float(highs[defined].max())}
                bands.append({"from": start + 1, "to": end + 1} | ends)
    return rows, bands


def ranked_chart(
    rows: Sequence[Mapping[str, Any]],
    bands: Sequence[Mapping[str, Any]] = (),
    titles: Titles = RELIABILITY_TITLES,
) -> alt.LayerChart:
    """Return the scores in descending order with their intervals.

    rows and bands: as returned by `ranked_rows`; further columns of the rows that have titles are in the
    tooltip. Names are shown for up to `MAX_NAMED_ITEMS` items, ranks for more.
    """
    import altair as alt

    labels = {**RANKED_TITLES, **(titles or {})}
    are_named = len(rows) <= MAX_NAMED_ITEMS
    y = (
        alt.Y("item:N", sort=None, title=labels["item"]).axis(labelOverlap=False)
        if are_named
        else alt.Y("rank:Q", title=labels["rank"]).scale(reverse=True, zero=False, nice=False)
    )
    numbers = ("score", "low", "high")
    texts = [name for name in labels if name not in (*numbers, "rank") and name in rows[0]]
    base = alt.Chart(chart_rows(list(rows))).encode(
        y=y,
        tooltip=[
            *(alt.Tooltip(f"{name}:N", title=labels[name]) for name in texts),
            alt.Tooltip("rank:Q", title=labels["rank"]),
            *(alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f") for name in numbers),
        ],
    )
    points = base.mark_point(filled=True, opacity=1, color=BLUE, size=45 if are_named else 10)
    layers = [points.encode(x=alt.X("score:Q", title=labels["score"]))]
    if any("low" in row for row in rows):
        rule = base.mark_rule(color=BLUE, opacity=1 if are_named else 0.7)
        defined = rule.transform_filter("isValid(datum.low)")
        layers.insert(
            0, defined.encode(x=alt.X("low:Q", title=labels["score"]), x2=alt.X2("high:Q"))
        )
    if bands:
        area = alt.Chart(chart_rows(list(bands))).mark_rect(color=GREY, opacity=0.3)
        layers.append(
            area.encode(
                y=alt.Y("from:Q", title=labels["rank"]), y2="to:Q", x=alt.X("low:Q"), x2="high:Q"
            )
        )
    height = 16 * max(len(rows), 3) if are_named else RANKED_HEIGHT
    return alt.LayerChart(layer=layers).properties(height=height)


def agreement_rows(agreement: Agreement) -> list[dict[str, Any]]:
    """Return a row per group and answer: part, answer, alpha, low and high."""
    return [
        {"part": part_name(group.by), "answer": answer, "alpha": group.alpha[answer].value}
        | limits(group.alpha[answer].low, group.alpha[answer].high)
        for group in agreement.groups
        for answer in ANSWERS
        if not math.isnan(group.alpha[answer].value)
    ]


def agreement_chart(rows: Sequence[Mapping[str, Any]], labels: Titles) -> alt.LayerChart:
    """Return Krippendorff's alpha of each part and answer with the intervals that there are."""
    import altair as alt

    answers = list(ANSWERS)
    base = alt.Chart(chart_rows(rows)).encode(
        y=alt.Y("part:N", sort=None, title=labels["part"]),
        yOffset=alt.YOffset("answer:N", sort=answers),
        color=alt.Color(
            "answer:N", title=labels["answer"], sort=answers,
            scale=alt.Scale(domain=answers, range=list(ANSWERS.values())),
        ),
        tooltip=[
            alt.Tooltip("part:N", title=labels["part"]),
            alt.Tooltip("answer:N", title=labels["answer"]),
            *(
                alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f")
                for name in ("alpha", "low", "high")
            ),
        ],
    )  # fmt: skip
    layers = [
        base.mark_point(filled=True, opacity=1, size=60).encode(
            x=alt.X("alpha:Q", title=labels["alpha"]),
            shape=alt.Shape(
                "answer:N", title=labels["answer"], sort=answers, scale=alt.Scale(domain=answers)
            ),
        )
    ]
    if any("low" in row for row in rows):
        layers.insert(0, base.mark_rule().encode(x=alt.X("low:Q"), x2="high:Q"))
    height = 64 * len({row["part"] for row in rows})
    return alt.LayerChart(layer=layers).properties(height=max(height, 120))


def scales_rows(report: AnnotatorReport) -> list[dict[str, Any]]:
    """Return a row per annotator with a scale, the lowest first: annotator, scale, low, high, flags."""
    rows = [
        {
            "annotator": each.annotator,
            "scale": each.scale,
            "judgments": each.judgments,
            "is_flagged": bool(each.flags),
            "is_worse": "worse" in each.flags,
            "reasons": "; ".join(each.reasons),
        }
        | limits(each.scale_low, each.scale_high)
        | ({} if math.isnan(each.scale_first) else _halves(each))
        for each in report.annotators
        if not math.isnan(each.scale)
    ]
    return sorted(rows, key=lambda row: (row["scale"], row["annotator"]))


def _halves(annotator: Annotator) -> dict[str, float]:
    return {"first": annotator.scale_first, "second": annotator.scale_second}


def scales_chart(rows: Sequence[Mapping[str, Any]], labels: Titles) -> alt.LayerChart:
    """Return a row per annotator: scale and interval, and a line at 0.

    Only flagged annotators have a colour, and of many only they have a name.
    """
    import altair as alt

    order = [str(row["annotator"]) for row in rows]
    named = order if len(rows) <= MAX_NAMED_SCALES else [
        str(row["annotator"]) for row in rows if row["is_flagged"]
    ]  # fmt: skip
    height = next(pixels for most, pixels in SCALE_ROWS if len(rows) <= most)
    axis = alt.Axis(
        values=named,
        labelOverlap=len(rows) > MAX_NAMED_SCALES,
        labelLimit=160,
        ticks=False,
        grid=False,
    )
    base = alt.Chart(chart_rows(rows)).encode(
        y=alt.Y("annotator:N", sort=order, title=None, axis=axis),
        color=alt.condition("datum.is_flagged", alt.value(VERMILION), alt.value(GREY)),
        tooltip=[
            *(alt.Tooltip(f"{name}:N", title=labels[name]) for name in ("annotator", "reasons")),
            *(
                alt.Tooltip(f"{name}:Q", title=labels[name], format=".2f")
                for name in ("scale", "low", "high", "first", "second")
            ),
            alt.Tooltip("judgments:Q", title=labels["judgments"]),
        ],
    )
    lines = alt.Chart(chart_rows([{"scale": 0}]))
    x = alt.X("scale:Q", title=labels["scale"])
    layers = [lines.mark_rule(strokeDash=[4, 4], color=GREY).encode(x=x)]
    if any("low" in row for row in rows):
        with_interval = base.transform_filter("isValid(datum.low)")
        layers.append(with_interval.mark_rule(opacity=0.6).encode(x=alt.X("low:Q"), x2="high:Q"))
    layers.append(
        base.mark_point(filled=True, opacity=1, size=30 if height > 6 else 12).encode(x=x)
    )
    if any(row["is_worse"] for row in rows):
        worse = base.transform_filter("datum.is_worse")
        layers.append(worse.mark_rule(strokeDash=[2, 2]).encode(x="first:Q", x2="second:Q"))
        layers.append(worse.mark_point(size=30 if height > 6 else 12).encode(x="first:Q"))
    return alt.LayerChart(layer=layers).properties(height=alt.Step(height))


def pairs_rows(pairs: AnnotatorPairs) -> list[dict[str, Any]]:
    """Return a row per ordered pair of annotators: first, second, tuples, agreement and is_few.

    The agreement of a pair without a common tuple is None.
    """
    names, n = pairs.annotators, len(pairs.annotators)
    return [
        {
            "first": names[a],
            "second": names[b],
            "tuples": int(pairs.tuples[a, b]),
            "agreement": float(pairs.agreement[a, b]) if pairs.tuples[a, b] else None,
            "is_few": bool(pairs.is_few[a, b]),
        }
        for a in range(n)
        for b in range(n)
        if a != b
    ]


def pairs_chart(pairs: AnnotatorPairs, titles: Titles | None = None) -> alt.LayerChart:
    """Return a matrix of annotators, those with the highest mean agreement first.

    Cells of up to `MAX_ANNOTATORS_WITH_TEXT` annotators contain the share of equal answers. The colours range
    from the share of random judgments, or less, to 1. A ring (an
    asterisk beside a number) marks pairs with few common tuples; pairs without any are grey, with a dash.
    """
    import altair as alt

    labels = {**PAIRS_TITLES, **(titles or {})}
    names = list(pairs.annotators)
    has_text = len(names) <= MAX_ANNOTATORS_WITH_TEXT
    size = 44 if has_text else 16 if len(names) <= 40 else 11
    switch = pairs.chance + TEXT_SWITCH * (1 - pairs.chance)
    axis = alt.Axis(
        grid=False,
        ticks=False,
        domain=False,
        labels=len(names) <= MAX_NAMED_ANNOTATORS,
        labelOverlap=False,
        labelLimit=160,
        labelFontSize=12 if has_text else size - 2,
        labelAngle=-90,
    )
    base = alt.Chart(chart_rows(pairs_rows(pairs))).encode(
        x=alt.X("second:N", sort=names, title=labels["second"], axis=axis),
        y=alt.Y("first:N", sort=names, title=labels["first"], axis=_upright(axis)),
        tooltip=[
            alt.Tooltip("first:N", title=labels["first"]),
            alt.Tooltip("second:N", title=labels["second"]),
            alt.Tooltip("agreement:Q", title=labels["agreement"], format=".3f"),
            alt.Tooltip("tuples:Q", title=labels["tuples"]),
        ],
    )
    legend = alt.Legend(
        title=labels["agreement"], orient="top", direction="horizontal", gradientLength=120, titleLimit=300
    )  # fmt: skip
    colour = alt.Color("agreement:Q", legend=None if has_text else legend).scale(
        domain=[pairs.chance, 1], range=list(RAMP), interpolate="rgb", clamp=True
    )
    text_colour = alt.condition(
        f"datum.agreement > {switch}", alt.value("#FFFFFF"), alt.value("#000000")
    )
    defined = base.transform_filter("isValid(datum.agreement)")
    layers = [defined.mark_rect(stroke="#FFFFFF", strokeWidth=0.5).encode(color=colour)]
    if (pairs.tuples == 0).sum() > len(names):
        missing = base.transform_filter("!isValid(datum.agreement)")
        layers += [
            missing.mark_rect(color=MISSING_COLOUR, stroke="#FFFFFF", strokeWidth=0.5),
            missing.mark_text(text="–", fontSize=min(11, size - 4), color="#000000"),
        ]
    if has_text:
        text = "format(datum.agreement, '.2f') + (datum.is_few ? '*' : '')"
        numbers = defined.transform_calculate(text=text).mark_text(fontSize=11)
        layers.append(numbers.encode(text="text:N", color=text_colour))
    elif pairs.is_few.any():
        few = defined.transform_filter("datum.is_few").mark_point(size=size**2 / 6, strokeWidth=1)
        layers.append(few.encode(color=text_colour))
    return alt.LayerChart(layer=layers).properties(
        width=alt.Step(size), height=alt.Step(min(size, 26))
    )


def _upright(axis: alt.Axis) -> alt.Axis:
    upright: alt.Axis = axis.copy()
    upright["labelAngle"] = 0
    return upright


def components_rows(study: Generalisability, titles: Titles) -> list[dict[str, Any]]:
    """Return a row per variance component that is defined: component, value, low and high."""
    return [
        {"component": titles[name], "value": estimate.value} | limits(estimate.low, estimate.high)
        for name, estimate in study.variances.items()
        if not math.isnan(estimate.value)
    ]


def components_chart(rows: Sequence[Mapping[str, Any]], labels: Titles) -> alt.LayerChart:
    """Return the variance components of one judgment with their intervals."""
    import altair as alt

    base = alt.Chart(chart_rows(rows)).encode(
        y=alt.Y("component:N", sort=None, title=None, axis=alt.Axis(labelLimit=300)),
        tooltip=[
            alt.Tooltip("component:N", title=labels["component"]),
            *(
                alt.Tooltip(f"{name}:Q", title=labels[name], format=".4f")
                for name in ("value", "low", "high")
            ),
        ],
    )
    layers = [
        base.mark_bar(color=BLUE, opacity=0.6, height={"band": 0.6}).encode(
            x=alt.X("value:Q", title=labels["value"])
        )
    ]
    if any("low" in row for row in rows):
        layers.append(base.mark_rule(strokeWidth=2, color=VERMILION).encode(x="low:Q", x2="high:Q"))
    return alt.LayerChart(layer=layers).properties(height=alt.Step(34))
