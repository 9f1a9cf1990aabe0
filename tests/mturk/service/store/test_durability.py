"""Confirmed submissions survive SIGKILL; assignments are given once to concurrent workers."""

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import urllib3
from sqlalchemy import event
from sqlalchemy.engine import Engine

from bws.base.problems import InputError
from mturk.service.api.protocol import Api
from mturk.service.clock import SystemClock
from mturk.service.rules.work import WorkError, WorkerService
from mturk.service.site.links import submit_address
from mturk.service.store.database import Database

WORKERS, HITS, ENOUGH = 8, 60, 150


def start(commands, path):
    process = commands.start(
        "mturk-hits", "serve", "--port", "0", "--json", "--quiet", "--db", path
    )
    return process, json.loads(process.stdout.readline())["api"]


def client(url):
    import boto3

    return boto3.client(
        "mturk", endpoint_url=url, region_name="us-east-1", aws_access_key_id="any",
        aws_secret_access_key="any",
    )  # fmt: skip


def accepted(path, hits):
    """Accept every HIT for every worker; return (assignment, worker) pairs and the signing secret."""
    database = Database(path)
    work = WorkerService(database, SystemClock())
    for worker in range(WORKERS):
        work.register(f"AWORKER{worker}")
    pairs = [
        (work.accept(f"AWORKER{worker}", hit).assignment_id, f"AWORKER{worker}")
        for hit in hits
        for worker in range(WORKERS)
    ]
    secret = database.secret()
    database.close()
    return pairs, secret


class Submitting:
    """Workers submit concurrently until the service is killed; confirmations are recorded."""

    def __init__(self, url, secret, pairs):
        self.url, self.secret = url, secret
        self.left = iter(pairs)
        self.confirmed = []
        self.lock = threading.Lock()
        self.enough = threading.Event()

    def run(self):
        http = urllib3.PoolManager(retries=False)
        while pair := self._next():
            assignment, worker = pair
            address = submit_address(
                self.url, self.secret, assignment_id=assignment, worker_id=worker, language="en"
            )
            try:
                answer = http.request_encode_body(
                    "POST", f"{address}/mturk/externalSubmit", encode_multipart=False,
                    fields={"assignmentId": assignment, "answer": assignment}, redirect=False,
                )  # fmt: skip
            except urllib3.exceptions.HTTPError:
                return
            if answer.status < 400:
                self._note(assignment)

    def _next(self):
        with self.lock:
            return next(self.left, None)

    def _note(self, assignment):
        with self.lock:
            self.confirmed.append(assignment)
            if len(self.confirmed) >= ENOUGH:
                self.enough.set()


def test_a_killed_service_has_every_answer_that_it_confirmed_once(tmp_path, commands, examples):
    path = tmp_path / "hits.db"
    process, url = start(commands, path)
    requester = client(url)
    hits = [
        requester.create_hit(**examples.HIT, MaxAssignments=9)["HIT"]["HITId"] for _ in range(HITS)
    ]
    pairs, secret = accepted(path, hits)
    submitting = Submitting(url, secret, pairs)
    threads = [threading.Thread(target=submitting.run) for _ in range(16)]
    for thread in threads:
        thread.start()
    assert submitting.enough.wait(120)
    process.kill()
    process.wait()
    for thread in threads:
        thread.join(120)
    process.stdout.close()
    assert ENOUGH <= len(submitting.confirmed) < len(pairs)

    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    process, url = start(commands, path)
    try:
        pages = client(url).get_paginator("list_assignments_for_hit")
        stored = [
            (assignment["AssignmentId"], assignment["AssignmentId"] in assignment["Answer"])
            for hit in hits
            for page in pages.paginate(HITId=hit)
            for assignment in page["Assignments"]
        ]
    finally:
        process.terminate()
        process.communicate(timeout=300)
    assert set(submitting.confirmed) <= {assignment for assignment, _ in stored}
    assert len(set(stored)) == len(stored)
    assert all(whole for _, whole in stored)


def fight(works, hit, workers):
    """Let workers accept the HIT concurrently; return the assignment ids and the error codes."""
    together = threading.Barrier(len(workers))

    def accept_hit(number):
        together.wait(120)
        try:
            return works[number % len(works)].accept(workers[number], hit).assignment_id, None
        except WorkError as error:
            return None, error.code

    with ThreadPoolExecutor(len(workers)) as pool:
        results = list(pool.map(accept_hit, range(len(workers))))
    return [given for given, _ in results if given], [why for _, why in results if why]


@pytest.mark.parametrize("stores", [1, 2])
def test_fifty_workers_get_ten_places(requester, stores):
    """Two stores on one file, as in two processes."""
    hit = requester.hit(MaxAssignments=10)
    others = [Database(requester.service.database.url.database) for _ in range(stores - 1)]
    works = [requester.work, *(WorkerService(database, requester.clock) for database in others)]
    workers = [f"AW{number}" for number in range(50)]
    for worker in workers:
        requester.work.register(worker)
    accepted, refused = fight(works, hit, workers)
    for one in others:
        one.close()
    assert len(accepted) == len(set(accepted)) == 10
    assert refused == ["Full"] * 40
    assert requester.get(hit)["NumberOfAssignmentsPending"] == 10


def test_a_worker_who_clicks_often_gets_one_assignment(requester):
    hit = requester.hit(MaxAssignments=10)
    requester.work.register("AONE")
    accepted, refused = fight([requester.work], hit, ["AONE"] * 20)
    assert len(set(accepted)) == 1
    assert refused == []
    assert requester.get(hit)["NumberOfAssignmentsPending"] == 1


def test_an_answer_that_is_sent_twenty_times_is_taken_once(requester):
    hit = requester.hit()
    assignment = requester.accept("AONE", hit)
    with ThreadPoolExecutor(20) as pool:
        taken = list(
            pool.map(
                lambda number: requester.work.submit(assignment, "AONE", [("answer", str(number))]),
                range(20),
            )
        )
    assert sum(taken) == 1
    (result,) = requester.boto.list_assignments_for_hit(HITId=hit)["Assignments"]
    assert f"<FreeText>{taken.index(True)}</FreeText>" in result["Answer"]


def test_a_damaged_database_is_refused_before_answers_are_missing(tmp_path, examples):
    path = tmp_path / "hits.db"
    database = Database(path)
    api = Api(database, SystemClock(), {})
    hit = api.call("CreateHIT", examples.HIT | {"MaxAssignments": 9})["HIT"]["HITId"]
    accepted(path, [hit])
    database.close()
    with sqlite3.connect(path) as connection:  # does not watch what refers to what
        connection.execute("UPDATE assignment SET hit_id = 'gone' WHERE worker_id = 'AWORKER3'")
    connection.close()
    with pytest.raises(InputError, match=r"hits\.db: is damaged .*refers to a missing hit"):
        Database(path)
    content = bytearray(path.read_bytes())
    content[4096 + 4] ^= 1  # how many rows the second page says it has
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"hits\.db: is damaged .*restore a backup"):
        Database(path)


def test_others_write_while_a_database_is_checked(tmp_path):
    """Reading a large database takes long, but `giccs annotate invite` must not block workers."""
    path = tmp_path / "hits.db"
    Database(path).close()
    written = []

    def write(_, __, statement, *___):
        if statement.startswith("PRAGMA foreign_key_check"):
            with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
                written.append(connection.execute("UPDATE account SET available = 7").rowcount)

    event.listen(Engine, "before_cursor_execute", write)
    try:
        Database(path).close()
    finally:
        event.remove(Engine, "before_cursor_execute", write)
    assert written == [1]
