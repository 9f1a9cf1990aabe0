"""Write docs/reference/cli.md from the commands' own --help: python docs/generate_cli.py."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from giccs_app.cli import main
from giccs_app.stages import COMMANDS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"

HEAD = """# Commands

*For all who look up an option.* Generated from `--help`. [Shell completion](../install.md).
"""

OPTIONS = """These options mean the same in every command that has them:

| option | meaning |
|---|---|
| `--data DATA` | data of an evaluation: a file, a folder, a hub id, or a sample of the package |
| `--dialogues FILE` | dialogues with their candidates |
| `--figure [NAME=]FILE` | also draw a figure: .svg, .png, .json |
| `--force` | compute existing results again |
| `--format`, `--from` | format of the output; format of the input |
| `--model MODEL`, `--model-judgments FILE` | a model, as in `giccs eval`; judgments of language models |

[Exit codes, JSON and messages](messages.md); [former names of options](../migration.md).
"""
TABLE = """Commands that have two names, a present and a former one, are the same command:

| command | former name |
|---|---|"""


def page() -> str:
    """Return the page: a section per command, in the order of the workflow."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    script_of = {target: script for script, target in scripts.items()}
    rows = [
        f"| `giccs {name}` | `{script_of[target]}` |"
        for name, target in COMMANDS.items()
        if target in script_of
    ]
    return "\n".join([HEAD, OPTIONS, "\n".join([TABLE, *rows]), "", *sections("giccs", main, "##")])


def sections(name: str, command: click.Command, mark: str) -> Iterator[str]:
    """Yield the section of a command, and of the commands below it that are not named after another."""
    context = click.Context(command, info_name=name, terminal_width=100, **command.context_settings)
    yield f"{mark} {name}\n\n```text\n{command.get_help(context)}\n```\n"
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            if found.name == f"{name} {below}":
                yield from sections(found.name, found, "##" if name == "giccs" else f"{mark}#")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
