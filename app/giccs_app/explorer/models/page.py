"""The page "Models": the views of each kind of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from giccs.measures.results import Result
from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.labels import say
from giccs_app.explorer.models import multiple_choice_page as choosing
from giccs_app.explorer.models import pairwise_page as scoring
from giccs_app.explorer.models.comparisons import compare_results
from giccs_app.explorer.models.figures_page import MAX_VALUES_AT_ONCE, show_figures
from giccs_app.explorer.models.filters import filter_results
from giccs_app.explorer.models.metrics_page import show_metrics
from giccs_app.explorer.models.selection import choose_data, choose_task, visible_results
from giccs_app.explorer.results import results_of
from giccs_app.explorer.study import Study

View = Callable[[Study, list[Result]], None]

VIEWS: Mapping[str, Mapping[str, View]] = {
    "pairs": {
        "leaderboard": scoring.show_leaderboard,
        "predictions": scoring.show_predictions,
        "parts": scoring.show_subsets,
        "histories": scoring.show_histories,
        "against": scoring.show_comparison,
        "figures": show_figures,
    },
    "choices": {
        "accuracies": choosing.show_accuracies,
        "question": choosing.show_question,
        "letters": choosing.show_letters,
        "duel": choosing.show_duel,
        "figures": show_figures,
    },
    "metrics": {"": show_metrics},
}
"""`giccs.tasks.ResultKind.tables` -> name of a view -> function that shows it."""


def prepare(study: Study) -> None:
    """Compare all results in advance, if they are of one task and data set, and not too many."""
    results = () if study.store is None else results_of(study).results
    sets = {(result.task, result.signature.get("data")) for result in results}
    if len(sets) == 1 and len(study.items) * len(results) <= MAX_VALUES_AT_ONCE:
        compare_results(study, results)


def show(study: Study) -> None:
    """Show the view given by the link."""
    visible = visible_results(study, VIEWS)
    if not visible.results:
        return
    task = choose_task(visible.results)
    of_task = [result for result in visible.results if result.task == task]
    data_study, results = choose_data(study, visible, of_task)
    kind = result_kind(task).tables
    view = next(iter(VIEWS[kind]))
    if len(VIEWS[kind]) > 1:
        view = links.segmented(
            "view" if kind == "pairs" else "choices",
            say("models.view"),
            list(VIEWS[kind]),
            format_option=lambda name: say(f"models.view_{name}"),
        )
    if kind != "metrics":
        results = filter_results(results, visible.results)
    if results:
        VIEWS[kind][view](data_study, results)
