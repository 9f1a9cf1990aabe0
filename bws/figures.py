"""Charts of scores, reliability, agreement and components for files, and the output of charts to files."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.base.charts import BLACK, BLUE, FONT, GREEN, VERMILION, limits, specification
from bws.base.tables import part_name
from bws.simulation import is_simulated

if TYPE_CHECKING:
    import altair as alt

    from bws.chance_agreement import Agreement
    from bws.components import Generalisability
    from bws.planning import Plan
    from bws.records import Judgments, Scores
    from bws.split_half import ReliabilityCurve

REMARK_WIDTH = 90
"""Number of characters of a line below the title."""
ANSWERS = {"both": BLACK, "best": BLUE, "worst": VERMILION, "joint": GREEN}


class MissingChartError(ValueError):
    """The data cannot give a chart; the message is the reason."""


def score_chart(scores: Scores, judgments: Judgments) -> alt.TopLevelMixin:
    """Return the scores in descending order, with the intervals and ranks that there are.

    Items without score are left out. Of thousands of items, some hundreds are drawn, with a band that
    contains the intervals of all (`bws.study_charts.ranked_rows`).
    """
    from bws.scoring.rank_sets import rank_texts
    from bws.study_charts import MAX_NAMED_ITEMS, ranked_chart, ranked_rows

    names = [
        f"{group}: {item}" if any(scores.groups) else item
        for group, item in zip(scores.groups, scores.items, strict=True)
    ]
    ranks = rank_texts(scores)
    if ranks:
        names = [f"{name} ({text})" for name, text in zip(names, ranks, strict=True)]
    rows, bands = ranked_rows(names, scores.score, scores.low, scores.high)
    if not rows:
        raise MissingChartError("no item has a score")
    n_scored = int(np.count_nonzero(~np.isnan(scores.score)))
    title, remark = f"Scores of {n_scored} items", ""
    if any("low" in row for row in rows):
        title += " with 95 % intervals"
    if len(rows) < n_scored:
        remark = f"Drawn: {len(rows)} items at equal distances of rank"
        remark += "; grey band: the intervals of all" if bands else ""
    if ranks and len(rows) <= MAX_NAMED_ITEMS:
        remark = "In parentheses: the ranks in the group that tests of all pairs permit"
    return finished(ranked_chart(rows, bands), title, judgments, remark)


def reliability_chart(
    curve: ReliabilityCurve, judgments: Judgments, plan: Plan | None = None
) -> alt.TopLevelMixin:
    """Return the Spearman–Brown corrected reliability against the number of annotations per tuple.

    The bars contain the middle 95 % of the random splits; they are no confidence intervals. plan: adds the
    prediction for more annotations of the present tuples, and the target.
    """
    from bws.planning import describe_annotation_needs
    from bws.study_charts import reliability_layers

    planner, target = (plan.planner, plan.target) if plan else (None, None)
    remarks = ["Bars: middle 95 % of the random splits, not confidence intervals"]
    remarks += filter(None, [_capitalised(curve.tuples_note)])
    if plan:
        remarks.append(_capitalised(describe_annotation_needs(plan.target, plan.planner)))
    title = f"{'Reliability' if plan else 'Split-half reliability'} by number of annotations"
    layers = reliability_layers(curve, planner, target)
    return finished(layers, title, judgments, *remarks)


def pairs_chart(judgments: Judgments) -> alt.TopLevelMixin:
    """Return the matrix of annotators; raises MissingChartError with the reason if there are no pairs."""
    from bws.raw_agreement import MIN_COMMON_TUPLES, annotator_pairs
    from bws.study_charts import MAX_NAMED_ANNOTATORS
    from bws.study_charts import pairs_chart as matrix

    try:
        pairs = annotator_pairs(judgments)
    except ValueError as error:
        raise MissingChartError(str(error)) from None
    chance = f"{pairs.chance:.2f}, that of random judgments"
    remarks = [f"Share of equal answers (best, worst); colours from {chance}, to 1"]
    if pairs.is_few.any():
        remarks.append(f"Marked: pairs with fewer than {MIN_COMMON_TUPLES} common tuples")
    if (n := len(pairs.annotators)) > MAX_NAMED_ANNOTATORS:
        remarks.append(f"Names of {n} annotators are omitted")
    title = "Agreement of pairs of annotators, highest mean first"
    return finished(matrix(pairs), title, judgments, *remarks, *pairs.notes)


def components_chart(study: Generalisability, judgments: Judgments) -> alt.TopLevelMixin:
    """Return the variance components; raises MissingChartError with the reasons if none is defined."""
    from bws.study_charts import components_chart as bars

    if all(math.isnan(estimate.value) for estimate in study.variances.values()):
        raise MissingChartError("; ".join(study.notes) or "no component is defined")
    missing = [name for name, each in study.variances.items() if math.isnan(each.value)]
    remarks = [f"Not defined: {', '.join(missing)}"] if missing else []
    title = "Variance components of the scores with 95 % intervals"
    if all(math.isnan(estimate.low) for estimate in study.variances.values()):
        title = "Variance components of the scores"
    return finished(bars(study), title, judgments, *remarks, *study.notes)


def agreement_chart(agreement: Agreement) -> alt.TopLevelMixin:
    """Return Krippendorff's alpha of each group and answer, with the intervals that were computed."""
    import altair as alt

    rows = [
        {"part": part_name(group.by), "answer": answer, "alpha": group.alpha[answer].value}
        | limits(group.alpha[answer].low, group.alpha[answer].high)
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
    chart = alt.LayerChart(layer=layers).properties(height=max(height, 120))
    return finished(chart, title, agreement.judgments)


def finished(
    chart: alt.LayerChart, title: str, judgments: Judgments, *remarks: str
) -> alt.TopLevelMixin:
    """Return a chart with its title; the subtitle names the judgments, and says if they are simulated."""
    import altair as alt

    names = [str(name) for name in judgments.annotators]
    source = "Simulated judgments" if names and all(map(is_simulated, names)) else "Judgments"
    source += f": {len(judgments)} of {len(judgments.tuples)} tuples by {len(names)} annotators"
    lines = [line for remark in remarks if remark for line in textwrap.wrap(remark, REMARK_WIDTH)]
    titles = alt.TitleParams(
        title, subtitle=[source, *lines], anchor="start", fontSize=15, subtitleFontSize=12
    )
    size: dict[str, Any] = {"width": 440, "height": 280} | {
        name: value
        for name, value in specification(chart).items()
        if name in ("width", "height") and value != "container"
    }
    configured: alt.TopLevelMixin = (
        chart.properties(title=titles, **size).configure_axis(**FONT).configure_legend(**FONT)
    )
    return configured


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
