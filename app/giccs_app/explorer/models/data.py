"""The data of the page "Models": names and order of results, and the table of each view.

Also used by the page "Errors" and by the report; does not import Streamlit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.benchmark.parquet import polars_errors_as_value_errors, read_table
from giccs.measures.comparison import paired_accuracies
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS
from giccs.measures.results import Result, digest, history_of
from giccs.report.pairs import BREAKDOWN_METRIC
from giccs.report.pairs import METRICS as LEADERBOARD

METRICS = tuple(sorted(LEADERBOARD, key=lambda metric: metric != BREAKDOWN_METRIC))
"""The metrics of pairwise STS, that of the best model first."""
NEARER = ("first", "second", "same")
ROUNDING = 1e-12
GENERATED = pl.when(pl.col("chosen").any().over("history", "dialogue_id", "order")).then(
    pl.col("chosen").cast(pl.Float64)
)
"""1 for the choice of a generated answer and 0 for other options; null if the answer chooses none."""
LIKELIHOOD = pl.when(pl.col("bytes").is_null()).then(GENERATED).otherwise(pl.col("logprob"))
MEASURES: Mapping[str, pl.Expr] = {
    "accuracy": LIKELIHOOD,
    "accuracy_tokens": pl.col("logprob") / pl.col("tokens"),
    "accuracy_bytes": pl.col("logprob") / pl.col("bytes"),
    "accuracy_pmi": pl.col("logprob") - pl.col("logprob_alone"),
}
"""Name of an accuracy -> likelihood of an option; the same as `giccs.tasks.questions.MEASURES`."""
QUESTION = ("history", "dialogue_id")
MIN_EXPECTED_COUNT = 5
"""Minimum expected count per category of Pearson's chi-square test (Cochran 1954, Biometrics 10)."""
DIVISIONS = ("domain", "n_turns", "source")
NUMBERS = {
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}
IDENTITY = {"kind": pl.String, "key": pl.String}
COMMON_FIELDS = frozenset(["task", "model", "history", "data"])
"""Fields of a signature that are omitted from names."""
COLUMNS: Mapping[str, Mapping[str, type[pl.DataType]]] = {
    "pairs": {"item_id": pl.String, "prediction": pl.Float64},
    "choices": {
        "dialogue_id": pl.String,
        "utterance_id": pl.String,
        "history": pl.String,
        "order": pl.Int64,
        "letter": pl.String,
        "answer": pl.String,
        "logprob": pl.Float64,
        "tokens": pl.Int64,
        "bytes": pl.Int64,
        "chosen": pl.Boolean,
        "gold": pl.Boolean,
        "score": pl.Float64,
        "logprob_alone": pl.Float64,
    },
}
"""`ResultKind.tables` -> columns of the predictions, except the prompts."""


def key(result: Result) -> str:
    """Return the key of a result in links: the first 12 hexadecimal digits of the digest of its signature."""
    return digest(result.signature)[:12]


def kind_of(result: Result) -> str:
    """Return the kind of a model, as in `giccs.models.KINDS`: ``baseline``, ``encoder``, ``chat`` and others.

    It is that of the signature, else the prefix of the name; empty without both.
    """
    prefix = result.model.partition(":")[0] if ":" in result.model else ""
    return str(result.signature.get("kind", prefix))


def names(results: Sequence[Result]) -> dict[str, str]:
    """Return the display name of each result by its key: the model and, if needed, distinguishing fields.

    The history is not part of the name, except for its encoding. Results of the same model and history are
    distinguished by their settings, or by the signature fields in which they differ: ``all-minilm (dtype
    bfloat16)``.
    """
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.task, result.model, history_of(result)), []).append(result)
    return {
        key(result): f"{result.model}{_encoding(result)}{_distinction(result, group)}"
        for group in groups.values()
        for result in group
    }


def _encoding(result: Result) -> str:
    encoding = result.signature.get("history_encoding")
    return f" (history: {encoding})" if encoding else ""


def _distinction(result: Result, twins: Sequence[Result]) -> str:
    fields = sorted(set().union(*(twin.signature for twin in twins)) - COMMON_FIELDS)
    settings = [str(twin.signature.get("setting", "")) for twin in twins]
    if len(set(settings)) == len(twins) > 1:
        return f" ({result.signature.get('setting', '')})"
    differences = [
        f"{field} {_format_field(result.signature.get(field))}"
        for field in fields
        if len({str(twin.signature.get(field)) for twin in twins}) > 1
    ]
    return f" ({', '.join(differences)})" if differences else ""


def _format_field(value: object) -> str:
    """Return a field of a signature as text.

    >>> _format_field({"name": "figure2-de-1", "sha256": "4b7d"})
    'figure2-de-1'
    """
    if isinstance(value, Mapping):
        return str(value.get("name", ", ".join(f"{name} {value}" for name, value in value.items())))
    return "none" if value is None else str(value)


def metric_of(result: Result, metric: str) -> Estimate:
    """Return a metric of a result; NaN with a reason if it is missing."""
    undefined = Estimate(math.nan, math.nan, math.nan, 0, "not computed")
    return result.metrics.get(metric, undefined)


def best_first(results: Sequence[Result], metric: str = METRICS[0]) -> list[Result]:
    """Return the results sorted by a metric, best first; undefined values last."""
    return sorted(results, key=lambda result: (_sort_key(result, metric), result.model))


def numbers_of(estimate: Estimate) -> dict[str, object]:
    """Return an estimate as values of the columns `NUMBERS`."""
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return numbers | {"n": estimate.n, "reason": estimate.reason}


def _sort_key(result: Result, metric: str) -> float:
    value = metric_of(result, metric).value
    sort_value = value if metric in LOWER_IS_BETTER_METRICS else -value
    return math.inf if math.isnan(value) else sort_value


def read_predictions(path: str | os.PathLike[str], kind: str) -> pl.DataFrame:
    """Return the `COLUMNS` of a predictions file of giccs eval; InputError if missing or invalid."""
    columns = COLUMNS[kind]
    try:
        table = read_table(Path(path), list(columns))
        with polars_errors_as_value_errors():
            return table.select(pl.col(name).cast(kind) for name, kind in columns.items())
    except FileNotFoundError:
        message = (
            "is missing; compute it again with giccs eval --force (settings: see the .json file)"
        )
    except (ValueError, OSError) as error:
        message = f"cannot read the predictions: {error}"
    raise InputError(Problem(os.fspath(path), None, message))


def read_prompts(path: str | os.PathLike[str], dialogue_id: str) -> pl.DataFrame:
    """Return the prompts of a dialogue: history, order, prompt, prompt_alone; InputError if unreadable."""
    columns = ["history", "order", "prompt", "prompt_alone"]
    try:
        with polars_errors_as_value_errors():
            rows = pl.scan_parquet(Path(path)).filter(pl.col("dialogue_id") == dialogue_id)
            return rows.select(columns).unique(maintain_order=True).collect()
    except (ValueError, OSError) as error:
        message = f"cannot read the prompts: {error}"
    raise InputError(Problem(os.fspath(path), None, message))


def leaderboard(results: Sequence[Result], metric: str) -> pl.DataFrame:
    """Return one row per result, best first: model, history, baseline, value, low, high, n, reason, kind,
    key."""
    result_names = names(results)
    rows = [
        {
            "model": result_names[key(result)],
            "history": history_of(result),
            "baseline": result.model.startswith("baseline:"),
            **numbers_of(metric_of(result, metric)),
            "kind": kind_of(result),
            "key": key(result),
        }
        for result in best_first(results, metric)
    ]
    key_columns = {"model": pl.String, "history": pl.String, "baseline": pl.Boolean}
    return pl.DataFrame(rows, schema={**key_columns, **NUMBERS, **IDENTITY})


def subset_metrics(results: Sequence[Result], metric: str, division: str) -> pl.DataFrame:
    """Return one row per subset and result: part, history, value, low, high, n, reason.

    The frame is empty if the results have no such division.
    """
    rows = [
        {
            "part": str(group.by[division]),
            "history": history_of(result),
            **numbers_of(group.metrics[metric]),
        }
        for result in results
        for group in result.groups
        if set(group.by) == {division} and metric in group.metrics
    ]
    return pl.DataFrame(rows, schema={"part": pl.String, "history": pl.String, **NUMBERS})


def side_by_side(
    pairs: Sequence[tuple[Result, Result]],
    metric: str,
    differences: Sequence[Mapping[str, Estimate]],
) -> pl.DataFrame:
    """Return one row per model: with, without, and their difference as value, low, high, n, reason.

    differences: per pair, as returned by `giccs.measures.comparison.paired_correlations`; if empty, the
    difference of the stored values is used, without an interval.
    """
    result_names = names([result for pair in pairs for result in pair])
    rows = [
        {
            "model": result_names[key(first)],
            "with": metric_of(first, metric).value,
            "without": metric_of(second, metric).value,
            **numbers_of(difference.get(metric) or _plain_difference(first, second, metric)),
        }
        for (first, second), difference in zip(pairs, differences, strict=True)
    ]
    columns = {"model": pl.String, "with": pl.Float64, "without": pl.Float64}
    return pl.DataFrame(rows, schema={**columns, **NUMBERS})


def join_predictions(
    items: pl.DataFrame, predictions: pl.DataFrame, name: str = "prediction"
) -> pl.DataFrame:
    """Return the items with a prediction other than NaN, joined by item_id.

    >>> items = pl.DataFrame({"item_id": ["a", "b"], "score": [0.0, 1.0]})
    >>> join_predictions(items, pl.DataFrame({"item_id": ["b", "c"], "prediction": [0.5, 0.7]})).rows()
    [('b', 1.0, 0.5)]
    """
    renamed = predictions.select("item_id", pl.col("prediction").cast(pl.Float64).alias(name))
    return items.join(
        renamed.filter(pl.col(name).is_not_nan()), on="item_id", maintain_order="left"
    )


def ranks(values: pl.Series) -> pl.Series:
    """Return fractional ranks: the share of other values below, the mean for ties; 0.5 for a single value.

    >>> ranks(pl.Series([0.2, 0.9, 0.9, 0.3])).round(3).to_list()
    [0.0, 0.833, 0.833, 0.333]
    """
    return (values.rank() - 1) / (len(values) - 1) if len(values) > 1 else values * 0.0 + 0.5


def dialogue_index(frame: pl.DataFrame) -> NDArray[np.intp]:
    """Return (N,) the index of the dialogue of each item, 0 … D-1.

    >>> dialogue_index(pl.DataFrame({"dialogue_id": ["b", "a", "b"]})).tolist()
    [1, 0, 1]
    """
    return (frame["dialogue_id"].rank("dense") - 1).to_numpy().astype(np.intp)


def compare_ranks(items: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Return the items that both models predict, sorted by decreasing absolute rank difference.

    Adds first, second (predictions); rank_first, rank_second, rank_score (fractional ranks of predictions and
    scores); difference (rank_first - rank_second); and nearer (the model whose rank is closer to that of the
    score: ``first``, ``second`` or ``same``). The predictions may be on different scales.
    """
    predicted_items = join_predictions(join_predictions(items, first, "first"), second, "second")
    ranked = predicted_items.with_columns(
        ranks(predicted_items[column]).alias(f"rank_{column}")
        for column in ("first", "second", "score")
    )
    distance = {
        name: (pl.col(f"rank_{name}") - pl.col("rank_score")).abs() for name in ("first", "second")
    }
    nearer = (
        pl.when(distance["first"] < distance["second"] - ROUNDING)
        .then(pl.lit("first"))
        .when(distance["second"] < distance["first"] - ROUNDING)
        .then(pl.lit("second"))
        .otherwise(pl.lit("same"))
    )
    return ranked.with_columns(
        difference=pl.col("rank_first") - pl.col("rank_second"), nearer=nearer
    ).sort(pl.col("difference").abs(), descending=True, maintain_order=True)


def bin_counts(frame: pl.DataFrame, x: str, y: str, cells: int = 40) -> pl.DataFrame:
    """Return the number of items in each cell of a grid over `x` and `y`, without empty cells.

    Columns: x, x_to, y, y_to (named after the two columns) and items. The cells have equal size and cover the
    range of the values; the last cell includes the maximum.

    >>> bin_counts(pl.DataFrame({"a": [0.0, 0.1, 1.0], "b": [0.0, 0.2, 4.0]}), "a", "b", cells=2).rows()
    [(0.0, 0.5, 0.0, 2.0, 2), (0.5, 1.0, 2.0, 4.0, 1)]
    """
    grid = {axis: _bin_width(frame[axis], cells) for axis in (x, y)}
    cell = [
        ((pl.col(axis) - low) / width).floor().clip(0, cells - 1).cast(pl.Int64).alias(axis)
        for axis, (low, width) in grid.items()
    ]
    counts = frame.select(cell).group_by(x, y).agg(pl.len().alias("items")).sort(x, y)
    edges = [
        (low + (pl.col(axis) + offset) * width).alias(f"{axis}{suffix}")
        for axis, (low, width) in grid.items()
        for offset, suffix in ((0, ""), (1, "_to"))
    ]
    return counts.select(*edges, "items")


def sample(frame: pl.DataFrame, size: int, seed: int = 0) -> pl.DataFrame:
    """Return a random sample of at most `size` rows in their original order."""
    if len(frame) <= size:
        return frame
    indices = np.random.default_rng(seed).choice(len(frame), size=size, replace=False)
    return frame[np.sort(indices)]


def _bin_width(values: pl.Series, cells: int) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    return (low, (high - low) / cells) if high > low else (low - 0.5, 1 / cells)


def _plain_difference(first: Result, second: Result, metric: str) -> Estimate:
    value = metric_of(first, metric).value - metric_of(second, metric).value
    return Estimate(
        value, math.nan, math.nan, metric_of(first, metric).n, "no interval: not resampled"
    )


def accuracies(results: Sequence[Result], measure: str) -> pl.DataFrame:
    """Return one row per result and history, best first: model, history, `NUMBERS`, chance, kind, key."""
    result_names = names(results)
    rows = [
        {
            "model": result_names[key(result)],
            "history": str(group.by["history"]),
            **numbers_of(group.metrics[measure]),
            "chance": group.metrics[measure].extra.get("chance", math.nan),
            "kind": kind_of(result),
            "key": key(result),
        }
        for result in results
        for group in result.groups
        if set(group.by) == {"history"} and measure in group.metrics
    ]
    key_columns = {"model": pl.String, "history": pl.String}
    schema = {**key_columns, **NUMBERS, "chance": pl.Float64, **IDENTITY}
    frame = pl.DataFrame(rows, schema=schema)
    return frame.sort(pl.col("value").fill_nan(None), descending=True, nulls_last=True)


def option_likelihoods(predictions: pl.DataFrame, measure: str = "accuracy") -> pl.DataFrame:
    """Return one row per option of each question, averaged over the orders of the options.

    Columns: history, dialogue_id, utterance_id, letter (in the first order), answer, likelihood (by the
    measure), logprob, tokens, bytes, gold, score and chosen (the most likely option; of ties, the first one).
    If a likelihood of a question is NaN, chosen is null.
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
    is_defined = pl.col("likelihood").is_not_nan().all().over(QUESTION)
    is_best = pl.col("likelihood").arg_max().over(QUESTION) == pl.int_range(pl.len()).over(QUESTION)
    return by_option.with_columns(chosen=pl.when(is_defined).then(is_best))


def are_generated(predictions: pl.DataFrame) -> bool:
    """Return whether the answers were generated, so that options have no likelihoods."""
    return predictions["bytes"].is_null().all()


def correct_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Return one row per question: history, dialogue_id, right; null if no option was chosen.

    chosen: as returned by `option_likelihoods`.
    """
    is_correct = (pl.col("chosen") & pl.col("gold")).any(ignore_nulls=False)
    return answers.group_by(*QUESTION, maintain_order=True).agg(right=is_correct)


def answers_by_question(chosen: pl.DataFrame) -> dict[str, dict[str, bool | None]]:
    """Return whether the question of each dialogue was answered correctly, by history condition."""
    answers: dict[str, dict[str, bool | None]] = {}
    for history, dialogue_id, is_correct in correct_answers(chosen).iter_rows():
        answers.setdefault(dialogue_id, {})[history] = is_correct
    return answers


@dataclass(frozen=True)
class LetterCounts:
    """Counts of chosen and gold letters."""

    frame: pl.DataFrame
    """letter, chosen, gold, expected; over all orders. A question with two gold options counts one half for
    each; expected is the sum of 1 / number of options over the questions with the letter. Generated answers
    that choose no option are not counted."""
    questions: int
    """Number of questions in the test."""
    p: float
    """p-value of Pearson's chi-square test of a uniform distribution of the chosen letters in the first
    order."""
    reason: str = ""
    """Reason for a NaN p: ``few`` questions, or different ``lengths``."""
    unanswered: int = 0
    """Number of answers that choose no option."""
    answers: int = 0
    """Number of answers: one per question and order."""


def count_letters(predictions: pl.DataFrame, history: str) -> LetterCounts:
    """Count letters for a history condition; the order of the options is random for each question.

    The test uses each question once, in the first order, so that the answers are independent.
    """
    answer = ("dialogue_id", "order")
    questions = predictions.filter(pl.col("history") == history).with_columns(
        k=pl.len().over(answer),
        right=pl.col("gold") / pl.col("gold").sum().over(answer),
        is_answered=pl.col("chosen").any().over(answer),
    )
    answers = questions.unique(answer)["is_answered"]
    answered = questions.filter("is_answered")
    first_order = answered.filter(pl.col("order") == 0)
    p, reason = _uniformity_test(_count_letters(first_order), answered["k"].n_unique())
    n_questions = first_order["dialogue_id"].n_unique()
    unanswered = len(answers) - int(answers.sum())
    return LetterCounts(_count_letters(answered), n_questions, p, reason, unanswered, len(answers))


def _correct_shares(predictions: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Return one row per question: history, dialogue_id, right; null if a likelihood is NaN.

    right: 1 for a correct choice and 0 for another; of generated answers the share of the orders with a
    correct choice, as in the accuracy of the result: an answer that chooses no option is wrong.
    """
    if are_generated(predictions):
        is_right = pl.col("chosen") & pl.col("gold")
        share = is_right.sum() / pl.col("order").n_unique()
        return predictions.group_by(*QUESTION, maintain_order=True).agg(right=share)
    return correct_answers(option_likelihoods(predictions, measure)).cast({"right": pl.Float64})


def compare_accuracies(
    first: pl.DataFrame, second: pl.DataFrame, history: str, measure: str = "accuracy"
) -> tuple[Estimate, pl.DataFrame, int]:
    """Return the difference in accuracy of two models, over the questions that both were asked.

    first, second: predictions of multiple choice. The difference is that of
    `giccs.measures.comparison.paired_accuracies`; questions with a likelihood of NaN are skipped. Also
    returns one row per question that one model answers correctly more often (dialogue_id, right: ``first`` or
    ``second``), and the number of skipped questions.
    """
    first_answers, second_answers = (
        _correct_shares(predictions.filter(pl.col("history") == history), measure)
        for predictions in (first, second)
    )
    shared = first_answers.join(
        second_answers, on="dialogue_id", suffix="_second", maintain_order="left"
    )
    defined = shared.drop_nulls(["right", "right_second"])
    estimate = paired_accuracies(*(defined[name].to_numpy() for name in ("right", "right_second")))
    differing = defined.filter(pl.col("right") != pl.col("right_second"))
    winner = (
        pl.when(pl.col("right") > pl.col("right_second"))
        .then(pl.lit("first"))
        .otherwise(pl.lit("second"))
    )
    n_left_out = (
        len(first_answers)
        + len(second_answers.join(first_answers, on="dialogue_id", how="anti"))
        - len(defined)
    )
    return estimate, differing.select("dialogue_id", right=winner), n_left_out


def _count_letters(questions: pl.DataFrame) -> pl.DataFrame:
    return (
        questions.group_by("letter")
        .agg(
            chosen=pl.col("chosen").sum().cast(pl.Int64),
            gold=pl.col("right").sum(),
            expected=(1 / pl.col("k")).sum(),
        )
        .sort("letter")
    )


def _uniformity_test(counts: pl.DataFrame, n_lengths: int) -> tuple[float, str]:
    if n_lengths > 1:
        return math.nan, "lengths"
    if counts.is_empty() or counts["expected"].min() < MIN_EXPECTED_COUNT:  # type: ignore[operator]
        return math.nan, "few"
    from scipy.special import chdtrc

    deviations = (counts["chosen"] - counts["expected"]) ** 2 / counts["expected"]
    return float(chdtrc(len(counts) - 1, deviations.sum())), ""
