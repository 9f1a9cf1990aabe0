"""Former names of options are accepted, hidden from the help, and warn."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bws.base.options import RenamedOption
from tests.test_option_values import all_commands

ROOT = Path(__file__).parents[1]
FORMER_NAMES = {
    "giccs agreement": {"--part": "--column"},
    "giccs design": {"--apart": "--keep-apart", "--together": "--keep-together"},
    "giccs next": {"--part": "--column"},  # of `judgments_options`
    "giccs reliability": {"--part": "--column"},
    "giccs simulate": {"--model": "--distribution"},
    "giccs import": {"--format": "--from"},
    "giccs judge": {"--data": "--dialogues"},
    "giccs score": {
        "--part": "--column",
        "--model-interval": "--intervals",
        "--models": "--model-judgments",
    },
    "giccs stop": {"--part": "--column"},
    "giccs verdict": {"--part": "--column", "--models": "--model-judgments"},
    "giccs csts pairs": {
        "--iou-at-most": "--max-iou",
        "--distance-at-least": "--min-distance",
        "--ratio-at-least": "--min-ratio",
        "--length-at-least": "--min-length",
        "--distance-at-most": "--max-distance",
    },
    "giccs csts relabel": {"--test": "--test-share"},
    "giccs csts train": {
        "--base": "--model",
        "--batch": "--batch-size",
        "--rows-at-once": "--micro-batch-size",
    },
    "giccs annotate publish": {"--insist-on-production": "--confirm-production"},
    "giccs annotate simulate": {
        "--returns": "--return-rate",
        "--abandons": "--abandon-rate",
        "--pace": "--seconds-per-hit",
    },
}


def renamed_options(command: click.Command) -> dict[str, RenamedOption]:
    return {
        former: option
        for option in command.params
        if isinstance(option, RenamedOption)
        for former in option.former_names
    }


COMMANDS = {" ".join(words): command for words, command in all_commands()}


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
    replaced = COMMANDS["giccs design"].use_current_names(words)
    assert replaced == ["--keep-apart", "a.csv", "--", "--apart"]
    assert capsys.readouterr().err.count("deprecated") == 1


def test_a_former_name_computes_the_same(tmp_path):
    judgments = str(ROOT / "giccs" / "data" / "judgments.csv")
    run = CliRunner().invoke
    score = COMMANDS["giccs score"]
    call = [judgments, "--method", "best-worst-logit", "--json", "-o", str(tmp_path / "s.csv")]
    former, current = (run(score, [*call, flag]) for flag in ("--model-interval", "--intervals"))
    assert former.exit_code == current.exit_code == 0
    assert json.loads(former.stdout) == json.loads(current.stdout)
    warning = "warning: --model-interval is deprecated; use --intervals\n"
    assert former.stderr == warning + current.stderr
    assert "deprecated" not in current.stderr
