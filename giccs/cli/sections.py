"""In which sections does a command show its options?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from bws.command import Command

__all__ = ["InSections"]


class InSections(Command):
    """Shows its options under titles, in the order in which they were declared.

    A subclass names in `sections` the parameters that open one, each with its title.
    """

    sections: ClassVar[Mapping[str, str]] = {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section; what comes before the first one, and --help, are plain options."""
        title, found = "Options", dict[str, list[tuple[str, str]]]()
        for one in self.get_params(ctx):
            title = "Options" if "--help" in one.opts else self.sections.get(str(one.name), title)
            if isinstance(one, click.Option) and (record := one.get_help_record(ctx)):
                found.setdefault(title, []).append(record)
        for title, records in found.items():
            with formatter.section(title):
                formatter.write_dl(records)
