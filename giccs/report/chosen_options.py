"""The options that a model chose in multiple-choice questions, from its predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from giccs.measures.metrics import within_dialogue_correlations
from giccs.measures.results import Result
from giccs.tasks.questions import MEASURES, Likelihoods

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DialogueValues:
    """The value of each metric of a multiple-choice result in each of D dialogues."""

    ids: list[str]
    """Ids of the dialogues, sorted."""
    values: Mapping[str, Floats]
    """Name of a metric -> (D,) values, NaN where undefined."""


def chosen_options(result: Result, history: str) -> Iterator[polars.DataFrame]:
    """Yield the options of each question, in display order, sorted by dialogue.

    Columns: dialogue_id, utterance_id, gold, score, and ``chosen``, the share of the orders in which the
    option was chosen. Without generated answers it is 1 for the option with the highest mean log-likelihood
    over the orders; ties are resolved in display order, as in the metrics.
    """
    import polars as pl

    assert result.predictions is not None
    is_generated = "outcome" in result.predictions
    options = (
        result.predictions.filter(pl.col("history") == history)
        .group_by(["dialogue_id", "utterance_id"], maintain_order=True)
        .agg(pl.mean("chosen" if is_generated else "logprob"), pl.col("gold", "score").first())
        .sort("dialogue_id", maintain_order=True)
    )
    for question in options.partition_by("dialogue_id", maintain_order=True):
        if is_generated:
            yield question
            continue
        choice = int(np.argmax(question["logprob"].to_numpy()))
        chosen = pl.Series("chosen", np.arange(len(question)) == choice).cast(pl.Float64)
        yield question.with_columns(chosen)


def correct_answers(result: Result, history: str) -> tuple[list[str], Floats]:
    """Return the ids of the dialogues, sorted, and the share of orders with a correct choice in each."""
    questions = list(chosen_options(result, history))
    correct = [question.filter("gold")["chosen"].sum() for question in questions]
    return [question["dialogue_id"][0] for question in questions], np.array(correct, np.float64)


def dialogue_values(result: Result, history: str) -> DialogueValues:
    """Return the values per dialogue whose means are the metrics of a result under one history."""
    import polars as pl

    assert result.predictions is not None
    is_generated = "outcome" in result.predictions
    values_of = _generated_values if is_generated else _likelihood_values
    questions = result.predictions.filter(pl.col("history") == history).partition_by(
        "dialogue_id", maintain_order=True
    )
    questions.sort(key=lambda question: question["dialogue_id"][0])
    rows = [values_of(question) for question in questions]
    names = rows[0] if rows else {}
    return DialogueValues(
        [question["dialogue_id"][0] for question in questions],
        {name: np.array([row[name] for row in rows]) for name in names},
    )


def _generated_values(question: polars.DataFrame) -> dict[str, float]:
    """Return the metrics of the answers to a question: shares of orders, or of pairs of orders."""
    n_orders = question["order"].n_unique()
    chosen = question["chosen"].to_numpy()
    is_answered = question["outcome"].to_numpy() == "answered"
    by_option = question.partition_by("utterance_id")
    counts = [int(option["chosen"].sum()) for option in by_option]
    pairs = math.comb(n_orders, 2)
    return {
        "accuracy": float(np.sum(chosen & question["gold"].to_numpy())) / n_orders,
        "invalid": 1 - float(np.mean(is_answered)),
        "consistency": sum(math.comb(n, 2) for n in counts) / pairs if pairs else math.nan,
    }


def _likelihood_values(question: polars.DataFrame) -> dict[str, float]:
    """Return the metrics of the choice by log-likelihoods, averaged over the orders."""
    first = question.filter(question["order"] == 0)
    position = {name: index for index, name in enumerate(first["utterance_id"])}
    row, column = question["order"].to_numpy(), [position[n] for n in question["utterance_id"]]

    def array(name: str) -> Floats:
        values = np.empty((question["order"].n_unique(), len(first)))
        values[row, column] = question[name].to_numpy()
        return values

    scores = Likelihoods(*map(array, ("logprob", "tokens", "bytes", "logprob_alone")))
    likelihoods = {name: measure(scores).mean(axis=0) for name, measure in MEASURES.items()}
    gold, score = first["gold"].to_numpy(), first["score"].to_numpy()
    values = {
        name: math.nan if np.isnan(each).any() else float(gold[np.argmax(each)])
        for name, each in likelihoods.items()
    }
    of_dialogue = np.zeros(len(first), dtype=np.intp)
    (rho,) = within_dialogue_correlations(likelihoods["accuracy"], score, of_dialogue)
    is_defined = not np.isnan(likelihoods["accuracy"]).any()
    return {**values, "rank_spearman": float(rho) if is_defined else math.nan}
