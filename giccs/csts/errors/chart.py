"""How does F1 change with the number of clusters? (L-CSTS, Figure 10)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from giccs.csts.errors.evaluation import Evaluation
from giccs.csts.errors.records import DISTRIBUTIONS
from giccs.description.figures import BLACK, BLUE, GREEN, VERMILION

if TYPE_CHECKING:
    import altair as alt

__all__ = ["f1_over_k"]

COLOURS = (BLUE, VERMILION, GREEN, BLACK)
"""The baseline is black."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
"""A line is also told by its pattern."""
BASELINE = "all called errors"


def f1_over_k(evaluation: Evaluation) -> alt.Chart:
    """Return F1 on the evaluation half over K for each distribution, beside the all-error baseline."""
    import altair as alt

    baseline = evaluation.all_errors["f1"].value
    rows = [
        {"K": point.k, "F1": point.evaluation["f1"], "distribution": point.distribution}
        for point in evaluation.curve
    ]
    rows += [
        {"K": k, "F1": baseline, "distribution": BASELINE}
        for k in sorted({point.k for point in evaluation.curve})
    ]
    names = [*DISTRIBUTIONS, BASELINE]
    shown = [row for row in rows if row["F1"] == row["F1"]]  # NaN has no place
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=shown))
        .mark_line(point=True)
        .encode(
            x=alt.X("K:Q", axis=alt.Axis(tickMinStep=1, format="d"), title="clusters (K)"),
            y=alt.Y("F1:Q", scale=alt.Scale(zero=False)),
            color=alt.Color("distribution:N", scale=alt.Scale(domain=names, range=list(COLOURS))),
            strokeDash=alt.StrokeDash(
                "distribution:N", scale=alt.Scale(domain=names, range=list(DASHES))
            ),
            tooltip=["distribution:N", "K:Q", alt.Tooltip("F1:Q", format=".3f")],
        )
        .properties(width=480, height=280)
    )
    return chart
