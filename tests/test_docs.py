"""Every command and Python session in the documentation runs and prints what the page shows.

robustness/documents.py says how they are marked. Nothing else of the project is in reach.
"""

import doctest
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from robustness.documents import PAGES, ROOT, Step, difference, pattern, run, steps, stop_servers
from tests.free_ports import free_ports


def environment(first_folders=()):
    # datasets takes folders of one name for the same data: its cache must not outlive a page
    folders = [*map(str, first_folders), str(Path(sys.executable).parent), os.environ["PATH"]]
    return os.environ | {
        "PATH": os.pathsep.join(folders),
        "HF_DATASETS_CACHE": str(Path.cwd() / ".datasets-cache"),
    }


def check(step, place, first_folders=()):
    code, output, folder = run(step.text, Path.cwd(), environment(first_folders))
    differs = difference(step, code, output)
    assert differs is None, f"{place}\n{differs}"
    os.chdir(folder)


def runnable(page):
    return [step for step in steps((ROOT / page).read_text("utf-8")) if not step.not_run]


def has_nightly_steps(page):
    return any(step.nightly for step in runnable(page))


def test_most_commands_run_in_every_run():
    found = [step for page in PAGES for step in runnable(page)]
    assert 0 < sum(bool(step.nightly) for step in found) < len(found) / 10


@pytest.mark.nightly
@pytest.mark.parametrize("page", [*filter(has_nightly_steps, PAGES)])
def test_every_step_of_the_page_runs(page, tmp_path, monkeypatch, commands):
    run_page(runnable(page), page, tmp_path, monkeypatch, commands)


@pytest.mark.parametrize("page", PAGES)
def test_steps_of_the_page_run(page, tmp_path, monkeypatch, commands):
    """Those for make nightly are left out."""
    found = [step for step in runnable(page) if not step.nightly]
    run_page(found, page, tmp_path, monkeypatch, commands)


def run_page(found, page, tmp_path, monkeypatch, commands):
    """Run steps of a page; the commands of the project are run by the fork server."""
    programs = commands.scripts(tmp_path / ".programs")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    try:
        take(with_free_ports(found), page, [programs])
    finally:
        stop_servers(tmp_path)


SERVE = re.compile(r"(giccs annotate serve)\b(?!.*--port)", re.S)
AT_DEFAULT = re.compile(r"(giccs annotate (?:publish|simulate))\b(?!.*--endpoint)", re.S)
PORT = re.compile(r"(?:--port |127\.0\.0\.1:)(\d{4,5})\b")


def with_free_ports(found):
    """Replace the ports of servers, which others may use now; state the default port, to replace it too."""
    if any(SERVE.search(step.text) for step in found):
        found = [
            replace(
                step,
                text=AT_DEFAULT.sub(
                    r"\1 --endpoint http://127.0.0.1:8765", SERVE.sub(r"\1 --port 8765", step.text)
                ),
            )
            for step in found
        ]
    text = "\n".join(line for step in found for line in (step.text, *step.expected))
    free = {port: free_port() for port in {*PORT.findall(text)} if int(port)}

    def replaced(line):
        return re.sub("|".join(free), lambda port: free[port[0]], line) if free else line

    return [
        replace(step, text=replaced(step.text), expected=tuple(map(replaced, step.expected)))
        for step in found
    ]


def free_port():
    """Return a port that is free as the next one is, which the frames of questions have."""
    return str(free_ports(2)[0])


def test_ports_of_pages_are_replaced():
    page = (
        "```console\n$ giccs annotate serve --db a &\n$ giccs annotate publish t.csv\nat http://127.0.0.1:8765\n"
        "$ giccs explore --port 8611\nport 8611 is in use\n$ giccs annotate serve --port 0\n```\n"
    )
    serve, publish, explore, any_port = with_free_ports(list(steps(page)))
    port = re.fullmatch(r"giccs annotate serve --port (\d+) --db a &", serve.text)[1]
    assert publish.text == f"giccs annotate publish --endpoint http://127.0.0.1:{port} t.csv"
    assert publish.expected == (f"at http://127.0.0.1:{port}",)
    assert explore.expected == (f"port {explore.text.split()[-1]} is in use",)
    assert any_port.text == "giccs annotate serve --port 0"
    assert not {port, explore.text.split()[-1]} & {"8765", "8611"}


def take(found, page, first_folders):
    names = {}
    for step in found:
        place = f"{page}:{step.line}"
        if not step.is_python:
            check(step, f"{place}: $ {step.text}", first_folders)
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
        "<!-- not run: needs a GPU -->\n```console\n$ no\n```\n"
        "<!-- nightly: long -->\n```pycon\n>>> 1\n1\n```\n"
    )
    assert list(steps(page)) == [
        Step(2, "echo a \\\nb", expected=("a b", "")),
        Step(6, "ls"),
        Step(13, "no", not_run="needs a GPU"),
        Step(17, ">>> 1\n1\n", is_python=True, nightly="long"),
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
