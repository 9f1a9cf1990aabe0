"""How a command opens models: the options that `ModelOptions` is made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from bws.option_types import MAX_COUNT, Number

__all__ = ["model_options", "offline_first"]

PRICE = Number(0, 1e6)
Command = TypeVar("Command", bound=Callable[..., Any])


def _batch_size(ctx: click.Context, parameter: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    size: Any = click.IntRange(1, MAX_COUNT)
    try:
        return int(size.convert(value, parameter, ctx))
    except click.BadParameter:
        message = f"{value!r} is invalid; expected auto or a number from 1 to {MAX_COUNT}"
        raise click.BadParameter(message) from None


def _device(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    from giccs.models.placing import DEVICES

    if not re.fullmatch(DEVICES, value):
        raise click.BadParameter(
            f"{value!r} is not a device; expected auto, cpu, cuda, cuda:N or mps"
        )
    return value


def model_options(command: Command) -> Command:
    """Add every option of `giccs.models.ModelOptions` but the seed, by its name there."""
    options = [
        click.option(
            "--batch-size", default="auto", show_default=True, callback=_batch_size,
            metavar="auto|N", help="Texts at a time; auto grows until memory or gain ends.",
        ),
        click.option(
            "--device", default="auto", show_default=True, callback=_device, metavar="auto|cpu|cuda[:N]|mps",
            help="Where the model runs; auto takes a GPU where there is one.",
        ),
        click.option(
            "--device-map", metavar="MAP|FILE",
            help="Spread a large model over GPUs, main memory and disk: auto, balanced, balanced_low_0, "
            "sequential, or parts of the model and their devices from a JSON file.",
        ),
        click.option(
            "--dtype", type=click.Choice(["auto", "float32", "bfloat16", "float16"]), default="auto",
            show_default=True, help="Type of the weights; auto as saved.",
        ),
        click.option(
            "--quantise", type=click.Choice(["4bit", "8bit"]),
            help="Make weights smaller as they are loaded.  [default: as saved]",
        ),
        click.option("--revision", metavar="REV", help="Branch, tag or commit of a hub id."),
        click.option("--offline", is_flag=True, help="Never ask the hub; use its local cache."),
        click.option("--trust-remote-code", is_flag=True, help="Run code that the model brings."),
        click.option(
            "--base-url", metavar="URL",
            help="Server of chat:NAME and completions:NAME.  [default: OPENAI_BASE_URL, or OpenAI's own]",
        ),
        click.option(
            "--price", type=(PRICE, PRICE), metavar="IN OUT",
            help="US dollars for a million tokens read and written, to show what a server costs.",
        ),
        click.option(
            "--concurrency", type=click.IntRange(1, 1000), default=8, show_default=True, metavar="N",
            help="Requests to a server at a time.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def offline_first(offline: bool) -> None:
    """Set what every library of the hub reads when it is imported; so call it before any is."""
    if offline:
        import os

        os.environ["HF_HUB_OFFLINE"] = "1"
