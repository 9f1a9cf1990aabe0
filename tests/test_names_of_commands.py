"""One name per command and one meaning per option: former names are only where they are listed or tested."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from tests.test_option_values import all_commands

ROOT = Path(__file__).parents[1]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
FORMER = re.compile(rf"\b(?:{'|'.join(sorted(SCRIPTS.keys() - {'giccs'}))})\b")
LISTS = {"CHANGELOG.md", "pyproject.toml", "docs/reference/cli.md"}
STORED = {"app/giccs_app/demo/plan.py": '            "made_by": "giccs-demo",'}
"""File -> line with a value in files of earlier versions."""
FOLDERS = (
    ".ci",
    ".github",
    "app",
    "benchmarks",
    "bws",
    "containers",
    "docs",
    "giccs",
    "mturk",
    "robustness",
)
FILES = [
    path
    for path in [
        *(path for path in ROOT.iterdir() if path.suffix in {".md", ".toml", ".yml", ".json"}),
        ROOT / "Makefile",
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")),
    ]
    if path.is_file() and path.suffix not in {".gz", ".npy", ".parquet", ".png", ".pyc"}
]
TABLES = {"table", "markdown", "latex", "csv"}
MEANINGS = {
    "--data": {"DATA"},
    "--dialogues": {"FILE"},
    "--figure": {"FILE", "[NAME=]FILE", "NAME=FILE"},
    "--force": {None},
    "--model": {"MODEL"},
    "--model-judgments": {"FILE"},
}
"""Option -> its placeholders."""


def test_commands_have_the_names_under_giccs():
    assert len(FILES) > 800
    former = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        if (name := str(path.relative_to(ROOT))) not in LISTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if FORMER.search(line) and STORED.get(name) != line
    ]
    assert former == []


def options(name):
    return [
        (" ".join(words), param)
        for words, command in all_commands()
        for param in command.params
        if isinstance(param, click.Option) and name in param.opts
    ]


@pytest.mark.parametrize("name", MEANINGS)
def test_an_option_has_one_meaning(name):
    assert len(options(name)) > 2
    assert {param.metavar for _, param in options(name)} <= MEANINGS[name]


def test_a_format_is_that_of_the_output():
    for command, param in options("--format"):
        others = {"giccs design": {"km"}, "giccs score": {"km", "semrel"}}.get(command, set())
        assert {*param.type.choices} <= TABLES | others, command
    assert all("auto" in param.type.choices for _, param in options("--from"))


def test_the_messages_of_the_page_exist():
    page = (ROOT / "docs" / "reference" / "messages.md").read_text("utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.M)
    sources = [path.read_text("utf-8") for path in FILES if path.suffix == ".py"]
    assert len(messages) > 9
    assert [message for message in messages if not any(message in text for text in sources)] == []
