"""giccs csts answers: generate answers to the question of each condition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, MODEL, RESUMED, Choice, click_options
from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from giccs.cli.options import set_offline_mode
from giccs.cli.remarks import unknown_token_warning
from giccs.csts.answer_generation import (
    MAX_TOKENS,
    AnsweredRow,
    AnswerGenerator,
    Outputs,
    answered_rows,
    answers_csv,
    parse_outputs,
    question,
    rows_to_ask,
)
from giccs.csts.data import SPLITS, Dataset, Instance, read_csts
from giccs.csts.task_data import first_pairs, in_splits
from giccs.journal import Journal, open_journal
from giccs.models import ModelOptions
from giccs.models.abilities import ServedModel


@command(
    "giccs csts answers",
    example="""
    giccs csts answers csts_validation.csv --model seq2seq:google/flan-t5-base -o answers.csv
    giccs csts answers csts-sample --split validation --model package:smollm2 --chat-template
    giccs csts answers folder/ --model chat:gpt-4o-mini --price 0.15 0.60
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "--model", "model_name", required=True, type=MODEL, metavar="MODEL",
    help="A text generation model, named as for giccs eval: seq2seq, causal, chat, package:smollm2.",
)  # fmt: skip
@click.option(
    "-o", "--output", default="answers.csv", show_default=True, type=RESUMED, metavar="FILE",
    help="CSV: uid, label, answer1, answer2, condition. The journal is stored beside it as FILE.jsonl.",
)  # fmt: skip
@click.option(
    "--split",
    type=Choice(SPLITS),
    help="Read only this file of a folder; default: all files.",
)
@click.option(
    "--max-tokens", type=click.IntRange(1, 100_000), default=MAX_TOKENS, show_default=True, metavar="N",
    help="Maximum number of tokens per answer.",
)  # fmt: skip
@click.option("--chat-template", is_flag=True, help="Use the model's chat template.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_COUNT),
    metavar="N",
    help="Use only the first N sentence pairs.",
)
@click.option("--force", is_flag=True, help="Generate all answers again, ignoring existing ones.")
@click_options(ModelOptions)
def answers(
    console: Console,
    data: str,
    model_name: str,
    output: str,
    split: str | None,
    max_tokens: int,
    chat_template: bool,
    limit: int | None,
    force: bool,
    **opening: Any,
) -> None:
    """Generate answers to the question of each condition, one sentence at a time, as in L-CSTS (section 4.1).

    DATA is a C-STS CSV file, or a folder with csts_train.csv, csts_validation.csv, csts_test.csv. "The color
    of the dogs." becomes "What is the color of the dogs?", and the model answers from one sentence at a time.
    Rows without a label are skipped if other rows have one. The output is input of giccs csts errors and of
    giccs eval --answers.

    Answers are stored as they arrive: after an interruption, the same command generates only missing answers.

    --json: data, model, rows, asked (now), kept (from before), empty_condition, no_answer, left_out, output,
    journal, usage, seconds, signature.
    """
    set_offline_mode(opening["offline"])
    if output == "-":
        raise click.UsageError("-o must name a file; the journal is stored beside it")
    from giccs.models import check_server_options, open_model

    dataset = read_csts(data, split if in_splits(data) else None, relabelled=True)
    console.warn(dataset.warnings)
    rows = first_pairs(rows_to_ask(dataset), limit)
    options = ModelOptions(**opening)
    model = open_model(model_name, options)
    check_server_options([model], options)
    generator = AnswerGenerator(model, max_tokens, chat_template)
    if reason := generator.refuses():
        raise InputError(Problem(model_name, None, reason))
    start = time.perf_counter()
    journal = open_journal(output, generator.signature(dataset), parse_outputs, force=force)
    with unknown_token_warning(console, model_name, dataset.name):
        n_generated = _ask(console, generator, rows, journal)
    answered = answered_rows(rows, journal)
    write_atomic(output, answers_csv(answered))
    document = _document(dataset, generator, answered, journal, n_generated, output)
    document["seconds"] = round(time.perf_counter() - start, 3)
    console.answer(_text(document), document)


def _ask(
    console: Console,
    generator: AnswerGenerator,
    rows: Sequence[Instance],
    journal: Journal[Outputs],
) -> int:
    def note(more: str = "") -> None:
        if n_written := sum(row.uid in journal.answers for row in rows):
            console.note(f"{n_written} of {len(rows)} rows have answers in {journal.path}{more}")

    note()
    try:
        return generator.ask(rows, journal, console.progress)
    except BaseException:
        note("; repeat the command to resume")
        raise


def _document(
    dataset: Dataset,
    generator: AnswerGenerator,
    answered: Sequence[AnsweredRow],
    journal: Journal[Outputs],
    n_generated: int,
    output: str,
) -> dict[str, Any]:
    model = generator.model
    without = sum(not question(answered_row.row.condition) for answered_row in answered)
    return {
        "data": dataset.name,
        "model": model.name,
        "rows": len(answered),
        "asked": n_generated,
        "kept": len(answered) - n_generated - without,
        "empty_condition": without,
        "no_answer": sum(row.empty for row in answered),
        "left_out": len(dataset.instances) - len(rows_to_ask(dataset)),
        "output": output,
        "journal": str(journal.path),
        "usage": model.usage() if n_generated and isinstance(model, ServedModel) else None,
        "signature": {**journal.signature, "giccs": version("giccs")},
    }


def _text(document: dict[str, Any]) -> str:
    lines = [
        f"{document['rows']} rows with answers in {document['output']}: {document['asked']} "
        f"new, {document['kept']} existing",
        f"{document['no_answer']} of {2 * document['rows']} answers are missing",
    ]
    if document["left_out"]:
        lines.append(f"{document['left_out']} rows without a label are skipped")
    if document["empty_condition"]:
        lines.append(
            f"{document['empty_condition']} conditions are empty: no answers were generated for "
            "them"
        )
    return "\n".join([*lines, *filter(None, [document["usage"]])])
