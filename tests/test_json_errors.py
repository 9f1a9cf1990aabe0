"""With --json, a command that fails prints one document, and the exit code is that without --json."""

import json
import os

import click
import pytest
from click.testing import CliRunner

from bws.base.commands import command
from bws.base.problems import InputError, Problem
from giccs_app.cli import main


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["score", "none.csv"], "none.csv: no such file"),
        (["score"], "Missing argument 'JUDGMENTS...'."),
        (["build", "select", "none.jsonl"], "Missing option '-o' / '--output'."),
        (["annotate", "status"], "ledger.db: ledger not found; expected a file created by"),
        (
            ["annotate", "person", "export", "A1", "--ledger", "none.db"],
            "hits.db: no such file; start",
        ),
    ],
)
def test_an_error_is_the_document(arguments, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain, as_json = (
        CliRunner().invoke(main, [*arguments, *more], prog_name="giccs")
        for more in ([], ["--json"])
    )
    assert plain.exit_code == as_json.exit_code == 2
    assert plain.stdout == ""
    assert plain.stderr == as_json.stderr
    document = json.loads(as_json.stdout)
    assert list(document) == ["error"]
    assert document["error"].startswith(error)


def call(work, *arguments):
    decorated = command("giccs test", "giccs test")(work)
    return CliRunner().invoke(decorated, ["--json", *arguments])


def test_all_problems_are_in_the_error_and_control_characters_are_escaped():
    def work(console):
        """Fail."""
        raise InputError([Problem("a.csv", 3, "no best"), Problem("b\x1b.csv", None, "empty")])

    done = call(work)
    assert json.loads(done.stdout) == {"error": "a.csv:3: no best\nb\\u001b.csv: empty"}


def test_after_the_answer_no_second_document_follows():
    def work(console):
        """Answer, then fail."""
        console.answer("", {"n": 1})
        raise click.ClickException("a check failed")

    done = call(work)
    assert json.loads(done.stdout) == {"n": 1}
    assert (done.exit_code, done.stderr) == (1, "Error: a check failed\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_below_standard_output_is_one_line(commands, tmp_path):
    (tmp_path / "items.txt").write_text("a\nb\nc\nd\n")
    with open("/dev/full", "w") as full:
        done = commands.run("giccs", "score", "none.csv", "--json", cwd=tmp_path, stdout=full)
    assert done.returncode == 2
    assert "none.csv: no such file" in done.stderr
    assert "Traceback" not in done.stderr
