"""Cost of requests of the service as a function of the number of stored assignments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import func, insert, select, update

from mturk.answers import to_xml
from mturk.service.clock import SystemClock
from mturk.service.rules.work import WorkerService
from mturk.service.store.database import Database
from mturk.service.store.schema import account, assignment, hit, hit_type, worker
from mturk.study.simulated_workers import simulated_worker_ids
from robustness.scale.sample import plans

__all__ = ["few_workers", "many_workers"]

N_MANY_WORKERS, N_FEW_WORKERS = 1_000, 20
"""Workers."""
ASSIGNMENTS_PER_HIT = 5
ROUNDS = 25
DAYS = 86_400.0
GROUP = "3GROUP"
ANSWER = to_xml([("comment", "simulated"), ("best-t1", "u1"), ("worst-t1", "u2"), ("seconds-t1", "9.5"),
                 ("shown-t1", "u1;u2;u3"), ("best-t2", "u1"), ("worst-t2", "u2"), ("seconds-t2", "9.5"),
                 ("shown-t2", "u1;u2;u3")])  # fmt: skip


def fill(database: Database, assignments: int, workers: int) -> None:
    """Fill an empty database with a half-finished study: half of the HITs are complete, the rest untouched.

    Rows are inserted directly in the state that the service would create; through the pages this would take
    hours. The questions are those of giccs-sample, at their original length.
    """
    now = time.time()
    full = assignments // ASSIGNMENTS_PER_HIT
    questions = [hit_plan.question for hit_plan in plans(10)]
    with database.write() as connection:
        connection.execute(update(account).values(available=10**12, on_hold=10**12))
        connection.execute(insert(hit_type).values(**_hit_type_row()))
        connection.execute(insert(worker), [{"worker_id": name, "country": "DE", "registered": now}
                                            for name in simulated_worker_ids(workers)])  # fmt: skip
        for rows in _batches(2 * full, lambda n: _hit_row(n, n < full, questions[n % 10], now)):
            connection.execute(insert(hit), rows)
        names = simulated_worker_ids(workers)
        for rows in _batches(
            ASSIGNMENTS_PER_HIT * full, lambda n: _assignment_row(n, names[n % workers], now)
        ):
            connection.execute(insert(assignment), rows)


def _batches(count: int, row: Callable[[int], dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, count, 1_000):
        yield [row(n) for n in range(start, min(start + 1_000, count))]


def _hit_type_row() -> dict[str, Any]:
    return {
        "hit_type_id": "3TYPE", "group_id": GROUP, "digest": "0", "title": "a study", "description": "",
        "keywords": "", "reward": 30, "duration": 1_800, "auto_approval_delay": 604_800,
        "qualifications": [],
    }  # fmt: skip


def _hit_row(number: int, full: bool, question: str, now: float) -> dict[str, Any]:
    return {
        "hit_id": f"3HIT{number:09}", "hit_type_id": "3TYPE", "created": now,
        "expiration": now + 7 * DAYS, "question": question, "annotation": f"made:{number}",
        "max_assignments": ASSIGNMENTS_PER_HIT, "status": "Reviewable" if full else "Assignable",
        "review_status": "NotReviewed", "pending": 0, "completed": 0,
        "submitted": ASSIGNMENTS_PER_HIT if full else 0,
        "unit": 36, "committed": ASSIGNMENTS_PER_HIT * 36 if full else 0,
        "held": ASSIGNMENTS_PER_HIT * 36, "due": now + 7 * DAYS,
    }  # fmt: skip


def _assignment_row(number: int, name: str, now: float) -> dict[str, Any]:
    return {
        "assignment_id": f"3DONE{number:09}", "worker_id": name,
        "hit_id": f"3HIT{number // ASSIGNMENTS_PER_HIT:09}",
        "status": "Submitted", "reward": 30, "unit": 36, "auto_approval_delay": 604_800,
        "accepted": now - 60, "deadline": now + 1_740, "submitted": now, "auto_approval": now + 7 * DAYS,
        "answer": ANSWER, "due": now + 7 * DAYS,
    }  # fmt: skip


def _settle_database(database: Database) -> None:
    """Apply deferred work of the database: checkpoint the SQLite log, or analyse the PostgreSQL tables."""
    order = "PRAGMA wal_checkpoint(TRUNCATE)" if database.is_file else "ANALYZE"
    with database.engine.connect() as connection:
        connection.exec_driver_sql(order)
        connection.commit()


def _clock(database: Database) -> Callable[[], float]:
    """Return a function that returns the CPU seconds spent so far."""
    if database.is_file:
        return time.process_time
    with database.read() as connection:
        backend = connection.scalar(select(func.pg_backend_pid()))
    spent = Path(
        f"/proc/{backend}/schedstat"
    )  # nanoseconds first; /proc/PID/stat counts in hundredths
    return lambda: time.process_time() + int(spent.read_text().split()[0]) / 1e9


def many_workers(assignments: int, url: str) -> dict[str, float]:
    """Measure requests if each worker has done few assignments."""
    return _measure_requests(assignments, url, N_MANY_WORKERS)


def few_workers(assignments: int, url: str) -> dict[str, float]:
    """Measure requests if each worker has done many assignments."""
    return _measure_requests(assignments, url, N_FEW_WORKERS)


def _measure_requests(assignments: int, url: str, workers: int) -> dict[str, float]:
    """Fill a database and let a worker continue; return the median CPU milliseconds per step.

    On PostgreSQL, the CPU time of the server process of the connection is included.
    """
    database = Database(url)
    fill(database, assignments, workers)
    _settle_database(database)
    work, me = WorkerService(database, SystemClock()), simulated_worker_ids(1)[0]
    clock = _clock(database)
    durations: dict[str, list[float]] = {}

    def timed(step: str, call: Callable[[], Any]) -> Any:
        start = clock()
        result = call()
        durations.setdefault(step, []).append((clock() - start) * 1000)
        return result

    for _ in range(ROUNDS):
        timed("list", partial(work.offers, me))
        mine = timed("accept", partial(work.accept, me, None, GROUP)).assignment_id
        timed("show", partial(work.assignment, mine))
        timed("submit", partial(work.submit, mine, me, [("best-t1", "u1")]))
        timed("count", partial(work.progress, me))
    database.close()
    return {step: float(np.median(times)) for step, times in durations.items()}
