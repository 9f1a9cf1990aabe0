"""Models: how well each agrees with the scores, where, and against which other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app import links
from app.frames.choices import CHOICE
from app.frames.models import PAIRWISE
from app.labels import say
from app.pages import models_choosing as choosing
from app.pages import models_scoring as scoring
from app.pages.chosen import choose_task, results_found
from app.study import Study
from giccs.results import Result

__all__ = ["show"]

View = Callable[[Study, list[Result]], None]

VIEWS: Mapping[str, Mapping[str, View]] = {
    PAIRWISE: {
        "leaderboard": scoring.show_leaderboard,
        "predictions": scoring.show_predictions,
        "parts": scoring.show_parts,
        "histories": scoring.show_histories,
        "against": scoring.show_against,
    },
    CHOICE: {
        "accuracies": choosing.show_accuracies,
        "question": choosing.show_question,
        "letters": choosing.show_letters,
        "duel": choosing.show_duel,
    },
}
"""Name of a task -> name of a view of its results -> what shows it."""


def show(study: Study) -> None:
    """Show the view that the link asks for."""
    results = results_found(study)
    if not results:
        return
    task = choose_task(results)
    view = links.segmented(
        "view" if task == PAIRWISE else "choices",
        say("models.view"),
        list(VIEWS[task]),
        shown=lambda one: say(f"models.view_{one}"),
    )
    VIEWS[task][view](study, [result for result in results if result.task == task])
