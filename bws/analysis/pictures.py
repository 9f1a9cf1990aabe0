"""The pictures of analyses of judgments: charts with their titles, remarks and texts for screen readers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bws.analysis.analysis import Drawing, MissingPictureError, Translate
from bws.base.notes import note

if TYPE_CHECKING:
    import altair as alt

    from bws.absolute.scores import AbsoluteScale
    from bws.annotators import AnnotatorReport
    from bws.chance_agreement import Agreement
    from bws.components import Generalisability
    from bws.history import StudyHistory
    from bws.planning import Plan
    from bws.raw_agreement import AnnotatorPairs
    from bws.records import Judgments, Scores
    from bws.split_half import ReliabilityCurve

NO_PLAN = note("no plan: reliability cannot be estimated from variance components")
FRAME_INTERVALS = note(
    "intervals require judgments of one annotator, over tuples, or of five or more, over annotators and "
    "tuples"
)
REMARK_WIDTH = 90
"""Number of characters of a line below the title of a file."""
LABEL_CHARACTERS = 50
"""Largest number of characters of the text of an item beside its score."""
MEANS_TITLES = {
    "item": "Group",
    "rank": "Rank of the group",
    "score": "Mean absolute score",
    "low": "2.5 %",
    "high": "97.5 %",
}
CELL_WIDTH, CELL_HEIGHT = 36, 24
MIN_MATRIX_WIDTH, MAX_MATRIX_WIDTH = 180, 380
"""Widths in pixels on a page; the title of the legend needs the smaller one."""
WIDE, TALL = 340, 440
"""Width of wide charts, and height of the chart of many items, on a page."""


def scores(scores: Scores) -> Drawing:
    """Return the scores in descending order, with the intervals and ranks that there are.

    Items without score are left out. Of thousands of items, some hundreds are drawn, with a band that
    contains the intervals of all (`bws.study_charts.ranked_rows`).
    """
    import numpy as np

    from bws.scoring.rank_sets import rank_texts
    from bws.study_charts import MAX_NAMED_ITEMS, ranked_chart, ranked_rows

    names = [
        f"{group}: {item}" if any(scores.groups) else item
        for group, item in zip(scores.groups, scores.items, strict=True)
    ]
    if scores.texts is not None:
        names = [
            f"{textwrap.shorten(text, LABEL_CHARACTERS, placeholder=' …')} ({name})"
            if text
            else name
            for name, text in zip(names, scores.texts, strict=True)
        ]
    ranks = rank_texts(scores)
    if ranks:
        names = [f"{name} ({text})" for name, text in zip(names, ranks, strict=True)]
    rows, bands = ranked_rows(names, scores.score, scores.low, scores.high)
    if not rows:
        raise MissingPictureError(note("no item has a score"))
    n_scored = int(np.count_nonzero(~np.isnan(scores.score)))
    title, remark = f"Scores of {n_scored} items", ""
    if any("low" in row for row in rows):
        title += " with 95 % intervals"
    if len(rows) < n_scored:
        remark = note("Drawn: {n:d} items at equal distances of rank", n=len(rows))
        remark += "; " + note("grey band: the intervals of all") if bands else ""
    if ranks and len(rows) <= MAX_NAMED_ITEMS:
        remark = note("In parentheses: the ranks in the group that tests of all pairs permit")
    return Drawing(ranked_chart(rows, bands), title, rows, [remark])


def agreement(agreement: Agreement, t: Translate) -> Drawing:
    """Return Krippendorff's alpha of each group and answer, with the intervals that were computed."""
    from bws.study_charts import AGREEMENT_TITLES, agreement_chart, agreement_rows

    rows = agreement_rows(agreement)
    if not rows:
        raise MissingPictureError(note("no tuple has two judgments"))
    title = "Agreement of annotators"
    if any("low" in row for row in rows):
        title += " with 95 % intervals"
    values = "; ".join(f"{row['part']}, {row['answer']} {row['alpha']:.2f}" for row in rows)
    chart = agreement_chart(rows, _titles(AGREEMENT_TITLES, t))
    alternative = f"Chart of Krippendorff’s alpha: {values}."
    return Drawing(chart, title, rows, alternative=alternative, size={"width": WIDE})


def scales(report: AnnotatorReport, t: Translate) -> Drawing:
    """Return the scale of each annotator with its interval, the lowest first; flags have a colour."""
    from bws.study_charts import SCALES_TITLES, scales_chart, scales_rows

    rows = scales_rows(report)
    if not rows:
        raise MissingPictureError(note("no annotator has a scale"))
    n_flagged = sum(row["is_flagged"] for row in rows)
    remarks = [
        note("Scale: 0 is random, below 0 best and worst are exchanged; the higher, the more exact")
    ]
    if any(row["is_worse"] for row in rows):
        remarks.append(
            note("Hollow: the first half of the judgments of annotators who became less exact")
        )
    if missing := len(report.annotators) - len(rows):
        remarks.append(note("{n:d} annotators have no scale", n=missing))
    return Drawing(
        scales_chart(rows, _titles(SCALES_TITLES, t)),
        "Annotators by scale",
        rows,
        remarks,
        f"Chart of the scales of {len(rows)} annotators, from {rows[0]['scale']:.2f} to "
        f"{rows[-1]['scale']:.2f}; {n_flagged} flagged.",
        {"width": WIDE},
        {"annotator": "annotator"},
    )


def pairs(pairs: AnnotatorPairs, t: Translate) -> Drawing:
    """Return the matrix of annotators."""
    from bws.raw_agreement import MIN_COMMON_TUPLES
    from bws.study_charts import MAX_NAMED_ANNOTATORS, PAIRS_TITLES, pairs_chart, pairs_rows

    remarks = [
        note(
            "Share of equal answers (best, worst) in the tuples of both, not corrected for chance"
        ),
        note("Colours: from {chance:.2f}, that of random judgments, to 1", chance=pairs.chance),
    ]
    if pairs.is_few.any():
        remarks.append(
            note("Marked: pairs with fewer than {n:d} common tuples", n=MIN_COMMON_TUPLES)
        )
    n, values = len(pairs.annotators), pairs.agreement[pairs.tuples > 0]
    if n > MAX_NAMED_ANNOTATORS:
        remarks.append(note("Names of {n:d} annotators are omitted", n=n))
    return Drawing(
        pairs_chart(pairs, _titles(PAIRS_TITLES, t)),
        "Agreement of pairs of annotators, highest mean first",
        pairs_rows(pairs),
        [*remarks, *pairs.notes],
        f"Matrix of the agreement of {n} annotators, from {values.min():.2f} to {values.max():.2f}.",
        {
            "width": min(max(CELL_WIDTH * n, MIN_MATRIX_WIDTH), MAX_MATRIX_WIDTH),
            "height": min(CELL_HEIGHT * n, MAX_MATRIX_WIDTH),
        },
        {"annotator": "first"},
    )


def reliability(curve: ReliabilityCurve, plan: Plan | None, t: Translate) -> Drawing:
    """Return the Spearman–Brown corrected reliability against the number of annotations per tuple.

    The bars contain the middle 95 % of the random splits; they are no confidence intervals. The prediction
    from variance components and the target are added if there is a plan.
    """
    from bws.planning import describe_annotation_needs
    from bws.study_charts import RELIABILITY_TITLES, reliability_layers, reliability_rows

    planner, target = (plan.planner, plan.target) if plan else (None, None)
    remarks = [
        note("Bars: middle 95 % of the random splits, not confidence intervals"),
        curve.tuples_note,
    ]
    if planner and target:
        needs = describe_annotation_needs(target, planner)
        remarks += [note("Dashed line: predicted from variance components"), needs]
    else:
        remarks.append(NO_PLAN)
    points = "; ".join(
        f"{point.annotations:g} annotations {point.pearson.spearman_brown:.3f}"
        for point in curve.points
        if not math.isnan(point.pearson.spearman_brown)
    )
    value = {"value": "Reliability"} if planner else {}  # not that of halves alone
    titles = _titles(RELIABILITY_TITLES | value, t)
    titles["target"] = f"{t('target')} {target:g}" if target else ""
    return Drawing(
        reliability_layers(curve, planner, target, titles),
        "Reliability by number of annotations",
        reliability_rows(curve),
        remarks,
        f"Chart of the reliability (Pearson) by annotations per tuple: {points}.",
        {"width": WIDE},
    )


def history(history: StudyHistory, t: Translate) -> Drawing:
    """Return reliability and agreement against the number of judgments, with the target."""
    from bws.history_charts import HISTORY_TITLES, history_chart, history_rows

    rows = history_rows(history)
    if not rows:
        raise MissingPictureError(history.sentence)
    labels = _titles(HISTORY_TITLES, t) | {"target": f"{t('target')} {history.target:g}"}
    values = "; ".join(f"{row['series']} {row['value']:.3f}" for row in rows[-2:])
    return Drawing(
        history_chart(rows, history.target, labels),
        "Reliability and agreement by number of judgments",
        rows,
        history.notes,
        f"Chart of reliability and agreement by number of judgments; at the end {values}.",
        {"width": WIDE},
    )


def frames(history: StudyHistory, t: Translate) -> Drawing:
    """Return the scores after each step of the judgments, side by side."""
    from bws.history_charts import FRAMES_TITLES, MAX_STRIP_ITEMS, strip_chart, strip_rows

    n_items = len(history.frames[-1].scores)
    remarks = [history.sentence, history.order, FRAME_INTERVALS]
    if n_items > MAX_STRIP_ITEMS:
        remarks.append(note("Drawn: {n:d} items at equal distances of rank", n=MAX_STRIP_ITEMS))
    return Drawing(
        strip_chart(history, _titles(FRAMES_TITLES, t)),
        "Scores after the first judgments",
        strip_rows(history),
        remarks,
        f"Strip of the scores of {n_items} items after {len(history.frames)} numbers of judgments.",
    )


def means(scale: AbsoluteScale, t: Translate) -> Drawing:
    """Return the mean absolute score of each group with its interval, the highest first."""
    import numpy as np

    from bws.study_charts import ranked_chart, ranked_rows

    value, low, high = (
        np.array([getattr(mean, part) for mean in scale.groups.values()])
        for part in ("value", "low", "high")
    )
    rows, bands = ranked_rows([*scale.groups], value, low, high)
    remarks = [
        note(
            "SD between groups {ratio:.2f} of that within, 95 % interval {low:.2f} to {high:.2f}",
            ratio=scale.ratio.value, low=scale.ratio.low, high=scale.ratio.high,
        )
    ]  # fmt: skip
    if len(rows) < len(value):
        remarks.append(note("Drawn: {n:d} groups at equal distances of rank", n=len(rows)))
    return Drawing(
        ranked_chart(rows, bands, _titles(MEANS_TITLES, t)),
        "Mean absolute scores of the groups with 95 % intervals",
        rows,
        remarks,
        f"Chart of the means of {len(value)} groups, from {value.min():.2f} to {value.max():.2f}.",
        opens={"dialogue": "item"},
    )


def components(study: Generalisability, t: Translate) -> Drawing:
    """Return the variance components; raises MissingPictureError with the reasons if none is defined."""
    from bws.study_charts import COMPONENTS_TITLES, components_chart, components_rows

    titles = _titles(COMPONENTS_TITLES, t)
    rows = components_rows(study, titles)
    if not rows:
        raise MissingPictureError("; ".join(study.notes) or note("no component is defined"))
    missing = [name for name, each in study.variances.items() if math.isnan(each.value)]
    remarks = [
        note("Variance of one judgment of an item; only the variance of the items is signal")
    ]
    if missing:
        remarks.append(note("Not defined: {components}", components=", ".join(missing)))
    title = "Variance components of the scores"
    if any("low" in row for row in rows):
        title += " with 95 % intervals"
    values = "; ".join(f"{row['component']} {row['value']:.3f}" for row in rows)
    alternative = f"Bar chart of the variance components: {values}."
    chart = components_chart(rows, titles)
    return Drawing(chart, title, rows, [*remarks, *study.notes], alternative)


def _titles(titles: Mapping[str, str], t: Translate) -> dict[str, str]:
    return {name: t(title) for name, title in titles.items()}


def finished(drawing: Drawing, judgments: Judgments) -> alt.TopLevelMixin:
    """Return the chart of a file: its title, and below it the judgments, and whether they are simulated."""
    import altair as alt

    from bws.base.charts import AXIS, FONT, specification

    source = "Simulated judgments" if judgments.is_simulated else "Judgments"
    n_annotators = len(judgments.annotators)
    source += f": {len(judgments)} of {len(judgments.tuples)} tuples by {n_annotators} annotators"
    lines = [line for text in drawing.sentences for line in textwrap.wrap(text, REMARK_WIDTH)]
    titles = alt.TitleParams(
        drawing.title, subtitle=[source, *lines], anchor="start", fontSize=15, subtitleFontSize=12
    )
    size: dict[str, Any] = {"width": 440, "height": 280} | {
        name: value
        for name, value in specification(drawing.chart).items()
        if name in ("width", "height") and value != "container"
    }
    configured: alt.TopLevelMixin = (
        drawing.chart.properties(title=titles, **size)
        .configure_axis(**AXIS)
        .configure_legend(**FONT)
    )
    return configured
