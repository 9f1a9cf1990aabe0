"""bws-score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from bws.cli.options import (
    arguments,
    judgments_from,
    judgments_options,
    option,
    output_option,
    seed_option,
)
from bws.command import Console, command

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bws.files import Form, OnInvalid
    from bws.records import Judgments, Scores

__all__ = ["METHODS", "score"]

METHODS = (
    "counting",
    "analytical",
    "abw",
    "elo",
    "rescorla-wagner",
    "value-learning",
    "bradley-terry",
    "plackett-luce",
    "best-worst-logit",
    "maxdiff",
)
ENDS = 5
"""How many items the table shows from the top and from the bottom."""
WIDTH = 40
"""How many characters of an item the table shows."""


@command(
    "bws-score",
    example="""
    bws-score judgments.csv -o scores.csv
    bws-score judgments.csv --scale unit --bootstrap 1000 --cluster annotator
    bws-score annotations.csv --from km --method bradley-terry --format km -o scores.tsv
    """,
)
@judgments_options
@option("--method", "How to score.", choices=" ".join(METHODS), default="counting")
@option(
    "--scale",
    "Scores in [-1, 1], or (score + 1) / 2 in [0, 1].",
    choices="signed unit",
    default="signed",
)
@option(
    "--bootstrap",
    "95 % intervals from N resamples.  [default: none]",
    type=click.IntRange(0),
    default=0,
    show_default=False,
    metavar="N",
)
@option(
    "--cluster", "What is resampled as a whole.", choices="annotator tuple", default="annotator"
)
@option("--model-interval", "95 % intervals from the model's standard errors.", is_flag=True)
@option(
    "--prior", "Choice models: the prior's standard deviation, in logits.", type=float, metavar="SD"
)
@option(
    "--passes",
    "Elo and learning methods: passes over the judgments.",
    type=click.IntRange(1),
    metavar="N",
)
@option(
    "--anchor anchors",
    "An earlier batch that shares items; scores are put on its scale.",
    multiple=True,
    metavar="JUDGMENTS",
)
@seed_option
@option("--format output_form", "Ours, K&M's or SemRel's.", choices="csv km semrel", default="csv")
@output_option
def score(
    console: Console,
    judgments: str,
    form: Form,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    method: str,
    model_interval: bool,
    anchors: Sequence[str],
    output_form: Literal["csv", "km", "semrel"],
    output: str,
    **options: Any,
) -> None:
    """Score the items of judgments."""
    from bws.files import write_scores
    from bws.scoring import anchor
    from bws.scoring import score as scored

    options = {name: value for name, value in options.items() if value is not None}
    options["interval"] = "model" if model_interval else "bootstrap"
    batches = [
        judgments_from(console, path, form, on_invalid, parts) for path in (*anchors, judgments)
    ]
    with arguments():
        scores = [scored(batch, method, **options) for batch in batches]
        last = anchor(scores)[-1] if anchors else scores[-1]
    for note in last.notes:
        console.note(note)
    if output != "-" or not console.as_json:
        write_scores(last, output, output_form)
    if console.as_json:
        console.answer("", _document(last, batches[-1]))
    elif output != "-":
        click.echo(_ends(last))


def _columns(scores: Scores) -> dict[str, NDArray[Any]]:
    """Return the columns that the scores have, by the names that their files give them."""
    columns = {
        "item": scores.items,
        "group": scores.groups,
        "score": scores.score,
        "low": scores.low,
        "high": scores.high,
        "appearances": scores.appearances,
        "best": scores.best,
        "worst": scores.worst,
    }
    return {name: column for name, column in columns.items() if column is not None}


def _ends(scores: Scores) -> str:
    """Return a table of the items with the highest and the lowest scores."""
    import numpy as np
    from tabulate import tabulate

    scored = np.flatnonzero(~np.isnan(scores.score))
    places = scored[np.argsort(-scores.score[scored], kind="stable")]
    cut = len(places) > 2 * ENDS
    places = np.concatenate([places[:ENDS], places[-ENDS:]]) if cut else places
    columns = {name: column[places].tolist() for name, column in _columns(scores).items()}
    if not any(scores.groups):
        del columns["group"]
    columns["item"] = [name[:WIDTH] for name in columns["item"]]
    for name in columns.keys() & {"score", "low", "high"}:
        columns[name] = [f"{value:.3f}" for value in columns[name]]
    rows: list[tuple[Any, ...]] = list(zip(*columns.values(), strict=True))
    rows[ENDS:ENDS] = [("...",)] if cut else []
    return str(tabulate(rows, list(columns), disable_numparse=True))


def _document(scores: Scores, judgments: Judgments) -> dict[str, Any]:
    columns = {name: column.tolist() for name, column in _columns(scores).items()}
    rows = zip(*columns.values(), strict=True)
    return {
        "scores": [dict(zip(columns, row, strict=True)) for row in rows],
        "source": judgments.source,
        "left_out": [str(problem) for problem in judgments.left_out],
        "notes": list(scores.notes),
        "signature": dict(scores.signature),
    }
