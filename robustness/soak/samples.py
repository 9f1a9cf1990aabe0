"""Samples of memory, files, threads and CPU of the service's processes during a study."""

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

MIB = 2**20
ERROR = re.compile(r"\b(error|critical)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of one process; backend values are repeated for all its processes."""

    seconds: float
    """Since the start."""
    backend: str
    process: int
    """Index from 0."""
    rss: float
    """Resident memory in MiB."""
    uss: float
    """Unshared memory in MiB."""
    files: int
    threads: int
    cpu: float
    """Cumulative CPU seconds."""
    database: float
    """Size in MiB."""
    submissions: int
    """Cumulative number of acknowledged submissions."""
    errors: int
    """Cumulative number of refused requests and errors in the log."""
    repeated: int
    """Cumulative number of repeated requests (no response, or rate-limited)."""
    p50: float
    p95: float
    """Page times in milliseconds since the previous sample."""


@dataclass
class BackendMonitor:
    """Samples of a running backend."""

    name: str
    db: str
    folder: Path
    pids: Sequence[int] = ()
    samples: list[Sample] = field(default_factory=list)
    pages: list[tuple[float, float]] = field(default_factory=list)
    """Time of each page (seconds since the start), and its duration in seconds."""
    read: int = 0
    """Offset in the journal."""
    submissions: int = 0
    refused: int = 0
    repeated: int = 0

    def take_samples(self, began: float) -> None:
        """Add a sample per process; raise psutil.Error if one has ended. `began`: seconds since 1970."""
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
    """Return p50 and p95 in milliseconds; NaN without values."""
    if not seconds:
        return float("nan"), float("nan")
    p50, p95 = np.percentile(seconds, (50, 95)) * 1000
    return round(float(p50), 1), round(float(p95), 1)


def _process(pid: int) -> tuple[float, float, int, int, float]:
    """Return resident MiB, unshared MiB, open files, threads and CPU seconds of a process."""
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
    """Return the size of a database in MiB; raise OSError if PostgreSQL does not respond."""
    if "://" not in db:
        files = [path for path in (Path(db), Path(f"{db}-wal")) if path.exists()]
        return round(sum(path.stat().st_size for path in files) / MIB, 2)
    import psycopg

    try:
        with psycopg.connect(db.replace("+psycopg", "", 1)) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    except psycopg.Error as error:
        raise OSError(f"the database does not respond: {error}") from None
    return round(row[0] / MIB, 2) if row else float("nan")


def _count_errors(folder: Path) -> int:
    """Count the lines with errors in the service's logs."""
    logs = folder.glob("serve*.log")
    return sum(bool(ERROR.search(line)) for log in logs for line in log.read_text().splitlines())


def samples_csv(samples: Sequence[Sample]) -> str:
    """Return the samples as CSV, one row per process and time."""
    names = [column.name for column in fields(Sample)]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(names)
    rows.writerows([getattr(sample, name) for name in names] for sample in samples)
    return text.getvalue()
