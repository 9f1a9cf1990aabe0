"""Options and help texts shared by several commands."""

from __future__ import annotations

import os

import click

from bws.base.options import Choice
from giccs.benchmark.languages import LANGUAGE_HELP, language_tag
from giccs.measures.clusters import CLUSTERS, DIALOGUES

DATA_HELP = (
    "A benchmark JSONL file, a folder with the GiCCS release, a hub id, giccs-sample or "
    "giccs-sample-en."
)


class _HiddenAlias(click.Option):
    """An option whose help shows only its first name."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the help entry without the alias."""
        names, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def _parse_tag(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return language_tag(value) if value is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


language_option = click.option(
    "--language", metavar="TAG", callback=_parse_tag, is_eager=True, help=LANGUAGE_HELP
)
"""Eager, so that callbacks of other options can use its value."""
language_option_with_alias = click.option(
    "--language", "--lang", "language", cls=_HiddenAlias, metavar="TAG", callback=_parse_tag,
    help=LANGUAGE_HELP,
)  # fmt: skip
"""With the former name of the option, for one version."""


cluster_option = click.option(
    "--cluster",
    type=Choice(tuple(CLUSTERS)),
    default=DIALOGUES,
    show_default=True,
    help="Units of intervals and tests of tasks on dialogues: other dialogues of the same domains, or other "
    "domains, sources or languages, of which six are required.",
)


def set_offline_mode(offline: bool) -> None:
    """Set the environment variables that libraries of the hub read on import; call it before any import."""
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"
