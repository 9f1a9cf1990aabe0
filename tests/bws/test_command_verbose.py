"""--verbose: what a command says while it works, what it never says, and that the answer stays the same."""

import importlib
import json
import logging
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bws import cli
from bws.base.commands import command
from bws.base.problems import InputError, Problem
from bws.base.text import read_text, write_atomic
from bws.base.verbosity import LOGGERS

ROOT = Path(__file__).parents[2]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3} [A-Z]+ (bws|giccs|mturk|app)[\w.]*: .+")
USED = re.compile(r"\d+\.\d{3} s, \d+\.\d\d s of processor time(, at most \d+ MiB of memory)?$")
TRACEBACK = "Traceback (most recent call last)"
ITEMS = "a\nb\nc\nd\ne\n"


def commands(name, found):
    """Yield a command and all below it, each with its name."""
    context = click.Context(found, info_name=name, **found.context_settings)
    if not isinstance(found, click.Group):
        yield name, found
    for below in getattr(found, "list_commands", lambda _: [])(context):
        yield from commands(f"{name} {below}", found.get_command(context, below))


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_command_takes_it(script):
    module, function = SCRIPTS[script].split(":")
    result = dict(commands(script, getattr(importlib.import_module(module), function)))
    assert result
    for name, one in result.items():
        context = click.Context(one, info_name=name, **one.context_settings)
        assert "--verbose" in one.get_help(context), name


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Run giccs design over five items; return what it says on both streams."""
    (tmp_path / "items.txt").write_text(ITEMS)
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        done = CliRunner().invoke(cli.make_tuples, ["items.txt", "-k", "3", *arguments])
        assert done.exit_code == code, done.output
        return done.stdout, done.stderr

    return run


def does(work, **settings):
    """Return a command that does `work`, and then answers."""

    @command("x", example="x", **settings)
    def run(console):
        work(console)
        console.answer("done", {"done": True})

    return run


def called(one, *arguments):
    return CliRunner().invoke(one, arguments)


@pytest.mark.parametrize("more", [(), ("--json", "-o", "t.csv"), ("-o", "t.csv")])
def test_the_answer_is_the_same_to_the_byte(made, more):
    plain, silent = made(*more)
    told, said = made(*more, "--verbose")
    assert plain == told
    assert silent in said  # the notes are there as well
    assert not LINE.match(silent)


def test_it_says_which_files_were_read_and_written_and_what_was_used(made):
    _, said = made("-o", "t.csv", "--verbose")
    lines = [line for line in said.splitlines() if LINE.fullmatch(line)]
    assert re.search(r"bws\.base\.commands: giccs \S+, Python 3\.\d+\.\S+, ", lines[0])
    assert any(f"bws.base.text: read items.txt: {len(ITEMS)} bytes, 0." in line for line in lines)
    written = Path("t.csv").stat().st_size
    assert any(f"bws.base.text: wrote t.csv: {written} bytes, " in line for line in lines)
    assert USED.search(lines[-1])


def test_quiet_and_verbose_exclude_each_other(made):
    out, said = made("--quiet", "--verbose", code=2)
    assert (out, "--quiet and --verbose are mutually exclusive" in said) == ("", True)


def fails(error):
    def work(console):
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError(Problem("a.csv", 3, "no best")), 2, "a.csv:3: no best\n"),
        (OSError(28, "No space left on device", "b.csv"), 1, "Error: b.csv: No space left on"),
        (MemoryError(), 1, "Error: not enough memory\n"),
        (MemoryError("8 TiB"), 1, "Error: not enough memory: 8 TiB\n"),
        (click.ClickException("refused"), 1, "Error: refused\n"),
        (click.UsageError("not so"), 2, "Error: not so\n"),
        (KeyboardInterrupt(), 130, "Aborted!\n"),
    ],
)
def test_where_an_error_arose_is_told_above_its_line(error, code, line):
    plain, told = called(does(fails(error))), called(does(fails(error)), "--verbose")
    assert plain.exit_code == told.exit_code == code
    assert TRACEBACK not in plain.stderr
    before, _, after = told.stderr.partition(TRACEBACK)
    assert f"ended by {type(error).__name__}" in before
    assert "in fails" not in plain.stderr
    assert "raise error" in after
    assert plain.stderr in told.stderr
    assert line in after
    assert (plain.stdout, told.stdout) == ("", "")


def test_of_very_many_problems_the_traceback_tells_some():
    error = InputError(Problem("a.csv", line, f"no best {'x' * line}") for line in range(1, 1000))
    message = called(does(fails(error)), "--verbose").stderr
    assert message.count("no best") < 500
    assert message.endswith("... and 899 more similar problems\n")


def test_the_same_error_in_many_lines_is_one_line():
    error = InputError(
        [Problem("a.csv", line, f"best is 'x{line}'; it must be an item") for line in range(3, 84)]
        + [
            Problem("a.csv", 99, "3 fields; expected 4"),
            Problem("b.csv", 3, "best is 'y'"),
        ]
    )
    expected = [
        "a.csv:3: best is 'x3'; it must be an item (81 lines like this: 3, 4, 5, 6, 7, ...)",
        "a.csv:99: 3 fields; expected 4",
        "b.csv:3: best is 'y'",
    ]
    assert called(does(fails(error))).stderr.splitlines() == expected
    assert str(error).splitlines() == expected
    assert len(error.problems) == 83  # a program gets every one


def test_a_few_errors_that_differ_in_their_values_are_all_shown():
    error = InputError(Problem("a.csv", line, f"best is 'x{line}'") for line in range(1, 6))
    assert len(called(does(fails(error))).stderr.splitlines()) == 5


def test_python_itself_shows_where_what_nobody_foresaw_arose():
    done = called(does(fails(ZeroDivisionError("x"))), "--verbose")
    assert isinstance(done.exception, ZeroDivisionError)
    assert TRACEBACK not in done.stderr  # the interpreter shows it once
    assert USED.search(done.stderr.strip())


def test_an_end_that_is_none_of_an_error_shows_no_traceback():
    done = called(does(lambda console: click.get_current_context().exit(3)), "--verbose")
    assert (done.exit_code, TRACEBACK in done.stderr) == (3, False)


def everybody(console):
    for name in ("bws.x", "giccs.x", "mturk.x", "giccs_app.x"):
        logging.getLogger(name).debug("ours")
    for name in ("", "urllib3.connectionpool", "botocore.auth", "openai", "bwsx", "application"):
        logging.getLogger(name).debug("a secret key")
        logging.getLogger(name).info("a secret key")


def test_nothing_is_shown_of_what_others_log():
    done = called(does(everybody), "--verbose")
    assert done.stderr.count(": ours\n") == 4
    assert "secret" not in done.stderr
    assert called(does(everybody)).stderr == ""


def test_afterwards_logging_is_as_it_was():
    def state():
        result = [logging.getLogger(name) for name in LOGGERS]
        return [(one.level, one.propagate, list(one.handlers)) for one in result]

    before = state()
    called(does(everybody), "--verbose")
    called(does(fails(OSError("x"))), "--verbose")
    assert state() == before


def test_a_handler_at_the_root_does_not_say_it_again(caplog):
    message = called(does(everybody), "--verbose").stderr
    assert message.count(": ours\n") == 4
    assert caplog.messages.count("ours") == 0


def test_a_command_that_logs_itself_gets_the_lines_and_no_others(caplog):
    done = called(does(everybody, logs_itself=True), "--verbose")
    assert done.stderr == ""
    assert caplog.messages.count("ours") == 4
    assert "a secret key" not in caplog.messages
    assert USED.search(caplog.messages[-1])


def test_the_function_knows():
    seen = []
    one = does(lambda console: seen.append(console.verbose))
    called(one)
    called(one, "--verbose")
    assert seen == [False, True]


def test_a_name_can_neither_command_the_terminal_nor_begin_a_line(tmp_path):
    path = tmp_path / "a\x1b]0;b\n12:00:00.000 DEBUG bws: forged\x9b.txt"
    path.write_text("x")
    done = called(does(lambda console: read_text(path)), "--verbose")
    assert "a\\u001b]0;b\\u000a12:00:00.000 DEBUG bws: forged\\u009b.txt" in done.stderr
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stderr)


SCRIPT = """
import sys, time
sys.stderr.isatty = lambda: True
from bws.base.commands import command
from bws.base.text import write_atomic

@command("x", example="x")
def run(console):
    for number in console.progress(range(3), "working"):
        write_atomic(f"{number}.txt", "x")

run()
"""


def test_a_bar_is_not_torn(tmp_path):
    call = [sys.executable, "-c", SCRIPT, "--verbose"]
    done = subprocess.run(call, capture_output=True, text=True, check=True, cwd=tmp_path)
    shown = [line.rpartition("\r")[2] for line in done.stderr.split("\n")]
    written = [line for line in shown if "wrote" in line]
    assert len(written) == 3
    assert all(LINE.fullmatch(line) for line in written), written
    assert "working" in done.stderr


def test_without_it_nothing_of_it_is_imported(tmp_path):
    code = (
        "import sys\nfrom bws.cli import make_tuples\n"
        "try: make_tuples(['--help'], prog_name='x')\nexcept SystemExit: pass\n"
        "print('LOADED', [name for name in ('logging', 'bws.base.verbosity') if name in sys.modules])"
    )
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.endswith("LOADED []\n")


def test_json_stays_one_document(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    work = does(lambda console: write_atomic("x.txt", "x"))
    done = called(work, "--verbose", "--json")
    assert json.loads(done.stdout) == {"done": True}
    assert "wrote x.txt: 1 bytes" in done.stderr


def test_a_system_that_counts_no_memory_is_no_obstacle(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    last = called(does(lambda console: None), "--verbose").stderr.splitlines()[-1]
    assert USED.search(last)
    assert "memory" not in last
