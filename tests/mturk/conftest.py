"""Fixtures: a running service with a manual clock and injectable faults, and a published study."""

import asyncio
import importlib.util
import json
import socket
import threading
from contextlib import ExitStack, contextmanager
from functools import cache

import pytest

from bws.files import read_tuples
from giccs.benchmark.assemble import read_dialogues

START = 1_800_000_000.0
REFUSED = {
    "throttled": (400, {"__type": "ThrottlingException", "message": "Rate exceeded"}),
    "error": (
        500,
        {"__type": "ServiceFault", "Message": "failed", "TurkErrorCode": "ServiceFault"},
    ),
}


class Faults:
    """ASGI middleware that injects faults; `choose(operation, number)` returns the fault of a call.

    number: number of the call, from 1. None: no fault. "throttled" and "error": refused before execution.
    "error after", "drop after", "hang after": executed, but the response is a 500, truncated, or missing.
    "drop before" and "hang before": the same without execution.
    """

    def __init__(self, app):
        self.app = app
        self.choose = lambda operation, number: None
        self.calls = []

    async def __call__(self, scope, receive, send):
        target = dict(scope.get("headers", ())).get(b"x-amz-target", b"").decode()
        if not target:
            return await self.app(scope, receive, send)
        operation = target.partition(".")[2]
        self.calls.append(operation)
        fault = self.choose(operation, len(self.calls))
        if fault is None:
            return await self.app(scope, receive, send)
        if fault.endswith("after"):
            await self.app(scope, receive, _swallow)
        return await self._answer(fault.split()[0], receive, send)

    async def _answer(self, fault, receive, send):
        if fault == "hang":
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        status, document = REFUSED.get(fault, (200, {}))
        body = json.dumps(document).encode()[: None if fault in REFUSED else 1]
        length = (
            len(body) if fault in REFUSED else 1000
        )  # longer than the body, so that the response is truncated
        headers = [
            (b"content-type", b"application/x-amz-json-1.1"),
            (b"content-length", str(length).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _swallow(message):
    pass


class Running:
    """A service running on this machine at `url`."""

    def __init__(self, folder, balance=10_000_000):
        from mturk.service.clock import ManualClock
        from tests.mturk.new_database import new_database

        self.database = new_database(folder / "hits.db", balance=balance)
        self.clock = ManualClock(START)

    @contextmanager
    def listening(self):
        from mturk.service.server import Addresses, ServerOptions, build_apps

        with ExitStack() as stack:
            sockets = [stack.enter_context(_listen()) for _ in range(2)]
            self.url, frames = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in sockets)
            options = ServerOptions(rates=_no_limits())
            site, frame = build_apps(
                self.database, self.clock, Addresses(self.url, frames), options
            )
            self.faults = Faults(site)
            for app, one in zip((self.faults, frame), sockets, strict=True):
                stack.enter_context(_serving(app, one))
            yield self

    def rows(self, statement, **values):
        """Query the database of the service."""
        from sqlalchemy import text

        with self.database.read() as connection:
            return connection.execute(text(statement), values).all()

    def annotations(self):
        """Return the annotations of all HITs."""
        return [row[0] for row in self.rows("SELECT annotation FROM hit")]


def _no_limits():
    from mturk.service.site.rate_limits import RateLimit, RateLimits

    most = RateLimit(burst=1e9, per_second=1e9)
    return RateLimits(most, most, most)


def _listen():
    listening = socket.socket(
        socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # asyncio sets
    listening.bind(("127.0.0.1", 0))  # TCP_NODELAY only where the protocol is named
    listening.listen(200)
    return listening


@contextmanager
def _serving(app, listening):
    import uvicorn

    up = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            self.loop = asyncio.get_running_loop()
            up.set()

    config = uvicorn.Config(
        app, log_config=None, log_level="critical", lifespan="off", timeout_graceful_shutdown=1
    )
    server = Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert up.wait(120)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(120)


class _OftenAwake:
    """asyncio with naps of at most 10 ms."""

    def __getattr__(self, name):
        return getattr(asyncio, name)

    async def sleep(self, seconds):
        await asyncio.sleep(min(seconds, 0.01))


@pytest.fixture(scope="session", autouse=True)
def _servers_end_at_once():
    """Let servers of this process look more often whether they are to end, which would take 0.2 s a test."""
    if importlib.util.find_spec("uvicorn") is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", _OftenAwake())
        yield


@pytest.fixture(scope="session", autouse=True)
def _botocore_reads_its_files_once():
    """Share the descriptions of the services between clients, as those of one session of botocore do."""
    if importlib.util.find_spec("botocore") is None:
        yield
        return
    from botocore.loaders import JSONFileLoader, Loader

    read, listed = JSONFileLoader.load_file, Loader.list_available_services
    content = cache(lambda path: read(JSONFileLoader(), path))
    services = {}

    def services_of(loader, type_name):
        key = (*loader.search_paths, type_name)
        if key not in services:
            services[key] = listed(loader, type_name)
        return services[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda _, path: content(path))
        patch.setattr(Loader, "list_available_services", services_of)
        yield


@pytest.fixture
def running(tmp_path):
    """A running service per test."""
    pytest.importorskip("uvicorn", reason="the extra giccs[study] is not installed")
    service = Running(tmp_path)
    with service.listening():
        yield service
    service.database.close()


DIALOGUES = [
    {
        "dialogue_id": "d3", "source": "made", "domain": "",
        "turns": [
            {"speaker": "user", "text": "Fährt er?"},
            {"speaker": "system", "text": "Ja, um 9."},
            {"speaker": "user", "text": "Danke, „gut“."},
        ],
        "candidates": [
            {"utterance_id": "d3-1", "text": "Vielen Dank!", "intended": 5},
            {"utterance_id": "d3-2", "text": "Aha <b>", "intended": 3},
            {"utterance_id": "d3-3", "text": "Nein ${B}", "intended": 1},
        ],
    },
    {
        "dialogue_id": "d5", "source": "made", "domain": "",
        "turns": [
            {"speaker": "user", "text": "Hallo"},
            {"speaker": "system", "text": "Hallo!"},
            {"speaker": "user", "text": "Pizza?"},
            {"speaker": "system", "text": "Gern."},
            {"speaker": "user", "text": "Mit Käse 🙂"},
        ],
        "candidates": [
            {"utterance_id": "d5-1", "text": "Käse dazu", "intended": 5},
            {"utterance_id": "d5-2", "text": "Ohne ]]> Käse", "intended": 2},
            {"utterance_id": "d5-3", "text": "Morgen", "intended": 1},
        ],
    },
]  # fmt: skip
TUPLES = """\
tuple_id,group,item1,item2,item3
t1,d3,d3-1,d3-2,d3-3
t2,d5,d5-1,d5-2,d5-3
t3,d3,d3-2,d3-1,d3-3
t4,d5,d5-3,d5-2,d5-1
"""


class Files:
    """A small study: two HITs of two tuples each."""

    def __init__(self, folder):
        self.tuples, self.dialogues = folder / "tuples.csv", folder / "dialogues.jsonl"
        self.tuples.write_text(TUPLES, encoding="utf-8")
        lines = "".join(f"{json.dumps(one | {'language': 'de'})}\n" for one in DIALOGUES)
        self.dialogues.write_text(lines, encoding="utf-8")
        self.arguments = [str(self.tuples), "--dialogues", str(self.dialogues)]

    def plans(self, settings):
        from mturk.kinds.tuples.plan import plan

        return plan(read_tuples(self.tuples), read_dialogues(self.dialogues), settings)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch, tmp_path_factory):
    """Hide the AWS settings of this machine."""
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    folder = tmp_path_factory.getbasetemp()  # a folder for each of these tests would cost some ms
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class StudyAtService:
    """A published study with two HITs of two tuples each; `path` is its ledger."""

    def __init__(self, running, files, folder, name="ledger", **settings):
        from mturk.service.rules.work import WorkerService
        from mturk.study.client import connect, resolve
        from mturk.study.ledger import Ledger
        from mturk.study.publish import create_hits
        from mturk.study.settings import Settings

        self.running, self.files, self.folder = running, files, folder
        self.settings = Settings(**{"approval_rate_above": -1, "countries": ()} | settings)
        self.path = str(folder / f"{name}.db")
        self.work = WorkerService(running.database, running.clock)
        self.client = connect(resolve(running.url), timeout=20.0, max_attempts=3)
        self.book = Ledger.open(self.path, create=True)
        self.book.start_study(running.url, self.settings, files.plans(self.settings), self.now())
        create_hits(self.client, self.book, clock=self.now)

    def now(self):
        return self.running.clock.now()

    def hit_ids(self):
        return [hit.hit_id for hit in self.book.hits()]

    def fields(self, hit_id, best=0, worst=2, comment="", seconds="7.5"):
        """Return the fields of a completed form; best and worst are positions in the tuple."""
        from mturk.answers import seconds_field
        from mturk.kinds.tuples.form import best_field, join_shown, shown_field, worst_field
        from mturk.study.valid_answers import expected_tuples

        filled = []
        for one in expected_tuples(self.book)[hit_id]:
            filled += [
                (best_field(one.tuple_id), one.items[best]),
                (worst_field(one.tuple_id), one.items[worst]),
                (shown_field(one.tuple_id), join_shown(one.items[::-1])),
                (seconds_field(one.tuple_id), seconds),
            ]
        return [*filled, ("comment", comment)]

    def submit(self, worker, hit_id, fields=None, after=60.0, **said):
        """Accept and, after some seconds, submit a HIT; return the assignment id."""
        self.work.register(worker, country="DE")
        taken = self.work.accept(worker, hit_id)
        self.running.clock.advance(after)
        given = self.fields(hit_id, **said) if fields is None else fields
        assert self.work.submit(taken.assignment_id, worker, given)
        return taken.assignment_id

    def submit_all(self, workers, **said):
        return {
            (worker, hit_id): self.submit(worker, hit_id, **said)
            for worker in workers
            for hit_id in self.hit_ids()
        }

    def collect(self):
        from mturk.study.collect import collect
        from mturk.study.privacy import worker_namer

        return collect(self.client, self.book, worker_namer(self.book), clock=self.now)

    def assignment(self, assignment_id):
        """Return an assignment from the service."""
        return self.client.get_assignment(AssignmentId=assignment_id)["Assignment"]

    def hit(self, hit_id):
        return self.client.get_hit(HITId=hit_id)["HIT"]

    def bonuses(self, hit_id):
        pages = self.client.get_paginator("list_bonus_payments").paginate(HITId=hit_id)
        return [one for page in pages for one in page["BonusPayments"]]

    def run(self, *arguments, code=0, typed=None):
        """Run a command on the study; return its standard output."""
        from click.testing import CliRunner

        from mturk.cli import main

        done = CliRunner().invoke(main, [*arguments, "--ledger", self.path], input=typed)
        assert done.exit_code == code, (done.output, done.exception)
        self.stderr = done.stderr
        return done.stdout

    def json(self, *arguments, code=0):
        return json.loads(self.run(*arguments, "--json", code=code))


@pytest.fixture
def make_study(running, files, tmp_path):
    """Factory of published studies with custom settings."""
    pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")
    made = []

    def make(**settings):
        made.append(StudyAtService(running, files, tmp_path, **settings))
        return made[-1]

    yield make
    for study in made:
        study.book.close()


@pytest.fixture
def study(make_study):
    return make_study()
