"""Sentences on the comparison of models for the methods section of a paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from bws.paragraphs import Sentence
from giccs.measures.clusters import CLUSTERS, DIALOGUES
from giccs.report.metric_titles import metric_title
from giccs.report.model_comparison import Leaderboard, ModelComparison, history_titles
from giccs.tasks import result_kind


def comparison_sentences(comparison: ModelComparison) -> Iterator[Sentence]:
    """Yield the tests, and per task, data and history the best model and those not significantly worse.

    Only the first metric of a task is in the sentences. Raises ValueError if nothing can be compared.
    """
    boards = [
        (board, history)
        for board, history in zip(
            comparison.leaderboards, history_titles(comparison.leaderboards), strict=True
        )
        if board.metric == result_kind(board.task).comparison_metrics[0]
    ]
    if not boards:
        reasons = "; ".join(dict.fromkeys(map(str, comparison.skipped)))
        raise ValueError(f"there is nothing to compare{f': {reasons}' if reasons else ''}")
    before = None
    for board, history in boards:
        if (tests := _tests(board)) != before:
            yield tests
        before = tests
        yield from _board_sentences(board, history)


def _tests(board: Leaderboard) -> Sentence:
    is_exact = board.metric == "accuracy" and board.clusters == CLUSTERS[DIALOGUES]
    values = {"n": board.dialogues, "unit": board.clusters}
    if is_exact:
        return Sentence("compare_mcnemar", values)
    has_clusters = board.clusters != CLUSTERS[DIALOGUES]
    return Sentence("compare_tests_clusters" if has_clusters else "compare_tests", values)


def _board_sentences(board: Leaderboard, history: str) -> Iterator[Sentence]:
    best = board.models[0]
    metric = metric_title(board.metric)
    values = {"model": best.model, "metric": metric, "value": best.estimate, "data": board.data}
    has_interval = not math.isnan(best.estimate.low)
    name = "compare_best" if has_interval else "compare_best_only"
    yield Sentence(name, {**values, "history": history})
    ties = [board.models[index].model for index in sorted(board.tied)]
    untested = [
        board.models[pair.second].model
        for pair in board.pairs
        if pair.first == 0 and math.isnan(pair.p)
    ]
    n_others = len(board.models) - 1
    if n_others and not ties and not untested:
        yield Sentence("compare_all_worse", {"n": n_others})
    if ties := [name for name in ties if name not in untested]:
        yield Sentence("compare_ties", {"models": ", ".join(ties)})
    if untested:
        yield Sentence("compare_untested", {"models": ", ".join(untested)})
    detectable = [pair.detectable for pair in board.pairs if not math.isnan(pair.detectable)]
    if detectable:
        yield Sentence("compare_detectable", {"detectable": median(detectable)})
