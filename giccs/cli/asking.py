"""Options of the command line, from their declarations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, TypeVar

import click

from giccs.cli.language import language_option
from giccs.options import declared
from giccs.tasks import TaskOptions

__all__ = ["task_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


def task_options(*names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds these options of `TaskOptions`; without names all but the seed."""

    def decorate(command: Command) -> Command:
        for one in reversed(fields(TaskOptions)):
            if one.name in names or (not names and one.name != "seed"):
                command = _click_option(one)(command)
        return command

    return decorate


def _click_option(one: Field[Any]) -> Callable[[Command], Command]:
    if one.name == "language":
        return language_option
    said = declared(one)
    flag = said.flag or f"--{one.name.replace('_', '-')}"
    settings: dict[str, Any] = {"help": said.help, "default": one.default}
    if isinstance(one.default, bool):
        flag += f"/--no-{one.name}" if one.default else ""
        settings["is_flag"] = True
    else:
        settings |= {"metavar": said.metavar, "show_default": one.default is not None}
    if said.choices:
        settings["type"] = click.Choice(said.choices)
    if said.bounds:
        settings["type"] = click.IntRange(*said.bounds)
    return click.option(flag, one.name, **settings)
