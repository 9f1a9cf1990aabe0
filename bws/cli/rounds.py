"""giccs next and giccs stop: rounds of an adaptive study, and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, OUTPUT
from bws.cli.options import (
    answer_tables,
    arguments,
    judgments_from,
    judgments_options,
    new_items_option,
    option,
    output_option,
    plain_table_options,
    seed_option,
    target_option,
)

if TYPE_CHECKING:
    from bws.base.tables import TableStyle
    from bws.files import OnInvalid
    from bws.records import Tuples

tuples_option = partial(option, "--tuples designs", multiple=True, type=INPUT, metavar="TUPLES")
"""Option of both commands; the tuples of a study are needed to choose further ones."""
EARLIER_TUPLES = "Tuples of an earlier round; repeat the option for further rounds."


@command(
    "giccs next",
    example="""
    giccs next judgments.csv --tuples round1.csv -n 50 -o round2.csv
    giccs next judgments.csv --tuples round1.csv --tuples round2.csv -n 50 -o round3.csv
    giccs next judgments.csv --tuples round1.csv --new-items more.txt -o round2.csv
    """,
)
@judgments_options
@tuples_option(EARLIER_TUPLES, required=True)
@option(
    "-n count", "Tuples of the round; a fifth of them are random audit tuples.",
    type=click.IntRange(1, MAX_COUNT), metavar="N",
)  # fmt: skip
@new_items_option
@option(
    "--keep-apart",
    "Sets of items, one per line; no tuple contains two items of a set.",
    type=INPUT,
    metavar="FILE",
)
@seed_option
@output_option
def next_round(
    console: Console,
    judgments: Sequence[str],
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
    control: Sequence[str],
    designs: Sequence[str],
    count: int | None,
    new_items: str | None,
    keep_apart: str | None,
    seed: int,
    output: str,
) -> None:
    """Choose the tuples of the next round of an adaptive study from the judgments so far.

    Items that the judgments cannot yet order meet in a tuple. Each tuple is meant for one annotator. Score
    the judgments of all rounds together with giccs score --method best-worst-logit --scale counting.
    """
    from bws.adaptive import next_round as chosen
    from bws.adaptive import round_of_new_items
    from bws.adaptive.rounds import check_all_rounds
    from bws.files import read_item_sets, read_items, write_tuples

    if (count is None) == (new_items is None):
        raise click.UsageError("expected either -n or --new-items")
    if new_items and keep_apart:
        raise click.UsageError("--new-items cannot be combined with --keep-apart")
    data = judgments_from(console, judgments, form, on_invalid, parts, merge_variants, control)
    with arguments():
        tuples = _rounds(designs, control)
        if count is None:
            check_all_rounds(data, tuples)
            design = round_of_new_items(tuples, read_items(str(new_items)), seed=seed)
        else:
            item_sets = read_item_sets(keep_apart) if keep_apart else ()
            design = chosen(data, tuples, count, keep_apart=item_sets, seed=seed)
    if output != "-" or not console.as_json:
        write_tuples(design, output)
    number = int(design.columns["round"][0])
    n_audit = int((design.columns["purpose"] == "audit").sum())
    console.note(f"round {number}: {len(design)} tuples, {n_audit} of them audit tuples")
    if console.as_json:
        console.answer("", {"round": number, "tuples": len(design), "audit": n_audit, "seed": seed})


@command(
    "giccs stop",
    example="""
    giccs stop judgments.csv --tuples round1.csv --tuples round2.csv --target 0.95
    giccs stop judgments.csv --items watched.csv
    """,
)
@judgments_options
@tuples_option(f"{EARLIER_TUPLES}  [default: the judged tuples, by the columns round and purpose]")
@target_option
@option(
    "--items watched",
    "Also write utilities with intervals that may be watched after each round, as CSV.",
    type=OUTPUT,
    metavar="FILE",
)
@plain_table_options()
@seed_option
def stop(
    console: Console,
    judgments: Sequence[str],
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
    control: Sequence[str],
    designs: Sequence[str],
    watched: str | None,
    style: TableStyle,
    **options: Any,
) -> None:
    """Decide whether an adaptive study can end: all of three gates must be passed.

    The model's claim reaches the target, audit tuples confirm the model, and every item has enough judgments.
    Look after each round; the decision remains valid however often you look.
    """
    from bws.adaptive import stopping, watched_items
    from bws.base.text import write_atomic

    data = judgments_from(console, judgments, form, on_invalid, parts, merge_variants, control)
    with arguments():
        tuples = _rounds(designs, control) if designs else None
        evidence = stopping(data, tuples, **options)
        if watched is not None:
            write_atomic(watched, watched_items(data).csv())
    answer_tables(console, [evidence.result_table()], style, evidence.document())


def _rounds(paths: Sequence[str], control: Sequence[str]) -> Tuples:
    from bws.adaptive import join_rounds
    from bws.files import read_tuples

    return join_rounds([read_tuples(path, control=control) for path in paths])
