"""Write docs/cli.md from the commands' own --help: python docs/generate_cli.py."""

from __future__ import annotations

import importlib
import tomllib
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
        context = click.Context(
            command, info_name=name, terminal_width=100, **command.context_settings
        )
        parts.append(f"## {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
