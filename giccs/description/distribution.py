"""Distribution of the scores of a benchmark over [0, 1] (paper section 4.1, Figure 1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bws.base.charts import BLUE, chart_rows
from bws.base.tables import Column, ResultTable

if TYPE_CHECKING:
    import altair as alt

FIGURE_1_BINS = 5
"""0–0.2, 0.2–0.4, 0.4–0.6, 0.6–0.8 and 0.8–1."""
MAX_BAR_CHARACTERS = 40
"""Length of the longest bar in characters."""
BOUNDARY_TOLERANCE = 1e-9
"""Tolerance for scores that rounding moves below a bin boundary: (s + 1) / 2 of some s."""


@dataclass(frozen=True, slots=True)
class Bin:
    """An interval of [0, 1] and its number of items."""

    low: float
    """Lower bound, inclusive."""
    high: float
    """Upper bound, exclusive except for 1 in the last bin."""
    items: int

    @property
    def label(self) -> str:
        """Label as in Figure 1.

        >>> Bin(0.8, 1.0, 7).label
        '0.8–1'
        """
        return f"{self.low:.4g}–{self.high:.4g}"


def distribution(scores: Sequence[float], bins: int = FIGURE_1_BINS) -> tuple[Bin, ...]:
    """Count scores in equal bins of [0, 1]; a score on a boundary is in the upper bin, 1 in the last.

    The paper's Figure 1 does not assign boundaries to bins. Empty input gives empty bins. Raises ValueError
    for scores outside [0, 1], including NaN, and for fewer than one bin.

    >>> [bin.items for bin in distribution([0.0, 0.1, 0.2, 0.55, 1.0])]
    [2, 1, 1, 0, 1]
    """
    if bins < 1:
        raise ValueError(f"bins is {bins}; expected at least one")
    if outside := [score for score in scores if not 0 <= score <= 1]:
        raise ValueError(f"a score is {outside[0]}; expected scores in [0, 1]")
    counts = Counter(
        min(math.floor(score * bins + BOUNDARY_TOLERANCE), bins - 1) for score in scores
    )
    return tuple(Bin(k / bins, (k + 1) / bins, counts[k]) for k in range(bins))


def distribution_table(bins: Sequence[Bin], *, bars: bool = False) -> ResultTable:
    """Return Figure 1 as a table with one row per bin, and with `bars` as a bar chart.

    >>> print(distribution_table(distribution([0.1, 0.2, 0.3], bins=2), bars=True))
    Score    Items
    -------  -------  ----------------------------------------
    0–0.5    3        ████████████████████████████████████████
    0.5–1    0
    """
    columns = [
        Column("score", "Score"),
        Column("items", "Items", source="items"),
        Column("low", is_detail=True),
        Column("high", is_detail=True),
        Column("bar", is_detail=not bars),
    ]
    max_items = max(score_bin.items for score_bin in bins) or 1
    rows = [
        (
            score_bin.label,
            score_bin.items,
            score_bin.low,
            score_bin.high,
            "█" * round(MAX_BAR_CHARACTERS * score_bin.items / max_items),
        )
        for score_bin in bins
    ]
    sources = [f"/distribution/{n}" for n in range(len(bins))]
    return ResultTable(columns, rows, title="Score distribution (Figure 1)", sources=sources)


def score_distribution(bins: Sequence[Bin]) -> alt.Chart:
    """Return Figure 1 of the paper: the number of items per bin of scores."""
    import altair as alt

    rows = [{"score": score_bin.label, "items": score_bin.items} for score_bin in bins]
    chart: alt.Chart = (
        alt.Chart(chart_rows(rows))
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("score:O", sort=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("items:Q", axis=alt.Axis(tickMinStep=1)),
            tooltip=["score:O", "items:Q"],
        )
        .properties(width=60 * len(rows), height=240)
    )
    return chart
