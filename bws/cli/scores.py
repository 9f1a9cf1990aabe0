"""giccs score: scores of items from judgments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_RESAMPLES, OUTPUT, Number
from bws.base.problems import InputError, Problem
from bws.base.tables import TableStyle, rendered, tabulated
from bws.base.terminal import echo
from bws.cli.options import (
    answer_paragraph,
    arguments,
    check_figure,
    drawn_figure,
    exclude_option,
    figure_option,
    judgments_from,
    judgments_options,
    option,
    output_option,
    paragraph_option,
    plain_table_options,
    seed_option,
    variants_document,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bws.files import OnInvalid
    from bws.files.scores import ScoreForm
    from bws.records import Judgments, Scores

MODEL_OPTIONS = {"scale", "cluster", "ranks", "seed"}
"""Options of prediction-powered scores."""
ENDS = 5
"""Number of items with the highest and the lowest scores in the table."""
WIDTH = 40
"""Maximum number of characters of an item in the table."""


def _methods() -> Sequence[str]:
    from bws.scoring import all_methods

    return list(all_methods())


@command(
    "giccs score",
    example="""
    giccs score judgments.csv -o scores.csv
    giccs score judgments.csv --intervals --format latex --columns item,score,low,high -o scores.tex
    giccs score judgments.csv --scale unit --intervals
    giccs score judgments.csv --intervals --ranks -o scores.csv
    giccs score judgments.csv --soft-targets soft-targets.csv -o scores.csv
    giccs score judgments.csv --method best-worst-logit --scale counting -o scores.csv
    giccs score judgments.csv --method elo --bootstrap 1000 --cluster annotator
    giccs score judgments.csv --absolute anchors.csv -o scores.csv
    giccs score judgments.csv --model-judgments model.csv -o scores.csv
    giccs score judgments.csv --model-judgments model.csv --pool -o scores.csv
    giccs score annotations.csv --from km --method bradley-terry --format km -o scores.tsv
    """,
)
@judgments_options
@exclude_option
@option("--method", "Scoring method.", choices=_methods, default="counting")
@option(
    "--scale",
    "Scores in [-1, 1] (signed), (score + 1) / 2 in [0, 1] (unit), or scores of a choice model on the "
    "scale of counting.",
    choices="signed unit counting",
    default="signed",
)
@option(
    "--intervals",
    "95 % intervals from the method's standard errors; not available for elo and the learning methods.",
    is_flag=True,
    former_names="--model-interval",
)
@option(
    "--bootstrap",
    "95 % intervals from N resamples, for all methods.  [default: none]",
    type=click.IntRange(0, MAX_RESAMPLES),
    default=0,
    show_default=False,
    metavar="N",
)
@option(
    "--cluster",
    "Population to which intervals generalise: other annotators and tuples, one of them, or independent "
    "judgments.  [default: both; tuple without annotators]",
    choices="both annotator tuple judgment",
    default=None,
    show_default=False,
)
@option(
    "--ranks",
    "With --intervals, --bootstrap or --model-judgments: the columns rank_low and rank_high, the ranks "
    "of an item in its group (1 for the highest score) that hold for all its items at once with 95 %.",
    is_flag=True,
)
@option(
    "--prior",
    "Choice models: standard deviation of the prior, in logits.  [default: estimated]",
    type=Number(0, 1000, min_open=True),
    metavar="SD",
)
@option(
    "--passes",
    "Elo and learning methods: number of passes over the judgments.",
    type=click.IntRange(1, 100_000),
    metavar="N",
)
@option(
    "--anchor anchors",
    "Judgments of an earlier batch with shared items; scores are linked to its scale.",
    multiple=True,
    type=INPUT,
    metavar="JUDGMENTS",
)
@option(
    "--absolute",
    "Anchors, answers to single items: the columns absolute_score, absolute_low and absolute_high, scores in "
    "[0, 1] on one scale for the items of all groups, with 95 % intervals.",
    type=INPUT,
    metavar="ANCHORS",
)
@option(
    "--model-judgments models",
    "Judgments by language models of other tuples of the same design, of which people judged a random part. "
    "They predict people's judgments: scores and intervals are prediction-powered, which is valid whatever "
    "the bias of the models. Counting only.",
    former_names="--models",
    type=INPUT,
    metavar="FILE",
)
@option(
    "--pool",
    "With --model-judgments: shrink the scores towards their regression on the scores of the models. More "
    "precise on average over the items, but not valid for each item.",
    is_flag=True,
)
@option(
    "--soft-targets",
    "Also write the shares of annotators who selected each item of each tuple as best and worst, as CSV.",
    type=OUTPUT,
    metavar="FILE",
)
@option(
    "--items item_texts",
    "Texts of the items (item, text, perhaps group: CSV, TSV, JSON Lines; dialogues; a benchmark): a column "
    "of the scores, and labels of the figure.",
    type=INPUT,
    metavar="FILE",
)
@option("--sort is_sorted", "Write the highest score first.", is_flag=True)
@option(
    "--top",
    "Write only so many of the highest scores.",
    type=click.IntRange(1, 1_000_000_000),
    metavar="N",
)
@seed_option
@figure_option("the scores, with their intervals")
@paragraph_option
@plain_table_options(
    "CSV with header, K&M's or SemRel's format, or a table for reading and papers.",
    default="csv",
    other_formats=("csv", "km", "semrel"),
)
@output_option
def score(
    console: Console,
    judgments: Sequence[str],
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
    control: Sequence[str],
    exclude: str | None,
    method: str,
    intervals: bool,
    anchors: Sequence[str],
    absolute: str | None,
    models: str | None,
    pool: bool,
    figure: str | None,
    style: TableStyle,
    soft_targets: str | None,
    item_texts: str | None,
    is_sorted: bool,
    top: int | None,
    paragraph: str | None,
    output: str,
    **options: Any,
) -> None:
    """Compute scores of the items from judgments."""
    from bws.analysis.pictures import finished
    from bws.analysis.pictures import scores as score_picture
    from bws.base.charts import write_chart
    from bws.files import write_soft_targets
    from bws.files.item_texts import read_item_texts
    from bws.files.soft_targets import soft_targets as targets_of
    from bws.paragraphs.judgments import score_sentences, study_sentences
    from bws.scoring import anchor
    from bws.scoring import score as scored
    from bws.scoring.prediction_powered import prediction_powered_scores

    check_figure(figure)
    if soft_targets == "-":
        raise click.UsageError("--soft-targets -: expected a file")
    if style.form in ("km", "semrel") and style.columns:
        raise click.UsageError(f"--columns cannot be combined with --format {style.form}")
    options = {name: value for name, value in options.items() if value is not None}
    if pool and not models:
        raise click.UsageError("--pool requires --model-judgments")
    if models:
        _check_counting_alone(method, anchors, options, merge_variants=merge_variants)
    if options["ranks"]:
        _check_ranks(has_intervals=bool(intervals or options["bootstrap"] or models), pool=pool)
    options["interval"] = "model" if intervals else "bootstrap"
    reading = form, on_invalid, parts, merge_variants, control
    batches = [judgments_from(console, path, *reading, control_optional=True) for path in anchors]
    batches.append(judgments_from(console, judgments, *reading, exclude=exclude))
    if anchors:
        _check_distinct(batches, (*anchors, batches[-1].file))
        _warn_of_unlinked_items(console, batches, batches[-1].file)
    with arguments():
        if models:
            by_models = judgments_from(console, models, "auto", on_invalid, {}, False)
            settings = {name: options[name] for name in MODEL_OPTIONS & options.keys()}
            last = prediction_powered_scores(batches[-1], by_models, pool=pool, **settings)
        else:
            scores = [scored(batch, method, **options) for batch in batches]
            last = anchor(scores)[-1] if anchors else scores[-1]
    if absolute:
        last = _with_absolute(console, last, batches[-1], absolute, options["seed"])
    if item_texts:
        last = last.with_texts(read_item_texts(item_texts))
        _warn_of_missing_texts(console, last, item_texts)
    for note in last.notes:
        if note not in batches[-1].notes:  # These are printed already.
            console.note(note)
    written = last.highest_first(top) if top or is_sorted else last
    if output != "-" or not (console.as_json or paragraph):
        _write(written, output, style)
    if figure:
        with drawn_figure(console, "of scores", batches[-1].file):
            write_chart(finished(score_picture(written), batches[-1]), figure)
    if soft_targets is not None:
        write_soft_targets(targets_of(batches[-1]), soft_targets)
    if paragraph:
        sentences = [*study_sentences(batches[-1]), *score_sentences(last)]
        in_text = replace(style, form="table") if style.form in ("csv", "km", "semrel") else style
        answer_paragraph(console, sentences, paragraph, in_text, _document(written, batches[-1]))
    elif console.as_json:
        console.answer("", _document(written, batches[-1]))
    elif output != "-":
        echo(_ends(written))


def _with_absolute(
    console: Console, scores: Scores, judgments: Judgments, path: str, seed: int
) -> Scores:
    """Return the scores with absolute scores; print their ceiling."""
    from bws.absolute.files import read_anchors
    from bws.absolute.scores import absolute_scale

    scale = absolute_scale(judgments, read_anchors(path), scores, seed=seed)
    for text in (*scale.notes, scale.summary):
        console.note(text)
    return scale.added_to(scores)


def _warn_of_missing_texts(console: Console, scores: Scores, path: str) -> None:
    """Warn of items without a text; raise InputError if none has one."""
    assert scores.texts is not None
    missing = scores.items[scores.texts == ""].tolist()
    if len(missing) == len(scores):
        raise InputError(Problem(path, None, "texts of none of the items; expected their ids"))
    if missing:
        message = f"no text of {len(missing)} items, the first is {missing[0]!r}"
        console.warn([Problem(path, None, message)])


def _check_ranks(*, has_intervals: bool, pool: bool) -> None:
    """Raise UsageError for scores without intervals, or without one that holds for each item."""
    if not has_intervals:
        raise click.UsageError("--ranks requires --intervals, --bootstrap or --model-judgments")
    if pool:
        raise click.UsageError(
            "--ranks cannot be combined with --pool: intervals of pooled scores hold on average over the "
            "items, not for each item"
        )


def _check_counting_alone(
    method: str, anchors: Sequence[str], options: Mapping[str, Any], *, merge_variants: bool
) -> None:
    """Raise UsageError for options that cannot be combined with --model-judgments."""
    excluded = {
        f"--method {method}": method != "counting",
        "--scale counting": options["scale"] == "counting",
        "--bootstrap": options["bootstrap"],
        "--anchor": anchors,
        "--merge-variants": merge_variants,
    } | {f"--{name}": True for name in ("prior", "passes") if name in options}
    if given := [name for name, is_given in excluded.items() if is_given]:
        raise click.UsageError(f"--model-judgments cannot be combined with {given[0]}")


def _write(scores: Scores, output: str, style: TableStyle) -> None:
    """Write the scores as a file that can be read again, or as a table."""
    from bws.files import write_scores

    if style.form in ("csv", "km", "semrel") and not style.columns:
        write_scores(scores, output, cast("ScoreForm", style.form))
        return
    from bws.base.text import write_atomic

    with arguments():
        text = rendered([scores.result_table()], style, titles=False)
    write_atomic(output, text.rstrip("\n") + "\n")


def _check_distinct(batches: Sequence[Judgments], paths: Sequence[str]) -> None:
    """Raise InputError for a batch with the same judgments as an earlier one."""
    first: dict[str, str] = {}
    for batch, path in zip(batches, paths, strict=True):
        digest = batch.canonical.digest()
        if digest in first:
            message = f"has the same judgments as {first[digest]}; expected another batch"
            raise InputError(Problem(path, None, message))
        first[digest] = path


def _warn_of_unlinked_items(console: Console, batches: Sequence[Judgments], path: str) -> None:
    """Warn of items that do not link the batches because of different spellings."""
    from bws.files.variants import find_variants

    keys = {key for batch in batches for key in batch.tuples.item_keys}
    groups, items = zip(*sorted(keys), strict=True)
    if variants := find_variants(items, groups):
        message = variants.message("only items with the same spelling link the batches")
        console.warn([Problem(path, None, f"with --anchor, {message}")])


def _columns(scores: Scores) -> dict[str, NDArray[Any]]:
    """Return the available columns of the scores, by their names in files."""
    from bws.record_columns import ABSOLUTE, whole_ranks

    columns = {
        "item": scores.items,
        "text": scores.texts,
        "group": scores.groups,
        "score": scores.score,
        "low": scores.low,
        "high": scores.high,
        "rank_low": None if scores.rank_low is None else whole_ranks(scores.rank_low),
        "rank_high": None if scores.rank_high is None else whole_ranks(scores.rank_high),
        **{name: getattr(scores, name) for name in ABSOLUTE},
        "appearances": scores.appearances,
        "best": scores.best,
        "worst": scores.worst,
    }
    return {name: column for name, column in columns.items() if column is not None}


def _ends(scores: Scores) -> str:
    """Return a table of the items with the highest and the lowest scores."""
    import numpy as np

    from bws.record_columns import ABSOLUTE

    scored = np.flatnonzero(~np.isnan(scores.score))
    order = scored[np.argsort(-scores.score[scored], kind="stable")]
    cut = len(order) > 2 * ENDS
    order = np.concatenate([order[:ENDS], order[-ENDS:]]) if cut else order
    columns = {name: column[order].tolist() for name, column in _columns(scores).items()}
    if not any(scores.groups):
        del columns["group"]
    for name in columns.keys() & {"item", "text"}:
        columns[name] = [text[:WIDTH] for text in columns[name]]
    for name in columns.keys() & {"score", "low", "high", *ABSOLUTE}:
        columns[name] = ["–" if math.isnan(value) else f"{value:.3f}" for value in columns[name]]
    for name in columns.keys() & {"rank_low", "rank_high"}:
        columns[name] = ["–" if rank is None else rank for rank in columns[name]]
    rows: list[tuple[Any, ...]] = list(zip(*columns.values(), strict=True))
    rows[ENDS:ENDS] = [("...",)] if cut else []
    return tabulated(rows, list(columns))


def _document(scores: Scores, judgments: Judgments) -> dict[str, Any]:
    columns = {name: column.tolist() for name, column in _columns(scores).items()}
    rows = zip(*columns.values(), strict=True)
    return {
        "scores": [dict(zip(columns, row, strict=True)) for row in rows],
        "source": judgments.source,
        "left_out": [str(problem) for problem in judgments.left_out],
        "notes": list(scores.notes),
        "signature": dict(scores.signature),
    } | variants_document(judgments)
