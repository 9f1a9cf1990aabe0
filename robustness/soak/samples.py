"""What the service's processes take while a study goes on: looked at every few seconds, from outside."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import psutil

from robustness.soak.people import read_entries
from robustness.soak.study import journal_path

__all__ = ["BackendMonitor", "Sample", "samples_csv"]

MIB = 2**20
ERROR = re.compile(r"\b(error|critical)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sample:
    """One process at one time; what belongs to its backend is the same for all processes of it."""

    seconds: float
    """Since the beginning."""
    backend: str
    process: int
    """From 0."""
    rss: float
    """MiB of resident memory."""
    uss: float
    """MiB that no other process shares."""
    files: int
    threads: int
    cpu: float
    """Seconds so far."""
    database: float
    """MiB."""
    submissions: int
    """So far, acknowledged."""
    errors: int
    """So far: requests that were refused, and errors in the log."""
    repeated: int
    """So far: requests that were not answered, or told to wait, and sent again."""
    p50: float
    p95: float
    """Milliseconds of the pages since the sample before."""


@dataclass
class BackendMonitor:
    """A backend under observation."""

    name: str
    db: str
    folder: Path
    pids: Sequence[int] = ()
    samples: list[Sample] = field(default_factory=list)
    pages: list[tuple[float, float]] = field(default_factory=list)
    """When each page was there (seconds since the beginning), and how many seconds it took."""
    read: int = 0
    """Bytes of the journal."""
    submissions: int = 0
    refused: int = 0
    repeated: int = 0

    def take_samples(self, began: float) -> None:
        """Add a sample of each process; psutil.Error where one is no more. `began`: seconds since 1970."""
        seen, self.read = read_entries(journal_path(self.folder), self.read)
        new = [(entry["at"] - began, duration) for entry in seen for duration in entry["seconds"]]
        self.pages += new
        self.submissions += sum(entry["submitted"] for entry in seen)
        self.refused += sum(sum(entry["refused"].values()) for entry in seen)
        self.repeated += sum(entry["repeated"] for entry in seen)
        p50, p95 = percentiles([duration for _, duration in new])
        database, errors = database_mib(self.db), self.refused + _count_errors(self.folder)
        for number, pid in enumerate(self.pids):
            self.samples.append(
                Sample(
                    round(time.time() - began, 2), self.name, number, *_process(pid),
                    database, self.submissions, errors, self.repeated, p50, p95,
                )
            )  # fmt: skip


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return p50 and p95 in milliseconds; NaN where there is nothing."""
    if not seconds:
        return float("nan"), float("nan")
    p50, p95 = np.percentile(seconds, (50, 95)) * 1000
    return round(float(p50), 1), round(float(p95), 1)


def _process(pid: int) -> tuple[float, float, int, int, float]:
    """Return MiB resident, MiB of its own, open files, threads and CPU seconds of a process."""
    process = psutil.Process(pid)
    with process.oneshot():
        memory, times = process.memory_full_info(), process.cpu_times()
        return (
            round(memory.rss / MIB, 2),
            round(memory.uss / MIB, 2),
            process.num_fds(),
            process.num_threads(),
            times.user + times.system,
        )


def database_mib(db: str) -> float:
    """Return the size of a database: SQLite's files, or what PostgreSQL says; OSError where it is away."""
    if "://" not in db:
        files = [path for path in (Path(db), Path(f"{db}-wal")) if path.exists()]
        return round(sum(path.stat().st_size for path in files) / MIB, 2)
    import psycopg

    try:
        with psycopg.connect(db.replace("+psycopg", "", 1)) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    except psycopg.Error as error:
        raise OSError(f"the database does not answer: {error}") from None
    return round(row[0] / MIB, 2) if row else float("nan")


def _count_errors(folder: Path) -> int:
    """Return how many lines of the service's logs tell of an error."""
    logs = folder.glob("serve*.log")
    return sum(bool(ERROR.search(line)) for log in logs for line in log.read_text().splitlines())


def samples_csv(samples: Sequence[Sample]) -> str:
    """Return the samples as CSV, a row a process and time."""
    names = [column.name for column in fields(Sample)]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(names)
    rows.writerows([getattr(sample, name) for name in names] for sample in samples)
    return text.getvalue()
