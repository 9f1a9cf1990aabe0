"""The first task of a new worker, and a list of assignments: in a small and in a large database.

    python -m benchmarks.study_size

The small one has one HIT. The large one is the small one with its HIT and ten assignments of it repeated
10,000 times by SQL; every second HIT has no places left. Listed are the assignments of the last HIT. Printed
are medians over new workers, with one request at a time.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import threading
import time
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks.study_load import SERVICE, STEPS, publish, service
from mturk.answers import expected_tuples_in_page
from mturk.kinds import Behaviour, Truth
from mturk.study.client import connect, resolve
from mturk.study.settings import Settings
from mturk.study.simulated_browser import WebClient
from mturk.study.simulated_workers import read_truth, simulate_answer

WORKERS, HITS, PER_HIT, LISTED = 100, 10_000, 10, 20
COUNT = "WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < {}) "
CHANGED = {
    "hit": {"number": "number + n * 1000", "hit_id": "hit_id || n"},
    "assignment": {
        "number": "number + n * 100000",
        "assignment_id": "assignment_id || n",
        "hit_id": "hit_id || n",
    },
}
"""Table -> column -> SQL of its value in the nth copy of a row."""


def first_task(url: str, worker: str, truth: Truth) -> tuple[float, float]:
    """Do one task as a new worker; return the seconds of accepting it and of submitting it."""
    browser = WebClient(url, on_response=lambda path, seconds: None, stop_event=threading.Event())
    page = browser.get("/work/")
    for action, chosen in STEPS:
        page = page if page.form(action) else browser.get("/work/")
        form = page.forms(action)[0]
        began = time.perf_counter()
        page = browser.post(action, form.fields | chosen | {"worker": worker})
        accepted = time.perf_counter() - began
    tuples = expected_tuples_in_page(browser.get(page.frame or "").text)
    query = parse_qs(urlsplit(page.frame or "").query)
    fields = [("assignmentId", query["assignmentId"][0])]
    fields += simulate_answer(tuples, truth, Behaviour(), worker, 0.0)
    began = time.perf_counter()
    received = browser.post(f"{query['turkSubmitTo'][0]}/mturk/externalSubmit", fields)
    submitted = time.perf_counter() - began
    browser.close()
    if received.status != 200:
        raise RuntimeError(f"the answer of {worker} was refused with status {received.status}")
    return accepted, submitted


def measure(url: str, label: str, truth: Truth, client: Any, hit_id: str) -> None:
    """Print the medians over new workers, and that of listing assignments of a HIT."""
    rows = [first_task(url, f"A{label}{n}", truth) for n in range(WORKERS)]
    accepted, submitted = (statistics.median(times) * 1000 for times in zip(*rows, strict=True))
    listed = statistics.median(list_seconds(client, hit_id) for _ in range(LISTED)) * 1000
    print(f"{label}: accept {accepted:.1f} ms, submit {submitted:.1f} ms, list {listed:.1f} ms")


def list_seconds(client: Any, hit_id: str) -> float:
    """Return the seconds of a call that lists ten assignments of a HIT."""
    began = time.perf_counter()
    client.list_assignments_for_hit(HITId=hit_id)
    return time.perf_counter() - began


def repeat(database: Path) -> None:
    """Repeat the first HIT, with and without places left, and its assignments."""
    with closing(sqlite3.connect(database)) as connection, connection:
        first = "(SELECT hit_id FROM hit ORDER BY number LIMIT 1)"
        for table, changed in CHANGED.items():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            values = ", ".join(changed.get(name, name) for name in columns)
            limit = "" if table == "hit" else f"ORDER BY number LIMIT {PER_HIT}"
            connection.execute(
                f"{COUNT.format(HITS)} INSERT INTO {table} SELECT {values} FROM count, "
                f"(SELECT * FROM {table} WHERE hit_id = {first} {limit})"
            )
        connection.execute(f"UPDATE hit SET submitted = {PER_HIT} WHERE number > 1000")
        connection.execute(
            "UPDATE hit SET status = 'Reviewable', submitted = max_assignments "
            "WHERE number > 1000 AND number % 2000 = 1"
        )
        for table in CHANGED:
            n = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            print(f"{table}: {n} rows")


def main() -> None:
    settings = Settings(assignments=3 * WORKERS, approval_rate_above=-1)
    with (
        tempfile.TemporaryDirectory() as name,
        resources.as_file(resources.files("giccs.data")) as data,
    ):
        folder, truth = Path(name), read_truth(data / "dialogues.jsonl")
        database = folder / "hits.db"
        with service(folder, [*SERVICE, str(database)]) as (url, _, _):
            client, ledger, _ = publish(url, folder, settings, data, n_hits=1)
            (hit,) = ledger.hits()
            ledger.close()
            measure(url, "ONE", truth, client, str(hit.hit_id))
        repeat(database)
        with service(folder, [*SERVICE, str(database)]) as (url, _, _):
            measure(url, "MANY", truth, connect(resolve(url)), f"{hit.hit_id}{HITS}")


if __name__ == "__main__":
    main()
