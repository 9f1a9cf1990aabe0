"""Simulated workers of the soak test, who work in repeated sessions."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from bws.base.problems import InputError
from mturk.kinds import Behaviour, Truth
from mturk.study.simulated_browser import UnreachableError
from mturk.study.simulated_workers import SimulationLog, read_truth, simulate_workers


class _OverError(Exception):
    """The soak test is over; raised after a submission, so that no HIT is abandoned."""


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """Number and behaviour of concurrent workers."""

    people: int = 25
    behaviour: Behaviour = field(
        default_factory=lambda: Behaviour(pace=5.0, returns=0.02, abandons=0.005)
    )
    mean_rest: float = 15.0
    """Mean seconds between two sessions of a worker."""
    leaving_share: float = 0.1
    """Share of workers who do not return after a session; each is replaced by a new account."""


class Journal:
    """A JSON Lines file with an entry per submission and the requests since the previous one."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.lock = file, threading.Lock()

    def write(self, worker: str, done: SimulationLog) -> None:
        """Append the new counts of `done` and clear them; its lock must be held."""
        entry = {"at": time.time(), "worker": worker, "submitted": done.counts["submitted"]}
        entry |= {"repeated": done.counts["repeated"], "refused": dict(done.refusals)}
        entry["seconds"] = [
            duration for durations in done.seconds.values() for duration in durations
        ]
        for collection in (done.counts, done.refusals, done.seconds):
            collection.clear()
        with self.lock:
            self.file.write(json.dumps(entry) + "\n")
            self.file.flush()


def run_crowd(site: str, dialogues: str, who: CrowdSettings, journal: str, stopped: Any) -> None:
    """Work until `stopped` is set, and write the journal; target of a separate process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    truth, numbers = read_truth(dialogues), count(1)
    with open(journal, "a") as file, ThreadPoolExecutor(who.people) as pool:
        journal_file = Journal(file)
        tasks = [
            pool.submit(_work_in_turns, site, truth, who, journal_file, stopped, numbers)
            for _ in range(who.people)
        ]
        for task in tasks:
            task.result()


def _work_in_turns(
    site: str, truth: Truth, who: CrowdSettings, journal: Journal, stopped: Any, numbers: Iterator[int]
) -> None:  # fmt: skip
    """Run the sessions of one concurrent worker; a worker who leaves is replaced by a new account."""
    number = next(numbers)
    chance = random.Random(f"{who.behaviour.seed}/{number}")
    for sitting in count():
        behaviour = replace(who.behaviour, seed=number * 10_000 + sitting)
        left = _work_session(site, f"ASIMULATED{number}", truth, behaviour, journal, stopped)
        if left or chance.random() < who.leaving_share:
            number = next(numbers)
        if stopped.wait(chance.expovariate(1 / who.mean_rest)):
            return


def _work_session(
    site: str, worker: str, truth: Truth, behaviour: Behaviour, journal: Journal, stopped: Any
) -> bool:  # fmt: skip
    """Work until no HITs are left; return whether a HIT was abandoned."""
    abandoned, seen = 0, SimulationLog()

    def on_submission(done: SimulationLog) -> None:
        nonlocal seen, abandoned
        seen, abandoned = done, abandoned + done.counts["abandoned"]
        journal.write(worker, done)
        if stopped.is_set():
            raise _OverError

    try:
        seen = simulate_workers(site, [worker], truth, behaviour, on_submission=on_submission)
    except _OverError:
        return False
    except (UnreachableError, InputError) as error:  # the worker gives up; the study continues
        seen.refusals[str(error)] += 1
    finally:
        with seen.lock:
            abandoned += seen.counts["abandoned"]
            journal.write(worker, seen)
    return abandoned > 0


def read_entries(journal: Path, start: int) -> tuple[list[dict[str, Any]], int]:
    """Return the complete entries of a journal from a byte offset, and the next offset."""
    if not journal.exists():
        return [], start
    with journal.open("rb") as file:
        file.seek(start)
        complete = file.read().rpartition(b"\n")[0]
    lines = [json.loads(line) for line in complete.splitlines()]
    return lines, start + (len(complete) + 1 if complete else 0)
