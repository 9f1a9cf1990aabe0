"""giccs csts verified: merge the answers of a verification or a relabelling into a C-STS file or labels."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, SEED
from bws.base.problems import InputError, Problem
from bws.base.tables import tabulated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bws.stats.estimates import Estimate
    from giccs.csts.verification import Verified

NAMES = {
    "answer": "all answers",
    "applies": "whether the condition applies",
    "binary": "whether the condition is binary",
    "label": "labels",
}


@command(
    "giccs csts verified",
    example="""
    giccs csts verified verification.csv -o csts_train.csv
    giccs csts verified relabel.csv --relabelled csts-val-reannotated.tsv
    giccs csts verified verification.csv --json
    """,
)
@click.argument("answers", type=INPUT, metavar="ANSWERS")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE",
    help="Output C-STS file: uid, sentence1, sentence2, condition, label.",
)  # fmt: skip
@click.option(
    "--relabelled", type=OUTPUT, metavar="FILE",
    help="Output file of reannotated labels: uid, reannotated-label; -1 if the condition does not apply.",
)  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, metavar="S")
def verified(
    console: Console, answers: str, output: str | None, relabelled: str | None, seed: int
) -> None:
    """Merge the answers of several annotators into one label per triplet, and compute their agreement.

    ANSWERS is the output of giccs annotate collect for a verification or a relabelling. A triplet is excluded
    if more than half of its annotators say that the condition does not apply. Its label is the median. If
    that falls between two labels, it is the one nearer to the mean, or else the lower one; if more than half
    regard the condition as binary, the labels are 1, 3 and 5. Agreement is Fleiss' kappa, with 95 %
    jackknife-t intervals over sentence pairs; C-STS reports 0.61 (three annotators, 100 instances).
    """
    from giccs.csts.data import write_csts, write_relabelled
    from giccs.csts.verification import agreement, read_verification
    from giccs.csts.verification import verified as merge

    to_standard_output = "-" in (output, relabelled)
    if to_standard_output and console.as_json:
        raise click.UsageError(
            "--json prints a single document to standard output; write files with -o and --relabelled"
        )
    triplets = read_verification(answers)
    result = merge(triplets)
    kappas = agreement(triplets, seed=seed)
    if output is not None:
        if not result.instances:
            raise InputError(Problem(answers, None, "no condition applies; nothing to write"))
        write_csts(result.instances, output)
    if relabelled is not None:
        write_relabelled(result.relabelled, relabelled)
    text = _text(result, kappas, [path for path in (output, relabelled) if path])
    if to_standard_output:
        console.note(text)
    else:
        outputs = {"output": output, "relabelled": relabelled}
        console.answer(text, _document(result, kappas, outputs, seed))


def _text(verified: Verified, kappas: Mapping[str, Estimate], outputs: Sequence[str]) -> str:
    from giccs.measures.formatting import value_and_limits

    rows = [
        [NAMES.get(name, name), *value_and_limits(kappa), kappa.n, kappa.reason]
        for name, kappa in kappas.items()
    ]
    n_answers = sum(len(triplet.answers) for triplet in verified.triplets)
    counts = ", ".join(f"{count} with label {label}" for label, count in verified.counts.items())
    lines = [
        f"{len(verified.triplets)} triplets, {n_answers} answers",
        f"{len(verified.dropped)} excluded, because their condition does not apply",
        f"{len(verified.instances)} instances: {counts}",
        "",
        "Fleiss' kappa",
        tabulated(rows, ["", "kappa", "95 % interval", "triplets", ""]),
    ]
    return "\n".join([*lines, *([f"\nwritten to {', '.join(outputs)}"] if outputs else [])])


def _document(
    verified: Verified,
    kappas: Mapping[str, Estimate],
    outputs: Mapping[str, str | None],
    seed: int,
) -> dict[str, Any]:
    from giccs.csts.measures import RESAMPLES

    return {
        "triplets": len(verified.triplets),
        "answers": sum(len(triplet.answers) for triplet in verified.triplets),
        "instances": len(verified.instances),
        "labels": verified.counts,
        "left_out": [
            {**asdict(triplet), "answers": list(triplet.answers)} for triplet in verified.dropped
        ],
        "kappa": {name: kappa.document() for name, kappa in kappas.items()},
        **outputs,
        "signature": {
            "label": "median, nearer to the mean, lower", "resamples": RESAMPLES, "seed": seed,
            "giccs": version("giccs"),
        },
    }  # fmt: skip
