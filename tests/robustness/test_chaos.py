"""The fault campaign: what it makes of promises that are kept and broken, and some of its cases for real."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

from robustness.chaos.__main__ import main, run_case
from robustness.chaos.cases import MODULES, Case, select_cases
from robustness.chaos.processes import descendants
from tests.nightly import first_in_ci

ROOT = Path(__file__).parents[2]
EXAMPLES = """
import errno
import subprocess
import time
from robustness.chaos.cases import PromiseBrokenError, Case
from robustness.chaos.faults import fill, needs_mounts, read_only, small_disk

def kept(folder):
    (folder / "mine").write_text("x")
    return "3 of 3 | there"

def broken(folder):
    raise PromiseBrokenError("2 of 3 there")

def wrong(folder):
    return [][0]

def full(folder):
    with small_disk(folder / "disk", 2**20) as disk:
        filling = fill(disk, 8192)
        try:
            (disk / "file").write_bytes(bytes(2**16))
        except OSError as error:
            assert error.errno == errno.ENOSPC
            filling.unlink()
            (disk / "file").write_bytes(bytes(2**16))
            with read_only(disk):
                try:
                    (disk / "file").write_bytes(b"")
                except OSError as error:
                    assert error.errno == errno.EROFS
                    return "full and read-only"
    raise PromiseBrokenError("there was room")

def leaving(folder):
    left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return str(left.pid)

def waiting(folder):
    print(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid, flush=True)
    time.sleep(1000)

CASES = (
    Case("fault a", "here", "kept", kept),
    Case("fault b", "there", "broken", broken),
    Case("fault c", "nowhere", "not to be had", kept, lambda: "no disk"),
    Case("fault d", "there", "not shown", wrong),
    Case("disk", "small", "full", full, needs_mounts),
    Case("process", "left", "ended", leaving),
    Case("wait", "long", "never", waiting),
)
"""


@pytest.fixture
def examples(tmp_path, monkeypatch):
    (folder := tmp_path / "modules").mkdir()
    (folder / "chaos_examples.py").write_text(EXAMPLES)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(ROOT)]))
    yield ("chaos_examples",)
    sys.modules.pop("chaos_examples", None)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def document(folder, block="old\n"):
    path = folder / "reliability.md"
    path.write_text(f"# Before\n\n<!-- chaos: begin -->\n{block}<!-- chaos: end -->\n\nafter\n")
    return path


def test_a_broken_promise_is_exit_code_1_and_what_cannot_be_had_is_not_kept(examples, capsys):
    assert main(["--only", "fault", "--json"], examples) == 1
    result = json.loads(capsys.readouterr().out)
    assert [(one["state"], one["told"]) for one in result] == [
        ("kept", "3 of 3 | there"),
        ("BROKEN", "2 of 3 there"),
        ("not run", "no disk"),
        ("BROKEN", "the case itself failed: IndexError: list index out of range"),
    ]


def test_only_some_cases_and_their_table(examples, capsys):
    assert main(["--only", "FAULT A"], examples) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "| fault | where | promise | outcome |",
        "| --- | --- | --- | --- |",
        r"| fault a | here | kept | **kept**: 3 of 3 \| there |",
    ]
    assert "1/1 fault a | here | kept: 3 of 3" in printed.err
    assert "1 cases: 1 kept, 0 broken, 0 not run" in printed.err


def test_the_block_of_the_document_is_replaced_and_nothing_else(
    examples, tmp_path, monkeypatch
):  # fmt: skip
    monkeypatch.setattr("chaos_examples.CASES", [Case("f", "w", "p", print)], raising=False)
    path = document(tmp_path)
    monkeypatch.setattr("robustness.chaos.__main__.run_case", lambda place: _kept(place.case))
    assert main(["-o", str(path)], examples) == 0
    before, after = path.read_text().split("<!-- chaos: begin -->")
    assert before == "# Before\n\n"
    assert after.endswith("| f | w | p | **kept**: well |\n\n<!-- chaos: end -->\n\nafter\n")
    assert "Output of `python -m robustness.chaos`" in after
    assert "old" not in after
    assert sorted(path.name for path in tmp_path.iterdir()) == ["modules", "reliability.md"]


def _kept(case):
    from robustness.chaos.cases import Outcome

    return Outcome(case.fault, case.target, case.promise, "kept", "well", 0.1)


@pytest.mark.parametrize("arguments", [["--only", "a"], []])
def test_a_document_shows_the_whole_campaign_and_has_a_place_for_it(
    examples, tmp_path, capsys, arguments
):
    path = document(tmp_path)
    if not arguments:
        path.write_text("nothing")
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "-o", str(path)], examples)
    assert ended.value.code == 2
    assert "chaos" in capsys.readouterr().err


def test_a_small_disk_is_full_and_a_folder_cannot_be_written(examples):
    (case_ref,) = select_cases("small", examples)
    outcome = run_case(case_ref)
    if outcome.state == "not run":
        pytest.skip(outcome.told)
    assert (outcome.state, outcome.told) == ("kept", "full and read-only")


def test_what_a_case_leaves_running_ends_with_it(examples):
    (case_ref,) = select_cases("left", examples)
    pid = int(run_case(case_ref).told)
    assert not alive(pid)


def test_a_case_that_does_not_end_is_ended_with_all_that_it_started(examples, capsys):
    (case_ref,) = select_cases("wait", examples)
    outcome = run_case(case_ref, limit=3)
    assert (outcome.state, outcome.told) == ("BROKEN", "not done after 3 s")
    pid = int(capsys.readouterr().err.split()[0])
    assert not alive(pid)


def test_ctrl_c_ends_the_campaign_and_leaves_no_process(examples):
    code = f"""
import sys
from robustness.chaos.__main__ import main
sys.exit(main(["--only", "wait"], {examples}))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(pids := descendants(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"interrupted" in errors
    assert len(pids) >= 2
    assert not any(map(alive, pids))


def test_every_case_says_what_is_promised_and_stands_once():
    result = [case_ref.case for case_ref in select_cases()]
    assert len({(case.fault, case.target) for case in result}) == len(result) > 15
    assert all(case.fault and case.target and case.promise for case in result)
    assert {case_ref.module for case_ref in select_cases()} == set(MODULES)


@pytest.mark.parametrize(
    "text",
    first_in_ci(["publish on one", "folder of the database, at the start of giccs annotate serve"]),
)
def test_a_case_for_real(text):
    (case_ref,) = select_cases(text)
    outcome = run_case(case_ref)
    if outcome.state == "not run":
        pytest.skip(outcome.told)
    assert outcome.state == "kept", outcome.told
