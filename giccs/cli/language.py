"""The option ``--language`` of every command that depends on the language of its data."""

from __future__ import annotations

import click

from giccs.benchmark.languages import language_tag

__all__ = ["language_option", "language_option_with_alias"]

HELP = "BCP 47 tag (de, en, pt-BR) of data that state no language; must match those that do."


class _HiddenAlias(click.Option):
    """An option whose help shows its first name only."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help without the alias."""
        names, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def _tag(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return language_tag(value) if value is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


language_option = click.option("--language", metavar="TAG", callback=_tag, is_eager=True, help=HELP)
"""Eager, so that callbacks of other options find its value."""
language_option_with_alias = click.option(
    "--language", "--lang", "language", cls=_HiddenAlias, metavar="TAG", callback=_tag, help=HELP
)
"""With the former name of the option, for one version."""
