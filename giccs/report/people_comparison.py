"""Agreement of models with people's scores of a part of a benchmark that a model judge scored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Tabular
from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.base.tables import Cell, Column, ResultTable
from bws.planning import whole_number
from bws.records import Scores
from bws.scoring.prediction_powered import MAX_RANDOM_P
from giccs.measures.clusters import DIALOGUES
from giccs.measures.prediction_powered import (
    NOT_RANDOM,
    PoweredEstimate,
    powered_accuracy,
    powered_correlations,
)
from giccs.measures.results import Result, data_of, history_of, model_of
from giccs.report.chosen_options import chosen_options
from giccs.report.clustering import clusters_of, population_note, with_unit
from giccs.report.metric_titles import metric_title
from giccs.tasks import result_kind

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ModelEstimates:
    """The estimates of one result, or of one history of a multiple-choice result."""

    result: Result
    history: str
    estimates: dict[str, PoweredEstimate]
    n_scored: int
    """Number of items with people's scores."""
    n_excluded: int
    """Number of dialogues of which people scored only some items."""


@dataclass(frozen=True, repr=False)
class PeopleComparison(Tabular):
    """Prediction-powered correlations and accuracies of all results by people's scores."""

    rows: tuple[ModelEstimates, ...]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the estimates as a dict."""
        return {
            "people": [
                {
                    "model": row.result.model,
                    "data": data_of(row.result),
                    "history": row.history,
                    "metrics": {name: each.document() for name, each in row.estimates.items()},
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }

    def result_table(self) -> ResultTable:
        """Return a row per result and metric."""
        columns = [
            Column("model", "model"),
            Column("history", "history"),
            Column("metric", "metric"),
            Column("judge", "judge", ".3f", align="right"),
            Column("people", "people alone [95 %]", ".3f"),
            Column("powered", "prediction-powered [95 %]", ".3f"),
            Column("lambda", "λ", ".2f", align="right"),
            Column("dialogues", "dialogues of people", ".0f", align="right"),
            Column("equivalent", "needed by people alone", ".0f", align="right"),
        ]
        rows: list[list[Cell]] = [
            [
                model_of(row.result),
                row.history,
                metric_title(name),
                each.judge.value,
                each.people,
                each.powered,
                each.weight,
                each.people_dialogues,
                whole_number(n) if math.isfinite(n) else n,
            ]
            for row in self.rows
            for name, each in row.estimates.items()
            for n in (each.equivalent_dialogues,)
        ]
        return ResultTable(columns, rows, self.notes, "Agreement with people's scores", "–")


def compare_with_people(
    results: Sequence[Result],
    people: Scores,
    source: str = "scores",
    cluster: str = DIALOGUES,
) -> PeopleComparison:
    """Return the prediction-powered correlations and accuracies of results, with their predictions.

    Pairwise results have correlations, multiple-choice ones an accuracy per history: the correct options of a
    dialogue are those with the highest score, of the judge or of people. The scores in the predictions are
    those of the judge. People's scores are matched by group (the dialogue) and item (the utterance), or by
    the item alone without groups. Results without predictions, or with predictions or likelihoods of NaN,
    are left out, with a note. Raises InputError if no item of a result has a score by people.

    cluster: column of `giccs.measures.clusters.CLUSTERS` whose clusters of dialogues the intervals are over.
    """
    rows: list[ModelEstimates] = []
    notes: list[str] = []
    for result in results:
        if reason := _left_out_reason(result):
            notes.append(f"{model_of(result)}: left out, as {reason}")
            continue
        of_unit = result if cluster == DIALOGUES else with_unit(result, cluster)
        is_choice = result_kind(result.task).tables == "choices"
        rows += (
            _accuracies(of_unit, people, source)
            if is_choice
            else [_correlations(of_unit, people, source)]
        )
    notes += dict.fromkeys(note for row in rows for note in _notes(row, len(people)))
    notes += [population_note([rows[0].result])] if rows else []
    return PeopleComparison(tuple(rows), tuple(notes))


def _left_out_reason(result: Result) -> str:
    """Return why a result cannot be compared, or an empty string."""
    if result.predictions is None or "dialogue_id" not in result.predictions.columns:
        return "its predictions are missing"
    accuracies = [
        group.metrics["accuracy"] for group in result.groups if set(group.by) == {"history"}
    ]
    if any(math.isnan(accuracy.value) for accuracy in accuracies):
        return "some likelihoods are NaN"
    if "prediction" in result.predictions.columns:
        missing = result.predictions["prediction"].is_nan().sum()
        return f"{missing} predictions are NaN" if missing else ""
    return ""


def _correlations(result: Result, people: Scores, source: str) -> ModelEstimates:
    assert result.predictions is not None
    table = result.predictions
    scores, dialogue, share = _people_scores(result, table, "item_id", people, source)
    prediction, judge = (
        table[name].to_numpy().astype(np.float64) for name in ("prediction", "score")
    )
    clusters = clusters_of(result, np.unique(table["dialogue_id"].to_numpy()).tolist())
    estimates = powered_correlations(prediction, judge, scores, dialogue, clusters=clusters)
    return _estimates(result, history_of(result), estimates, scores, share)


def _accuracies(result: Result, people: Scores, source: str) -> Iterator[ModelEstimates]:
    import polars as pl

    for group in result.groups:
        if set(group.by) != {"history"}:
            continue
        history = str(group.by["history"])
        questions = list(chosen_options(result, history))
        table = pl.concat(questions)
        scores, dialogue, share = _people_scores(result, table, "utterance_id", people, source)
        chosen, gold = (table[name].to_numpy().astype(np.float64) for name in ("chosen", "gold"))
        highest = np.full(len(share), -np.inf)
        np.maximum.at(highest, dialogue, np.nan_to_num(scores, nan=-np.inf))
        by_people = np.bincount(dialogue, chosen * (scores == highest[dialogue]))
        by_judge = np.bincount(dialogue, chosen * gold)
        is_used = (share == 0) | (share == 1)
        clusters = clusters_of(result, np.unique(table["dialogue_id"].to_numpy()).tolist())
        estimate = powered_accuracy(
            by_judge[is_used],
            np.where(share == 1, by_people, np.nan)[is_used],
            clusters and clusters.select(is_used),
        )
        yield _estimates(result, history, {"accuracy": estimate}, scores, share)


def _estimates(
    result: Result,
    history: str,
    estimates: dict[str, PoweredEstimate],
    scores: Floats,
    share: Floats,
) -> ModelEstimates:
    n_excluded = int(np.count_nonzero((share > 0) & (share < 1)))
    return ModelEstimates(
        result, history, estimates, int(np.count_nonzero(~np.isnan(scores))), n_excluded
    )


def _people_scores(
    result: Result, table: polars.DataFrame, item_column: str, people: Scores, source: str
) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Return (N,) people's scores, (N,) indices of dialogues, and (D,) shares of scored items."""
    ids = (table[name].to_list() for name in ("dialogue_id", item_column))
    score_of = dict(
        zip(zip(people.groups, people.items, strict=True), people.score.tolist(), strict=True)
    )
    has_groups = any(people.groups)
    scores = np.array(
        [
            _score(score_of, normal_id(dialogue), normal_id(item), has_groups=has_groups)
            for dialogue, item in zip(*ids, strict=True)
        ]
    )
    is_scored = ~np.isnan(scores)
    if not is_scored.any():
        message = (
            f"no score of an item of {data_of(result)}; expected dialogues (group) and items of it"
        )
        raise InputError(Problem(source, None, message))
    dialogue = np.unique(table["dialogue_id"].to_numpy(), return_inverse=True)[1].ravel()
    return scores, dialogue, np.bincount(dialogue, is_scored) / np.bincount(dialogue)


def _score(
    score_of: dict[tuple[str, str], float], dialogue: str, item: str, *, has_groups: bool
) -> float:
    """Return the score of an item, with or without its dialogue before the id; NaN without a score."""
    group = dialogue if has_groups else ""
    prefixes = (f"{dialogue}/", f"{dialogue}-")
    names = [item, *(item.removeprefix(prefix) for prefix in prefixes if item.startswith(prefix))]
    names += [f"{prefix}{item}" for prefix in prefixes]
    return next((score_of[group, name] for name in names if (group, name) in score_of), np.nan)


def _notes(row: ModelEstimates, n_scores: int) -> Iterator[str]:
    """Yield notes on the data of one result."""
    yield (
        "valid whatever the bias of the judge, if people scored a random part of the dialogues; the scores "
        "of the results are taken to be those of the judge"
    )
    if row.n_scored < n_scores:
        yield f"{n_scores - row.n_scored} of {n_scores} scores by people are of no item of the results"
    if row.n_excluded:
        yield f"{row.n_excluded} dialogues excluded: people scored only some of their items"
    yield from (each.powered.reason for each in row.estimates.values() if each.powered.reason)
    if any(each.random_p < MAX_RANDOM_P for each in row.estimates.values()):
        yield f"{model_of(row.result)}: {NOT_RANDOM}"
