"""A study on several processes: `giccs annotate serve` behind nginx on one PostgreSQL, with many workers.

    python -m benchmarks.study_processes [--processes 1 2 4] [--workers 200] [--hits 300] [--assignments 167]
        [-o docs/operations/measurements.md]

300 HITs x 167 assignments are 50,100 submissions. Workers are simulated browsers in --clients processes;
nginx distributes the requests over the server processes. Afterwards all assignments are read through the API:
each acknowledged submission must be stored once, no HIT may exceed its maximum assignments, and the balance
must be exact. Without --db, a temporary PostgreSQL server is started. With -o the table replaces the block
`processes` of a document.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks.machine import provenance, replace_block
from benchmarks.postgresql import NoServerError, cluster
from bws.files import read_tuples
from giccs.benchmark.assemble import read_dialogues
from mturk.kinds import Behaviour
from mturk.kinds.tuples.plan import plan
from mturk.study.client import connect, resolve
from mturk.study.ledger import Ledger
from mturk.study.publish import adopt_hits, create_hits
from mturk.study.settings import Settings
from mturk.study.simulated_workers import read_truth, simulate_workers, simulated_worker_ids

BALANCE = Decimal(1_000_000)
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@dataclass(frozen=True)
class ClientResult:
    """Result of the workers of one client process."""

    by_worker: Counter[str]
    """Acknowledged submissions per worker."""
    refused: int
    repeated: int
    seconds: list[float]
    """Seconds per request."""


@dataclass(frozen=True)
class StoredState:
    """Stored submissions, compared with the acknowledged ones."""

    submissions: int
    lost: int
    doubled: int
    over: int
    """Assignments beyond the maximum of a HIT."""
    balance: bool
    """Whether the balance is exact."""


def free_ports(count: int) -> list[int]:
    """Return currently free ports."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening_socket in sockets:
        listening_socket.close()
    return ports


@contextmanager
def servers(db: str, count: int, folder: Path) -> Iterator[str]:
    """Run `count` processes of the service behind nginx; yield their common address."""
    outside, *ports = free_ports(2 + 2 * count)
    frames, ports = ports[0], ports[1:]
    site = f"http://127.0.0.1:{outside}"
    pairs = list(zip(ports[::2], ports[1::2], strict=True))
    with ExitStack() as stack:
        for number, (port, frame_port) in enumerate(pairs):
            arguments = ["--db", db, "--port", str(port), "--frame-port", str(frame_port),
                         "--site-url", site, "--frame-url", f"http://127.0.0.1:{frames}",
                         "--balance", str(BALANCE)]  # fmt: skip
            stack.enter_context(serving(arguments, folder / f"serve{number}.log"))
        (folder / "nginx.conf").write_text(configuration(folder, outside, frames, pairs))
        stack.enter_context(proxy(folder, outside))
        yield site


@contextmanager
def serving(arguments: Sequence[str], log: Path) -> Iterator[tuple[str, int]]:
    """Run `giccs annotate serve`; yield its address and process id when it is ready."""
    code = "from mturk.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--json", "--quiet", *arguments]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        if not (line := process.stdout.readline()):
            raise RuntimeError(log.read_text())
        yield json.loads(line)["api"], process.pid
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def proxy(folder: Path, port: int) -> Iterator[None]:
    """Run nginx on the configuration in the folder."""
    if NGINX is None:
        raise NoServerError("nginx is not installed (make system)")
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise RuntimeError((folder / "error.log").read_text())
        yield
    finally:
        process.terminate()
        process.wait(60)


def configuration(
    folder: Path, site: int, frames: int, pairs: Sequence[tuple[int, int]]
) -> str:  # fmt: skip
    """Return nginx's configuration: round robin over the processes, with keep-alive connections."""
    parts = []
    for name, port, ports in (
        ("site", site, [pair[0] for pair in pairs]), ("frames", frames, [pair[1] for pair in pairs]),
    ):  # fmt: skip
        upstream = " ".join(f"server 127.0.0.1:{upstream_port};" for upstream_port in ports)
        parts.append(
            f"upstream {name} {{ {upstream} keepalive 64; keepalive_timeout 4s; }}\n"
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{name};\n"
            'proxy_http_version 1.1; proxy_set_header Connection "";\n'
            "proxy_set_header Host $http_host; } }\n"
        )
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"pid {folder}/nginx.pid; error_log {folder}/error.log; daemon off;\n"
        "events { worker_connections 4096; }\n"
        "http { access_log off; keepalive_requests 1000000;\n"
        # buffer in memory: nginx's user may not be allowed to write to this folder
        "client_body_buffer_size 1m; proxy_max_temp_file_size 0;\n"
        f"{temporary}\n{''.join(parts)} }}\n"
    )


def publish(url: str, folder: Path, data: Path, hits: int, assignments: int) -> tuple[Any, Ledger]:
    """Publish HITs of the sample."""
    settings = Settings(assignments=assignments, approval_rate_above=-1)
    tuples, dialogues = read_tuples(data / "tuples.csv"), read_dialogues(data / "dialogues.jsonl")
    client = connect(resolve(url))
    book = Ledger.open(folder / "ledger.db", create=True)
    book.start_study(url, settings, plan(tuples, dialogues, settings)[:hits], time.time())
    adopt_hits(client, book)
    create_hits(client, book)
    return client, book


def work(url: str, ids: Sequence[str], dialogues: str, pace: float) -> ClientResult:
    """Let workers do all available HITs; target of a separate process."""
    done = simulate_workers(url, ids, read_truth(dialogues), Behaviour(pace=pace))
    names = dict(zip(simulated_worker_ids(len(ids)), ids, strict=True))
    by_worker = Counter({names[name]: count for name, count in done.by_worker.items()})
    seconds = [duration for durations in done.seconds.values() for duration in durations]
    return ClientResult(by_worker, done.refusals.total(), done.counts["repeated"], seconds)


def work_in(
    clients: int, url: str, workers: int, dialogues: Path, pace: float
) -> list[ClientResult]:  # fmt: skip
    """Distribute the workers over client processes."""
    ids = simulated_worker_ids(workers)
    with ProcessPoolExecutor(clients, mp_context=get_context("spawn")) as pool:
        parts = [
            pool.submit(work, url, ids[number::clients], str(dialogues), pace)
            for number in range(clients)
        ]
        return [part.result() for part in parts]


def read_stored_state(
    client: Any, book: Ledger, acknowledged: Counter[str], assignments: int
) -> StoredState:
    """Read every assignment back through the API."""
    counts: Counter[tuple[str, str]] = Counter()
    pages = client.get_paginator("list_assignments_for_hit")
    for hit in book.hits():
        for page in pages.paginate(HITId=hit.hit_id, PaginationConfig={"PageSize": 100}):
            counts.update(
                (hit.annotation, assignment["WorkerId"]) for assignment in page["Assignments"]
            )
    by_hit = Counter(annotation for annotation, _ in counts.elements())
    by_worker = Counter(worker for _, worker in counts)
    return StoredState(
        counts.total(), (acknowledged - by_worker).total(), counts.total() - len(counts),
        sum(max(0, count - assignments) for count in by_hit.values()),
        _is_balance_exact(client, book, assignments),
    )  # fmt: skip


def _is_balance_exact(client: Any, book: Ledger, assignments: int) -> bool:
    """Return whether the balance equals the initial one minus reward and fee of all assignments."""
    first = client.get_hit(HITId=book.hits()[0].hit_id)["HIT"]
    share = Decimal("0.4") if assignments >= 10 else Decimal("0.2")
    on_hold = Decimal(first["Reward"]) * (1 + share) * assignments * len(book.hits())
    balance = client.get_account_balance()
    return (Decimal(balance["AvailableBalance"]), Decimal(balance["OnHoldBalance"])) == (
        BALANCE - on_hold, on_hold,
    )  # fmt: skip


def measure(db: str, processes: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run a study; return its table row."""
    with (
        tempfile.TemporaryDirectory() as name,
        resources.as_file(resources.files("giccs.data")) as data,
        servers(db, processes, Path(name)) as url,
    ):
        client, book = publish(url, Path(name), data, options.hits, options.assignments)
        start = time.perf_counter()
        parts = work_in(
            options.clients, url, options.workers, data / "dialogues.jsonl", options.pace
        )
        wall = time.perf_counter() - start
        acknowledged: Counter[str] = sum((part.by_worker for part in parts), Counter())
        result = read_stored_state(client, book, acknowledged, options.assignments)
        book.close()
        logged = sum(log.read_text().count(" ERROR ") for log in Path(name).glob("serve*.log"))
    p50, p95 = (
        np.percentile([duration for part in parts for duration in part.seconds], (50, 95)) * 1000
    )
    return {
        "processes": processes,
        "workers": options.workers,
        "submissions": result.submissions,
        "wanted": options.hits * options.assignments,
        "lost": result.lost,
        "doubled": result.doubled,
        "over": result.over,
        "errors": logged + sum(part.refused for part in parts),
        "repeated": sum(part.repeated for part in parts),
        "balance": "exact" if result.balance else "WRONG",
        "p50 ms": round(float(p50), 1),
        "p95 ms": round(float(p95), 1),
        "per second": round(result.submissions / wall, 1),
    }


def has_fault(row: dict[str, Any]) -> bool:
    """Return whether a promise was broken."""
    wrong = any(row[column] for column in ("lost", "doubled", "over", "errors"))
    return wrong or row["balance"] != "exact" or row["submissions"] != row["wanted"]


def block(rows: Sequence[dict[str, Any]]) -> str:
    """Format the table for the document."""
    above = provenance("python -m benchmarks.study_processes")
    return f"{above}\n\n{tabulate(rows, headers='keys', tablefmt='github')}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--db", help="URL of an empty database; requires a single number of processes"
    )
    parser.add_argument("--processes", type=int, nargs="+", default=[4])
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--hits", type=int, default=300)
    parser.add_argument("--assignments", type=int, default=167)
    parser.add_argument("--clients", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--pace", type=float, default=0.0, help="mean seconds per HIT")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "-o", "--output", type=Path, help="document whose block `processes` is replaced"
    )
    options = parser.parse_args(arguments)
    if options.db and len(options.processes) > 1:
        parser.error("--db requires a single number of --processes")
    try:
        rows = list(_rows(options))
    except NoServerError as error:
        print(f"not measured: {error}")
        return
    print(json.dumps(rows) if options.json else tabulate(rows, headers="keys"))
    if options.output:
        replace_block(options.output, "processes", block(rows))
    if any(map(has_fault, rows)):
        sys.exit(1)


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        server = None if options.db else stack.enter_context(cluster())
        for count in options.processes:
            db = server.create(f"processes{count}") if server else options.db
            yield measure(db, count, options)


if __name__ == "__main__":
    main()
