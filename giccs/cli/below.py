"""How a command with arguments of its own takes the commands below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import click

from bws.command import Command, imported_command

__all__ = ["CommandWithBelow"]


class CommandWithBelow(Command):
    """Takes its own arguments, or first the name of one of the commands below it.

    A subclass names them in `below`, each as ``module:function``; a module is imported when its command is
    called or shown.
    """

    below: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.below)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; None where the name is not one of a command."""
        if name not in self.below:
            return None
        return imported_command(self.below[name])

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the arguments: of the command that the first one names, or of this one."""
        below = self.get_command(click.Context(self), args[0]) if args else None
        if below is None:
            self._refuse_unknown(args)
            return super().make_context(info_name, args, parent, **extra)
        return below.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def _refuse_unknown(self, args: list[str]) -> None:
        """A first word that is no option can only be meant as a command where no arguments are taken."""
        takes_arguments = any(isinstance(one, click.Argument) for one in self.params)
        if args and not args[0].startswith("-") and not takes_arguments:
            there = ", ".join(self.below)
            raise click.UsageError(f"No such command {args[0]!r}; there are {there}.")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command whose arguments were read."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the commands after the options."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
            formatter.write_dl([(name, one.get_short_help_str(80)) for name, one in found if one])
