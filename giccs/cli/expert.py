"""giccs expert: write a sheet for an expert, and compare judgments with the scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, SEED
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.cli.options import format_option

if TYPE_CHECKING:
    from giccs.benchmark import Benchmark
    from giccs.preparation.expert import ExpertCheck

MISMATCH_TITLES = (
    "Last turn of the dialogue",
    "Paired sentence",
    "Calculated score",
    "Expert evaluation",
)
GROUP_TITLES = ("", "agree", "judged", "share [95 %]", "at 0.5", "open")


@command(
    "giccs expert",
    example="""
    giccs expert benchmark.jsonl --sheet sheet.csv
    giccs expert benchmark.jsonl --expert sheet.csv
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "--sheet",
    type=OUTPUT,
    metavar="FILE",
    help="Write an empty sheet: all items in random order, without scores.",
)
@click.option(
    "--bom", is_flag=True, help="Begin with a byte order mark, which Excel requires for UTF-8."
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the sheet's order.")
@click.option(
    "--expert",
    "filled",
    type=INPUT,
    metavar="FILE",
    help="Compare a completed sheet, or a CSV file with the columns item_id and judgment.",
)
@format_option("Output format; csv contains only the mismatches.")
def expert(
    console: Console,
    data: str,
    sheet: str | None,
    bom: bool,
    seed: int,
    filled: str | None,
    form: str,
) -> None:
    """Ask an expert whether each similarity is above or below 0.5, and compare with the scores.

    DATA is a benchmark JSONL file, a folder with the GiCCS release, a hub id, giccs-sample or
    giccs-sample-en.

    In the column judgment, the expert enters higher, > 0.5 or höher; or lower, < 0.5 or niedriger. Empty
    cells count as open. Items with a score of exactly 0.5 are counted separately.

    --json: groups (by, items, open, middle, agree, share: value, low, high, n), all items first; mismatches
    (item_id, last_turn, utterance, score, expert).
    """
    from giccs.benchmark import read_benchmark

    if (sheet is None) == (filled is None):
        raise click.UsageError("expected either --sheet FILE or --expert FILE")
    benchmark = read_benchmark(data)
    if sheet is not None:
        _write_sheet(console, benchmark, sheet, bom, seed)
    elif filled is not None:
        _compare(console, benchmark, filled, form)


def _write_sheet(console: Console, benchmark: Benchmark, path: str, bom: bool, seed: int) -> None:
    from bws.base.text import write_atomic
    from giccs.preparation.expert import make_expert_sheet

    if path != "-" and Path(path).is_file():
        message = "already exists and may contain judgments; choose another file or remove it"
        raise InputError(Problem(path, None, message))
    write_atomic(path, ("\ufeff" if bom else "") + make_expert_sheet(benchmark, seed))
    summary = f"{len(benchmark.items)} items of {len(benchmark.dialogue_ids)} dialogues"
    if path == "-":
        console.note(summary)
        return
    document = {"sheet": path, "items": len(benchmark.items), "seed": seed}
    console.answer(f"{summary} in {path}", document | {"data": benchmark.fingerprint})


def _compare(console: Console, benchmark: Benchmark, path: str, form: str) -> None:
    from giccs.preparation.expert import compare_with_expert, read_expert

    result = compare_with_expert(benchmark, read_expert(path, benchmark))
    overall = result.groups[0]
    for count, text in (
        (overall.open, "items have no judgment yet"),
        (overall.middle, "judged items have a score of exactly 0.5, neither above nor below"),
    ):
        if count:
            console.note(f"{count} {text}")
    console.answer(_csv(result) if form == "csv" else _tables(result, form), result.document())


def _tables(result: ExpertCheck, form: str) -> str:
    """Return the mismatches in the format of the paper's Table 4, and the agreement."""
    from bws.base.tables import part_name, remarks, tabulated
    from giccs.measures.formatting import few_clusters_note, interval
    from giccs.preparation.expert import SIDE_LABELS

    mismatches = [
        (
            _cell_text(mismatch.item.last_turn, form),
            _cell_text(mismatch.item.utterance, form),
            f"{mismatch.item.score:.2f}",
            SIDE_LABELS[mismatch.expert],
        )
        for mismatch in result.mismatches
    ]
    groups = [
        (
            part_name(group.by),
            group.agree,
            group.share.n,
            interval(group.share),
            group.middle,
            group.open,
        )
        for group in result.groups
    ]
    mismatch_table = tabulated(mismatches, MISMATCH_TITLES, form) if mismatches else "no mismatches"
    notes = remarks(few_clusters_note(group.share for group in result.groups), form)
    return "\n".join([f"{mismatch_table}\n\n{tabulated(groups, GROUP_TITLES, form)}", *notes])


def _cell_text(text: str, form: str) -> str:
    line = " ".join(text.split())
    return line.replace("\\", r"\\").replace("|", r"\|") if form == "markdown" else line


def _csv(result: ExpertCheck) -> str:
    columns = ["item_id", "last_turn", "utterance", "score", "expert"]
    return csv_text([mismatch.row() for mismatch in result.mismatches], columns).rstrip("\n")
