"""giccs: one command for all others, under the name by which it is called."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from bws.base.commands import imported_command
from giccs_app.cli import COMMANDS, main
from mturk.cli import COMMANDS as HITS

ROOT = Path(__file__).parents[2]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]


def call(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, arguments, prog_name="giccs")


def test_the_help_is_one_screen_and_imports_no_command():
    code = "import sys; sys.argv[1:] = ['--help']; import runpy; runpy.run_module('giccs')"
    code = f"try: {code}\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
    assert [
        line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in COMMANDS
    ] == [*COMMANDS]
    assert lines[0] == "Usage: giccs [OPTIONS] COMMAND [ARGS]..."
    assert not {"numpy", "polars", "mturk.cli", "bws.cli"} & {*done.stderr.split()}


def test_the_stages_follow_the_workflow():
    order = [
        "design",
        "annotate",
        "score",
        "build",
        "eval",
        "compare",
        "report",
        "explore",
        "csts",
        "evalrank",
    ]
    assert [name for name in COMMANDS if name in order] == order


def test_the_help_of_annotate_lists_all_commands_by_part_of_a_study():
    lines = call("annotate", "--help").output.splitlines()
    assert [line for line in lines if line in ("Study:", "People:", "Money:", "Server:")] == [
        "Study:", "People:", "Money:", "Server:",
    ]  # fmt: skip
    assert [
        line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in HITS
    ] == [*HITS]
    assert max(map(len, lines)) <= 80


def test_every_other_command_is_reached_as_the_same_object():
    targets = {SCRIPTS[name]: name for name in SCRIPTS if name != "giccs"}
    by_target = {target: name for name, target in COMMANDS.items()}
    resolved = {id(imported_command(target)) for target in by_target}
    for target, script in targets.items():
        module, function = target.split(":")
        assert id(getattr(import_module(module), function)) in resolved, script


@pytest.mark.parametrize(
    ("call_names", "usage", "example"),
    [
        ("score", "giccs score [OPTIONS] JUDGMENTS", "  giccs score judgments.csv -o scores.csv"),
        (
            "annotate publish",
            "giccs annotate publish [OPTIONS] TUPLES",
            "  giccs annotate publish tup",
        ),
        ("import", "giccs import [OPTIONS] FILE...", "  giccs import crowdss.tsv"),
        ("build select", "giccs build select [OPTIONS]", "  giccs build select dialogues.jsonl"),
        ("eval", "giccs eval [OPTIONS]", "  giccs eval baseline:char-ngram package:minilm"),
    ],
)
def test_the_help_shows_the_name_that_was_called(call_names, usage, example):
    text = call(*call_names.split(), "--help").output
    assert text.startswith(f"Usage: {usage}")
    assert f"\nExample:\n{example}" in text


def test_a_former_name_shows_itself():
    score = imported_command("bws.cli:score")
    text = CliRunner().invoke(score, ["--help"], prog_name="bws-score").output
    assert text.startswith("Usage: bws-score [OPTIONS] JUDGMENTS")
    assert "\n  bws-score judgments.csv -o" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_messages_and_versions_show_the_name_that_was_called(name):
    assert f"Usage: giccs {name} " in call(name, "--nothing").stderr
    assert call(name, "--version").output.startswith(f"giccs {name} (giccs ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scroe"], "No such command 'scroe'; expected one of "),
        (["scroe"], "; did you mean 'score'?"),
        (["annotate", "colect"], "'colect'"),
        (["annotate", "colect"], "; did you mean 'collect'?"),
        (["build", "slect"], "candidates; did you mean 'select'?"),
        (["score", "j.csv", "--methd", "elo"], "Did you mean one of: '--method'"),
        (["score", "j.csv", "--method", "Countng"], "; did you mean 'counting'?"),
        (["build", "--last-turn", "usr"], "'user', 'system'; did you mean 'user'?"),
    ],
)
def test_misspelt_words_get_a_suggestion(arguments, message):
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validate", "giccs-smaple"], "giccs-smaple: no such file; did you mean 'giccs-sample'?"),
        (["csts", "check", "cst-sample"], "cst-sample: no such file; did you mean 'csts-sample'?"),
        (
            ["score", "judgements.csv"],
            "judgements.csv: no such file; did you mean 'judgments.csv'?",
        ),
        (["score", "z"], "z: no such file\n"),
        (
            ["score", "giccs-sample"],
            "giccs-sample: no such file; giccs data copy giccs-sample writes its files\n",
        ),
        (["eval", "package:minlm"], "; did you mean 'package:minilm'?"),
        (["eval", "baseline:char-ngrm"], "; did you mean 'baseline:char-ngram'?"),
        (["eval", "--recipe", "giccs-papr"], "; did you mean 'giccs-paper'?"),
    ],
)
def test_misspelt_names_of_data_and_models_get_a_suggestion(
    arguments, message, tmp_path, monkeypatch
):
    (tmp_path / "judgments.csv").touch()
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_words_that_resemble_no_command_get_none():
    stderr = call("zzzzzzzz").stderr
    assert "expected one of" in stderr
    assert "did you mean" not in stderr


def test_no_arguments_print_the_help():
    result = call()
    assert "Usage: giccs [OPTIONS] COMMAND" in result.output
    assert "Evaluate models:" in result.output


def test_shell_completion_lists_the_commands():
    from click.shell_completion import BashComplete

    completed = BashComplete(main, {}, "giccs", "_GICCS_COMPLETE").get_completions([], "re")
    assert [item.value for item in completed] == ["reliability", "report"]


def test_compare_is_the_comparison_of_report(tmp_path):
    evaluated = ["baseline:char-ngram", "baseline:chance", "--limit", "12", "-o", str(tmp_path)]
    assert call("eval", *evaluated).exit_code == 0
    compared = call("compare", str(tmp_path), "--detect", "0.1").output
    assert compared == call("report", str(tmp_path), "--compare", "--detect", "0.1").output
    assert "baseline:char-ngram" in compared
    assert call("compare", str(tmp_path / "none")).exit_code == 2
