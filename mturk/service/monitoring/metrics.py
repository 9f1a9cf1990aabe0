"""Prometheus metrics of a running service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Column, func, select
from starlette.requests import Request
from starlette.responses import Response

from mturk.service.monitoring.health import SharedQuery, run_in_own_thread
from mturk.service.store.database import Database
from mturk.service.store.schema import assignment, hit

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds in seconds; 30 s is the lock timeout of writers."""
WAIT_BUCKETS = (0.001, *BUCKETS)
COUNT_TIMEOUT_SECONDS = 5.0
"""Half of Prometheus's scrape timeout: counting millions of rows takes longer than reading one."""
HIT_STATES = ("Assignable", "Unassignable", "Reviewable", "Reviewing", "Disposed")
ASSIGNMENT_STATES = ("Accepted", "Submitted", "Approved", "Rejected", "Returned", "Abandoned")
States = Mapping[str, int]


class Metrics:
    """The metrics of one service, in a registry of their own; label values are fixed names.

    Requests are counted in memory. HITs and assignments are counted in the database at each scrape, so that
    all processes on one database report the same values.
    """

    def __init__(self, database: Database) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "giccs_http_requests", "Answered requests.", ("kind", "name", "status"),
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "giccs_http_request_seconds", "Time from a request to the end of its response.",
            ("kind", "name"), buckets=BUCKETS, registry=self.registry,
        )  # fmt: skip
        self._submissions = Counter(
            "giccs_submissions", "Submitted assignments.", registry=self.registry
        )
        waits = Histogram(
            "giccs_database_write_wait_seconds", "Time that writers waited for the lock.",
            buckets=WAIT_BUCKETS, registry=self.registry,
        )  # fmt: skip
        database.on_write_wait = waits.observe
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._database_collector = _DatabaseCollector()
        self.registry.register(self._database_collector)
        self._probe = SharedQuery(database.probe)
        self._count = SharedQuery(lambda: _count(database), COUNT_TIMEOUT_SECONDS)

    def count_request(
        self, kind: str, name: str, status: int, seconds: float, outcome: str
    ) -> None:
        """Count a request."""
        self._requests.labels(kind, name, str(status)).inc()
        self._seconds.labels(kind, name).observe(seconds)
        if outcome == "done":
            self._submissions.inc()

    async def scrape(self, _: Request) -> Response:
        """Return the metrics; without database counts if the database does not answer."""
        up, counts = False, None
        with suppress(Exception):  # reported as giccs_database_up, and logged by /healthz
            await self._probe()
            up = True
            counts = await self._count()
        self._database_collector.up, self._database_collector.counts = up, counts
        text = await run_in_own_thread(lambda: generate_latest(self.registry))
        return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


class _DatabaseCollector(Collector):
    """Counts last read from the database; `counts` is None if counting failed or timed out."""

    up = False
    counts: tuple[States, States] | None = None

    def describe(self) -> list[Metric]:
        """Return no metrics: their names are only known at collection time."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the database state, then HITs and assignments by state."""
        yield GaugeMetricFamily(
            "giccs_database_up", "Whether the database could be read.", float(self.up)
        )
        if counts := self.counts:
            yield _state_gauge("giccs_hits", "HITs in each state.", counts[0])
            yield _state_gauge("giccs_assignments", "Assignments in each state.", counts[1])


def _state_gauge(name: str, text: str, counts: States) -> Metric:
    family = GaugeMetricFamily(name, text, labels=("state",))
    for state, count in counts.items():
        family.add_metric((state,), count)
    return family


def _count(database: Database) -> tuple[States, States]:
    """Count HITs and assignments by state, in one snapshot."""
    with database.read() as connection:

        def count_by(column: Column[str], states: tuple[str, ...]) -> States:
            rows = connection.execute(select(column, func.count()).group_by(column))
            return dict.fromkeys(states, 0) | {str(state): int(count) for state, count in rows}

        return count_by(hit.c.status, HIT_STATES), count_by(assignment.c.status, ASSIGNMENT_STATES)
