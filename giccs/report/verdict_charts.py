"""The small charts of the verdict: one strip for each question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bws.analysis.analysis import Drawing, Translate
from bws.base.charts import BLUE, ORANGE, VERMILION, chart_rows, limits
from bws.base.notes import note

if TYPE_CHECKING:
    import altair as alt

    from bws.annotators import Annotator
    from bws.stats.estimates import Estimate
    from giccs.report.model_comparison import Leaderboard

SPLITS = {
    "annotation": "halves of each tuple's judgments",
    "tuple": "halves of the tuples",
    "annotator": "halves of the annotators",
    "all": "all sources of error",
}
ROW_HEIGHT = 18
"""Pixels of a row."""
LABEL_WIDTH = 180
"""Maximum width of the labels in pixels."""


def reliability_strip(
    splits: Mapping[str, float], reliability: Estimate, target: float, t: Translate
) -> Drawing:
    """Return the reliability by split, and from variance components with its interval, beside the target."""
    import altair as alt

    values = {**splits, "all": reliability.value}
    rows: list[dict[str, Any]] = [
        {"label": t(SPLITS[name]), "value": value}
        for name, value in values.items()
        if not math.isnan(value)
    ]
    if rows and not math.isnan(reliability.value):
        rows[-1] |= limits(reliability.low, reliability.high)
    line = (
        alt.Chart(chart_rows([{"target": target}]))
        .mark_rule(strokeDash=[4, 3], color="gray")
        .encode(x="target:Q")
    )
    title = t("Reliability")
    chart = line + _intervals(rows, title, alt.Scale(domain=[0, 1]))
    text = "; ".join(f"{row['label']} {row['value']:.2f}" for row in rows)
    return Drawing(chart, title, rows, alternative=f"{title}: {text}.", size=_size(len(rows)))


def pairs_strip(n_different: int, n_pairs: int, t: Translate) -> Drawing:
    """Return the share of pairs of items that differ significantly."""
    import altair as alt

    rows = [
        {"kind": t("significantly different"), "pairs": n_different},
        {"kind": t("not significantly different"), "pairs": n_pairs - n_different},
    ]
    title = t("Pairs of items")
    chart = (
        alt.Chart(chart_rows(rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            alt.X("pairs:Q", title=title),
            _labels("kind", rows),
            alt.Color("kind:N", legend=None).scale(
                domain=[str(row["kind"]) for row in rows], range=[BLUE, ORANGE]
            ),
            tooltip=[alt.Tooltip("kind:N"), alt.Tooltip("pairs:Q", title=title)],
        )
    )
    text = "; ".join(f"{row['kind']} {row['pairs']}" for row in rows)
    return Drawing(chart, title, rows, alternative=f"{title}: {text}.", size=_size(len(rows)))


def scale_strip(annotators: Iterable[Annotator], t: Translate) -> Drawing:
    """Return a mark per annotator at the scale of the choice model; flagged ones have another colour."""
    import altair as alt

    flagged, unflagged = t("flagged"), t("not flagged")
    rows = [
        {
            "annotator": each.annotator,
            "scale": each.scale,
            "state": flagged if each.flags else unflagged,
            "reasons": "; ".join(each.reasons),
        }
        for each in annotators
        if not math.isnan(each.scale)
    ]
    title = t("Scale (below 0: reversed, 0: random)")
    chart = (
        alt.Chart(chart_rows(rows))
        .mark_tick(thickness=2)
        .encode(
            alt.X("scale:Q", title=title),
            alt.Y("state:N", sort=[flagged, unflagged], title=None),
            alt.Color("state:N", legend=None).scale(
                domain=[flagged, unflagged], range=[VERMILION, BLUE]
            ),
            tooltip=[
                alt.Tooltip("annotator:N", title=t("annotator")),
                alt.Tooltip("scale:Q", format=".2f"),
                alt.Tooltip("reasons:N"),
            ],
        )
    )
    n_flagged = sum(row["state"] == flagged for row in rows)
    text = f"Scales of {len(rows)} annotators, {n_flagged} flagged."
    return Drawing(
        chart, title, rows, alternative=text, size=_size(2), opens={"annotator": "annotator"}
    )


def model_strip(board: Leaderboard, most: int, t: Translate) -> Drawing:
    """Return the best models with intervals; those that tie with the first have its colour."""
    import altair as alt

    from giccs.report.metric_titles import metric_title

    rows = [
        {
            "label": ranked.model,
            "key": ranked.key,
            "value": ranked.estimate.value,
            "ties": index == 0 or index in board.tied,
            **limits(ranked.estimate.low, ranked.estimate.high),
        }
        for index, ranked in enumerate(board.models[:most])
        if not math.isnan(ranked.estimate.value)
    ]
    title = t(metric_title(board.metric))
    n_models = len(board.models)
    remarks = [f"{board.task}, {board.data}"]
    if board.history:
        remarks.append(note("history: {history}", history=board.history))
    if n_models > most:
        remarks.append(note("Drawn: the best {n:d} of {total:d} models", n=most, total=n_models))
    colour = alt.condition("datum.ties", alt.value(BLUE), alt.value("gray"))
    chart = _intervals(rows, title, alt.Scale(zero=False), colour)
    text = "; ".join(f"{row['label']} {row['value']:.3f}" for row in rows)
    return Drawing(
        chart,
        title,
        rows,
        remarks,
        alternative=f"{title}: {text}.",
        size=_size(len(rows)),
        opens={"chooser" if board.metric == "accuracy" else "model": "key"},
    )


def _intervals(
    rows: Sequence[Mapping[str, Any]], title: str, scale: alt.Scale, colour: Any = None
) -> alt.LayerChart:
    """Return a row per label: a point, and a line from low to high if it has an interval."""
    import altair as alt

    colour = alt.value(BLUE) if colour is None else colour
    base = alt.Chart(chart_rows(rows)).encode(y=_labels("label", rows), color=colour)
    tooltip = [alt.Tooltip("label:N"), alt.Tooltip("value:Q", format=".3f")]
    points = base.mark_point(filled=True, opacity=1).encode(
        alt.X("value:Q", title=title, scale=scale), tooltip=tooltip
    )
    lines = base.transform_filter("isValid(datum.low)").mark_rule().encode(x="low:Q", x2="high:Q")
    chart: alt.LayerChart = lines + points
    return chart


def _labels(name: str, rows: Sequence[Mapping[str, Any]]) -> alt.Y:
    """Return the axis of the labels, in the order of the rows also in a layer without some of them."""
    import altair as alt

    labels = [str(row[name]) for row in rows]
    return alt.Y(f"{name}:N", sort=labels, title=None).axis(
        labelLimit=LABEL_WIDTH, labelOverlap=False
    )


def _size(n_rows: int) -> dict[str, int]:
    return {"height": ROW_HEIGHT * max(n_rows, 1)}
