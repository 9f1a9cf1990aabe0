"""Calibration of multiple choice: the confidence of the chosen option against its correctness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.base.notes import note
from giccs.measures.comparison import share
from giccs.measures.results import MISSING_PREDICTIONS, Result, model_of
from giccs.report.figures.panels import (
    MissingFigureError,
    Panel,
    Titles,
    best_panels,
    model_and_prompt,
    model_labels,
    with_titles,
)
from giccs.tasks import result_kind

if TYPE_CHECKING:
    import altair as alt

N_BINS = 10
BOUNDARY_TOLERANCE = 1e-9
"""Tolerance for a confidence that rounding moves below the boundary of a bin."""
QUESTION = ("history", "dialogue_id")
DEFINITION = f"mean of |accuracy − confidence| over {N_BINS} bins, weighted by questions"
TITLES = {
    "confidence": "confidence of the chosen option",
    "accuracy": "accuracy",
    "low": "2.5 %",
    "high": "97.5 %",
    "n": "questions",
    "bin_low": "bin from",
    "bin_high": "bin to",
}


@dataclass(frozen=True, eq=False)
class Calibration:
    """The calibration of a model under one history condition."""

    bins: pl.DataFrame
    """One row per bin with questions: bin_low, bin_high (limits of the confidence), n, confidence (mean),
    accuracy, low and high (Wilson's 95 % interval of the accuracy)."""
    error: float
    """Expected calibration error: the mean of |accuracy - confidence| over the bins, weighted by their
    questions (Naeini, Cooper and Hauskrecht 2015, AAAI). NaN without questions."""
    questions: int
    skipped: int
    """Questions with an option without log-probability."""


def chosen_options(predictions: pl.DataFrame) -> pl.DataFrame:
    """Return one row per history and question: confidence and correct, of the most likely option.

    The log-probabilities of an option are averaged over the orders of the options, as for the accuracy; the
    confidence is the probability after normalisation over the options of the question. Of ties, the option
    in the first position of the first order is chosen. Both are null if a log-probability is missing.
    """
    options = (
        predictions.sort("order", maintain_order=True)
        .group_by(*QUESTION, "utterance_id", maintain_order=True)
        .agg(
            pl.mean("logprob"),
            pl.first("gold"),
            is_missing=(pl.col("logprob").is_null() | pl.col("logprob").is_nan()).any(),
        )
    )
    relative = pl.col("logprob") - pl.max("logprob").over(QUESTION)
    probability = relative.exp() / relative.exp().sum().over(QUESTION)
    return (
        options.with_columns(probability=probability)
        .group_by(*QUESTION, maintain_order=True)
        .agg(
            is_missing=pl.col("is_missing").any() | pl.col("probability").is_nan().any(),
            confidence=pl.max("probability"),
            correct=pl.col("gold").get(pl.col("probability").arg_max()),
        )
        .with_columns(
            pl.when(~pl.col("is_missing")).then(pl.col(name)).alias(name)
            for name in ("confidence", "correct")
        )
        .drop("is_missing")
    )


def calibration(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], skipped: int = 0
) -> Calibration:
    """Return the calibration of (Q,) questions in `N_BINS` bins of equal width.

    A confidence on the boundary of two bins is in the upper one, and 1 in the last.

    >>> result = calibration(np.array([0.95, 0.95, 0.35, 0.35]), np.array([True, True, True, False]))
    >>> round(result.error, 3), result.bins["n"].to_list()  # (2 · |1 - 0.95| + 2 · |0.5 - 0.35|) / 4
    (0.1, [2, 2])
    """
    index = np.floor(confidence * N_BINS + BOUNDARY_TOLERANCE).astype(int).clip(0, N_BINS - 1)
    rows = []
    for number in np.unique(index):
        accuracy = share(correct[index == number])
        rows.append(
            {
                "bin_low": number / N_BINS,
                "bin_high": (number + 1) / N_BINS,
                "n": accuracy.n,
                "confidence": float(confidence[index == number].mean()),
                "accuracy": accuracy.value,
                "low": accuracy.low,
                "high": accuracy.high,
            }
        )
    columns = ("bin_low", "bin_high", "confidence", "accuracy", "low", "high")
    schema = {"n": pl.Int64} | dict.fromkeys(columns, pl.Float64)
    bins = pl.DataFrame(rows, schema=schema)
    gaps = (bins["accuracy"] - bins["confidence"]).abs().to_numpy()
    error = float(np.average(gaps, weights=bins["n"].to_numpy())) if rows else float("nan")
    return Calibration(bins, error, len(confidence), skipped)


def calibration_chart(bins: pl.DataFrame, titles: Titles | None = None) -> alt.LayerChart:
    """Return the accuracy against the mean confidence per bin, with intervals, counts and the diagonal.

    bins: `Calibration.bins`. The area of a point is proportional to its number of questions.
    """
    import altair as alt

    from bws.base.charts import BLUE

    labels = with_titles(TITLES, titles)
    numbers = ("bin_low", "bin_high", "confidence", "accuracy", "low", "high")
    unit = alt.Scale(domain=[0, 1])
    base = alt.Chart(bins).encode(
        x=alt.X("confidence:Q", title=labels["confidence"], scale=unit),
        tooltip=[
            *(alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f") for name in numbers),
            alt.Tooltip("n:Q", title=labels["n"]),
        ],
    )
    ends = pl.DataFrame({"confidence": [0.0, 1.0]})
    diagonal = alt.Chart(ends).mark_line(color="#6B6B6B", strokeDash=[5, 3])
    y = alt.Y("accuracy:Q", title=labels["accuracy"], scale=unit)
    size = alt.Size("n:Q", legend=None).scale(range=[30, 250], domainMin=0)
    count = alt.Text("n:Q")
    layers = [
        diagonal.encode(x=alt.X("confidence:Q", scale=unit), y=alt.Y("confidence:Q", scale=unit)),
        base.mark_rule(strokeWidth=2, color=BLUE).encode(y=alt.Y("low:Q", scale=unit), y2="high:Q"),
        base.mark_circle(color=BLUE, opacity=1).encode(y=y, size=size),
        base.mark_text(dy=-8, fontSize=11).encode(y=alt.Y("high:Q", scale=unit), text=count),
    ]
    return alt.LayerChart(layer=layers).properties(height=240)


def unusable_reason(result: Result) -> str:
    """Return why a result of multiple choice has no calibration, or an empty string."""
    if result.predictions is None:
        return note(MISSING_PREDICTIONS)
    if result.predictions["logprob"].is_not_null().any():
        return ""
    return note("its answers were generated, without log-probabilities of the options")


def calibrations(result: Result) -> Iterator[tuple[str, Calibration]]:
    """Yield the history and the calibration of a usable result."""
    assert result.predictions is not None
    answers = chosen_options(result.predictions)
    for (history,), questions in answers.group_by("history", maintain_order=True):
        defined = questions.drop_nulls("confidence")
        confidence, correct = defined["confidence"].to_numpy(), defined["correct"].to_numpy()
        skipped = len(questions) - len(defined)
        yield str(history), calibration(confidence, correct.astype(bool), skipped)


def calibration_panels(results: Sequence[Result]) -> list[Panel]:
    """Return a panel per model and history of multiple choice, the most accurate model first."""
    choices = [result for result in results if result_kind(result.task).tables == "choices"]
    if not choices:
        raise MissingFigureError("no results of multiple choice")
    choices.sort(key=lambda result: -np.nan_to_num(result.metrics["accuracy"].value, nan=-1.0))
    reasons = {
        model_and_prompt(result): reason
        for result in choices
        if (reason := unusable_reason(result))
    }
    usable = [result for result in choices if not unusable_reason(result)]
    panels = list(_panels(usable))
    missing = [f"{name}: {reason}" for name, reason in reasons.items()]
    if not panels:
        raise MissingFigureError("; ".join(missing))
    return best_panels(panels, missing)


def _panels(results: Sequence[Result]) -> Iterator[Panel]:
    rows = [(result, *each) for result in results for each in calibrations(result)]
    labels = model_labels([(model_and_prompt(result), history) for result, history, _ in rows])
    for label, (result, _, measured) in zip(labels, rows, strict=True):
        notes = [
            f"Expected calibration error {measured.error:.3f}: {DEFINITION}.",
            f"Questions: {measured.questions}, per bin beside the intervals.",
        ]
        if measured.skipped:
            notes.append(f"Skipped, without a log-probability of an option: {measured.skipped}.")
        frame = measured.bins.with_columns(model=pl.lit(model_of(result)))
        yield Panel(f"Calibration: {label}", calibration_chart(measured.bins), frame, notes)
