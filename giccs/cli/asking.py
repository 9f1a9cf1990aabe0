"""How a command asks: the options that `TaskOptions` is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from giccs.cli.language import language_option
from giccs.recipe import RANGES

__all__ = ["question_options", "task_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


def question_options(command: Command) -> Command:
    """Add how a multiple-choice question is put."""
    options = [
        click.option(
            "--template", metavar="NAME|FILE",
            help="Prompt of a question: figure2-de-1, figure2-en-1, or a file of your own.  [default: that "
            "of the data's language]",
        ),
        language_option,
        click.option(
            "--answer", type=click.Choice(["sentence", "letter"]), default="sentence",
            show_default=True, help="What is to follow the prompt of a question.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def task_options(command: Command) -> Command:
    """Add every option of `giccs.tasks.TaskOptions` but the seed, by its name there."""
    options = [
        click.option(
            "--history", type=click.Choice(["without", "with", "both"]),
            help="Show the turns before the last one?  [default: without; multiple-choice-sts both]",
        ),
        question_options,
        click.option(
            "--permutations", type=click.IntRange(*RANGES["permutations"]), default=1,
            show_default=True, metavar="N", help="Average over N cyclic orders of the options.",
        ),
        click.option("--chat-template", is_flag=True, help="Ask in the model's own chat template."),
        click.option(
            "--split", type=click.Choice(["train", "validation", "test"]), default="validation",
            show_default=True, help="Which part of a folder with C-STS.",
        ),
        click.option(
            "--encoding", type=click.Choice(["bi", "tri"]), default="bi", show_default=True,
            help="csts: read the condition with each sentence, or by itself.",
        ),
        click.option(
            "--condition/--no-condition", default=True, help="csts: show the condition at all?",
        ),
        click.option(
            "--answers", metavar="FILE",
            help="csts, csts-prompt: put the answers of giccs-csts answers in the sentences' place.",
        ),
        click.option(
            "--instruction", type=click.Choice(["none", "short", "long"]), default="short",
            show_default=True, help="csts-prompt: what the prompt says first.",
        ),
        click.option(
            "--shots", type=click.IntRange(*RANGES["shots"]), default=0, show_default=True, metavar="N",
            help="csts-prompt: examples in the prompt; an even number.",
        ),
        click.option(
            "--examples", metavar="FILE",
            help="csts-prompt: where they are drawn from.  [default: the training split]",
        ),
        click.option(
            "--similarity", type=click.Choice(["cos", "cos-centred", "l2"]), default="cos",
            show_default=True,
            help="evalrank-*, word-similarity, sentence-similarity: how vectors are compared; cos-centred is "
            "for evalrank-*.",
        ),
        click.option(
            "--reference-compat", "reference", is_flag=True,
            help="evalrank-*: rank as the published program does, to show the difference.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command
