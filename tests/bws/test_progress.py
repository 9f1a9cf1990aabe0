"""Loops that take long in large studies have a progress bar with the remaining time inside of commands."""

import io
from importlib import resources

import pytest

import bws
from bws.base import commands
from bws.base.progress import progress_shown_by
from bws.history import study_history


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def judged():
    return bws.read_judgments(resources.files("giccs.data") / "judgments.csv")


CALLS = {
    "trials": lambda judged: bws.reliability(judged, trials=3),
    "batches of resamples": lambda judged: bws.score(judged, bootstrap=20),
    "steps": study_history,
}


@pytest.mark.parametrize("label", CALLS)
def test_long_loops_are_tracked(judged, label):
    seen = []

    def bar(work, label, total):
        work = list(work)
        seen.append((label, total == len(work)))
        return iter(work)

    with progress_shown_by(bar):
        CALLS[label](judged)
    assert (label, True) in seen


@pytest.mark.parametrize(("seconds", "is_shown"), [(0, True), (60, False)])
def test_only_slow_work_has_a_bar_with_the_remaining_time(monkeypatch, seconds, is_shown):
    monkeypatch.setattr(commands, "BAR_AFTER_SECONDS", seconds)
    monkeypatch.setattr("sys.stderr", Terminal())
    console = commands.Console(as_json=False, quiet=False)
    assert list(console.progress_of_slow_work(range(3), "trials", 3)) == [0, 1, 2]
    written = commands.sys.stderr.getvalue()
    assert ("trials" in written and "<" in written) == is_shown


def test_quiet_commands_have_none(monkeypatch):
    monkeypatch.setattr(commands, "BAR_AFTER_SECONDS", 0)
    monkeypatch.setattr("sys.stderr", Terminal())
    console = commands.Console(as_json=False, quiet=True)
    assert list(console.progress_of_slow_work(range(3), "trials", 3)) == [0, 1, 2]
    assert commands.sys.stderr.getvalue() == ""
