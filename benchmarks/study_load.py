"""A study under load: 300 HITs published through boto3, then 10,200 submissions by 50 concurrent workers.

    python -m benchmarks.study_load [--pace SECONDS] [--small]

The service runs as `giccs annotate serve` in a separate process on a new SQLite file; publisher and workers
are in this process. Without --pace the workers never pause, for maximum load; with --pace, they spend that
number of seconds per HIT on average. Afterwards all assignments are read through the API: each acknowledged
submission must be stored once. Without --pace the same requests are then sent to `benchmarks.bare_service`,
whose CPU time per submission is a bound.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import psutil
from tabulate import tabulate

from benchmarks.bare_service import run_workers
from bws.files import read_tuples
from giccs.benchmark.assemble import read_dialogues
from mturk.answers import expected_tuples_in_page
from mturk.kinds import Behaviour, Truth
from mturk.kinds.tuples.plan import plan
from mturk.study.client import connect, resolve
from mturk.study.ledger import Ledger
from mturk.study.publish import adopt_hits, create_hits
from mturk.study.settings import Settings
from mturk.study.simulated_browser import WebClient
from mturk.study.simulated_workers import (
    SimulationLog,
    read_truth,
    simulate_answer,
    simulate_workers,
    simulated_worker_ids,
)

WORKERS = 50
ASSIGNMENTS = 34
"""300 HITs x 34 = 10,200 submissions, 204 per worker."""
CODE = "from mturk.cli import main; main()"
SERVICE = ["-c", CODE, "serve", "--json", "--quiet", "--port", "0", "--db"]
WORKER = "APAGES"
STEPS: tuple[tuple[str, dict[str, str]], ...] = (
    ("/work/enter", {"worker": WORKER}),
    ("/work/start", {"country": "DE", "consent": "yes"}),
    ("/work/accept", {}),
)
"""Forms, and what the worker of `save_pages` fills in."""
LIMITS = {"publish": 5.0, "p95": 0.250}
"""Limits in seconds."""


@contextmanager
def service(
    folder: Path, arguments: Sequence[str]
) -> Iterator[tuple[str, psutil.Process, dict[str, float]]]:
    """Run a service; yield its URL, its process, and a dict that receives its peak memory at the end."""
    with open(folder / "serve.log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    cost: dict[str, float] = {}
    try:
        yield json.loads(process.stdout.readline())["api"], psutil.Process(process.pid), cost
    finally:
        process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cost["peak"] = usage.ru_maxrss / 1024


def publish(
    url: str, folder: Path, settings: Settings, data: Path, n_hits: int | None = None
) -> tuple[Any, Ledger, float]:
    """Publish the sample's HITs; return client, ledger, and the seconds from first to last call."""
    tuples, dialogues = read_tuples(data / "tuples.csv"), read_dialogues(data / "dialogues.jsonl")
    plans = plan(tuples, dialogues, settings)[:n_hits]
    client = connect(resolve(url))
    book = Ledger.open(folder / "ledger.db", create=True)
    start = time.perf_counter()
    book.start_study(url, settings, plans, time.time())
    adopt_hits(client, book)
    create_hits(client, book)
    return client, book, time.perf_counter() - start


def check(client: Any, book: Ledger, done: SimulationLog, n_expected: int) -> None:
    """Compare acknowledged with stored submissions; raise RuntimeError if they differ."""
    counts: Counter[tuple[str, str]] = Counter()
    pages = client.get_paginator("list_assignments_for_hit")
    for hit in book.hits():
        for page in pages.paginate(HITId=hit.hit_id, PaginationConfig={"PageSize": 100}):
            counts.update(
                (hit.annotation, assignment["WorkerId"]) for assignment in page["Assignments"]
            )
    by_worker = Counter(worker for _, worker in counts)
    faults = []
    if set(counts.values()) != {1}:
        faults.append("a worker has two assignments of one HIT")
    if by_worker != done.by_worker or by_worker.total() != n_expected:
        faults.append(
            f"{by_worker.total()} answers are stored, {done.by_worker.total()} were "
            f"acknowledged, {n_expected} were expected"
        )
    if done.refusals:
        faults.append(f"refused: {dict(done.refusals)}")
    if faults:
        raise RuntimeError("; ".join(faults))


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU seconds that a process has used so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def save_pages(url: str, folder: Path, truth: Truth) -> list[tuple[str, str]]:
    """Save the pages of a task for the bare service; return the fields of an answer."""
    browser = WebClient(url, on_response=lambda path, seconds: None, stop_event=threading.Event())
    page = browser.get("/work/")
    for action, chosen in STEPS:
        form = page.forms(action) or browser.get("/work/").forms(action)
        page = browser.post(action, form[0].fields | chosen)
    question = browser.get(page.frame or "")
    (folder / "page.html").write_text(page.text, "utf-8")
    (folder / "question.html").write_text(question.text, "utf-8")
    browser.post("/work/return", page.forms("/work/return")[0].fields)
    browser.close()
    tuples = expected_tuples_in_page(question.text)
    return simulate_answer(tuples, truth, Behaviour(), WORKER, 0.0)


def bare_cpu(folder: Path, fields: list[tuple[str, str]], n_each: int) -> float:
    """Return the CPU seconds per submission of the bare service."""
    arguments = ["-m", "benchmarks.bare_service", str(folder)]
    with service(folder, arguments) as (url, server, _):
        began = cpu_seconds(server)
        run_workers(url, WORKERS, n_each, fields, threading.Event())
        return (cpu_seconds(server) - began) / (WORKERS * n_each)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--small", action="store_true", help="two assignments per HIT")
    options = parser.parse_args(arguments)
    settings = Settings(assignments=2 if options.small else ASSIGNMENTS, approval_rate_above=-1)
    with (
        tempfile.TemporaryDirectory() as name,
        resources.as_file(resources.files("giccs.data")) as data,
    ):
        folder = Path(name)
        with service(folder, [*SERVICE, str(folder / "hits.db")]) as (url, server, cost):
            client, book, published = publish(url, folder, settings, data)
            hits = len(book.hits())
            print(
                f"{hits} HITs published in {published:.2f} s ({published / hits * 1000:.1f} ms each)"
            )
            truth = read_truth(data / "dialogues.jsonl")
            fields = [] if options.pace else save_pages(url, folder, truth)
            processes = (server, psutil.Process())
            start, began = time.perf_counter(), [cpu_seconds(one) for one in processes]
            done = simulate_workers(
                url, simulated_worker_ids(WORKERS), truth, Behaviour(pace=options.pace),
            )  # fmt: skip
            wall = time.perf_counter() - start
            cpu = [cpu_seconds(one) - before for one, before in zip(processes, began, strict=True)]
            check(client, book, done, hits * settings.assignments)
            book.close()
        if not options.pace:
            bound = bare_cpu(folder, fields, max(1, done.counts["submitted"] // WORKERS))
    report(done, wall, cpu[0], cpu[1], cost["peak"])
    if not options.pace:
        ratio = cpu[0] / done.counts["submitted"] / bound
        print(
            f"the same requests on the bare server and database: {bound * 1000:.2f} ms; ratio {ratio:.2f}"
        )
    p95 = done.quantiles()["all"]["p95"]
    for limit_name, value in (("publish", published), ("p95", p95)):
        verdict = "within" if value <= LIMITS[limit_name] else "ABOVE"
        print(f"{limit_name}: {value:.3f} s, {verdict} {LIMITS[limit_name]} s")


def report(
    done: SimulationLog, wall: float, service_cpu: float, client_cpu: float, peak: float
) -> None:
    """Print the measurements."""
    submitted = done.counts["submitted"]
    print(
        f"{WORKERS} workers, {submitted} submissions in {wall:.1f} s: {submitted / wall:.1f} per second; "
        f"none lost, none duplicated, {done.counts['repeated']} requests repeated"
    )
    print(
        f"CPU per submission: service {service_cpu / submitted * 1000:.2f} ms, of one core at most "
        f"{submitted / service_cpu:.0f} per second; workers {client_cpu / submitted * 1000:.2f} ms; "
        f"load average {os.getloadavg()[0]:.1f}; service's peak {peak:.0f} MiB"
    )
    rows = [
        [kind, row["n"], *(row[q] * 1000 for q in ("p50", "p95", "p99"))]
        for kind, row in done.quantiles().items()
    ]
    print(tabulate(rows, headers=["page", "n", "p50 ms", "p95 ms", "p99 ms"], floatfmt=".1f"))


if __name__ == "__main__":
    main()
