"""Learning curves of encoders over the size of the training data (C-STS, Figure 3)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bws.base.charts import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, chart_rows
from bws.base.rows import csv_text
from giccs.csts.encoders.runs import train_seeds
from giccs.csts.encoders.settings import Settings
from giccs.csts.encoders.splits import Splits, sample_rows
from giccs.measures.results import Result
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    import altair as alt

    from giccs.csts.encoders.settings import Machine

HEADER = ("model", "setting", "rows", "split", "metric", "value", "low", "high", "sd", "seeds", "n")
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE, BLACK)


@dataclass(frozen=True)
class CurvePoint:
    """A training on a subset of the data."""

    settings: Settings
    """Settings of the curve, with all rows."""
    rows: int
    """Number of training rows."""
    split: str
    """Split of the metrics."""
    result: Result

    @property
    def line(self) -> str:
        """Name of the point's curve."""
        return f"{self.settings.model}: {self.settings.described()}"


def curve(
    lines: Sequence[Settings],
    sizes: Sequence[int],
    splits: Splits,
    folder: str | os.PathLike[str],
    machine: Machine | None = None,
    progress: Progress = silent,
    note: Callable[[str], None] = lambda message: None,
    *,
    force: bool = False,
) -> tuple[CurvePoint, ...]:
    """Train each of several settings on subsets of each size, of complete sentence pairs.

    Smaller subsets are contained in larger ones, separately for each seed. Sizes beyond the data are replaced
    by all data, once. Existing results in `folder` are reused, unless `force`. Raises ValueError for sizes
    below 2.
    """
    if not sizes or min(sizes) < 2:
        raise ValueError(f"sizes are {list(sizes)}; expected at least 2 rows")
    n_rows = len(splits.train)
    n_train = sorted({min(size, n_rows) for size in sizes})
    points = []
    for settings in lines:
        for size in n_train:
            rows = len(sample_rows(splits.train, size, settings.seeds[0]))
            note(f"{settings.model}: {settings.described()}, {rows} rows")
            part = replace(settings, train_rows=size if size < n_rows else None)
            result = train_seeds(part, splits, folder, machine, progress, force=force)
            points.append(CurvePoint(settings, rows, splits.reported, result))
    return tuple(points)


def curve_csv(points: Sequence[CurvePoint]) -> str:
    """Return CSV with one row per metric of each point."""
    rows: list[list[object]] = []
    for point in points:
        for name, e in point.result.metrics.items():
            seeds = len(point.settings.seeds)
            key = (point.settings.model, point.settings.described(), point.rows, point.split)
            rows.append([*key, name, e.value, e.low, e.high, e.extra.get("sd"), seeds, e.n])
    return csv_text(rows, HEADER)


def curve_chart(points: Sequence[CurvePoint]) -> alt.TopLevelMixin:
    """Return Figure 3: Spearman's correlation over the number of training rows, one line per setting.

    Bars are 95 % intervals over the evaluated sentence pairs.
    """
    import altair as alt

    rows = [_charted(point) for point in points]
    lines = list(dict.fromkeys(point.line for point in points))
    base = alt.Chart(chart_rows(rows)).encode(
        x=alt.X("rows:Q", title="training rows", scale=alt.Scale(zero=False)),
        color=alt.Color(
            "line:N", title=None, sort=lines, scale=alt.Scale(range=list(COLOURS)),
            legend=alt.Legend(orient="bottom", columns=1, labelLimit=480),
        ),
    )  # fmt: skip
    correlation = alt.Y("spearman:Q", title=f"Spearman ({points[0].split})")
    return alt.layer(
        base.transform_filter("isValid(datum.low)")
        .mark_rule(opacity=0.5)
        .encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_line(point=True).encode(y=correlation),
    ).properties(width=480, height=300)


def _charted(point: CurvePoint) -> dict[str, Any]:
    spearman = point.result.metrics["spearman"]
    numbers = {"spearman": spearman.value, "low": spearman.low, "high": spearman.high}
    defined = {
        name: value for name, value in numbers.items() if value == value
    }  # NaN is not drawn.
    return {"line": point.line, "rows": point.rows, **defined}
