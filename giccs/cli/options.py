"""Options and help texts shared by several commands."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bws.base.commands import Console
from bws.base.options import INPUT, OUTPUT, Choice
from giccs.benchmark.languages import LANGUAGE_HELP, language_tag
from giccs.measures.clusters import CLUSTERS, DIALOGUES

if TYPE_CHECKING:
    from giccs.report.checks import Check

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

absolute_option = click.option(
    "--absolute",
    type=INPUT,
    metavar="ANCHORS",
    help="The anchors behind the absolute scores; with --judgments, adds the ceiling of absolute scores over "
    "all items, that of scores within dialogues, and the ipsative limit of the latter over all items.  "
    "[default: those of the sample, for absolute scores]",
)


def _threshold(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    thresholds = {}
    for text in values:
        metric, _, number = text.partition("=")
        if metric in thresholds:
            raise click.BadParameter(f"names {metric} twice; expected each metric once")
        try:
            thresholds[metric] = float(number)
        except ValueError:
            raise click.BadParameter(f"{text!r}; expected METRIC=VALUE, as spearman=0.4") from None
        if not math.isfinite(thresholds[metric]):
            raise click.BadParameter(f"{text!r}; expected a finite number")
    return thresholds


fail_below_option = click.option(
    "--fail-below",
    "thresholds",
    multiple=True,
    metavar="METRIC=VALUE",
    callback=_threshold,
    help="Exit with 1 if a result has a lower value of this metric, or none. Can be repeated.",
)
baseline_option = click.option(
    "--fail-if-worse-than",
    "baseline",
    metavar="MODEL",
    help="Exit with 1 if a model is significantly worse than this one (paired, one-sided, 5 %).",
)
junit_option = click.option(
    "--junit", type=OUTPUT, metavar="FILE", help="Also write these checks as JUnit XML."
)


def finish_checks(console: Console, checks: Sequence[Check], junit_file: str | None) -> None:
    """Print the checks as messages, write them as JUnit XML, and exit with 1 if one failed."""
    from bws.base.text import write_atomic
    from giccs.report.checks import junit

    for check in checks:
        console.note(str(check))
    if junit_file:
        write_atomic(junit_file, junit(checks))
    if failed := [check for check in checks if not check.passed]:
        raise click.ClickException(f"{len(failed)} of {len(checks)} checks failed: {failed[0]}")


def set_offline_mode(offline: bool) -> None:
    """Set the environment variables that libraries of the hub read on import; call it before any import."""
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"
