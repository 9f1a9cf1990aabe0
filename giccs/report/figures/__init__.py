"""Figures of results. Each has a function that returns its data frame, and one that draws the frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from giccs.report.figures.calibration import calibration_panels
from giccs.report.figures.differences import difference_panels
from giccs.report.figures.effects import history_panels, prompt_panels
from giccs.report.figures.failures import failure_panels
from giccs.report.figures.leaderboard import leaderboard_panels
from giccs.report.figures.panels import MissingFigureError, Panel, layout
from giccs.report.figures.ranks import rank_panels
from giccs.report.figures.subsets import subset_panels

if TYPE_CHECKING:
    import altair as alt

    from giccs.measures.results import Result

__all__ = ["FIGURES", "FigureKind", "MissingFigureError", "draw"]


@dataclass(frozen=True)
class FigureKind:
    """A figure of the results in a folder."""

    summary: str
    panels: Callable[..., list[Panel]]
    """Results with their predictions, as far as they exist, and `inputs` -> panels; raises
    MissingFigureError with the reason if there are none."""
    columns: int = 1
    """Number of panels side by side."""
    inputs: tuple[str, ...] = ()
    """Further keyword arguments of `panels`, from the arguments of `draw`."""


FIGURES: Mapping[str, FigureKind] = {
    "leaderboard": FigureKind(
        "ranks of all models that tests of all pairs permit", leaderboard_panels
    ),
    "differences": FigureKind(
        "pairwise differences of models with intervals and adjusted marks", difference_panels
    ),
    "subsets": FigureKind("heat map of models and subsets", subset_panels),
    "calibration": FigureKind(
        "confidence against correctness of multiple choice", calibration_panels, columns=2
    ),
    "histories": FigureKind("without and with history, paired", history_panels, columns=2),
    "prompts": FigureKind("range over the prompts of each model", prompt_panels),
    "ranks": FigureKind(
        "ranks in one dialogue by people and models", rank_panels, inputs=("dialogue", "texts")
    ),
    "failures": FigureKind(
        "items on which people agree and a model fails", failure_panels, inputs=("disagreement",)
    ),
}
"""Name -> figure, for ``giccs report --figure``."""


def draw(
    name: str,
    results: Sequence[Result],
    *,
    dialogue: str | None = None,
    texts: Mapping[str, str] | None = None,
    disagreement: Mapping[str, float] | None = None,
) -> alt.TopLevelMixin:
    """Return a figure of `FIGURES` for a file; raises MissingFigureError with a reason.

    dialogue and texts (item id -> label): for ``ranks``; disagreement (item id -> share of judgments): for
    ``failures``.
    """
    given = {"dialogue": dialogue, "texts": texts, "disagreement": disagreement}
    kind = FIGURES[name]
    panels = kind.panels(results, **{each: given[each] for each in kind.inputs})
    return layout(panels, kind.columns)
