"""giccs csts rating-sheets and quality: people rate generated answers."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, OUTPUT_FOLDER, SEED, Choice
from bws.base.tables import tabulated
from giccs.csts.data import SPLITS, read_csts
from giccs.csts.task_data import in_splits
from giccs.measures.formatting import value_and_limits

if TYPE_CHECKING:
    from bws.stats.estimates import Estimate
    from giccs.csts.answer_quality import Quality, Ratings


@command(
    "giccs csts rating-sheets",
    example="""
    giccs csts rating-sheets csts_validation.csv answers.csv -o ratings
    giccs csts rating-sheets csts_validation.csv gpt-3.5.csv gpt-4.csv --instances 100 -o ratings
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.argument("answers", type=INPUT, metavar="ANSWERS...", nargs=-1, required=True)
@click.option(
    "--split",
    type=Choice(SPLITS),
    help="Read only this file of a folder, as for giccs csts answers; default: all files.",
)
@click.option(
    "--instances", type=click.IntRange(1, MAX_COUNT), default=200, show_default=True, metavar="N",
    help="Number of instances in the sample; each has two answers per file.",
)  # fmt: skip
@click.option(
    "--raters", type=click.IntRange(1, 100), default=2, show_default=True, metavar="R",
    help="Number of sheets.",
)  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, metavar="S")
@click.option("-o", "--output", "folder", required=True, type=OUTPUT_FOLDER, metavar="FOLDER")
def rating_sheets(
    console: Console,
    data: str,
    answers: tuple[str, ...],
    split: str | None,
    instances: int,
    raters: int,
    seed: int,
    folder: str,
) -> None:
    """Write sheets on which people rate generated answers, as in L-CSTS (section 4.1).

    DATA is a C-STS file or folder, ANSWERS are outputs of giccs csts answers. FOLDER gets rater-1.csv,
    rater-2.csv … with the columns id, sentence, question, answer and rating. Raters fill in the last: 1 is
    unrelated, 5 is very accurate. Each sheet has its own order. key.csv names the file of each answer.

    --json: written, signature.
    """
    from giccs.csts.answer_quality import write_sheets

    dataset = read_csts(data, split if in_splits(data) else None, relabelled=True)
    console.warn(dataset.warnings)
    files = write_sheets(folder, dataset, answers, instances, raters, seed)
    lines = [f"wrote {path}" for path in files]
    signature = {"data": dataset.fingerprint, "seed": seed, "instances": instances}
    document = {"written": list(map(str, files)), "signature": signature}
    console.answer("\n".join(lines), document)


@command(
    "giccs csts quality",
    example="""
    giccs csts quality ratings
    giccs csts quality ratings --json
    """,
)
@click.argument("folder", type=INPUT, metavar="FOLDER")
@click.option("--seed", type=SEED, default=0, show_default=True, metavar="S")
def quality(console: Console, folder: str, seed: int) -> None:
    """Compute the quality of generated answers from the ratings in a folder of giccs csts rating-sheets.

    Mean rating and accuracy (share of ratings that are 5) of each file of answers, with 95 % jackknife-t
    intervals over sentence pairs; the difference from the first file; and the agreement of the raters.
    L-CSTS reports 4.54 and 75 % for GPT-3.5, 4.07 and 69.5 % for GPT-4 (two annotators, 200 instances).

    --json: answers, raters, quality, kappa, equal, signature.
    """
    from giccs.csts.answer_quality import quality as qualities_of
    from giccs.csts.answer_quality import rater_agreement, read_ratings
    from giccs.csts.measures import RESAMPLES

    ratings = read_ratings(folder)
    qualities = qualities_of(ratings, seed=seed)
    kappa, equal = rater_agreement(ratings, seed=seed)
    document = {
        "answers": len(ratings.answers),
        "raters": _rated(ratings),
        "quality": [_document(one) for one in qualities],
        "kappa": kappa.document(),
        "equal": equal.document(),
        "signature": {"resamples": RESAMPLES, "seed": seed, "giccs": version("giccs")},
    }
    console.answer(_text(ratings, qualities, kappa, equal), document)


def _rated(ratings: Ratings) -> dict[str, int]:
    """Return the number of ratings of each rater."""
    counts = (ratings.values > 0).sum(axis=0).tolist()
    return dict(zip(ratings.raters, counts, strict=True))


def _text(ratings: Ratings, qualities: list[Quality], kappa: Estimate, equal: Estimate) -> str:
    differences = any(one.difference for one in qualities)
    header = ["answers", "mean", "95 %", "accuracy", "95 %", "rated"]
    header += ["difference", "95 %", ""] if differences else [""]
    rows = [
        [one.answers, *value_and_limits(one.mean, 2), *value_and_limits(one.accuracy), one.mean.n,
         *(_difference(one) if differences else ()), one.mean.reason]
        for one in qualities
    ]  # fmt: skip
    counts = ", ".join(f"{name} {count}" for name, count in _rated(ratings).items())
    lines = [
        f"{len(ratings.answers)} answers; rated: {counts}",
        "",
        tabulated(rows, header),
        "",
        tabulated(
            [["Fleiss' kappa", *value_and_limits(kappa), kappa.n, kappa.reason],
             ["equal ratings", *value_and_limits(equal), equal.n, equal.reason]],
            ["agreement of raters", "", "95 %", "answers", ""],
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def _difference(one: Quality) -> tuple[str, str]:
    return value_and_limits(one.difference, 2) if one.difference else ("", "")


def _document(one: Quality) -> dict[str, Any]:
    return {
        "answers": one.answers,
        "mean": one.mean.document(),
        "accuracy": one.accuracy.document(),
        "difference": one.difference.document() if one.difference else None,
    }
