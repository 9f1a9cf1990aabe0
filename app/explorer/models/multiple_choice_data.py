"""The data of the views of multiple choice: accuracies, likelihoods of options, letters, differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from app.explorer.models.results import NUMBERS, key, names, numbers_of
from giccs.measures.comparison import paired_shares
from giccs.measures.metrics import Estimate
from giccs.measures.results import Result

__all__ = [
    "MEASURES",
    "Letters",
    "accuracies",
    "answered",
    "letters",
    "options",
    "paired",
    "questions",
]

MEASURES: Mapping[str, pl.Expr] = {
    "accuracy": pl.col("logprob"),
    "accuracy_tokens": pl.col("logprob") / pl.col("tokens"),
    "accuracy_bytes": pl.col("logprob") / pl.col("bytes"),
    "accuracy_pmi": pl.col("logprob") - pl.col("logprob_alone"),
}
"""Name of an accuracy -> how likely an option is by it; as `giccs.tasks.questions.MEASURES` has it."""
QUESTION = ("history", "dialogue_id")
FEWEST_EXPECTED = 5
"""Pearson's chi-square needs so many expected of each kind (Cochran 1954, Biometrics 10)."""


def accuracies(results: Sequence[Result], measure: str) -> pl.DataFrame:
    """Return a row a result and history, best first: model, history, value, low, high, n, reason, chance."""
    named = names(results)
    rows = [
        {
            "model": named[key(result)],
            "history": str(group.by["history"]),
            **numbers_of(group.metrics[measure]),
            "chance": group.metrics[measure].extra.get("chance", math.nan),
        }
        for result in results
        for group in result.groups
        if set(group.by) == {"history"} and measure in group.metrics
    ]
    first = {"model": pl.String, "history": pl.String}
    schema = {**first, **NUMBERS, "chance": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema)
    return frame.sort(pl.col("value").fill_nan(None), descending=True, nulls_last=True)


def options(predictions: pl.DataFrame, measure: str = "accuracy") -> pl.DataFrame:
    """Return a row an option of each question, orders averaged: what the model finds of it in the end.

    Columns history, dialogue_id, utterance_id, letter (in the first order shown), answer, likelihood (by
    the measure), logprob, tokens, bytes, gold, score and chosen: the likeliest option, the first shown of
    several. A question of which some likelihood is not a number has no option chosen (null).
    """
    by_option = (
        predictions.sort("order", maintain_order=True)
        .with_columns(likelihood=MEASURES[measure])
        .group_by(*QUESTION, "utterance_id", maintain_order=True)
        .agg(
            pl.first("letter", "answer", "gold", "score"),
            pl.mean("likelihood", "logprob", "tokens", "bytes"),
        )
        .sort(*QUESTION, "letter")
    )
    known = pl.col("likelihood").is_not_nan().all().over(QUESTION)
    best = pl.col("likelihood").arg_max().over(QUESTION) == pl.int_range(pl.len()).over(QUESTION)
    return by_option.with_columns(chosen=pl.when(known).then(best))


def answered(chosen: pl.DataFrame) -> pl.DataFrame:
    """Return a row a question: history, dialogue_id, right; null where nothing was chosen.

    chosen: what `options` returns.
    """
    right = (pl.col("chosen") & pl.col("gold")).any(ignore_nulls=False)
    return chosen.group_by(*QUESTION, maintain_order=True).agg(right=right)


def questions(chosen: pl.DataFrame) -> dict[str, dict[str, bool | None]]:
    """Return for each dialogue, under each history, whether it was answered rightly."""
    found: dict[str, dict[str, bool | None]] = {}
    for history, dialogue_id, right in answered(chosen).iter_rows():
        found.setdefault(dialogue_id, {})[history] = right
    return found


@dataclass(frozen=True)
class Letters:
    """How often each letter was chosen, and how often it was right."""

    frame: pl.DataFrame
    """letter, chosen, gold, expected; over all orders. A question with two right options counts half for
    each; expected: one by the number of options, for each question that has the letter."""
    questions: int
    p: float
    """Of Pearson's chi-square: are letters chosen alike often in the first order? NaN: see `reason`."""
    reason: str = ""
    """Why p is NaN: ``few`` questions, or ``lengths`` that differ."""


def letters(predictions: pl.DataFrame, history: str) -> Letters:
    """Count letters under a history; the order of the options was drawn at random for each question.

    The test takes each question once, in the first order, so that its answers are independent.
    """
    own = predictions.filter(pl.col("history") == history).with_columns(
        k=pl.len().over("dialogue_id", "order"),
        right=pl.col("gold") / pl.col("gold").sum().over("dialogue_id", "order"),
    )
    frame = _counts(own)
    first = _counts(own.filter(pl.col("order") == 0))
    p, reason = _test(first, own["k"].n_unique())
    return Letters(frame, own["dialogue_id"].n_unique(), p, reason)


def paired(
    first: pl.DataFrame, second: pl.DataFrame, history: str
) -> tuple[Estimate, pl.DataFrame, int]:
    """Return by how much more often the first model is right, over the questions that both answer.

    first, second: what `options` returns. Also returns a row a question that only one answers rightly
    (dialogue_id, right: ``first`` or ``second``), and how many questions are left out.
    """
    one, other = (answered(frame).filter(pl.col("history") == history) for frame in (first, second))
    both = one.join(other, on="dialogue_id", suffix="_second", maintain_order="left")
    known = both.drop_nulls(["right", "right_second"])
    estimate = paired_shares(known["right"].to_numpy(), known["right_second"].to_numpy())
    differing = known.filter(pl.col("right") != pl.col("right_second"))
    who = pl.when("right").then(pl.lit("first")).otherwise(pl.lit("second"))
    left_out = len(one) + len(other.join(one, on="dialogue_id", how="anti")) - len(known)
    return estimate, differing.select("dialogue_id", right=who), left_out


def _counts(own: pl.DataFrame) -> pl.DataFrame:
    return (
        own.group_by("letter")
        .agg(
            chosen=pl.col("chosen").sum().cast(pl.Int64),
            gold=pl.col("right").sum(),
            expected=(1 / pl.col("k")).sum(),
        )
        .sort("letter")
    )


def _test(counts: pl.DataFrame, lengths: int) -> tuple[float, str]:
    if lengths != 1:
        return math.nan, "lengths"
    if counts["expected"].min() < FEWEST_EXPECTED:  # type: ignore[operator]
        return math.nan, "few"
    from scipy.special import chdtrc

    off = (counts["chosen"] - counts["expected"]) ** 2 / counts["expected"]
    return float(chdtrc(len(counts) - 1, off.sum())), ""
