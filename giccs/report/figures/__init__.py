"""Figures of results. Each has a function that returns its data frame, and one that draws the frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from giccs.report.figures.calibration import calibration_panels
from giccs.report.figures.differences import difference_panels
from giccs.report.figures.panels import MissingFigureError, Panel, layout
from giccs.report.figures.subsets import subset_panels

if TYPE_CHECKING:
    import altair as alt

    from giccs.measures.results import Result

__all__ = ["FIGURES", "FigureKind", "MissingFigureError", "draw"]


@dataclass(frozen=True)
class FigureKind:
    """A figure of the results in a folder."""

    summary: str
    panels: Callable[[Sequence[Result]], list[Panel]]
    """Results with their predictions, as far as they exist -> panels; raises MissingFigureError with the
    reason if there are none."""
    columns: int = 1
    """Number of panels side by side."""


FIGURES: Mapping[str, FigureKind] = {
    "differences": FigureKind(
        "pairwise differences of models with intervals and adjusted marks", difference_panels
    ),
    "subsets": FigureKind("heat map of models and subsets", subset_panels),
    "calibration": FigureKind(
        "confidence against correctness of multiple choice", calibration_panels, columns=2
    ),
}
"""Name -> figure, for ``giccs-report --figure``."""


def draw(name: str, results: Sequence[Result]) -> alt.TopLevelMixin:
    """Return a figure of `FIGURES` for a file; raises MissingFigureError with a reason."""
    kind = FIGURES[name]
    return layout(kind.panels(results), kind.columns)
