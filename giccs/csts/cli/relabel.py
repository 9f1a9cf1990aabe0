"""giccs csts relabel: C-STS with the labels of L-CSTS, split for training and test."""

from __future__ import annotations

from pathlib import Path

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT_FOLDER, SEED, Number, RenamedOption
from bws.base.problems import InputError, Problem
from giccs.csts.data import (
    Dataset,
    divide_rows,
    merged,
    read_csts,
    read_relabelled,
    relabel_rows,
    write_csts,
)


@command(
    "giccs csts relabel",
    example="""
    giccs csts relabel c-sts --labels csts-val-reannotated.tsv -o l-csts
    giccs csts train l-csts/divided --model princeton-nlp/sup-simcse-roberta-base
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "--labels",
    required=True,
    type=INPUT,
    metavar="FILE",
    help="Reannotated labels: uid, reannotated-label.",
)
@click.option(
    "--test-share",
    "test",
    cls=RenamedOption,
    former_names=["--test"],
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.3,
    show_default=True,
    help="Share of the rows in the test split; the rest is for training.",
)
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Output folder.",
)
def relabel(
    console: Console, data: str, labels: str, test: float, seed: int, folder: str
) -> None:  # fmt: skip
    """Write the validation split of C-STS with the reannotated labels of L-CSTS.

    FOLDER gets all valid rows as csts_validation.csv, and in divided/ the same rows split into csts_train.csv
    and csts_test.csv. Rows with an invalid condition are skipped. The rows of a sentence pair stay together.
    """
    output_files = _output_files(data, folder)
    dataset, second = read_csts(data, "validation"), read_relabelled(labels)
    console.warn(dataset.warnings)
    valid_rows, invalid = relabel_rows(dataset, second)
    if not valid_rows.instances:
        message = f"no uid of {labels} matches a row, or no condition is valid"
        raise InputError(Problem(data, None, message))
    rows = dict(zip(output_files, (valid_rows, *_parts(data, valid_rows, test, seed)), strict=True))
    for path, part in rows.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_csts(part.instances, path)
    relabelled = merged(dataset, second)
    lost = {
        "invalid": invalid,
        "rows_without_label": len(relabelled.without_label),
        "labels_without_row": len(relabelled.without_row),
    }
    lines = [f"{path}: {len(part.instances)} rows" for path, part in rows.items()]
    lines += [f"skipped: {count} {reason.replace('_', ' ')}" for reason, count in lost.items()]
    document = {
        "written": {str(path): len(part.instances) for path, part in rows.items()},
        "left_out": lost,
        "signature": {"data": dataset.fingerprint, "test": test, "seed": seed},
    }
    console.answer("\n".join(lines), document)


def _output_files(data: str, folder: str) -> list[Path]:
    """Return the output files; raise InputError if one of them is an input, whose labels would be lost."""
    names = ("csts_validation.csv", "divided/csts_train.csv", "divided/csts_test.csv")
    output_files = [Path(folder, name) for name in names]
    read = [Path(data), Path(data, names[0])]
    if any(
        path.exists() and path.resolve() == input_file.resolve()
        for path in output_files
        for input_file in read
    ):
        message = "would overwrite its own input; choose another folder with -o"
        raise InputError(Problem(folder, None, message))
    return output_files


def _parts(data: str, valid_rows: Dataset, test: float, seed: int) -> tuple[Dataset, Dataset]:
    """Return the training rows and the test rows; neither may be empty."""
    tested, trained = divide_rows(valid_rows, test, seed)
    if not trained.instances or not tested.instances:
        message = f"--test-share {test:g} of {len(valid_rows.instances)} rows leaves a split empty"
        raise InputError(Problem(data, None, message))
    return trained, tested
