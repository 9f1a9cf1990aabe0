"""giccs build: create a benchmark from dialogues."""

from __future__ import annotations

from typing import get_args

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, Choice
from bws.base.problems import InputError, Problem
from giccs.preparation.selection.rules import Speaker

PREPARING_MODULE = "giccs.cli.preparing"


@command(
    "giccs build",
    subcommands={
        "import": f"{PREPARING_MODULE}:import_",
        "select": f"{PREPARING_MODULE}:select",
        "sheet": f"{PREPARING_MODULE}:sheet",
        "candidates": f"{PREPARING_MODULE}:candidates",
    },
    example="""
    giccs import transcripts/*.trl -o dialogues.jsonl
    giccs build select dialogues.jsonl -o selected.jsonl --log decisions.jsonl
    giccs build sheet selected.jsonl -o writers.csv
    giccs build candidates selected.jsonl --sheet writers.csv -o dialogues.jsonl
    giccs build --dialogues dialogues.jsonl --scores scores.csv -o benchmark.jsonl
    """,
)
@click.option(
    "--dialogues", required=True, type=INPUT, metavar="FILE", help="Dialogues with candidates."
)
@click.option(
    "--scores",
    required=True,
    type=INPUT,
    metavar="FILE",
    help="Scores in [0, 1] from giccs score --scale unit.",
)
@click.option(
    "--signed",
    is_flag=True,
    help="The scores s are in [-1, 1], as from giccs score --scale counting; store (s + 1) / 2.",
)
@click.option("-o", "--output", default="-", type=OUTPUT, metavar="FILE", help="Benchmark JSONL.")
@click.option(
    "--last-turn",
    type=Choice(get_args(Speaker)),
    default="any",
    show_default=True,
    help="Expected speaker of the last turn; others cause a warning.",
)
@click.option(
    "--candidates",
    "number",
    type=click.IntRange(2, 1000),
    default=5,
    show_default=True,
    metavar="N",
    help="Expected number of candidates per dialogue; others cause a warning.",
)
@click.option("--log", type=OUTPUT, metavar="FILE", help="Write a log of all decisions as JSONL.")
def build(
    console: Console,
    dialogues: str,
    scores: str,
    signed: bool,
    output: str,
    last_turn: str,
    number: int,
    log: str | None,
) -> None:
    """Join dialogues with the scores of their candidates into a benchmark."""  # fmt: skip
    from bws.files import read_scores
    from giccs.benchmark import write_benchmark
    from giccs.benchmark.assemble import assemble, dialogue_warnings, read_located_dialogues
    from giccs.preparation.selection.decisions import Decision, write_log

    table = read_scores(scores)
    if signed and not (table.score < 0).any():
        message = "no score is below 0; without --signed, scores in [0, 1] are expected"
        raise InputError(Problem(scores, None, message))
    unit_scores = (table.score + 1) / 2 if signed else table.score
    keys = table.item_keys
    by_id = dict(zip(keys, unit_scores.tolist(), strict=True))
    absolute = None
    if table.absolute_score is not None:
        absolute = dict(zip(keys, table.absolute_score.tolist(), strict=True))
    out_of_range = [key for key, score in by_id.items() if not 0 <= score <= 1]
    if out_of_range:
        expected = "[-1, 1]" if signed else "[0, 1]; use giccs score --scale unit, or --signed"
        message = f"{len(out_of_range)} scores are outside {expected}"
        raise InputError(Problem(scores, None, message))
    located = read_located_dialogues(dialogues)
    joined_dialogues = [row.record for row in located]
    try:
        items = assemble(joined_dialogues, by_id, absolute)
    except ValueError as error:
        raise InputError([Problem(scores, None, line) for line in str(error).split("\n")]) from None
    dialogue_problems = list(dialogue_warnings(located, items, last_turn, number))
    console.warn([problem for problem, _ in dialogue_problems])
    write_benchmark(items, output)
    if log:
        decisions = [
            Decision(dialogue.dialogue_id, "joined", {"items": len(dialogue.candidates)})
            for dialogue in joined_dialogues
        ]
        decisions += [
            Decision(name, "warned", {"place": str(problem)}) for problem, name in dialogue_problems
        ]
        settings = {"last_turn": last_turn, "candidates": number, "signed": signed}
        write_log(log, "giccs build", [dialogues, scores], settings, decisions)
    warnings_text = f"; {len(dialogue_problems)} warnings" if dialogue_problems else ""
    console.note(f"{len(items)} items of {len(joined_dialogues)} dialogues{warnings_text}")
