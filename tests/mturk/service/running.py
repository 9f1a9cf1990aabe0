"""A running service for tests: real sockets, a real database and a manual clock."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mturk.service.clock import ManualClock
from mturk.service.rules.work import WorkerService
from mturk.service.server import Addresses, ServerOptions, serve
from mturk.service.store.database import Database
from tests.mturk.new_database import new_database

START = 1_800_000_000.0


@dataclass
class Service:
    """A running service with its clock and database."""

    addresses: Addresses
    database: Database
    clock: ManualClock
    work: WorkerService

    @property
    def api(self) -> str:
        return self.addresses.api

    @property
    def site(self) -> str:
        return self.addresses.site

    def client(self, **settings):
        """Return an unmodified boto3 client."""
        import boto3

        defaults = {
            "aws_access_key_id": "any",
            "aws_secret_access_key": "any",
            "region_name": "us-east-1",
        }
        return boto3.client("mturk", endpoint_url=self.api, **(defaults | settings))


@contextmanager
def running(
    folder: Path, options: ServerOptions | None = None, start: float = START
) -> Iterator[Service]:
    """Run a service in a thread; `options.port` 0 selects free ports."""
    database, clock = new_database(folder / "hits.db"), ManualClock(start)
    told, answering = {}, threading.Event()

    def ready(addresses, stop):
        told.update(addresses=addresses, stop=stop)
        answering.set()

    def run():
        try:
            serve(database, clock, options or ServerOptions(port=0), ready)
        finally:
            answering.set()

    thread = threading.Thread(target=run)
    thread.start()
    answering.wait(120)
    try:
        yield Service(told["addresses"], database, clock, WorkerService(database, clock))
    finally:
        told["stop"]()
        thread.join(120)
        database.close()
