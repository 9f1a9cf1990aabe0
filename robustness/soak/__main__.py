"""Soak test: one hour of a simulated study on SQLite and PostgreSQL, for memory growth and lost data.

    python -m robustness.soak [--minutes 60] [-o docs/operations/measurements.md] [--json] [--samples FILE]

One `giccs annotate serve` uses a SQLite file; two more share a PostgreSQL database behind nginx. On each,
simulated workers work continuously at a moderate pace, while a requester publishes batches of HITs, collects,
reviews, pays bonuses and deletes. The processes of the service are sampled every ten seconds. Ctrl-C ends the
test early; the measurements so far are evaluated and printed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import provenance, replace_block
from benchmarks.postgresql import NoServerError, cluster
from benchmarks.study_processes import NGINX
from bws.base.text import write_atomic
from robustness.soak.samples import BackendMonitor, samples_csv
from robustness.soak.study import SPAWN, FinalState, SoakPlan, backend
from robustness.soak.table import block, document, has_broken_promise

PROCESSES = {"SQLite": 1, "PostgreSQL": 2}
START_TIMEOUT_SECONDS = 120.0
"""Timeout of the start of a service."""
END_TIMEOUT_SECONDS = 600.0
"""Timeout of the end of a study."""


@dataclass
class BackendRun:
    """A running backend."""

    watched: BackendMonitor
    process: Any
    connection: Any
    """Connection on which the backend sends its process ids and its result."""

    def receive(self, seconds: float) -> Any:
        """Return the next message; a string in case of an error."""
        try:
            return (
                self.connection.recv()
                if self.connection.poll(seconds)
                else f"no message in {seconds:g} s"
            )
        except EOFError:
            return f"ended with exit code {self.process.exitcode}"


def soak(
    minutes: float, backends: Sequence[str], work: SoakPlan, *,
    every: float = 10.0, say: Callable[[str], object] = lambda _: None,
) -> tuple[list[BackendMonitor], dict[str, FinalState | str], list[str]]:  # fmt: skip
    """Run studies for `minutes`; return monitors, results per backend, and notes on missing backends."""
    stopped, notes = SPAWN.Event(), []
    with ExitStack() as stack:
        running = []
        for name in backends:
            try:
                db, folder = _prepare_backend(name, stack)
            except NoServerError as error:
                notes.append(f"{name} was not measured: {error}.")
                continue
            running.append(_start(name, db, folder, work, stopped))
        stack.callback(stopped.set)
        with suppress(KeyboardInterrupt):
            _watch(running, minutes * 60, every, say)
        stopped.set()
        say("ending: abandoned HITs expire, are reviewed and deleted")
        results = {
            backend_run.watched.name: backend_run.receive(END_TIMEOUT_SECONDS)
            for backend_run in running
        }
        for run in running:
            run.process.join(START_TIMEOUT_SECONDS)
    return [backend_run.watched for backend_run in running], results, notes


def _prepare_backend(name: str, stack: ExitStack) -> tuple[str, Path]:
    """Return the address of an empty database, and a folder for other files."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="giccs-soak-")))
    if name == "SQLite":
        return str(folder / "hits.db"), folder
    if NGINX is None:
        raise NoServerError("nginx is not installed (make system)")
    folder.chmod(0o755)  # nginx's workers run as another user
    return stack.enter_context(cluster()).create("soak"), folder


def _start(name: str, db: str, folder: Path, work: SoakPlan, stopped: Any) -> BackendRun:
    receiver, sender = SPAWN.Pipe(duplex=False)
    arguments = (db, PROCESSES[name], folder, work, stopped, sender)
    process = SPAWN.Process(target=backend, args=arguments)
    process.start()
    sender.close()
    return BackendRun(BackendMonitor(name, db, folder), process, receiver)


def _watch(
    running: Sequence[BackendRun], seconds: float, every: float, say: Callable[[str], object]
) -> None:  # fmt: skip
    """Sample all backends until the time is over or one of them has ended."""
    for backend_run in running:
        pids = backend_run.receive(START_TIMEOUT_SECONDS)
        if isinstance(pids, str):
            raise RuntimeError(f"{backend_run.watched.name}: {pids}")
        backend_run.watched.pids = pids
    began = time.time()
    for turn in range(1, int(seconds / every) + 1):
        time.sleep(max(0.0, began + turn * every - time.time()))
        try:
            for backend_run in running:
                backend_run.watched.take_samples(began)
        except (OSError, psutil.Error) as error:  # a process of the service has ended
            say(f"sampling ended early: {error}")
            return
        if any(backend_run.connection.poll() for backend_run in running):
            return
        if turn % round(max(1.0, 60 / every)) == 0:
            say("; ".join(_state(backend_run.watched) for backend_run in running))


def _state(monitor: BackendMonitor) -> str:
    last = monitor.samples[-1]
    memory = " / ".join(f"{sample.rss:.1f}" for sample in monitor.samples[-len(monitor.pids) :])
    return (
        f"{last.seconds / 60:.0f} min {monitor.name}: {last.submissions} submissions, {last.errors} errors, "
        f"p95 {last.p95} ms, RSS {memory} MiB"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--backends", nargs="+", choices=[*PROCESSES], default=[*PROCESSES])
    parser.add_argument("-o", "--output", help="document whose block `soak` is replaced")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--samples", help="CSV file for all samples")
    parser.add_argument(
        "--from", dest="source", help="JSON of an earlier soak test, instead of a run"
    )
    options = parser.parse_args(arguments)
    report = json.loads(Path(options.source).read_text()) if options.source else _run_soak(options)
    if options.output:
        replace_block(Path(options.output), "soak", block(report))
    print(json.dumps(report, indent=1) if options.json else block(report))
    if has_broken_promise(report):
        sys.exit(1)


def _run_soak(options: argparse.Namespace) -> Mapping[str, Any]:
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # Ctrl-C does not reach background processes
    work = SoakPlan()
    watched, results, notes = soak(
        options.minutes, options.backends, work,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip
    if options.samples:
        write_atomic(
            options.samples, samples_csv([s for monitor in watched for s in monitor.samples])
        )
    command = f"python -m robustness.soak --minutes {options.minutes:g}"
    return document(watched, results, notes, provenance(command), work)


if __name__ == "__main__":
    main()
