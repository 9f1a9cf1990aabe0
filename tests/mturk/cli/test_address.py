"""The address of a study's service changes: every command can be told the new one."""

from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

from mturk.cli import COMMANDS, main
from mturk.study.ledger import Ledger
from tests.mturk.conftest import Running, StudyAtService

OFFLINE = {"export", "purge", "preview", "estimate"}
"""Commands that call no service; those that only hide the option are excluded too."""


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def address_of(path):
    with Ledger.open(path) as ledger:
        return ledger.study().endpoint


@pytest.fixture
def moved(study, running):
    """A study with answers whose service listens at another address; `moved.old` is the previous one."""
    study.submit_all(["A1"])
    study.collect()
    study.old, study.key = running.url, Path(f"{study.path}.key").read_bytes()
    with running.listening():
        yield study


def commands(study):
    """Yield the arguments of every command that calls the service of a published study."""
    bonuses = study.folder / "bonuses.csv"
    one = study.book.assignments()[0].assignment_id
    bonuses.write_text(f"assignment_id,amount,reason\n{one},0.50,careful\n")
    ledger = ("--ledger", study.path)
    yield ("status", *ledger)
    yield ("collect", "-o", study.folder / "judgments.csv", *ledger)
    yield ("review", *ledger)
    yield ("review", "--approve", one, *ledger)
    yield ("bonus", bonuses, *ledger)
    yield ("extend", "--hours", 5, *ledger)
    yield ("top-up", "--dry-run", *ledger)
    yield ("batch", "-o", study.folder / "batch.csv", *ledger)
    yield ("close", *ledger)
    yield ("qualify", "--workers-of", study.path)


def test_every_command_verifies_and_records_the_new_address(moved, running):
    for arguments in commands(moved):
        moved.book.set_endpoint("http://127.0.0.1:9")
        failed = run(*arguments)
        assert failed.exit_code == 1
        assert "http://127.0.0.1:9 does not respond" in failed.stderr
        assert "--endpoint" in failed.stderr
        done = run(*arguments, "--endpoint", running.url)
        assert done.exit_code == 0, (arguments, done.output)
        assert f"the service is at {running.url} now, not at http://127.0.0.1:9" in done.stderr
        assert address_of(moved.path) == running.url
        again = run(*arguments)
        assert again.exit_code == 0, (arguments, again.output)
        assert "now, not at" not in again.stderr
    assert Path(f"{moved.path}.key").read_bytes() == moved.key


def test_every_command_with_a_ledger_has_the_option():
    """So that a new command does not forget it."""
    checked = set()
    for name in COMMANDS.keys() - OFFLINE:
        command = main.get_command(None, name)
        parameters = {parameter.name: parameter for parameter in command.params}
        if "ledger" in parameters or "workers_of" in parameters:
            assert "endpoint" in parameters, name
            checked.add(name)
    assert {"status", "collect", "review", "next", "publish", "qualify"} <= checked


def test_another_service_is_refused_with_both_addresses(study, files, tmp_path):
    """It has the same study, with the same annotations, published from another ledger."""
    (tmp_path / "other").mkdir()
    other = Running(tmp_path / "other")
    with other.listening():
        twin = StudyAtService(other, files, tmp_path / "other")
        assert twin.running.annotations() == study.running.annotations()
        for arguments in [("status",), ("publish", *files.arguments), ("close",)]:
            refused = run(*arguments, "--ledger", study.path, "--endpoint", other.url)
            assert refused.exit_code == 2, refused.output
            expected = f"is the ledger of a study at {study.running.url}; the service at {other.url} has none"
            assert expected in " ".join(refused.stderr.split())
            assert address_of(study.path) == study.running.url
        assert all(hit["HITStatus"] == "Assignable" for hit in map(twin.hit, twin.hit_ids()))
        twin.book.close()
    other.database.close()


def test_publishing_continues_at_the_new_address(running, files, tmp_path):
    path = tmp_path / "ledger.db"
    arguments = ("publish", *files.arguments, "--ledger", path)
    running.faults.choose = lambda operation, number: (
        "throttled" if running.faults.calls.count("CreateHITWithHITType") > 1 else None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mturk.study.client.connect.__kwdefaults__", {"timeout": 5.0, "max_attempts": 1}
        )
        assert run(*arguments, "--endpoint", running.url).exit_code == 1
    assert len(running.annotations()) == 1
    with running.listening():
        done = run(*arguments, "--endpoint", running.url)
        assert done.exit_code == 0, done.output
        assert len(running.annotations()) == 2
        assert address_of(path) == running.url
        assert (
            "2 published before" in run(*arguments).stdout
        )  # the default is the address of the ledger


def test_hits_whose_creation_is_unknown_are_found_by_their_annotation(running, files, tmp_path):
    made = StudyAtService(running, files, tmp_path)
    with Ledger.open(tmp_path / "copy.db", create=True) as book:
        book.start_study(running.url, made.settings, files.plans(made.settings), 1.0)
        book.mark_sent([1, 2], 1.0)
    with running.listening():
        done = run("publish", *files.arguments, "--ledger", tmp_path / "copy.db",
                   "--endpoint", running.url, "--config", config_of(tmp_path))  # fmt: skip
        assert done.exit_code == 0, done.output
        assert "2 adopted" in done.stdout
    made.book.close()


def config_of(folder):
    path = folder / "hits.toml"
    path.write_text("approval_rate_above = -1\ncountries = []\n")
    return path


def test_options_that_call_no_service_refuse_an_address(study):
    for arguments in [("collect", "--offline"), ("next", "--verify")]:
        refused = run(*arguments, "--ledger", study.path, "--endpoint", "local")
        assert refused.exit_code == 2
        assert "cannot be combined" in refused.stderr
    assert "expected local" in run("status", "--ledger", study.path, "--endpoint", "here").stderr
    assert "closed" in run("status", "--ledger", study.path, "--endpoint", "production").stderr
