"""Correlations of models with people's scores of a part of a benchmark that a model judge scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.frames import Tabular
from bws.problems import InputError, Problem
from bws.records import Scores, normal_id
from bws.tables import Cell, Column, ResultTable
from giccs.measures.prediction_powered import PoweredCorrelation, powered_correlations
from giccs.measures.results import Result, data_of, history_of, model_of

__all__ = ["PeopleComparison", "correlate_with_people"]

Floats = NDArray[np.float64]
TITLES = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "rank_spearman": "ρ within dialogues",
}


@dataclass(frozen=True)
class ModelCorrelations:
    """The correlations of one result."""

    result: Result
    correlations: dict[str, PoweredCorrelation]
    n_scored: int
    """Number of items with people's scores."""
    n_excluded: int
    """Number of dialogues of which people scored only some items."""


@dataclass(frozen=True, repr=False)
class PeopleComparison(Tabular):
    """Prediction-powered correlations of all results with people's scores."""

    rows: tuple[ModelCorrelations, ...]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the correlations as a dict."""
        return {
            "people": [
                {
                    "model": row.result.model,
                    "data": data_of(row.result),
                    "history": history_of(row.result),
                    "metrics": {name: each.document() for name, each in row.correlations.items()},
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
            Column("judge", "with the judge", ".3f", align="right"),
            Column("people", "people alone [95 %]", ".3f"),
            Column("powered", "prediction-powered [95 %]", ".3f"),
            Column("lambda", "λ", ".2f", align="right"),
            Column("dialogues", "dialogues of people", ".0f", align="right"),
            Column("equivalent", "needed by people alone", ".0f", align="right"),
        ]
        rows: list[list[Cell]] = [
            [
                model_of(row.result),
                history_of(row.result),
                TITLES[name],
                each.judge.value,
                each.people,
                each.powered,
                each.weight,
                each.people_dialogues,
                each.equivalent_dialogues,
            ]
            for row in self.rows
            for name, each in row.correlations.items()
        ]
        return ResultTable(columns, rows, self.notes, "Correlations with people's scores", "–")


def correlate_with_people(
    results: Sequence[Result], people: Scores, source: str = "scores"
) -> PeopleComparison:
    """Return the prediction-powered correlations of results, with their predictions, with people's scores.

    The scores in the predictions are those of the judge. People's scores are matched by group (the dialogue)
    and item (the utterance), or by the item alone without groups. Results without predictions are left out,
    with a note. Raises InputError if no item of a result has a score by people.
    """
    rows, notes = [], []
    for result in results:
        if result.predictions is None or "dialogue_id" not in result.predictions.columns:
            notes.append(f"{model_of(result)}: left out, as its predictions are missing")
            continue
        rows.append(_correlations(result, people, source))
    notes += dict.fromkeys(note for row in rows for note in _notes(row, len(people)))
    return PeopleComparison(tuple(rows), tuple(notes))


def _correlations(result: Result, people: Scores, source: str) -> ModelCorrelations:
    assert result.predictions is not None
    table = result.predictions
    ids = (table[name].to_list() for name in ("dialogue_id", "item_id"))
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
    share = np.bincount(dialogue, is_scored) / np.bincount(dialogue)
    prediction, judge = (
        table[name].to_numpy().astype(np.float64) for name in ("prediction", "score")
    )
    estimates = powered_correlations(prediction, judge, scores, dialogue)
    n_excluded = int(np.count_nonzero((share > 0) & (share < 1)))
    return ModelCorrelations(result, estimates, int(is_scored.sum()), n_excluded)


def _score(
    score_of: dict[tuple[str, str], float], dialogue: str, item: str, *, has_groups: bool
) -> float:
    """Return the score of an item, whose id may begin with its dialogue; NaN without a score."""
    group = dialogue if has_groups else ""
    for separator in ("/", "-"):
        utterance = item.removeprefix(f"{dialogue}{separator}")
        if utterance != item and (group, utterance) in score_of:
            return score_of[group, utterance]
    return score_of.get((group, item), np.nan)


def _notes(row: ModelCorrelations, n_scores: int) -> Iterator[str]:
    """Yield notes on the data of one result."""
    yield (
        "valid whatever the bias of the judge, if people scored a random part of the dialogues; the scores "
        "of the results are taken to be those of the judge"
    )
    if row.n_scored < n_scores:
        yield f"{n_scores - row.n_scored} of {n_scores} scores by people are of no item of the results"
    if row.n_excluded:
        yield f"{row.n_excluded} dialogues excluded: people scored only some of their items"
    yield from (each.powered.reason for each in row.correlations.values() if each.powered.reason)
