"""How much, how fast, how many? The numbers of one running service, as Prometheus reads them."""

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

from mturk.service.monitoring.health import Look, apart
from mturk.service.store.database import Database
from mturk.service.store.schema import assignment, hit

__all__ = ["Metrics"]

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds; 30 is when a writer gives up waiting for its turn."""
WAITS = (0.001, *BUCKETS)
COUNT_SECONDS = 5.0
"""Half of what Prometheus waits for an answer: to count millions takes longer than to read one."""
HITS = ("Assignable", "Unassignable", "Reviewable", "Reviewing", "Disposed")
ASSIGNMENTS = ("Accepted", "Submitted", "Approved", "Rejected", "Returned", "Abandoned")
States = Mapping[str, int]


class Metrics:
    """The numbers of one service, in a registry of its own; labels are names of ours only.

    What requests did is counted here; how many HITs and assignments there are is read from the database
    when somebody asks, so that several processes on one database tell the same.
    """

    def __init__(self, database: Database) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "giccs_http_requests", "Requests that were answered.", ("kind", "name", "status"),
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "giccs_http_request_seconds", "From a request to the end of its answer.",
            ("kind", "name"), buckets=BUCKETS, registry=self.registry,
        )  # fmt: skip
        self._submissions = Counter(
            "giccs_submissions", "Assignments whose answer was taken.", registry=self.registry
        )
        waits = Histogram(
            "giccs_database_write_wait_seconds", "How long writers waited for their turn.",
            buckets=WAITS, registry=self.registry,
        )  # fmt: skip
        database.waited = waits.observe
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._counted = _Counted()
        self.registry.register(self._counted)
        self._probe = Look(database.probe)
        self._count = Look(lambda: _count(database), COUNT_SECONDS)

    def answered(self, kind: str, name: str, status: int, seconds: float, outcome: str) -> None:
        """Count a request."""
        self._requests.labels(kind, name, str(status)).inc()
        self._seconds.labels(kind, name).observe(seconds)
        if outcome == "done":
            self._submissions.inc()

    async def show(self, _: Request) -> Response:
        """Answer a scrape; while the database is away, with all that is known without it."""
        up, found = False, None
        with suppress(Exception):  # whatever it is, giccs_database_up says it, and /healthz logs it
            await self._probe()
            up = True
            found = await self._count()
        self._counted.up, self._counted.found = up, found
        text = await apart(lambda: generate_latest(self.registry))
        return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


class _Counted(Collector):
    """What was last read from the database; `found` is None where it could not be counted in time."""

    up = False
    found: tuple[States, States] | None = None

    def describe(self) -> list[Metric]:
        """Return nothing: the names are known when there is something to tell."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield whether the database can be read, then HITs and assignments."""
        yield GaugeMetricFamily(
            "giccs_database_up", "Whether the database could be read.", float(self.up)
        )
        if found := self.found:
            yield _states("giccs_hits", "HITs in each state.", found[0])
            yield _states("giccs_assignments", "Assignments in each state.", found[1])


def _states(name: str, text: str, counts: States) -> Metric:
    family = GaugeMetricFamily(name, text, labels=("state",))
    for state, count in counts.items():
        family.add_metric((state,), count)
    return family


def _count(database: Database) -> tuple[States, States]:
    """Return how many HITs and assignments there are in each state, at one moment."""
    with database.read() as connection:

        def by(column: Column[str], states: tuple[str, ...]) -> States:
            rows = connection.execute(select(column, func.count()).group_by(column))
            return dict.fromkeys(states, 0) | {str(state): int(count) for state, count in rows}

        return by(hit.c.status, HITS), by(assignment.c.status, ASSIGNMENTS)
