"""Play a new user: a fresh environment, the wheel, and the commands of pages, in order.

    python -m robustness.first_hour                                             # README and quickstart
    python -m robustness.first_hour robustness/first_hour/*.md                  # jobs of newcomers
    python -m robustness.first_hour $(git ls-files '*.md' ':!:giccs/*') > walk.txt   # every page

Nothing of the checkout is in reach: the wheel is installed into a new environment for each page, with the
extras and packages that the page says first, and the commands run in an empty folder with an empty home, as
the page shows them (robustness/documents.py). Printed are each command with its seconds, or with the reason
why it is not run, what differs from the page, and the number and time of all. After README and quickstart,
each stage of a study must have left its files. A job names the pages that its user reads, which are in the
folder ``pages``; the number of its commands and of the words of these pages is printed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import click

from robustness.documents import ROOT, Step, difference, run, steps, stop_servers

JOBS = Path(__file__).parent
FIRST_PAGES = ("README.md", "docs/quickstart.md")
FIRST_EXTRAS = ["giccs[study]"]
"""Requirements of README and quickstart, which name further extras, and of pages that name none."""
WITH_TORCH = re.compile(r"\b(?:models|gguf|multilingual|quantised|csts|evalrank|demo)\b")
PIP_INSTALL = re.compile(r"^    pip install ([^#\n.][^#\n]*)", re.M)
PIP_INSTALL_IN_TEXT = re.compile(r"`pip install ([^`]+)`")
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


def requirements(page: str) -> list[list[str]]:
    """Return the arguments of the `pip install` lines of a page, or of the first one in its text.

    >>> requirements("Then `pip install b`.\\n\\n    pip install 'giccs[app]' datasets  # a comment\\n")
    [['giccs[app]', 'datasets']]
    >>> requirements("Needs `pip install 'giccs[app]'`, or also `pip install 'giccs[stats]'`.")
    [['giccs[app]']]
    """
    commands = PIP_INSTALL.findall(page) or PIP_INSTALL_IN_TEXT.findall(page)[:1]
    return [shlex.split(arguments) for arguments in commands]


class NewUser:
    """An environment with the wheel, and a home outside the checkout."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.wheel = wheel
        self.bin = folder / "environment" / "bin"
        self.home = folder / "home"
        self.home.mkdir()

    def install(self, required: list[list[str]]) -> float:
        """Install what a page says, the wheel in place of the published package; return the seconds."""
        start = time.perf_counter()
        venv.create(self.folder / "environment", with_pip=True)
        constraints = ["-c", str(ROOT / "constraints.txt")]
        if WITH_TORCH.search(str(required)):
            pip_install(self.bin / "python", *constraints, "torch")  # first: see the Makefile
        for arguments in required:
            local = [re.sub(r"^giccs\b", str(self.wheel), argument) for argument in arguments]
            pip_install(self.bin / "python", *constraints, *local)
        return time.perf_counter() - start

    def environment(self) -> dict[str, str]:
        inherited = {
            name: os.environ[name] for name in ("LANG", "LC_ALL", "TERM") if name in os.environ
        }
        return inherited | {
            "PATH": f"{self.bin}{os.pathsep}{os.defpath}",
            "HOME": str(self.home),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(self.home / "datasets"),
        }

    def follow(self, page: str, page_steps: list[Step], cwd: Path) -> Iterator[tuple[float, bool]]:
        """Run the steps of a page; yield the seconds of each, and whether it did what the page shows."""
        sessions: list[str] = []
        for step in page_steps:
            start = time.perf_counter()
            cwd, differs = self.run_step(step, cwd, sessions)
            seconds = time.perf_counter() - start
            click.echo(f"{seconds:7.1f} s  {page}:{step.line}: {first_line(step)}")
            if differs is not None:
                click.echo(f"    FAILED {page}:{step.line}: {differs}")
            yield seconds, differs is None

    def run_step(self, step: Step, cwd: Path, sessions: list[str]) -> tuple[Path, str | None]:
        """Run a step as a person would; return the folder afterwards, and what differs from the page."""
        if step.is_python:
            # Sessions of a page share their names, so each runs after those before it.
            sessions.append(step.text)
            (cwd / "session.txt").write_text("\n".join(sessions), encoding="utf-8")
            step = Step(step.line, "python -m doctest -o ELLIPSIS session.txt")
        code, output, folder = run(step.text, cwd, self.environment())
        return folder, difference(step, code, output)


def first_line(step: Step) -> str:
    return step.text.strip().split("\n")[0]


def pip_install(python: Path, *arguments: str) -> None:
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
    # PYTHONPATH would make the checkout count as installed.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(pip, check=True, env=clean)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the checkout."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(pip, check=True)
    (wheel,) = folder.glob("giccs-*.whl")
    return wheel


def follow_page(page: str, wheel: Path) -> list[tuple[float, bool]]:
    """Follow a page in an environment of its own; return the seconds and the success of each step."""
    text = (ROOT / page).read_text(encoding="utf-8")
    page_steps = list(steps(text))
    for step in page_steps:
        if step.not_run:
            click.echo(f"  not run  {page}:{step.line}: {first_line(step)} ({step.not_run})")
    page_steps = [step for step in page_steps if not step.not_run]
    if not page_steps:
        return []
    required = [] if page in FIRST_PAGES else requirements(text)
    with tempfile.TemporaryDirectory() as temporary:
        user = NewUser(Path(temporary), wheel)
        installation = user.install(required or [FIRST_EXTRAS])
        click.echo(f"{installation:7.1f} s  {page}: installation of {required or FIRST_EXTRAS}")
        cwd = Path(temporary) / "work"
        cwd.mkdir()
        if (ROOT / page).parent == JOBS:
            _give_pages(text, cwd / "pages", len(page_steps))
        try:
            done = list(user.follow(page, page_steps, cwd))
        finally:
            stop_servers(cwd)
        if page in FIRST_PAGES:
            _check_stages(page, cwd)
    return done


def _give_pages(job: str, folder: Path, n_steps: int) -> None:
    """Copy the pages that a job names; print their words and the number of the job's commands."""
    from docs.hooks import count_words

    pages = [JOBS / link for link in re.findall(r"\]\(([^)]+\.md)\)", job)]
    folder.mkdir()
    for page in pages:
        shutil.copy(page, folder)
    n_words = sum(count_words(page.read_text(encoding="utf-8")) for page in pages)
    click.echo(f"           {n_steps} commands, {n_words:,} words in {len(pages)} pages")


@click.command()
@click.argument("pages", nargs=-1)
def main(pages: tuple[str, ...]) -> None:
    """Play a new user: a fresh environment, the wheel, and the commands of PAGES."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        done = [step for page in pages or FIRST_PAGES for step in follow_page(page, wheel)]
    n_failed = sum(not as_shown for _, as_shown in done)
    seconds = sum(seconds for seconds, _ in done)
    click.echo(f"{seconds:7.1f} s  {len(done)} commands and Python sessions, {n_failed} failed")
    if n_failed:
        raise click.exceptions.Exit(1)


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
