"""The service as a process that can be killed, simulated workers, and checks of the stored data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.study_processes import BALANCE, free_ports, publish, read_stored_state
from bws.base.problems import InputError
from mturk.kinds import Behaviour
from mturk.study.ledger import Ledger
from mturk.study.simulated_browser import UnreachableError
from mturk.study.simulated_workers import (
    SimulationLog,
    read_truth,
    simulate_workers,
    simulated_worker_ids,
)
from robustness.chaos.cases import PromiseBrokenError

CLI = (sys.executable, "-m", "giccs", "annotate")
DATA = Path(str(resources.files("giccs.data")))


class Service:
    """A process of `giccs annotate serve` whose ports stay the same after a restart."""

    def __init__(self, db: str | Path, log: Path, *options: str, **environment: str) -> None:
        port, frame_port = free_ports(2)
        self.url, self.ports, self.log = f"http://127.0.0.1:{port}", (port, frame_port), log
        self.command = [
            *CLI, "serve", "--json", "--quiet", "--db", str(db), "--port", str(port),
            "--frame-port", str(frame_port), "--balance", str(BALANCE), *options,
        ]  # fmt: skip
        self.environment = {**os.environ, **environment}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the service and wait until it is ready; raise RuntimeError with its log if it ends."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                env=self.environment,
            )  # fmt: skip
        assert self.process.stdout is not None
        if '"api"' not in self.process.stdout.readline():
            self.process.wait()
            raise RuntimeError(f"giccs annotate serve ended: {self.log.read_text()[-2000:]}")

    def end(self, signal_number: signal.Signals = signal.SIGKILL) -> None:
        """Stop the service and wait for its end."""
        if self.process is not None:
            self.process.send_signal(signal_number)
            self.process.communicate()
            self.process = None


@contextmanager
def serving(
    db: str | Path, folder: Path, *options: str, **environment: str
) -> Iterator[Service]:  # fmt: skip
    """Run a service."""
    service = Service(db, folder / "serve.log", *options, **environment)
    service.start()
    try:
        yield service
    finally:
        service.end(signal.SIGTERM)


@contextmanager
def publish_study(
    url: str, folder: Path, hits: int, assignments: int
) -> Iterator[tuple[Any, Ledger]]:  # fmt: skip
    """Publish HITs of the sample; yield client and ledger."""
    client, book = publish(url, folder, DATA, hits, assignments)
    with book:
        yield client, book


class Crowd:
    """Simulated workers on the site, who retry after errors until no HITs are left."""

    def __init__(
        self, url: str, workers: int = 10, pace: float = 0.0, timeout: float = 180.0
    ) -> None:
        self.url, self.ids, self.pace, self.timeout = (
            url,
            simulated_worker_ids(workers),
            pace,
            timeout,
        )
        self.truth = read_truth(DATA / "dialogues.jsonl")
        self.acknowledged: Counter[str] = Counter()
        """Confirmed submissions per worker."""
        self.refusals: Counter[str] = Counter()
        self._now: SimulationLog | None = None
        self._done = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._thread.join(self.timeout)
            if not self._done.is_set():
                raise PromiseBrokenError(
                    f"the work does not end; {self.confirmed} submissions were confirmed"
                )

    @property
    def confirmed(self) -> int:
        """Number of confirmed submissions so far."""
        now = self._now.counts["submitted"] if self._now else 0
        return self.acknowledged.total() + now

    def _run(self) -> None:
        while not self._round():
            time.sleep(0.2)
        self._done.set()

    def _round(self) -> bool:
        """Let the workers work until no HITs are left; return whether there were no errors."""
        rehearsals: list[SimulationLog] = []
        clean = True

        def on_submission(done: SimulationLog) -> None:
            self._now = done
            rehearsals[:] = [done]

        try:
            rehearsals = [
                simulate_workers(
                    self.url,
                    self.ids,
                    self.truth,
                    Behaviour(pace=self.pace),
                    on_submission=on_submission,
                )
            ]
        except (InputError, UnreachableError):  # sign-in refused, or service not reachable
            clean = False
        self._now = None
        for done in rehearsals:
            self.acknowledged += done.by_worker
            self.refusals += done.refusals
            clean &= not done.refusals and not done.counts["foreign"]
        return clean and not (rehearsals and rehearsals[0].counts["submitted"])


def check_submissions(client: Any, book: Ledger, crowd: Crowd, assignments: int) -> str:
    """Compare stored with confirmed submissions; return a summary, or raise PromiseBrokenError with it."""
    state = read_stored_state(client, book, crowd.acknowledged, assignments)
    n_expected = assignments * len(book.hits())
    summary = (
        f"{state.submissions} of {n_expected} submissions are stored, {state.lost} confirmed submissions "
        f"lost, {state.doubled} duplicated, {state.over} beyond the maximum, balance "
        f"{'exact' if state.balance else 'WRONG'}"
    )
    if (
        state.submissions != n_expected
        or state.lost
        or state.doubled
        or state.over
        or not state.balance
    ):
        raise PromiseBrokenError(summary)
    return summary


def wait_until(true: Callable[[], object], description: str, seconds: float = 60.0) -> None:
    """Wait for a condition; raise PromiseBrokenError after the timeout."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise PromiseBrokenError(f"waited {seconds:.0f} s without success until {description}")
        time.sleep(0.01)
