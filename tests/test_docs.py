"""Every command and Python session in the documentation runs and prints what the page shows.

robustness/documents.py says how they are marked. Nothing else of the project is in reach.
"""

import doctest
import os
import re
import sys
from pathlib import Path

import pytest

from robustness.documents import PAGES, ROOT, Step, difference, pattern, run, steps, stop_servers


def environment():
    # datasets takes folders of one name for the same data: its cache must not outlive a page
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HF_DATASETS_CACHE": str(Path.cwd() / ".datasets-cache"),
    }


def check(step, place):
    code, output, folder = run(step.text, Path.cwd(), environment())
    differs = difference(step, code, output)
    assert differs is None, f"{place}\n{differs}"
    os.chdir(folder)


@pytest.mark.parametrize("page", PAGES)
def test_every_step_of_the_page_runs(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    try:
        take(steps(text), page)
    finally:
        stop_servers(tmp_path)


def take(found, page):
    names = {}
    for step in found:
        place = f"{page}:{step.line}"
        if step.not_run:
            continue
        if not step.is_python:
            check(step, f"{place}: $ {step.text}")
            continue
        test = doctest.DocTestParser().get_doctest(step.text, names, place, page, step.line - 1)
        said = []
        doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
            test, out=said.append, clear_globs=False
        )
        names = test.globs
        assert not said, "".join(said)


def test_the_runner_reads_a_page():
    page = (
        "```console\n$ echo a \\\n> b\na b\n\n$ ls\n```\n```python\n$ no\n```\n"
        "<!-- not run: needs a GPU -->\n```console\n$ no\n```\n```pycon\n>>> 1\n1\n```\n"
    )
    assert list(steps(page)) == [
        Step(2, "echo a \\\nb", expected=("a b", "")),
        Step(6, "ls"),
        Step(13, "no", not_run="needs a GPU"),
        Step(16, ">>> 1\n1\n", is_python=True),
    ]


def test_the_runner_sees_exit_codes_and_output():
    check(Step(1, "echo a; exit 2", expected=("a", "exit code 2")), "")
    for step in (
        Step(1, "exit 2"),
        Step(1, "echo a", expected=("b",)),
        Step(1, "echo a", expected=("a", "a")),
    ):
        with pytest.raises(AssertionError):
            check(step, "")


def test_the_runner_stays_in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(Step(1, "mkdir a && cd a"), "")
    check(Step(1, "pwd", expected=(str(tmp_path / "a"),)), "")
    check(Step(1, "cd .. && false", expected=("exit code 1",)), "")
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        (["a", "b", ""], "a\nb\n", True),
        (["a"], "a\nb\n", False),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a", "..."], "a\n", True),
        (["it took [...] s"], "it took 0.1 s\n", True),
        (["a.c"], "abc\n", False),
    ],
)
def test_the_runner_compares(shown, output, same):
    assert bool(re.fullmatch(pattern(shown), output)) == same
