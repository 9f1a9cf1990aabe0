"""giccs csts compare-labels: predictions of models compared with original and reannotated labels."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, SEED
from bws.base.problems import InputError, Problem
from bws.base.tables import remarks, tabulated
from bws.base.text import read_bytes
from bws.cli.options import check_figure, drawn_figure, format_option

if TYPE_CHECKING:
    from giccs.csts.data import Instance
    from giccs.csts.label_comparison import LabelComparison

TITLES = (
    "model", "setting", "rows", "original ρ [95 %]", "reannotated ρ [95 %]", "difference [95 %]",
)  # fmt: skip


@command(
    "giccs csts compare-labels",
    example="""
    giccs eval package:minilm --task csts --data c-sts -o results
    giccs csts compare-labels results --data c-sts --labels csts-val-reannotated.tsv
    giccs csts compare-labels results --data c-sts --labels csts-val-reannotated.tsv --figure labels.svg
    """,
)
@click.argument("folder", type=INPUT, metavar="RESULTS_FOLDER")
@click.option(
    "--data", required=True, type=INPUT, metavar="DATA",
    help="The original labels: a C-STS file, or a folder with csts_validation.csv.",
)  # fmt: skip
@click.option(
    "--labels", required=True, type=INPUT, metavar="FILE",
    help="Reannotated labels: uid, reannotated-label.",
)  # fmt: skip
@click.option(
    "--figure", type=OUTPUT, metavar="FILE", help="Also draw Figure 5: .svg, .png, .json."
)
@format_option("CSV has full precision.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the intervals.")
def compare_labels(
    console: Console, folder: str, data: str, labels: str, figure: str | None, form: str, seed: int
) -> None:
    """Correlate stored predictions with original and with reannotated labels, as in Figure 5 of L-CSTS.

    RESULTS_FOLDER has results of csts, csts-prompt or giccs csts train on rows of the validation split, with
    original or with reannotated labels (giccs csts relabel). Each result is compared on its rows with both
    labels. The difference has a paired interval over sentence pairs. Results on other rows are listed.

    --json: comparisons (sorted by the correlation with reannotated labels), skipped, signature.
    """
    check_figure(figure)
    from giccs.csts.data import read_csts, read_relabelled
    from giccs.csts.label_comparison import label_chart
    from giccs.csts.task_data import in_splits

    dataset = read_csts(data, "validation" if in_splits(data) else None)
    rows = {instance.uid: instance for instance in dataset.instances}
    comparisons, skipped = _compared(folder, rows, read_relabelled(labels), seed)
    for model, reason in skipped:
        console.note(f"skipped: {model}: {reason}")
    if not comparisons:
        raise InputError(Problem(folder, None, "no results on the rows of the data"))
    if figure:
        with drawn_figure(console, "of labels", folder):
            from bws.base.charts import write_chart

            write_chart(label_chart(comparisons), figure)
            console.note(f"Figure 5 written to {figure}")
    document = {
        "comparisons": [comparison.document() for comparison in comparisons],
        "skipped": [{"model": model, "reason": reason} for model, reason in skipped],
        "signature": {
            "data": dataset.fingerprint,
            "labels": hashlib.sha256(read_bytes(labels)).hexdigest(),
            "seed": seed,
            "giccs": version("giccs"),
        },
    }
    console.answer(_text(comparisons, form), document)


def _compared(
    folder: str, rows: Mapping[str, Instance], second: Mapping[str, int], seed: int
) -> tuple[list[LabelComparison], list[tuple[str, str]]]:
    """Return the comparisons, best first, and the models of skipped results with the reasons."""
    from giccs.csts.label_comparison import TASKS, compare_labels
    from giccs.measures.results import MISSING_PREDICTIONS, Store, model_of

    store = Store(folder)
    comparisons, skipped = [], []
    for stored in store.results():
        if stored.task not in TASKS:
            continue
        result = store.with_predictions(stored)
        try:
            if result.predictions is None:
                raise ValueError(MISSING_PREDICTIONS)
            comparisons.append(compare_labels(result, result.predictions, rows, second, seed=seed))
        except ValueError as error:
            skipped.append((model_of(result), str(error)))
    comparisons.sort(key=_order)
    return comparisons, skipped


def _order(comparison: LabelComparison) -> tuple[bool, float]:
    value = comparison.reannotated.value
    return value != value, -value


def _text(comparisons: list[LabelComparison], form: str) -> str:
    from giccs.measures.formatting import few_clusters_note, interval

    if form == "csv":
        return _csv(comparisons)
    rows: list[tuple[Any, ...]] = []
    notes: dict[str, None] = {}
    for comparison in comparisons:
        estimates = (comparison.original, comparison.reannotated, comparison.difference)
        rows.append(
            (comparison.model, comparison.setting, comparison.rows, *map(interval, estimates))
        )
        notes |= dict.fromkeys(few_clusters_note(estimates))
        if estimates[0].value != estimates[0].value:
            notes[f"{comparison.model} ({comparison.setting}): {estimates[0].reason}"] = None
        if comparison.without_prediction:
            text = f"{comparison.without_prediction} rows without a prediction are skipped"
            notes[f"{comparison.model} ({comparison.setting}): {text}"] = None
    lines = [*notes, "Difference: reannotated minus original. Intervals are over sentence pairs."]
    return "\n".join([tabulated(rows, TITLES, form), "", *remarks(lines, form)])


def _csv(comparisons: list[LabelComparison]) -> str:
    from bws.base.rows import csv_text
    from giccs.measures.formatting import number

    names = ("original", "reannotated", "difference")
    head = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    rows = [
        (
            comparison.model,
            comparison.setting,
            comparison.data,
            comparison.rows,
            *(
                number(value)
                for name in names
                for estimate in [getattr(comparison, name)]
                for value in (estimate.value, estimate.low, estimate.high)
            ),
        )
        for comparison in comparisons
    ]
    return csv_text(rows, ("model", "setting", "data", "rows", *head)).rstrip("\n")
