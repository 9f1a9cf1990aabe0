"""Play a new user: a fresh environment, the wheel, and the commands of README and quickstart, in order.

    python -m robustness.first_hour

Nothing of the checkout is in reach: the wheel is installed into a new environment, and the commands run in
an empty folder with an empty home, as the pages show them; ``cd`` holds until the next ``cd``. Afterwards
each stage of a study must have left its files. Printed are each command with its seconds, and the number
and time of all.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/quickstart.md")
BLOCK = re.compile(r"^( *)```(console|pycon)\n(.*?)^ *```$", re.M | re.S)
NOT_RUN = re.compile(r"<!-- not run: \S.* -->\s*\Z")

EXTRA = "study"
"""The extra that the quickstart installs."""
# What each stage leaves in the folder of a page, as patterns of file names; one of them must exist.
STAGES = {
    "spreadsheet": ("sheet.csv", "**/dialogues.csv"),
    "study": ("**/tuples.csv",),
    "judgments": ("**/judgments.csv",),
    "scores": ("**/scores.csv",),
    "benchmark": ("**/benchmark.jsonl",),
    "two models": ("**/results/*.json", "**/results/**/*.json"),
    "LaTeX": ("**/*.tex",),
}


@dataclass(frozen=True)
class Step:
    """A command, or a Python session, of a page."""

    page: str
    line: int
    text: str
    is_python: bool


def steps(page: str, text: str) -> Iterator[Step]:
    """Yield the commands and Python sessions of a page in order.

    >>> list(steps("p.md", "```console\\n$ bws-score a \\\\\\n> --json\\n{}\\n```\\n"))[0].text
    'bws-score a \\\\\\n--json'
    """
    for block in BLOCK.finditer(text):
        if NOT_RUN.search(text[: block.start()]):
            continue
        line = text.count("\n", 0, block.start()) + 2
        if block[2] == "pycon":
            yield Step(page, line, block[3], is_python=True)
            continue
        for command in re.finditer(r"^\$ (.*(?:\n> .*)*)", block[3], re.M):
            offset = block[3].count("\n", 0, command.start())
            yield Step(page, line + offset, command[1].replace("\n> ", "\n"), is_python=False)


class NewUser:
    """An environment with the wheel, and a home outside the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "environment" / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        self.last_folder = folder / "last-folder"
        self.n_commands = 0
        self.seconds = 0.0

    def install(self) -> float:
        """Build the wheel and install it with `EXTRA`; return the seconds."""
        start = time.perf_counter()
        wheels = self.folder / "wheels"
        # PYTHONPATH would make the checkout count as installed.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        pip_wheel: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "-w",
            wheels,
            ROOT,
        ]
        subprocess.run(pip_wheel, check=True, env=clean)
        (wheel,) = wheels.glob("giccs-*.whl")
        venv.create(self.folder / "environment", with_pip=True)
        pip: list[str | Path] = [self.bin / "pip", "install", "-q", "--disable-pip-version-check"]
        requirements: list[str | Path] = ["-c", ROOT / "constraints.txt", f"{wheel}[{EXTRA}]"]
        subprocess.run([*pip, *requirements], check=True, env=clean)
        return time.perf_counter() - start

    def run(self, argv: list[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TERM") if name in os.environ}
        return subprocess.run(
            argv,
            cwd=cwd,
            env=kept
            | {
                "PATH": f"{self.bin}{os.pathsep}{os.defpath}",
                "HOME": str(self.home),
                "LAST_FOLDER": str(self.last_folder.resolve()),
                "HF_HUB_OFFLINE": "1",
                "COLUMNS": "100",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def follow(self, page_steps: Iterable[Step], cwd: Path) -> None:
        """Run the steps of a page."""
        sessions: list[str] = []
        for step in page_steps:
            cwd = self.take(step, cwd, sessions)

    def take(self, step: Step, cwd: Path, sessions: list[str]) -> Path:
        """Run a step as a person would, and return the folder afterwards; fail where it fails."""
        self.last_folder.write_text(str(cwd), encoding="utf-8")
        start = time.perf_counter()
        if step.is_python:
            # Sessions of a page share their names, so each runs after those before it.
            sessions.append(step.text)
            (cwd / "session.txt").write_text("\n".join(sessions), encoding="utf-8")
            done = self.run(
                [self.bin / "python", "-m", "doctest", "-o", "ELLIPSIS", "session.txt"], cwd
            )
        else:
            script = f"trap 'pwd >\"$LAST_FOLDER\"' EXIT\n{step.text}"
            done = self.run(["bash", "-o", "pipefail", "-c", script], cwd)
        seconds = time.perf_counter() - start
        self.n_commands += 1
        self.seconds += seconds
        first_line = step.text.strip().split("\n")[0]
        click.echo(f"{seconds:7.1f} s  {step.page}:{step.line}: {first_line}")
        if done.returncode:
            raise click.ClickException(
                f"{step.page}:{step.line}: exit {done.returncode}\n{done.stdout}"
            )
        return Path(self.last_folder.read_text(encoding="utf-8").strip())


def _stop_servers(folder: Path) -> None:
    for number in folder.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(number.read_text()), signal.SIGTERM)


@click.command()
@click.option("--keep", type=click.Path(path_type=Path), help="Folder that keeps everything.")
def main(keep: Path | None) -> None:
    """Play a new user: a fresh environment, the wheel, and the commands of README and quickstart."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        user = NewUser(folder)
        click.echo(f"{user.install():7.1f} s  installation")
        for page in PAGES:
            text = (ROOT / page).read_text(encoding="utf-8")
            cwd = folder / Path(page).stem.lower()
            cwd.mkdir()
            try:
                user.follow(steps(page, text), cwd)
            finally:
                _stop_servers(cwd)
            _check_stages(page, cwd)
        click.echo(f"{user.seconds:7.1f} s  {user.n_commands} commands and Python sessions")


def _check_stages(page: str, folder: Path) -> None:
    missing = [
        stage
        for stage, patterns in STAGES.items()
        if not any(next(folder.glob(pattern), None) for pattern in patterns)
    ]
    if missing:
        raise click.ClickException(f"{page} leaves no {', '.join(missing)}")
    click.echo(f"           {page}: {', '.join(s for s in STAGES if s not in missing)}")


if __name__ == "__main__":
    main()
