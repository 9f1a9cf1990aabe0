"""giccs csts tfs: scores of sentences under typed feature structures, by feature."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT
from bws.base.rows import csv_text
from bws.base.tables import Column, ResultTable, TableStyle, remarks, rendered
from bws.base.terminal import echo
from bws.cli.options import arguments, plain_table_options
from giccs.csts.tfs import (
    Contribution,
    FeatureUse,
    Score,
    Summary,
    Value,
    read_tfs,
    score,
    summary,
    value_text,
)

EXAMPLE = (
    {
        "uid": "figure-6",
        "condition": "Animal",
        "sentence1": "A dog sits on the doorstep and waits.",
        "sentence2": "A dog leaps off the ground after a frisbee.",
        "features": [
            {"feature": "type", "value1": "dog", "value2": "dog", "similarity": 5, "weight": 0.6},
            {"feature": "color", "value1": None, "value2": None, "similarity": None},
            {"feature": "count", "value1": 1, "value2": 1, "similarity": 5, "weight": 0.2},
            {
                "feature": "position",
                "value1": "sitting",
                "value2": "in the air",
                "similarity": 1,
                "weight": 0.2,
            },
        ],
    },
    {
        "uid": "breakfast",
        "condition": "Food",
        "sentence1": "Two boiled eggs in blue cups stand beside the toast.",
        "sentence2": "A fried egg slides onto a plate.",
        "label": 3,
        "features": [
            {"feature": "type", "value1": "egg", "value2": "egg", "similarity": 5, "weight": 4},
            {
                "feature": "preparation",
                "value1": "boiled",
                "value2": "fried",
                "similarity": 2,
                "weight": 3,
            },
            {"feature": "count", "value1": 2, "value2": 1, "similarity": 3, "weight": 1},
            {
                "feature": "container",
                "value1": {"type": "cup", "color": "blue"},
                "value2": {"type": "plate", "color": None},
                "similarity": 2,
                "weight": 2,
            },
            {"feature": "side dish", "value1": "toast", "value2": None, "weight": 1},
        ],
    },
)
"""Output of --example: the structures of L-CSTS Figure 6 under new sentences, and a second example."""
COLUMNS = (
    Column("feature", "feature"),
    Column("value1", "sentence 1"),
    Column("value2", "sentence 2"),
    *(Column(name, name) for name in ("similarity", "weight", "share", "contribution")),
)
USE_COLUMNS = (
    *(Column(name, name) for name in ("condition", "feature", "applies")),
    Column("not_applicable", "N/A"),
    Column("similarity", "mean similarity"),
    Column("share", "mean share"),
)
CSV_TITLES = (
    "uid", "condition", "feature", "value1", "value2", "similarity", "weight", "share",
    "contribution", "score", "reason", "label",
)  # fmt: skip


def _print_example(ctx: click.Context, parameter: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        for line in EXAMPLE:
            echo(json.dumps(line, ensure_ascii=False))
        ctx.exit()


@command(
    "giccs csts tfs",
    example="""
    giccs csts tfs --example > structures.jsonl
    giccs csts tfs structures.jsonl
    giccs csts tfs structures.jsonl --format latex
    """,
)
@click.argument("file", type=INPUT, metavar="FILE")
@plain_table_options("CSV has one row per feature and full precision.")
@click.option(
    "--example", is_flag=True, is_eager=True, expose_value=False, callback=_print_example,
    help="Print an example of FILE; its first line is the paper's Figure 6.",
)  # fmt: skip
def tfs(console: Console, file: str, style: TableStyle) -> None:
    """Score sentences from 1 to 5 by the features of a condition, as in section 6 of L-CSTS.

    FILE contains one JSON object, or one per line: uid, condition, sentence1, sentence2, optionally label,
    and features, a list of objects with feature, value1, value2, similarity (1 to 5, from annotators) and
    weight. A value is text, a number, true, false or an object of features and values; null or "N/A" if a
    sentence does not state it. A feature without similarity does not apply, and its weight does not count.
    Only the shares of the weights count.

    --json: scores (uid, condition, score, reason if it is undefined, label, features: feature, value1,
    value2, similarity, weight, share, contribution); summary.
    """
    if style.form == "csv" and style.columns:
        raise click.UsageError("--columns is for tables")
    comparisons, warnings = read_tfs(file)
    console.warn(warnings)
    scores = [score(comparison) for comparison in comparisons]
    total_summary = summary(scores)
    document = {
        "scores": [item.document() for item in scores],
        "summary": total_summary.document(),
    }
    if style.form == "csv":
        console.answer(_csv(scores).rstrip("\n"), document)
        for line in _summary_lines(total_summary):
            console.note(line)
    else:
        lines = _separate(list(_summary_lines(total_summary)), style.form)
        with arguments():
            text = rendered(_tables(scores, total_summary, style.form), style)
        console.answer("\n".join([text, "", *remarks(lines, style.form)]), document)


def _tables(scores: Sequence[Score], total_summary: Summary, form: str) -> list[ResultTable]:
    """Return a table per comparison, and one of the features of several."""
    tables = [_comparison_table(feature_score, form) for feature_score in scores]
    if len(scores) > 1:
        rows = [_use(use, form) for use in total_summary.features]
        tables.append(ResultTable(USE_COLUMNS, rows, title="Features"))
    return tables


def _comparison_table(feature_score: Score, form: str) -> ResultTable:
    comparison = feature_score.comparison
    sentences = [comparison.sentence1, comparison.sentence2]
    lines = [f"{n}: {value_text(sentence)}" for n, sentence in enumerate(sentences, start=1)]
    return ResultTable(
        COLUMNS,
        [_row(part, form) for part in feature_score.contributions],
        [_arithmetic(feature_score)],
        value_text(f"{comparison.uid}: {comparison.condition}"),
        introduction=_separate(lines, form),
    )


def _separate(lines: Sequence[str], form: str) -> list[str]:
    """Return lines separated so that Markdown renders them as separate lines."""
    return [f"- {line}" for line in lines] if form == "markdown" else list(lines)


def _row(part: Contribution, form: str) -> list[str]:
    feature = part.feature
    return [
        _cell(feature.name, form),
        _cell(value_text(feature.value1), form),
        _cell(value_text(feature.value2), form),
        _number(feature.similarity) if feature.applies else "N/A",
        *map(_number, (feature.weight, part.share, part.value)),
    ]


def _use(use: FeatureUse, form: str) -> list[str]:
    counts = [str(use.applies), str(use.not_applicable)]
    means = map(_number, (use.similarity, use.share))
    return [_cell(use.condition, form), _cell(use.name, form), *counts, *means]


def _cell(text: str, form: str) -> str:
    """Return the text of a table cell with its separators escaped."""
    return value_text(text).replace("|", "\\|") if form == "markdown" else value_text(text)


def _number(number: float | None) -> str:
    """Return a number with up to three decimals, or a dash if it is missing.

    >>> _number(4.2), _number(5.0), _number(1 / 3), _number(0.0001), _number(None)
    ('4.2', '5', '0.333', '0.0001', '–')
    """
    if number is None or math.isnan(number):
        return "–"
    return f"{number:.3f}".rstrip("0").rstrip(".") if 0.001 <= number < 1e6 else f"{number:.3g}"


def _arithmetic(score: Score) -> str:
    """Return the sum in the notation of Figure 6, divided by the sum of the weights unless that is 1, and the
    label."""
    if score.reason:
        return f"similarity: undefined ({score.reason})"
    counted_features = [part.feature for part in score.contributions if not math.isnan(part.share)]
    terms = [
        f"({_number(each.similarity or 0)} × {_number(each.weight)})" for each in counted_features
    ]
    total = sum(each.weight or 0 for each in counted_features)
    summed = (
        " + ".join(terms) if math.isclose(total, 1) else f"({' + '.join(terms)}) / {_number(total)}"
    )
    label = score.comparison.label
    beside = "" if label is None else f"; label {label:g}"
    return f"similarity = {summed} = {_number(score.value)}{beside}"


def _summary_lines(total_summary: Summary) -> Iterator[str]:
    """Yield the summary, one sentence per line."""
    from giccs.measures.formatting import interval

    scored = f"{total_summary.scored} of {total_summary.comparisons}"
    yield f"comparisons with a score: {scored}{_range(total_summary)}"
    for reason, count in total_summary.undefined.items():
        yield f"without a score: {count} ({reason})"
    counts = {
        "features with a value in one sentence only": total_summary.one_sided,
        "invalid labels of -1, ignored": total_summary.invalid,
    }
    yield from (f"{label}: {count}" for label, count in counts.items() if count)
    for name, estimate in total_summary.agreement.items():
        undefined_reason = f" ({estimate.reason})" if estimate.reason else ""
        yield f"{name} with the labels, n = {estimate.n}: {interval(estimate)}{undefined_reason}"


def _range(total_summary: Summary) -> str:
    if not total_summary.scored:
        return ""
    lowest, mean, highest = map(
        _number, (total_summary.lowest, total_summary.mean, total_summary.highest)
    )
    return f", from {lowest} to {highest}, mean {mean}"


def _csv(scores: Sequence[Score]) -> str:
    rows: list[list[object]] = []
    for feature_score in scores:
        comparison = feature_score.comparison
        for part in feature_score.contributions:
            feature = part.feature
            values = map(_value_text, (feature.value1, feature.value2))
            numbers = (
                feature.similarity,
                feature.weight,
                part.share,
                part.value,
                feature_score.value,
            )
            rows.append(
                [
                    comparison.uid, comparison.condition, feature.name, *values, *map(_digits, numbers),
                    feature_score.reason, _digits(comparison.label),
                ]
            )  # fmt: skip
    return csv_text(rows, CSV_TITLES)


def _value_text(value: Value | None) -> str:
    """Return a value for CSV: text unchanged, sub-structures as JSON, empty for N/A."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _digits(number: float | None) -> str:
    return "" if number is None or math.isnan(number) else repr(number)
