"""Write docs/cli.md from the commands' own --help: python docs/generate_cli.py."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "cli.md"


def page() -> str:
    """Return the page: a section a command."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    parts = ["# Commands\n\nGenerated from `--help` by `make docs`.\n"]
    for name, target in sorted(scripts.items()):
        module, function = target.split(":")
        command = getattr(importlib.import_module(module), function)
        parts += sections(name, command, "##")
    return "\n".join(parts)


def sections(name: str, command: click.Command, mark: str) -> Iterator[str]:
    """Yield the section of a command, and of the commands below it."""
    context = click.Context(command, info_name=name, terminal_width=100, **command.context_settings)
    yield f"{mark} {name}\n\n```text\n{command.get_help(context)}\n```\n"
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from sections(f"{name} {below}", found, f"{mark}#")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
