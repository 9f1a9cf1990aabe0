"""Every command and Python session in the documentation runs and prints what stands there.

The blocks fenced as ``console`` or ``pycon`` run in order for each page, as a reader types them: they begin
in an empty folder, and ``cd`` holds until the next ``cd``. Nothing else of the project is in reach. In a
console block, a line that begins with ``$ `` is a command, lines after it that begin with ``> `` go on with
it, and what follows is what it prints, standard error included; ``exit code 2`` on a line of its own is
what it ends with. ``...`` on a line of its own stands for any lines, ``[...]`` for a part of a line; a
command with no output shown may print anything. Python sessions are doctests that share their names.

``<!-- not run: reason -->`` on the line before a block leaves it out.
A command that leaves a server running writes its process number to a file ``NAME.pid``, which is ended with
the page.
"""

import contextlib
import doctest
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "paper.md"])
BLOCK = re.compile(r"^( *)```(console|pycon)\n(.*?)^ *```$", re.M | re.S)
NOT_RUN = re.compile(r"<!-- not run: \S.* -->\s*\Z")
EXIT = re.compile(r"exit code (\d)")
SECONDS = 600


@dataclass
class Command:
    """One command of a console block."""

    line: int
    text: str
    shown: list[str] = field(default_factory=list)


@dataclass
class Session:
    """One block of Python."""

    line: int
    text: str


def steps(page):
    """The commands and sessions of a page in order."""
    result = []
    for block in BLOCK.finditer(page):
        if NOT_RUN.search(page[: block.start()]):
            continue
        line = page.count("\n", 0, block.start()) + 2
        text = block[3]
        result += [Session(line, text)] if block[2] == "pycon" else commands(text, line)
    return result


def commands(text, first):
    result = []
    for line, written in enumerate(text.split("\n")[:-1], start=first):
        if written.startswith("$ "):
            result.append(Command(line, written.removeprefix("$ ")))
        elif written.startswith("> ") and not result[-1].shown:
            result[-1].text += "\n" + written.removeprefix("> ")
        else:
            result[-1].shown.append(written)
    return result


def pattern(shown):
    """What the output must match: the lines shown, with what they leave open."""
    parts = []
    for line in "\n".join(shown).strip("\n").split("\n"):
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.rstrip().split("[...]"))) + r"\n")
    return "".join(parts)


def run(command):
    """Run it in the current folder, with the commands of this environment first; follow its ``cd``."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # datasets takes folders of one name for the same data: its cache must not outlive a page
    caches = {"HF_DATASETS_CACHE": str(Path.cwd() / ".datasets-cache")}
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as last_folder:
        done = subprocess.run(
            [
                "bash",
                "-o",
                "pipefail",
                "-c",
                f"trap 'pwd >{last_folder.name}' EXIT\n{command.text}",
            ],
            env=os.environ | caches | {"PATH": path, "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        os.chdir(last_folder.read().strip())
    return done.returncode, "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def check(command, place):
    ends = [line for line in command.shown if EXIT.fullmatch(line)]
    shown = [line for line in command.shown if line not in ends]
    code, output = run(command)
    assert code == (int(EXIT.fullmatch(ends[0])[1]) if ends else 0), f"{place}\n{output}"
    if any(shown):
        assert re.fullmatch(pattern(shown), output), f"{place}\nprints\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_step_of_the_page_runs(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    try:
        take(steps(text), page)
    finally:
        for number in tmp_path.rglob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(number.read_text()), signal.SIGTERM)


def take(found, page):
    names = {}
    for step in found:
        place = f"{page.relative_to(ROOT)}:{step.line}"
        if isinstance(step, Command):
            check(step, f"{place}: $ {step.text}")
            continue
        test = doctest.DocTestParser().get_doctest(
            step.text, names, place, str(page), step.line - 1
        )
        said = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
            test, out=said.append, clear_globs=False
        )
        names = test.globs
        assert not said, "".join(said)


def test_the_runner_reads_a_page():
    page = (
        "```console\n$ echo a \\\n> b\na b\n\n$ ls\n```\n```python\n$ no\n```\n"
        "<!-- not run: needs a GPU -->\n```console\n$ no\n```\n```pycon\n>>> 1\n1\n```\n"
    )
    assert steps(page) == [
        Command(2, "echo a \\\nb", ["a b", ""]),
        Command(6, "ls", []),
        Session(16, ">>> 1\n1\n"),
    ]


def test_the_runner_sees_exit_codes_and_output():
    check(Command(1, "echo a; exit 2", ["a", "exit code 2"]), "")
    for command in (
        Command(1, "exit 2"),
        Command(1, "echo a", ["b"]),
        Command(1, "echo a", ["a", "a"]),
    ):
        with pytest.raises(AssertionError):
            check(command, "")


def test_the_runner_stays_in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(Command(1, "mkdir a && cd a", []), "")
    check(Command(1, "pwd", [str(tmp_path / "a")]), "")
    check(Command(1, "cd .. && false", ["exit code 1"]), "")
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
