"""giccs judge: judgments of tuples by a language model."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import (
    INPUT,
    MAX_COUNT,
    MODEL,
    RESUMED,
    RenamedOption,
    click_option,
    click_options,
    declarations,
)
from bws.base.problems import InputError, Problem
from bws.files.answers_of_people import check_replaceable
from giccs.cli.options import DATA_HELP, language_option, set_offline_mode
from giccs.cli.remarks import unknown_token_warning
from giccs.models import ENCODER_OPTIONS, ModelOptions
from giccs.tasks import TaskOptions

if TYPE_CHECKING:
    from giccs.judging.study import JudgedTuples, JudgingStudy

MODEL_OPTIONS = tuple(name for name in declarations(ModelOptions) if name not in ENCODER_OPTIONS)


@command(
    "giccs judge",
    sections={"data": "Questions", "choose_by": "Answers", "batch_size": "Local models",
              "base_url": "Models on a server"},
    example="""
    giccs judge tuples.csv --model package:smollm2 --dialogues dialogues.jsonl -o model.csv
    giccs judge tuples.csv --model package:smollm2 --items items.csv --config hits.toml -o model.csv
    giccs judge t.csv --model chat:gpt-4o-mini --dialogues d.jsonl --price 0.15 0.60 --budget 5 -o m.csv
    giccs judge t.csv --model causal:llm --dialogues d.jsonl --template bws-de-1 --template bws-de-2 -o m.csv
    """,
    interrupt_message="answers so far are stored; repeat the command to resume",
)  # fmt: skip
@click.argument("tuples", type=INPUT, metavar="TUPLES")
@click.option(
    "--model", "model_name", required=True, type=MODEL, metavar="MODEL",
    help="A language model, named as for giccs eval: a hub id, a folder, causal:NAME, chat:NAME, "
    "completions:NAME, package:smollm2.",
)  # fmt: skip
@click.option(
    "-o", "--output", required=True, type=RESUMED, metavar="FILE",
    help="Judgments as CSV, for giccs score and others. The answers are stored beside it as FILE.jsonl.",
)  # fmt: skip
@click.option(
    "--force", is_flag=True, help="Judge again, and replace existing judgments and their answers."
)
@click.option(
    "--dialogues", "data", cls=RenamedOption, former_names=["--data"], type=INPUT, metavar="FILE",
    help=f"The dialogues with their candidates as JSONL, or a benchmark. {DATA_HELP}",
)  # fmt: skip
@click.option(
    "--items", type=INPUT, metavar="FILE",
    help="Instead of dialogues: the table of the items' texts.  [default with --config: the items are their "
    "own texts]",
)  # fmt: skip
@click.option(
    "--config", type=INPUT, metavar="FILE",
    help="Settings of a study of plain items (TOML), as for giccs annotate publish, with its texts.",
)  # fmt: skip
@language_option
@click.option(
    "--template", "templates", multiple=True, type=INPUT, metavar="NAME|FILE",
    help="Prompt: bws-de-1, bws-de-2, bws-en-1, bws-en-2, or a file with both questions. Can be repeated.  "
    "[default: that of the data's language, with the instructions of the annotation page]",
)  # fmt: skip
@click.option(
    "--orders", type=click.IntRange(1, 26), metavar="N",
    help="Number of cyclic orders of the items, the first at random.  [default: the number of items]",
)  # fmt: skip
@click.option(
    "--repeats", type=click.IntRange(1, 1000), default=1, show_default=True, metavar="N",
    help="Ask a model on a server N times about each order, with consecutive seeds.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(1, MAX_COUNT), metavar="N", help="Use only the first N tuples."
)
@click_option(TaskOptions, "seed")
@click_option(TaskOptions, "choose_by")
@click_option(
    TaskOptions, "answer", default="letter", show_default=True,
    help="Answer to a question: the letter of the item, or its text.",
)  # fmt: skip
@click_options(TaskOptions, "max_tokens", "chat_template")
@click_options(ModelOptions, *MODEL_OPTIONS)
def judge(
    console: Console,
    tuples: str,
    model_name: str,
    output: str,
    force: bool,
    data: str | None,
    items: str | None,
    config: str | None,
    language: str | None,
    templates: tuple[str, ...],
    orders: int | None,
    repeats: int,
    limit: int | None,
    seed: int,
    choose_by: str | None,
    max_tokens: int,
    chat_template: bool,
    answer: str,
    **opening: Any,
) -> None:
    """Let a language model judge tuples: which item is the best, and which is the worst?

    TUPLES is a file of giccs design. With --dialogues, the model reads the dialogue and the instructions of
    the annotation page: which utterance is most, which is least similar to the last one? With --config, it
    reads the instructions, the example and the questions of a study of plain items (words, sentences,
    sentence pairs). It answers both questions for each tuple in several orders of its items: by the
    likelihoods of the letters, or by a generated answer. Answers that are refused, cut, ambiguous, or the
    same for both questions are invalid; they are counted and have no row.

    The annotator is model:NAME@REVISION. The columns prompt and run distinguish the judgments of a tuple.

    Answers are stored as they arrive: after an interruption, the same command asks for the missing ones only.

    --json: tuples, model, annotator, judgments, answers (per prompt and outcome), shortened, asked, kept,
    output, journal, usage, environment, seconds, signature.
    """
    set_offline_mode(opening["offline"])
    if output == "-":
        raise click.UsageError("-o must name a file; the answers are stored beside it")
    _check_inputs(data, items, config, templates)
    check_replaceable(output)
    from bws.files import read_tuples, write_judgments
    from giccs.journal import open_journal
    from giccs.judging.answers import AnswerPair
    from giccs.judging.judge import open_judge
    from giccs.judging.study import open_study
    from giccs_app.judging.plain_items import open_item_study

    start = time.perf_counter()
    design = read_tuples(tuples)
    chosen_judge = open_judge(
        model_name,
        ModelOptions(seed=seed, **opening),
        repeats=repeats,
        choose_by=choose_by,
        answer=answer,
        chat_template=chat_template,
        max_tokens=max_tokens,
    )
    if data is not None:
        study, warnings = open_study(
            design, data, chosen_judge, templates=templates, language=language, orders=orders, seed=seed,
            limit=limit, file=tuples,
        )  # fmt: skip
        console.warn(warnings)
    elif config is not None:
        study = open_item_study(
            design, items, config, chosen_judge, language=language, orders=orders, seed=seed, limit=limit,
            file=tuples,
        )  # fmt: skip
    signature = chosen_judge.signature()
    journal = open_journal(output, signature, AnswerPair.parse, AnswerPair.document, force=force)
    if journal.answers and signature.get("revision", "") is None:
        message = "has answers of a model without a revision, which may have changed; use --force"
        raise InputError(Problem(str(journal.path), None, message))
    n_kept = study.n_answered(journal)
    console.note(_plan(study, n_kept))
    with unknown_token_warning(console, model_name, data or items or tuples):
        judged = study.run(journal, console.progress)
    n_asked = len(study.presentations) - n_kept
    judgments = judged.judgments()
    write_judgments(judgments, output)
    document = {
        "tuples": len(study.questions),
        "model": model_name,
        "annotator": judged.annotator,
        "judgments": len(judgments),
        "answers": judged.counts(),
        "shortened": judged.n_shortened,
        "asked": n_asked,
        "kept": n_kept,
        "output": output,
        "journal": str(journal.path),
        "usage": chosen_judge.usage() or None,
        "environment": dict(chosen_judge.model.environment()) if n_asked else None,
        "seconds": round(time.perf_counter() - start, 3),
        "signature": {**study.signature(), "giccs": version("giccs")},
    }
    console.answer(_text(document, judged), document)


def _check_inputs(
    data: str | None, items: str | None, config: str | None, templates: tuple[str, ...]
) -> None:
    """Raise UsageError unless the options are those of dialogues, or those of plain items."""
    if data is None and config is None:
        raise click.UsageError(
            "missing --dialogues; or --config, the settings of a study of plain items"
        )
    if data is not None and (config or items):
        raise click.UsageError("--dialogues is for dialogues, --items and --config for plain items")
    if config is not None and templates:
        raise click.UsageError(
            "--template is for dialogues; the prompt of plain items has the texts that --config names"
        )


def _plan(study: JudgingStudy, n_kept: int) -> str:
    """Return what is asked: ``600 tuples × 3 orders: 1800 judgments of 2 questions each``."""
    factors = {
        "tuples": len(study.questions),
        "prompts": len(study.prompts),
        "orders": study.orders,
        "calls": study.judge.repeats,
    }
    product = " × ".join(f"{n} {name}" for name, n in factors.items() if n > 1 or name == "tuples")
    kept = f", {n_kept} of them with stored answers" if n_kept else ""
    return f"{product}: {len(study.presentations)} judgments of 2 questions each{kept}"


def _text(document: dict[str, Any], judged: JudgedTuples) -> str:
    n = len(judged.choices)
    lines = [
        f"{document['judgments']} judgments of {document['tuples']} tuples by {judged.annotator}"
    ]
    if invalid := judged.invalid():
        lines.append(f"{n - document['judgments']} of {n} answers are invalid: {invalid}")
    if judged.n_shortened:
        lines.append(
            f"{judged.n_shortened} of {n} prompts exceeded the model's context: turns were removed from the "
            "beginning"
        )
    return "\n".join([*lines, *filter(None, [document["usage"]])])
