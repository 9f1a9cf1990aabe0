"""Every option is on a page that says what it is for, besides the generated list of all options."""

import re
from pathlib import Path

import click

from tests.test_option_values import all_commands

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *(page for page in (ROOT / "docs").rglob("*.md") if page.name != "cli.md"),
]
OF_ALL_COMMANDS = {"--json", "--quiet", "--verbose", "--version", "--help"}


def long_names(option):
    """Return the names of an option, and of its opposite: `--browser` is known by `--no-browser`."""
    return {name for name in [*option.opts, *option.secondary_opts] if name.startswith("--")}


def test_every_option_is_on_a_page():
    """A new option needs a sentence where its readers look, or nobody needs the option."""
    known = OF_ALL_COMMANDS.union(
        *(re.findall(r"--[a-z][\w-]*", page.read_text("utf-8")) for page in PAGES)
    )
    options = [
        (f"{' '.join(words)} {' '.join(sorted(names))}", names)
        for words, command in all_commands()
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden and not option.deprecated
        if (names := long_names(option))
    ]
    assert len(options) > 500
    missing = [described for described, names in options if not names & known]
    assert not missing, f"explain on a page of docs/, or remove: {'; '.join(missing)}"
