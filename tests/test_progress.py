"""Loops that take long in large studies have a progress bar with the remaining time inside of commands."""

import io
from importlib import resources

import pytest

import bws
import giccs
from bws.base import commands
from bws.base.progress import progress_shown_by
from bws.components import generalisability
from bws.history import study_history
from bws.split_items import split_items
from giccs.benchmark import read_benchmark
from giccs.benchmark.assemble import read_dialogues
from giccs.measures.annotator_uncertainty import results_over_annotators
from mturk.kinds.tuples.plan import plan
from mturk.study.settings import Settings


class Terminal(io.StringIO):
    def isatty(self):
        return True


DATA = resources.files("giccs.data")


def judged():
    return bws.read_judgments(DATA / "judgments.csv")


def compared_models():
    """Two models, also with history."""
    return giccs.evaluate(
        ["baseline:chance", "baseline:char-ngram"],
        read_benchmark("giccs-sample").first(8),
        task="pairwise-sts",
        history="both",
    )


def report_over_annotators():
    data = read_benchmark("giccs-sample")
    results_over_annotators(giccs.evaluate("baseline:chance", data), judged(), data)


CALLS = [
    ("annotators", lambda: generalisability(judged().canonical)),
    ("annotators", lambda: giccs.noise_ceiling("giccs-sample")),
    ("annotators", report_over_annotators),
    ("batches of resamples", lambda: bws.score(judged(), bootstrap=20)),
    ("differences between domains", lambda: compared_models().report()),
    ("effects of the history", lambda: compared_models().report()),
    ("models", lambda: giccs.compare(compared_models())),
    (
        "pages",
        lambda: plan(
            bws.read_tuples(DATA / "tuples.csv"),
            read_dialogues(DATA / "dialogues.jsonl"),
            Settings(),
        ),
    ),
    ("pairs of models", lambda: giccs.compare(compared_models())),
    ("passes", lambda: bws.score(judged(), "elo", passes=2)),
    ("permutations", lambda: split_items(judged())),
    ("rounds", lambda: bws.fresh_rounds([f"i{n}" for n in range(20)], 4, 3)),
    ("steps", lambda: study_history(judged())),
    ("trials", lambda: bws.reliability(judged(), trials=3)),
]
"""Label of a bar, and a call that shows it."""


@pytest.mark.parametrize(("label", "call"), CALLS)
def test_long_loops_are_tracked(label, call):
    seen = []

    def bar(work, shown, total):
        work = list(work)
        seen.append((shown, total == len(work)))
        return iter(work)

    with progress_shown_by(bar):
        call()
    assert (label, True) in seen
    assert all(has_total for _, has_total in seen)


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
