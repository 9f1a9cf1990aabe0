"""Write docs/reference/cli.md from the commands' own --help: python docs/generate_cli.py."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from giccs_app.stages import COMMANDS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"

HEAD = """# Commands

*For all who look up an option.* Generated from `--help`.

For completion in bash, add `eval "$(_GICCS_COMPLETE=bash_source giccs)"` to `~/.bashrc`;
likewise `zsh_source`, `fish_source`.
"""

TABLE = """Commands that have two names are the same command:

| command | also |
|---|---|"""


def page() -> str:
    """Return the page: a section per command, `giccs` first."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    names = {target: f"giccs {name}" for name, target in COMMANDS.items()}
    rows = [
        f"| `{names[target]}` | `{script}` |"
        for script, target in scripts.items()
        if target in names and script != "giccs"
    ]
    parts = [HEAD, "\n".join([TABLE, *rows]), ""]
    for script, target in sorted(scripts.items(), key=lambda item: (item[0] != "giccs", item)):
        module, function = target.split(":")
        command = getattr(importlib.import_module(module), function)
        parts += sections(names.get(target, script), script, command, "##")
    return "\n".join(parts)


def sections(name: str, script: str, command: click.Command, mark: str) -> Iterator[str]:
    """Yield the section of a command, and of the commands below it that are not named after another.

    script: its name as a program of its own, with the words before a command below it.
    """
    context = click.Context(command, info_name=name, terminal_width=100, **command.context_settings)
    also = f"Also `{script}`.\n\n" if script != name else ""
    yield f"{mark} {name}\n\n{also}```text\n{command.get_help(context)}\n```\n"
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            if found.name == f"{script} {below}":
                yield from sections(f"{name} {below}", found.name, found, f"{mark}#")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
