"""Cost of the requester's steps: planning, ledger, publishing, collecting, judgments."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from benchmarks.study_processes import serving
from mturk.answers import to_xml
from mturk.kinds import Behaviour, ExpectedTuple
from mturk.study import valid_answers as judgments
from mturk.study.client import connect, resolve
from mturk.study.collect import collect
from mturk.study.ledger import Assignment, Ledger
from mturk.study.plan import HitPlan
from mturk.study.privacy import worker_namer
from mturk.study.publish import adopt_hits, create_hits
from mturk.study.simulated_workers import simulate_answer, simulate_workers, simulated_worker_ids
from robustness.scale.sample import CHEAP, plans
from robustness.scale.stopwatch import Stopwatch

__all__ = ["SUBMISSIONS_PER_HIT", "plan_study", "run_study", "write_judgments"]

SUBMISSIONS_PER_HIT = 5
"""Submissions per HIT."""
WORKERS = 20
PAGES = ("assignment", "question", "submit", "continue")
"""Pages requested per HIT by a worker who works continuously."""


def plan_study(hits: int, directory: str) -> dict[str, float]:
    """Plan HITs and write them to a ledger."""
    path, watch = Path(directory) / "ledger.db", Stopwatch()
    with watch.step("plan"):
        hit_plans = plans(hits)
    book = Ledger.open(path, create=True)
    with watch.step("ledger"):
        book.start_study("http://127.0.0.1:8765", CHEAP, hit_plans, time.time())
    book.close()
    question = sum(len(hit_plan.question.encode()) for hit_plan in hit_plans) / hits
    return watch.figures | {"ledger B": path.stat().st_size, "question B": question}


def write_judgments(assignments: int, directory: str) -> dict[str, float]:
    """Convert a ledger's answers, inserted directly, to judgments and write them to a file."""
    folder, hit_plans = Path(directory), plans(assignments // SUBMISSIONS_PER_HIT)
    book = Ledger.open(folder / "ledger.db", create=True)
    book.start_study("http://127.0.0.1:8765", CHEAP, hit_plans, time.time())
    for hit in hit_plans:
        book.mark_created(hit.number, f"3HIT{hit.number}", SUBMISSIONS_PER_HIT, time.time())
    before, watch = (folder / "ledger.db").stat().st_size, Stopwatch()
    with watch.step("keep"):
        book.store_assignments(
            [_answered(hit, n) for hit in hit_plans for n in range(SUBMISSIONS_PER_HIT)]
        )
    after = (folder / "ledger.db").stat().st_size
    with watch.step("judge"):
        judgments.write_answers(judgments.read_valid_answers(book), folder / "judgments.csv")
    book.close()
    return watch.figures | {"assignment B": after - before}


def _answered(hit: HitPlan, number: int) -> Assignment:
    expected_tuples = [
        ExpectedTuple(part.tuple_id, part.group, part.item_ids) for part in hit.parts
    ]
    fields = simulate_answer(
        expected_tuples, _truth([hit]), Behaviour(), f"ASIMULATED{number}", 60.0
    )
    now = time.time()
    return Assignment(
        f"3DONE{hit.number}X{number}", f"3HIT{hit.number}", f"w-{number:016}", "Submitted", now - 60,
        now, to_xml(fields), now, now + 604_800,
    )  # fmt: skip


def _truth(hit_plans: Sequence[HitPlan]) -> dict[tuple[str, str], float]:
    draw = random.Random(0)
    return {(part.group, item): draw.uniform(-1, 1) for hit in hit_plans for part in hit.parts
            for item in part.item_ids}  # fmt: skip


def _cpu(process: psutil.Process) -> float:
    """Return the CPU seconds of a process so far."""
    times = process.cpu_times()
    return times.user + times.system


def _size(file: Path) -> int:
    """Return the size of a service's database in bytes after a checkpoint."""
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size


def run_study(submissions: int, directory: str) -> dict[str, float]:
    """Run a study over HTTP from publishing to the judgments file; return the cost of each step."""
    folder, hit_plans = Path(directory), plans(submissions // SUBMISSIONS_PER_HIT)
    figures: dict[str, float] = {}
    file = folder / "hits.db"
    with (
        serving(["--port", "0", "--db", str(file)], folder / "serve.log") as (url, pid),
        Ledger.open(folder / "ledger.db", create=True) as book,
    ):
        client, service = connect(resolve(url)), psutil.Process(pid)
        book.start_study(url, CHEAP, hit_plans, time.time())

        @contextmanager
        def step(name: str) -> Iterator[None]:
            mine, theirs, size = time.process_time(), _cpu(service), _size(file)
            yield
            figures[f"{name} s"] = time.process_time() - mine
            figures[f"{name} service s"] = _cpu(service) - theirs
            figures[f"{name} B"] = _size(file) - size

        with step("publish"):
            adopt_hits(client, book)
            create_hits(client, book)
        with step("work"):
            done = simulate_workers(
                url, simulated_worker_ids(WORKERS), _truth(hit_plans), Behaviour()
            )
        if done.counts["submitted"] != submissions or done.refusals:
            raise RuntimeError(
                f"{done.counts} and {done.refusals} instead of {submissions} submitted"
            )
        with step("collect"):
            collect(client, book, worker_namer(book))
        with step("nothing new"):
            collect(client, book, worker_namer(book))
        judgments.write_answers(judgments.read_valid_answers(book), folder / "judgments.csv")
    n_requests = sum(len(done.seconds.get(kind, ())) for kind in PAGES)
    return figures | {"requests": n_requests}
