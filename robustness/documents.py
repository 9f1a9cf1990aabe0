"""Commands and Python sessions of the documentation, and how a reader runs them.

The blocks fenced as ``console`` or ``pycon`` run in order for each page, as a reader types them: they begin
in an empty folder, and ``cd`` holds until the next ``cd``. In a console block, a line that begins with
``$ `` is a command, lines after it that begin with ``> `` go on with it, and what follows is what it
prints, standard error included; ``exit code 2`` on a line of its own is what it ends with. ``...`` on a
line of its own matches any lines, ``[...]`` a part of a line; a command without output on the page may
print anything. Python sessions are doctests that share their names.

``<!-- not run: reason -->`` on the line before a block leaves it out, and ``<!-- nightly: reason -->``
leaves it to ``make nightly``. A command that leaves a server running writes its process number to a file
``NAME.pid``, which is ended with the page.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", ROOT / "paper.md", *sorted(ROOT.glob("docs/**/*.md")))
)
BLOCK = re.compile(r"^( *)```(console|pycon)\n(.*?)^ *```$", re.M | re.S)
MARK = re.compile(r"<!-- (not run|nightly): (\S.*) -->\s*\Z")
EXIT = re.compile(r"exit code (\d)")
SECONDS = 600
"""The longest that a command may take."""


@dataclass(frozen=True)
class Step:
    """A command, or a Python session, of a page.

    `expected` are the lines that the page shows below a command; `not_run` is the reason for leaving it out,
    `nightly` that for running it in ``make nightly`` alone.
    """

    line: int
    text: str
    is_python: bool = False
    expected: tuple[str, ...] = ()
    not_run: str = ""
    nightly: str = ""


def steps(page: str) -> Iterator[Step]:
    """Yield the commands and Python sessions of a page in order.

    >>> list(steps("```console\\n$ giccs score a \\\\\\n> --json\\n{}\\n```\\n"))[0].text
    'giccs score a \\\\\\n--json'
    """
    for block in BLOCK.finditer(page):
        mark = MARK.search(page[: block.start()])
        reasons = {mark[1]: mark[2]} if mark else {}
        not_run, nightly = reasons.get("not run", ""), reasons.get("nightly", "")
        line = page.count("\n", 0, block.start()) + 2
        if block[2] == "pycon":
            yield Step(line, block[3], True, (), not_run, nightly)
            continue
        for command in re.finditer(r"^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", block[3], re.M):
            yield Step(
                line + block[3].count("\n", 0, command.start()),
                command[1].replace("\n> ", "\n"),
                expected=tuple(command[2].split("\n")[:-1]),
                not_run=not_run,
                nightly=nightly,
            )


def run(command: str, cwd: Path, environment: Mapping[str, str]) -> tuple[int, str, Path]:
    """Run a command in a folder; return its exit code, what it printed, and the folder afterwards."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as last_folder:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"trap 'pwd >{last_folder.name}' EXIT\n{command}"],
            cwd=cwd,
            env={**environment, "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        folder = Path(last_folder.read().strip())
    return (
        done.returncode,
        "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines()),
        folder,
    )


def difference(step: Step, code: int, output: str) -> str | None:
    """Say how a command's exit code or output differs from the page; None where neither does."""
    ends = [int(end[1]) for line in step.expected if (end := EXIT.fullmatch(line))]
    expected = [line for line in step.expected if not EXIT.fullmatch(line)]
    if code != (ends[0] if ends else 0):
        return f"exit code {code}\n{output}"
    if any(expected) and not re.fullmatch(pattern(expected), output):
        return f"prints\n{output}"
    return None


def pattern(expected: list[str]) -> str:
    """Return the pattern that output must match: the lines shown, with what they leave open."""
    parts = []
    for line in "\n".join(expected).strip("\n").split("\n"):
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.rstrip().split("[...]"))) + r"\n")
    return "".join(parts)


def stop_servers(folder: Path) -> None:
    """End the servers that the commands of a page left running in its folder."""
    for number in folder.rglob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(number.read_text()), signal.SIGTERM)
