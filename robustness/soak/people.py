"""Who works in a study that never ends: simulated people who come, work, go, and come again."""

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

from bws.problems import InputError
from mturk.kinds import Behaviour, Truth
from mturk.study.simulated_browser import UnreachableError
from mturk.study.simulated_workers import SimulationLog, read_truth, simulate_workers

__all__ = ["CrowdSettings", "read_entries", "run_crowd"]


class _OverError(Exception):
    """The soak is over; raised after a submission, so that nothing is left lying."""


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """How many people work at a time, and how they are."""

    people: int = 25
    behaviour: Behaviour = field(
        default_factory=lambda: Behaviour(pace=5.0, returns=0.02, abandons=0.005)
    )
    mean_rest: float = 15.0
    """Mean seconds between two sittings, where there was nothing left to do."""
    leaving_share: float = 0.1
    """Share of people who do not come back after a sitting; a new account takes the place of each."""


class Journal:
    """A file with a line for each submission, and for what its person saw since the one before."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.lock = file, threading.Lock()

    def write(self, worker: str, done: SimulationLog) -> None:
        """Write down what is new in `done`, and forget it there; its lock must be held."""
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
    """Work until `stopped` is set; for a process of its own. What is seen goes into the journal."""
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
    """One place among the people: whoever leaves is followed by somebody new."""
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
    """Enter and work until nothing is left; tell whether a HIT was left lying."""
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
    except (UnreachableError, InputError) as error:  # this person gives up; the study goes on
        seen.refusals[str(error)] += 1
    finally:
        with seen.lock:
            abandoned += seen.counts["abandoned"]
            journal.write(worker, seen)
    return abandoned > 0


def read_entries(journal: Path, start: int) -> tuple[list[dict[str, Any]], int]:
    """Return the whole lines of a journal from a byte on, and the byte after them."""
    if not journal.exists():
        return [], start
    with journal.open("rb") as file:
        file.seek(start)
        complete = file.read().rpartition(b"\n")[0]
    lines = [json.loads(line) for line in complete.splitlines()]
    return lines, start + (len(complete) + 1 if complete else 0)
