"""giccs-build: from dialogues to a benchmark."""

from __future__ import annotations

import click

from bws.command import Console, command
from bws.problems import InputError, Problem

__all__ = ["build"]


@command(
    "giccs-build",
    example="""
    giccs-build --dialogues dialogues.jsonl --scores scores.csv -o benchmark.jsonl
    """,
)
@click.option("--dialogues", required=True, metavar="D.jsonl", help="Dialogues with candidates.")
@click.option(
    "--scores", required=True, metavar="S.csv", help="Scores in [0, 1] by bws-score --scale unit."
)
@click.option("-o", "--output", default="-", metavar="FILE", help="Benchmark JSONL.")
def build(console: Console, dialogues: str, scores: str, output: str) -> None:
    """Join dialogues with the scores of their candidates into a benchmark."""  # fmt: skip
    from bws.files import read_scores
    from giccs.assemble import assemble, read_dialogues
    from giccs.benchmark import write_benchmark

    table = read_scores(scores)
    by_id = dict(zip(zip(table.groups, table.items, strict=True), table.score, strict=True))
    out_of_range = [key for key, score in by_id.items() if not 0 <= score <= 1]
    if out_of_range:
        message = f"{len(out_of_range)} scores are outside [0, 1]; score with --scale unit"
        raise InputError(Problem(scores, None, message))
    try:
        items = assemble(read_dialogues(dialogues), {key: float(s) for key, s in by_id.items()})
    except InputError:
        raise
    except ValueError as error:
        raise InputError([Problem(scores, None, line) for line in str(error).split("\n")]) from None
    write_benchmark(items, output)
    console.note(f"{len(items)} items of {len({item.dialogue_id for item in items})} dialogues")
