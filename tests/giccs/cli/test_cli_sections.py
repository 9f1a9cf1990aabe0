"""Options of a long command are shown in sections, each once; commands with arguments are groups."""

import re

import click
import pytest
from click.testing import CliRunner

from giccs.cli.building import build
from giccs.cli.evaluation import evaluate


def test_every_option_stands_in_the_section_that_it_belongs_to():
    message = CliRunner().invoke(evaluate, ["--help"]).stdout
    _, *parts = re.split(r"^(\w[\w ]+):$", message, flags=re.MULTILINE)
    shown = dict(zip(parts[::2], parts[1::2], strict=True))
    assert [*shown][1:6] == [*evaluate.sections.values()]
    of = {
        option: title
        for title, text in shown.items()
        for option in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, flags=re.MULTILINE)
    }
    options = [param for param in evaluate.params if isinstance(param, click.Option)]
    assert of.keys() == {max(option.opts, key=len) for option in options} | {"--help"}
    assert [of[f"--{name}"] for name in ("json", "help", "task", "limit", "shots", "engine")] == [
        "Options", "Options", "Tasks and data", "Tasks and data", "Task options", "Results and execution",
    ]  # fmt: skip
    assert [of[f"--{name}"] for name in ("quantise", "base-url", "concurrency")] == [
        "Local models", "Models on a server", "Models on a server",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("group", "arguments", "message"),
    [
        (evaluate, ["--help"], "Usage: giccs-x [OPTIONS] MODEL..."),
        (evaluate, ["export-mteb", "--help"], "Usage: giccs-x export-mteb [OPTIONS]"),
        (evaluate, ["export-mteb"], "Missing option '-o' / '--output'."),
        (evaluate, ["m", "export-mteb"], "export-mteb is a subcommand and must come first"),
        (evaluate, ["--task", "csts"], "Missing argument 'MODEL...'"),
        (build, ["select", "--help"], "Usage: giccs-x select [OPTIONS] DIALOGUES..."),
        (build, ["--log", "x"], "Missing option '--dialogues'."),
        (
            build,
            ["choose"],
            "No such command 'choose'; expected one of import, select, sheet, candidates.",
        ),
    ],
)
def test_the_first_argument_may_name_another_command(group, arguments, message):
    assert isinstance(group, click.Group)
    result = CliRunner().invoke(group, arguments, prog_name="giccs-x")
    assert message in result.stdout + result.stderr
