"""Former names of options are accepted, hidden from the help, and warn."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bws.base.options import RenamedOption

ROOT = Path(__file__).parents[1]
FORMER_NAMES = {
    "bws-agreement": {"--part": "--column"},
    "bws-make-tuples": {"--apart": "--keep-apart", "--together": "--keep-together"},
    "bws-next": {"--part": "--column"},  # of `judgments_options`
    "bws-reliability": {"--part": "--column"},
    "bws-score": {"--part": "--column", "--model-interval": "--intervals"},
    "bws-stop": {"--part": "--column"},
    "bws-verdict": {"--part": "--column"},
    "giccs-csts pairs": {
        "--iou-at-most": "--max-iou",
        "--distance-at-least": "--min-distance",
        "--ratio-at-least": "--min-ratio",
        "--length-at-least": "--min-length",
        "--distance-at-most": "--max-distance",
    },
    "giccs-csts relabel": {"--test": "--test-share"},
    "giccs-csts train": {
        "--base": "--model",
        "--batch": "--batch-size",
        "--rows-at-once": "--micro-batch-size",
    },
    "mturk-hits publish": {"--insist-on-production": "--confirm-production"},
    "mturk-hits simulate": {
        "--returns": "--return-rate",
        "--abandons": "--abandon-rate",
        "--pace": "--seconds-per-hit",
    },
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the name of every command and subcommand, with the command, except for equal names."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    for name, target in scripts.items():
        module, function = target.split(":")
        command = getattr(import_module(module), function)
        yield name, command
        for subcommand in getattr(command, "subcommands", ()):
            below = command.get_command(click.Context(command), subcommand)
            if below.name == f"{name} {subcommand}":
                yield below.name, below


def renamed_options(command: click.Command) -> dict[str, RenamedOption]:
    return {
        former: option
        for option in command.params
        if isinstance(option, RenamedOption)
        for former in option.former_names
    }


COMMANDS = dict(commands())


def test_the_list_of_renamed_options_is_complete():
    former = {
        name: {old: option.opts[0] for old, option in options.items()}
        for name, command in COMMANDS.items()
        if (options := renamed_options(command))
    }
    assert former == FORMER_NAMES


@pytest.mark.parametrize("name", sorted(FORMER_NAMES))
def test_a_former_name_sets_the_option_and_warns(name, capsys):
    command = COMMANDS[name]
    for former, option in renamed_options(command).items():
        value = [] if option.is_flag else ["1"]
        words = [former, *value]
        assert command.use_current_names(words) == [option.opts[0], *value]
        message = f"warning: {former} is deprecated; use {option.opts[0]}\n"
        assert capsys.readouterr().err == message
        if value:
            assert command.use_current_names([f"{former}=1"]) == [f"{option.opts[0]}=1"]
            assert capsys.readouterr().err == message
        help_text = command.get_help(click.Context(command))
        assert f"{former} " not in help_text
        assert f"{former}," not in help_text


def test_words_after_two_hyphens_are_not_replaced(capsys):
    words = ["--apart", "a.csv", "--", "--apart"]
    replaced = COMMANDS["bws-make-tuples"].use_current_names(words)
    assert replaced == ["--keep-apart", "a.csv", "--", "--apart"]
    assert capsys.readouterr().err.count("deprecated") == 1


def test_a_former_name_computes_the_same(tmp_path):
    judgments = str(ROOT / "giccs" / "data" / "judgments.csv")
    run = CliRunner().invoke
    score = COMMANDS["bws-score"]
    call = [judgments, "--method", "best-worst-logit", "--json", "-o", str(tmp_path / "s.csv")]
    former, current = (run(score, [*call, flag]) for flag in ("--model-interval", "--intervals"))
    assert former.exit_code == current.exit_code == 0
    assert json.loads(former.stdout) == json.loads(current.stdout)
    warning = "warning: --model-interval is deprecated; use --intervals\n"
    assert former.stderr == warning + current.stderr
    assert "deprecated" not in current.stderr
