"""giccs validate: report problems of a benchmark."""

from __future__ import annotations

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT
from bws.base.problems import InputError


@command(
    "giccs validate",
    example="""
    giccs validate benchmark.jsonl
    giccs validate sasaadi/GiCCS --json
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.pass_context
def validate(ctx: click.Context, console: Console, data: str) -> None:
    """Validate a benchmark and report every problem with file and line.

    DATA is a benchmark JSONL file, a folder with the GiCCS release, a hub id, giccs-sample or
    giccs-sample-en.

    Warnings do not change the exit code: unknown keys, scores that are all equal, an utterance that is the
    target utterance, and dialogues or utterances with the text of another one.
    """
    from giccs.benchmark import check_benchmark

    benchmark, problems = check_benchmark(data)
    if problems and not console.as_json:
        raise InputError(problems)
    facts = {
        "items": len(benchmark.items),
        "dialogues": len(benchmark.dialogue_ids),
        "fingerprint": benchmark.fingerprint,
    }
    if not console.as_json:
        console.warn(benchmark.warnings)
    lines = [f"{name:<12} {value}" for name, value in facts.items()]
    notes = [str(warning) for warning in benchmark.warnings]
    messages = {
        "problems": [str(problem) for problem in problems],
        "notes": notes,
        "warnings": notes,  # the former key
    }
    console.answer("\n".join(lines), facts | messages)
    if problems:
        ctx.exit(2)
