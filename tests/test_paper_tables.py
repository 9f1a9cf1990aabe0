"""The page of the papers' tables: every table and figure has a row, with commands and links that exist."""

import os
import re
import shlex
from pathlib import Path

import click
import pytest

from giccs.evaluation.recipe import read_recipe
from giccs_app.cli import main as giccs

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "background" / "paper-tables.md"
SHARED = Path(os.environ.get("GICCS_SHARED", ROOT.parent / "shared"))
NUMBERS = {
    "GiCCS": {"Table": 6, "Figure": 3},
    "C-STS": {"Table": 12, "Figure": 8},
    "L-CSTS": {"Table": 8, "Figure": 10},
    "EvalRank": {"Table": 11, "Figure": 4},
}
"""Paper -> number of its tables and figures, which are numbered from 1."""
UNAVAILABLE = "not available: "
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def sections():
    """Return the rows of each paper: the cells of its table."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text("utf-8"), flags=re.M)[1:]
    return {
        name: [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in text.splitlines()
            if line.startswith("| ") and not line.startswith("| in the paper")
        ]
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


ROWS = [(paper, *row) for paper, rows in sections().items() for row in rows]


def named(cell):
    """Return the tables and figures of a cell: `Tables 3, 5a` are ("Table", 3) and ("Table", 5)."""
    return [
        (kind, int(number))
        for kind, numbers in re.findall(r"(Table|Figure)s? ((?:\d+[a-z]?(?:, )?)+)", cell)
        for number in re.findall(r"\d+", numbers)
    ]


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_table_and_figure_has_a_row(paper):
    expected = {
        (kind, number) for kind, last in NUMBERS[paper].items() for number in range(1, last + 1)
    }
    assert {one for row in sections()[paper] for one in named(row[0])} == expected


def test_parts_of_tables_have_rows():
    cells = " ".join(row[0] for row in sections()["EvalRank"])
    assert {*re.findall(r"\d+[a-z]", cells)} == {"1a", "1b", "5a", "5b"}


@pytest.mark.parametrize("paper", NUMBERS)
def test_the_numbers_are_those_of_the_paper(paper):
    path = SHARED / "papers" / f"{paper.lower()}.txt"
    if not path.is_file():
        pytest.skip(f"{path} is missing; set GICCS_SHARED")
    captions = re.findall(r"(Table|Figure) (\d+)[a-z]?\b", path.read_text("utf-8"))
    counts = {
        kind: {int(number) for other, number in captions if other == kind}
        for kind in ("Table", "Figure")
    }
    assert counts == {kind: set(range(1, last + 1)) for kind, last in NUMBERS[paper].items()}


def calls(cell):
    """Return the commands of a cell: code that begins with the name of a program."""
    return [code for code in re.findall(r"`([^`]+)`", cell) if code.split()[0] == "giccs"]


def parsed(call):
    """Parse a call as its command does, without looking for files; return the values of its options."""
    program, *words = shlex.split(call)
    assert program == "giccs"
    command: click.Command = giccs
    context = click.Context(command, info_name=program)
    while (
        isinstance(command, click.Group)
        and words
        and (below := command.get_command(context, words[0]))
    ):
        command, words = below, words[1:]
        context = click.Context(command, info_name=program)
    values, rest, _ = command.make_parser(context).parse_args(words)
    assert not rest, f"{call}: unexpected {rest}"
    for parameter in command.params:
        value = values.get(parameter.name)
        assert value not in (None, ()) or not parameter.required, f"{call}: {parameter.name}"
        if isinstance(parameter.type, click.Choice) and value:
            for each in value if isinstance(value, list | tuple) else [value]:
                parameter.type.convert(each, parameter, context)
    return values


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row_has_commands_that_exist_or_a_reason(row):
    _, _, content, command, needed = row
    assert content
    if command.startswith(UNAVAILABLE):
        assert len(command) > len(UNAVAILABLE)
        assert not needed
        return
    found = calls(command)
    assert found or command.startswith("as Table ")
    for call in found:
        values = parsed(call)
        for name in {values.get("recipe"), values.get("against")} - {None}:
            assert read_recipe(name).runs


@pytest.mark.parametrize(
    "call",
    [
        "giccs csts check c-sts --no-such-option",
        "giccs csts pairs captions.csv --preset none -o pairs.csv",
        "giccs csts errors answers.csv",
        "giccs csts tfs a b",
    ],
)
def test_a_wrong_call_is_found(call):
    with pytest.raises((click.UsageError, AssertionError)):
        parsed(call)


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_links_lead_to_sections():
    links = [link for link in LINK.findall(PAGE.read_text("utf-8")) if ":" not in link]
    assert len(links) > 40
    for path, _, section in (link.partition("#") for link in links):
        target = (PAGE.parent / path).resolve() if path else PAGE
        assert target.is_file(), path
        headings = re.findall(r"^#+ (.+)", target.read_text("utf-8"), re.M) if section else []
        assert not section or section in map(anchor, headings), f"{path}#{section}"


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/how-to/{name}.md" for name in ("benchmark", "csts", "evalrank"))]
)
def test_the_page_is_one_click_away(page):
    assert "background/paper-tables.md" in (ROOT / page).read_text("utf-8")
