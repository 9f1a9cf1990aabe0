"""The names in the glossary exist."""

import re
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
GLOSSARY = (DOCS / "background" / "glossary.md").read_text("utf-8")
NAMES = sorted(set(re.findall(r"\| `([^`]+)` \|$", GLOSSARY, re.MULTILINE)))


def resolve(name):
    """Return the module, or the attribute of a module, that a dotted name means."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(import_module(module), attribute)


def test_every_row_has_a_name():
    rows = [line for line in GLOSSARY.splitlines() if re.match(r"\| \w", line)]
    headers = [row for row in rows if row.startswith("| term |")]
    assert len(rows) - len(headers) >= 40
    assert all(re.search(r"`[^`]+` \|$", row) for row in rows if row not in headers)


def test_names_of_the_code_exist():
    assert all(resolve(name) is not None for name in NAMES if re.fullmatch(r"[\w.]+", name))


def test_options_and_commands_exist():
    commands = (DOCS / "reference" / "cli.md").read_text("utf-8")
    names = [name for name in NAMES if not re.fullmatch(r"[\w.]+", name)]
    assert names
    missing = [
        name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", commands)
    ]
    assert missing == []
