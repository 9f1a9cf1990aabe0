"""Our commands as processes that are started, watched and killed, and what they leave behind."""

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

from robustness.chaos.cases import Broken

__all__ = [
    "SAMPLE",
    "Done",
    "call",
    "comparable",
    "descendants",
    "failed_in_words",
    "inside",
    "kill_descendants",
    "kill_while",
    "launch",
    "others",
]

SAMPLE = Path(str(resources("giccs.data")))
LIMIT = 120.0
"""Seconds that a command may take on a busy machine."""
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended; a negative code is the signal that killed it."""

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
    """Start one of our commands in a folder, with a cache of its own there; `before` is what starts it."""
    return subprocess.Popen(
        [*before, _program(str(words[0])), *map(str, words[1:])],
        cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
        env=os.environ | QUIET | {"GICCS_CACHE": str(folder / "cache")} | dict(environment),
    )  # fmt: skip


def call(folder: Path, *words: object, **more: Any) -> Done:
    """Run one of our commands to its end; Broken where it shows a traceback."""
    with launch(folder, *words, **more) as process:
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Broken(f"{words[0]} was not done after {LIMIT:.0f} s") from None
    if "Traceback" in f"{out}{err}":
        raise Broken(f"{words[0]} showed a traceback: {err.strip().splitlines()[-1]}")
    return Done(process.returncode, out or "", err or "")


def inside(folder: Path, *words: object) -> Done:
    """Run one of our commands inside this process, which is faster; Broken where it raises."""
    from click.testing import CliRunner

    (entry,) = entry_points(group="console_scripts", name=str(words[0]))
    os.environ.update(QUIET | {"GICCS_CACHE": str(folder / "cache")})
    os.chdir(folder)
    done = CliRunner().invoke(entry.load(), [str(word) for word in words[1:]])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise Broken(f"{words[0]} {words[-1]}: {type(done.exception).__name__}: {done.exception}")
    return Done(done.exit_code, done.stdout, done.stderr)


def others(path: Path) -> list[Path]:
    """Return what else stands in the folder of a file."""
    return [other for other in path.parent.iterdir() if other != path]


def failed_in_words(done: Done, named: str) -> None:
    """Check that a command failed with exit code 1 and a line that has `named` in it."""
    if done.code != 1 or named not in done.err:
        said = done.err.strip().splitlines()[-1:] or ["nothing"]
        raise Broken(f"exit code {done.code}, not 1 with a line about {named}; it said {said[0]}")


def kill_while(process: subprocess.Popen[str], begun: Callable[[], object], after: float) -> bool:
    """Kill a command with SIGKILL `after` seconds from when `begun` is true; False where it ended before."""
    deadline = time.monotonic() + LIMIT
    while process.poll() is None and not begun():
        if time.monotonic() > deadline:
            raise Broken("what was to be struck did not begin")
    with process:
        try:
            process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.returncode == -signal.SIGKILL


def comparable(folder: Path) -> dict[str, object]:
    """Return all results in a folder but for times and places: the JSON, and the bytes of the predictions."""
    found: dict[str, object] = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        del document["seconds"], document["environment"]
        found[path.name] = document
        found[path.stem] = path.with_suffix(".parquet").read_bytes()
    return found


def _program(name: str) -> str:
    found = shutil.which(name, path=os.path.dirname(sys.executable)) or shutil.which(name)
    if not found:
        raise FileNotFoundError(f"{name} is not installed beside {sys.executable}")
    return found


def descendants(pid: int) -> list[int]:
    """Return the live processes that a process has started, and those that they have started."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # ended meanwhile
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
    return found


def kill_descendants(pid: int) -> None:
    """Kill them all, and those that they start meanwhile; this process buries its own."""
    deadline = time.monotonic() + 10
    while (found := descendants(pid)) and time.monotonic() < deadline:
        for one in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.01)
    with suppress(ChildProcessError):
        while pid == os.getpid() and os.waitpid(-1, os.WNOHANG)[0]:
            pass
