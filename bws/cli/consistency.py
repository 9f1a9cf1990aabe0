"""bws-reliability and bws-agreement: how far the judgments hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import (
    arguments,
    by_options,
    judgments_from,
    judgments_options,
    option,
    seed_option,
    values_by,
)
from bws.command import Console, command

if TYPE_CHECKING:
    from bws.files import Form, OnInvalid

__all__ = ["agreement", "reliability"]


@command(
    "bws-reliability",
    example="""
    bws-reliability judgments.csv
    bws-reliability judgments.csv --metadata dialogues.jsonl --by source,n_turns
    bws-reliability judgments.csv --split annotator --curve
    """,
)
@judgments_options
@option("--trials", "Random splits.", type=click.IntRange(1), default=100, metavar="N")
@option(
    "--split",
    "What goes half and half: each tuple's judgments, or the annotators.",
    choices="annotation annotator",
    default="annotation",
)
@option(
    "--odd",
    "Who gets one more of an odd number: either half by chance, or the second (2 against 3).",
    choices="coin second",
    default="coin",
)
@option(
    "--missing",
    "An item that one half does not score: leave it out of the trial, or take 0 for it.",
    choices="drop zero",
    default="drop",
)
@by_options
@option(
    "--curve",
    "Add reliability against the number of annotations, and how many --target needs.",
    is_flag=True,
)
@option(
    "--target",
    "Reliability to estimate the annotations for.",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    metavar="R",
)
@seed_option
def reliability(
    console: Console,
    judgments: str,
    form: Form,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    metadata: str | None,
    by: str | None,
    curve: bool,
    target: float,
    **options: Any,
) -> None:
    """Tell by split halves how reliable the scores are."""
    from bws.curve import reliability_curve
    from bws.reliability import reliability as split_halves

    data = judgments_from(console, judgments, form, on_invalid, parts)
    with arguments():
        found = split_halves(data, by=values_by(data, metadata, by), **options)
    text, document = found.table(), found.document()
    if curve:
        shared = {name: options[name] for name in ("trials", "odd", "seed")}
        with arguments():
            points = reliability_curve(data, target=target, **shared)
        text, document["curve"] = f"{text}\n\n{points.table()}", points.document()
    console.answer(text, document)


@command(
    "bws-agreement",
    example="""
    bws-agreement judgments.csv
    bws-agreement judgments.csv --metadata dialogues.jsonl --by source,n_turns --bootstrap 1000
    bws-agreement judgments.csv --annotators
    """,
)
@judgments_options
@option(
    "--strong",
    "Strong agreement: this share of a tuple's annotators or more gave the same answer.",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.8,
    metavar="SHARE",
)
@option(
    "--bootstrap",
    "95 % intervals from N resamples.  [default: none]",
    type=click.IntRange(0),
    default=0,
    show_default=False,
    metavar="N",
)
@by_options
@option("--annotators", "Add a report on each annotator, and whom to look at.", is_flag=True)
@seed_option
def agreement(
    console: Console,
    judgments: str,
    form: Form,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    metadata: str | None,
    by: str | None,
    annotators: bool,
    **options: Any,
) -> None:
    """Tell how far annotators agree: Krippendorff's alpha and strong agreement."""
    from bws.agreement import agreement as agreed
    from bws.annotators import annotator_report

    data = judgments_from(console, judgments, form, on_invalid, parts)
    with arguments():
        found = agreed(data, by=values_by(data, metadata, by), **options)
    text, document = found.table(), found.document()
    if annotators:
        report = annotator_report(data)
        text, document["annotators"] = f"{text}\n\n{report.table()}", report.document()
    console.answer(text, document)
