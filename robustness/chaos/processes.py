"""The commands of giccs as processes: start, wait, kill, and inspect the files they leave."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files as resources
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import psutil

from robustness.chaos.cases import PromiseBrokenError

SAMPLE = Path(str(resources("giccs.data")))
COMMAND_TIMEOUT_SECONDS = 120.0
"""Timeout of a command, also on a busy machine."""
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a command; a negative code is the signal that killed it."""

    code: int
    out: str
    err: str


def launch(
    folder: Path,
    *words: object,
    before: Sequence[str] = (),
    stdout: int | IO[bytes] = subprocess.PIPE,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[str]:
    """Start a command in a folder with a private cache; `before` is a command prefix."""
    return subprocess.Popen(
        [*before, _program_path(str(words[0])), *map(str, words[1:])],
        cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
        env=os.environ | QUIET | {"GICCS_CACHE": str(folder / "cache")} | dict(environment),
    )  # fmt: skip


def run_command(folder: Path, *words: object, **more: Any) -> CommandResult:
    """Run a command to its end; raise PromiseBrokenError if it prints a traceback."""
    with launch(folder, *words, **more) as process:
        try:
            out, err = process.communicate(timeout=COMMAND_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise PromiseBrokenError(
                f"{_name(words)} was not finished after {COMMAND_TIMEOUT_SECONDS:.0f} s"
            ) from None
    if "Traceback" in f"{out}{err}":
        raise PromiseBrokenError(
            f"{_name(words)} printed a traceback: {err.strip().splitlines()[-1]}"
        )
    return CommandResult(process.returncode, out or "", err or "")


def run_in_process(folder: Path, *words: object) -> CommandResult:
    """Run a command inside this process, which is faster; raise PromiseBrokenError if it raises."""
    from click.testing import CliRunner

    (entry,) = entry_points(group="console_scripts", name=str(words[0]))
    os.environ.update(QUIET | {"GICCS_CACHE": str(folder / "cache")})
    os.chdir(folder)
    done = CliRunner().invoke(entry.load(), [str(word) for word in words[1:]])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise PromiseBrokenError(
            f"{_name(words)} {words[-1]}: {type(done.exception).__name__}: {done.exception}"
        )
    return CommandResult(done.exit_code, done.stdout, done.stderr)


def _name(words: Sequence[object]) -> str:
    return " ".join(map(str, words[:2]))


def sibling_paths(path: Path) -> list[Path]:
    """Return the other paths in the folder of a file."""
    return [sibling for sibling in path.parent.iterdir() if sibling != path]


def check_failed_with_message(done: CommandResult, expected_text: str) -> None:
    """Check that a command failed with exit code 1 and a message that contains `expected_text`."""
    if done.code != 1 or expected_text not in done.err:
        last_line = done.err.strip().splitlines()[-1:] or ["nothing"]
        raise PromiseBrokenError(
            f"exit code {done.code}, not 1 with a line about {expected_text}; it said {last_line[0]}"
        )


def kill_after_start(
    process: subprocess.Popen[str], has_started: Callable[[], object], after: float
) -> bool:
    """Kill a command `after` seconds after `has_started` is true; return False if it ended before."""
    deadline = time.monotonic() + COMMAND_TIMEOUT_SECONDS
    while process.poll() is None and not has_started():
        if time.monotonic() > deadline:
            raise PromiseBrokenError("the command did not reach the point to be killed")
    with process:
        try:
            process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.returncode == -signal.SIGKILL


def comparable_results(folder: Path) -> dict[str, object]:
    """Return the results in a folder without times and environment: JSON, and bytes of the predictions."""
    documents: dict[str, object] = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        del document["seconds"], document["environment"]
        documents[path.name] = document
        documents[path.stem] = path.with_suffix(".parquet").read_bytes()
    return documents


def _program_path(name: str) -> str:
    program = shutil.which(name, path=os.path.dirname(sys.executable)) or shutil.which(name)
    if not program:
        raise FileNotFoundError(f"{name} is not installed next to {sys.executable}")
    return program


def descendants(pid: int) -> list[int]:
    """Return the ids of the live descendants of a process."""
    pids = []
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # ended in the meantime
                if process.status() != psutil.STATUS_ZOMBIE:
                    pids.append(process.pid)
    return pids


def kill_descendants(pid: int) -> None:
    """Kill all descendants, including new ones, and reap the children of this process."""
    deadline = time.monotonic() + 10
    while (pids := descendants(pid)) and time.monotonic() < deadline:
        for child in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    with suppress(ChildProcessError):
        while pid == os.getpid() and os.waitpid(-1, os.WNOHANG)[0]:
            pass
