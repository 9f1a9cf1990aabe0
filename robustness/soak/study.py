"""The requester of the soak test: publishes, collects, reviews, pays and deletes batches of HITs.

A backend with its service, requester and workers is a separate process group, so that Ctrl-C only ends the
sampling, and the study is completed and counted.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks.study_processes import BALANCE, free_ports, servers, serving
from bws.files import read_tuples
from giccs.benchmark.assemble import read_dialogues
from mturk.kinds.tuples.plan import plan
from mturk.money import bonus_fee, fee
from mturk.study.actions import execute_actions, make_action
from mturk.study.bonus import pay_bonus
from mturk.study.client import connect, resolve
from mturk.study.collect import HitCounts, collect, hit_counts
from mturk.study.hit_updates import close_hit, select_hits
from mturk.study.ledger import Assignment, Ledger
from mturk.study.publish import create_hits
from mturk.study.review import execute_review
from mturk.study.settings import Settings
from mturk.study.valid_answers import read_valid_answers
from robustness.soak.people import CrowdSettings, read_entries, run_crowd

BONUS = "0.05"
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class SoakPlan:
    """Settings of the repeated batches."""

    hits: int = 30
    """HITs per batch; batches differ in their pairs of tuples."""
    assignments: int = 10
    every: float = 10.0
    """Seconds between rounds of the requester."""
    duration: int = 90
    """Assignment duration in seconds; abandoned HITs become available again afterwards."""
    rejected: float = 0.02
    bonused: float = 0.02
    """Shares of the submissions."""
    who: CrowdSettings = field(default_factory=CrowdSettings)


@dataclass(frozen=True, slots=True)
class FinalState:
    """Final state of ledgers and service, compared with the acknowledged submissions."""

    acknowledged: int
    submissions: int
    lost: int
    """Acknowledged but missing."""
    unacknowledged: int
    """Stored although the response was lost."""
    doubled: int
    """Additional assignments of a worker in one HIT."""
    over: int
    """Assignments beyond the maximum of a HIT."""
    judgments: int
    judgments_wanted: int
    batches: int
    hits: int
    left: int
    """HITs that could not be deleted."""
    accounts: int
    approved: int
    rejected: int
    bonuses: int
    available: str
    available_wanted: str
    held: str
    """Simulated balance in US dollars."""


@contextmanager
def service(db: str, processes: int, folder: Path) -> Iterator[str]:
    """Run the service, behind nginx if it has several processes; yield its address."""
    if processes > 1:
        with servers(db, processes, folder) as site:
            yield site
    else:
        port, frames = free_ports(2)
        arguments = ["--db", db, "--port", str(port), "--frame-port", str(frames)]
        with serving([*arguments, "--balance", str(BALANCE)], folder / "serve0.log"):
            yield f"http://127.0.0.1:{port}"


def journal_path(folder: Path) -> Path:
    """Return the path of the journal of a backend's workers."""
    return folder / "people.jsonl"


def backend(
    db: str, processes: int, folder: Path, work: SoakPlan, stopped: Any, connection: Any
) -> None:
    """Run a study until `stopped` is set; target of a separate process.

    `told` is a connection: first the process ids of the service are sent, at the end what was found, or,
    at any time, the text of an error.
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with (
            service(db, processes, folder) as site,
            resources.as_file(resources.files("giccs.data")) as data,
        ):
            connection.send(_service_pids())
            state = _study(site, folder, data, work, stopped)
        connection.send(state)
    except Exception:
        connection.send(traceback.format_exc())


def _service_pids() -> list[int]:
    """Return the ids of the service's processes started by this process, in order."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [
        int(child)
        for child in children
        if "serve" in Path(f"/proc/{child}/cmdline").read_text().split("\0")
    ]


def _study(site: str, folder: Path, data: Path, work: SoakPlan, stopped: Any) -> FinalState:
    """Run workers and requester until `stopped` is set, then finish and compare."""
    requester = Requester(site, folder, data, work)
    people = SPAWN.Process(
        target=run_crowd,
        args=(site, str(data / "dialogues.jsonl"), work.who, str(journal_path(folder)), stopped),
    )
    requester.round()
    people.start()
    parent = os.getppid()
    try:
        while people.is_alive() and os.getppid() == parent and not stopped.wait(work.every):
            requester.round()
    finally:
        stopped.set()
        people.join()
    if people.exitcode:
        raise RuntimeError(f"the workers ended with exit code {people.exitcode}")
    requester.finish()
    return requester.final_state(read_entries(journal_path(folder), 0)[0])


class Requester:
    """Publishes batches of the sample's HITs and processes them."""

    def __init__(self, site: str, folder: Path, data: Path, work: SoakPlan) -> None:
        self.client, self.site, self.folder, self.work = connect(resolve(site)), site, folder, work
        self.tuples = read_tuples(data / "tuples.csv")
        self.dialogues = read_dialogues(data / "dialogues.jsonl")
        self.random = random.Random(0)
        self.open: list[Path] = []
        self.ledgers: list[Path] = []
        self.closing = False

    def round(self) -> None:
        """Process every open batch; publish another one before the work runs out."""
        available = sum(self._process_batch(ledger) for ledger in list(self.open))
        if not self.closing and available < self.work.hits * self.work.assignments / 2:
            self._publish()

    def finish(self) -> None:
        """Close, review and delete all batches, after abandoned HITs have expired."""
        self.closing = True
        give_up = time.monotonic() + self.work.duration + 60
        while self.open and time.monotonic() < give_up:
            self.round()
            time.sleep(min(1.0, self.work.every))

    def _publish(self) -> None:
        number = len(self.ledgers)
        settings = Settings(
            assignments=self.work.assignments, duration=self.work.duration, seed=number,
            approval_rate_above=-1, pseudonyms=False,
        )  # fmt: skip
        path = self.folder / f"batch{number}.db"
        with closing(Ledger.open(path, create=True)) as book, book.exclusive_lock():
            plans = plan(self.tuples, self.dialogues, settings)[: self.work.hits]
            book.start_study(self.site, settings, plans, time.time())
            create_hits(self.client, book)
        self.ledgers.append(path)
        self.open.append(path)

    def _process_batch(self, ledger: Path) -> int:
        """Collect, review, pay, delete completed batches; return the number of available assignments."""
        with closing(Ledger.open(ledger)) as book, book.exclusive_lock():
            if self.closing:
                for hit in select_hits(book, []):
                    close_hit(self.client, book, hit)
            listed = collect(self.client, book, str).hits.values()
            state = [hit_counts(hit) for hit in listed]
            self._review(
                book,
                [
                    assignment
                    for assignment in book.assignments()
                    if assignment.status == "Submitted"
                ],
            )
            if all(map(_is_over, state)):
                self._delete(book)
                self.open.remove(ledger)
        return sum(hit.available for hit in state if hit.is_offered)

    def _review(self, book: Ledger, submitted: Sequence[Assignment]) -> None:
        decisions, bonuses = [], []
        for assignment in submitted:
            if self.random.random() < self.work.rejected:
                decisions.append(
                    make_action("reject", assignment.assignment_id, "", "simulated rejection")
                )
            else:
                decisions.append(make_action("approve", assignment.assignment_id))
            if self.random.random() < self.work.bonused:
                bonuses.append(
                    make_action("bonus", assignment.assignment_id, BONUS, "simulated bonus")
                )
        done = [
            execute_actions(book, decisions, lambda one: execute_review(self.client, one)),
            execute_actions(book, bonuses, lambda one: pay_bonus(self.client, one)),
        ]
        if refused := [text for each in done for _, text in each.refused]:
            raise RuntimeError(f"the service refused {len(refused)} decisions: {refused[0]}")

    def _delete(self, book: Ledger) -> None:
        for hit in book.hits():
            self.client.delete_hit(HITId=hit.hit_id)

    def final_state(self, seen: Sequence[dict[str, Any]]) -> FinalState:
        """Compare acknowledged with stored submissions."""
        acknowledged, sums = Counter[str](), Counter[str]()
        submissions: Counter[tuple[str, str]] = Counter()
        spent = Decimal(0)
        for entry in seen:
            acknowledged[entry["worker"]] += entry["submitted"]
        for path in self.ledgers:
            with closing(Ledger.open(path)) as book:
                submissions.update(
                    (assignment.hit_id, assignment.worker) for assignment in book.assignments()
                )
                sums.update(_batch_counts(book))
                spent += _batch_cost(book)
        by_worker = Counter(worker for _, worker in submissions.elements())
        by_hit = Counter(hit for hit, _ in submissions.elements())
        money = self.client.get_account_balance()
        pages = self.client.get_paginator("list_hits").paginate()
        return FinalState(
            acknowledged=acknowledged.total(),
            submissions=submissions.total(),
            lost=(acknowledged - by_worker).total(),
            unacknowledged=(by_worker - acknowledged).total(),
            doubled=submissions.total() - len(submissions),
            over=sum(max(0, count - self.work.assignments) for count in by_hit.values()),
            left=sum(len(page["HITs"]) for page in pages),
            batches=len(self.ledgers),
            accounts=len(+acknowledged),
            available=f"{Decimal(money['AvailableBalance']):.2f}",
            available_wanted=f"{BALANCE - spent:.2f}",
            held=f"{Decimal(money['OnHoldBalance']):.2f}",
            **sums,
        )


def _is_over(hit: HitCounts) -> bool:
    """Return whether a HIT has no pending, unreviewed or available assignments."""
    return not (hit.pending or hit.submitted or (hit.available and hit.is_offered))


def _batch_counts(book: Ledger) -> dict[str, int]:
    """Return the counts of a batch."""
    tuples = Counter(part.number for part in book.parts())
    of_hit = {hit.hit_id: tuples[hit.number] for hit in book.hits()}
    accepted = [assignment for assignment in book.assignments() if assignment.status != "Rejected"]
    judgments = read_valid_answers(book).judgments
    statuses = Counter(assignment.status for assignment in book.assignments())
    return {
        "judgments": 0 if judgments is None else len(judgments),
        "judgments_wanted": sum(of_hit[assignment.hit_id] for assignment in accepted),
        "hits": len(book.hits()),
        "approved": statuses["Approved"],
        "rejected": statuses["Rejected"],
        "bonuses": len(_bonuses(book)),
    }


def _bonuses(book: Ledger) -> list[Decimal]:
    return [
        Decimal(bonus_action.amount)
        for bonus_action in book.actions("done")
        if bonus_action.kind == "bonus"
    ]


def _batch_cost(book: Ledger) -> Decimal:
    """Return the cost of a batch: rewards, bonuses and fees."""
    reward = book.study().settings.reward
    most = {hit.hit_id: hit.max_assignments for hit in book.hits()}
    approved = [
        most[assignment.hit_id]
        for assignment in book.assignments()
        if assignment.status == "Approved"
    ]
    rewards = sum(
        (reward + fee(reward, max_assignments) for max_assignments in approved), Decimal(0)
    )
    return rewards + sum((bonus + bonus_fee(bonus) for bonus in _bonuses(book)), Decimal(0))
