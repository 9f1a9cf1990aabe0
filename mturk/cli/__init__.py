"""mturk-hits: from tuples to judgments. Each command's module is loaded only when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

from bws.command import print_version

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "serve": "mturk.cli.service:serve",
    "invite": "mturk.cli.service:invite",
    "simulate": "mturk.cli.rehearsal:simulate",
    "estimate": "mturk.cli.publishing:estimate",
    "preview": "mturk.cli.publishing:preview",
    "publish": "mturk.cli.publishing:publish",
    "status": "mturk.cli.collecting:status",
    "collect": "mturk.cli.collecting:collect",
    "review": "mturk.cli.reviewing:review",
    "bonus": "mturk.cli.reviewing:bonus",
    "extend": "mturk.cli.reviewing:extend",
    "top-up": "mturk.cli.reviewing:top_up",
    "close": "mturk.cli.reviewing:close",
    "batch": "mturk.cli.reviewing:batch",
    "purge": "mturk.cli.reviewing:purge",
}
"""Name of a command -> where it is, in the order of a study."""

EXAMPLE = """
mturk-hits serve &
mturk-hits preview tuples.csv --dialogues dialogues.jsonl
mturk-hits publish tuples.csv --dialogues dialogues.jsonl
mturk-hits status --watch 10
mturk-hits collect -o judgments.csv
"""


class _Commands(click.Group):
    """The commands above; --help reads their first lines only where it lists them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a study."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command."""
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name].split(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show a study from end to end."""
        with formatter.section("Example"):
            for line in EXAMPLE.strip().splitlines():
                formatter.write(f"  {line}\n")
        formatter.write("\nEvery command takes --json, --quiet, --version and --help.\n")


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version,
    help="Print the version of giccs.",
)  # fmt: skip
def main() -> None:
    """Publish tuples as an annotation task, let people do it in a browser, collect the judgments."""
