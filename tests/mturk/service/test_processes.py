"""Several processes of the service on one PostgreSQL give the guarantees of one, also if one is killed."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import urllib3
from sqlalchemy import func, select

from mturk.service.api.protocol import Api
from mturk.service.clock import ManualClock, SystemClock
from mturk.service.rules.work import WorkerService
from mturk.service.site.links import submit_address
from mturk.service.store.database import Database
from mturk.service.store.schema import assignment, hit
from mturk.study.simulated_browser import WebClient

ROOT = Path(__file__).parents[3]
RACERS, PLACES = 24, 10


@contextmanager
def serving(commands, db, count):
    """Run `count` processes on one database; yield (process, address) pairs."""
    words = ("mturk-hits", "serve", "--port", "0", "--json", "--quiet", "--db", db)
    with ExitStack() as stack:
        # at once: they make the tables together
        running = [stack.enter_context(commands.start(*words)) for _ in range(count)]
        try:
            yield [(process, json.loads(process.stdout.readline())["api"]) for process in running]
        finally:
            for one in running:
                one.kill()


def client(url):
    import boto3
    from botocore.config import Config

    return boto3.client(
        "mturk", endpoint_url=url, region_name="us-east-1", aws_access_key_id="any",
        aws_secret_access_key="any", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def at_once(count, do):
    """Call do(0), do(1), ... in threads that start together; return their results."""
    together = threading.Barrier(count)

    def one(number):
        together.wait(120)
        return do(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


class Browser(WebClient):
    """Return a browser of a signed-in worker."""

    def __init__(self, site, worker):
        super().__init__(site, on_response=lambda *_: None, stop_event=threading.Event())
        form = self.get("/work/").form("/work/enter")
        page = self.post("/work/enter", form.fields | {"worker": worker})
        if start := page.form("/work/start"):
            page = self.post("/work/start", start.fields | {"country": "DE", "consent": "yes"})
        assert page.form("/work/leave"), page.text


@pytest.fixture(scope="module")
def processes(cluster, commands):
    """Three processes on one database: [(process, address)], and its URL."""
    db = cluster.create("processes")
    with serving(commands, db, 3) as result:
        yield [url for _, url in result], db


def test_processes_that_start_together_make_one_database(processes):
    sites, _ = processes
    assert [client(site).get_account_balance()["AvailableBalance"] for site in sites] == [
        "10000.00"
    ] * 3


def test_one_token_makes_one_hit_whichever_process_is_asked(processes, examples):
    sites, _ = processes
    clients = [client(site) for site in sites]
    before = clients[0].get_account_balance()
    parameters = examples.HIT | {"MaxAssignments": 2, "UniqueRequestToken": "once"}

    def create(number):
        try:
            return clients[number % 3].create_hit(**parameters)["HIT"]["HITId"]
        except clients[0].exceptions.RequestError as error:
            return f"{error.response['TurkErrorCode']}: {error.response['Message']}"

    results = at_once(12, create)
    (hit_id,) = [database for database in results if re.fullmatch("[0-9A-Z]{30}", database)]
    other_ids = [database for database in results if database != hit_id]
    assert all("HITAlreadyExists" in database and hit_id in database for database in other_ids)
    after = clients[1].get_account_balance()
    on_hold = [float(one["OnHoldBalance"]) for one in (before, after)]
    assert on_hold[1] - on_hold[0] == pytest.approx(0.6)


def test_workers_of_all_processes_race_for_the_last_places(processes, examples):
    sites, db = processes
    requester = client(sites[0])
    kind = examples.HIT | {"Title": "A race", "MaxAssignments": PLACES}
    hits = [requester.create_hit(**kind)["HIT"]["HITId"] for _ in range(2)]
    browsers = [Browser(sites[number % 3], f"ARACER{number}") for number in range(RACERS)]

    group = requester.get_hit(HITId=hits[0])["HIT"]["HITGroupId"]
    forms = [
        next(form for form in browser.get("/work/").forms("/work/accept") if form.fields["group"] == group)
        for browser in browsers
    ]  # fmt: skip

    def accept_hit(number):
        return browsers[number].post("/work/accept", forms[number].fields).status

    # 24 workers, two HITs of one group with 10 places each: 20 get one, however they choose
    statuses = Counter(at_once(RACERS, accept_hit))
    assert statuses[200] == 2 * PLACES, statuses
    assert not [status for status in statuses if status >= 500]
    for hit_id in hits:
        hit = requester.get_hit(HITId=hit_id)["HIT"]
        assert hit["NumberOfAssignmentsPending"] == PLACES
        assert hit["NumberOfAssignmentsAvailable"] == 0
    database = Database(db)
    with database.read() as connection:
        rows = connection.execute(
            select(assignment.c.worker_id, func.count())
            .where(assignment.c.hit_id.in_(hits))
            .group_by(assignment.c.worker_id)
        ).all()
    database.close()
    assert [count for _, count in rows] == [1] * 2 * PLACES
    for browser in browsers:
        browser.close()


def test_a_worker_who_registers_with_all_processes_at_once_is_one(processes):
    sites, _ = processes
    for browser in at_once(9, lambda number: Browser(sites[number % 3], "ATWIN")):
        browser.close()


def test_a_character_that_postgresql_refuses_is_refused_in_words(processes):
    sites, _ = processes
    browser = Browser(sites[0], "AZERO")
    for path in ("/work/assignment/3%00", "/work/preview/3%00", "/work/qualification/3%00"):
        assert browser.get(path).status == 404
    form = browser.get("/work/").form("/work/leave").fields
    for action, name in (("accept", "hit"), ("accept", "group"), ("return", "assignment")):
        assert browser.post(f"/work/{action}", form | {name: "3\0"}).status in (404, 409)
    browser.close()


def test_what_time_changes_is_changed_once_although_many_look(cluster, examples):
    """Abandoned assignments and automatic approvals, applied by two stores and twelve threads."""
    db, clock = cluster.create("settling"), ManualClock(1.8e9)
    stores = [Database(db) for _ in range(2)]
    works = [WorkerService(store, clock) for store in stores]
    api = Api(stores[0], clock, {})
    parameters = examples.HIT | {"MaxAssignments": 9, "AutoApprovalDelayInSeconds": 60}
    hits = [api.call("CreateHIT", parameters)["HIT"]["HITId"] for _ in range(6)]
    for number in range(8):
        works[0].register(f"AW{number}")
        for hit_id in hits:
            taken = works[0].accept(f"AW{number}", hit_id).assignment_id
            if number % 2:
                works[0].submit(taken, f"AW{number}", [("q", "a")])
    clock.advance(601)
    at_once(12, lambda number: works[number % 2].apply_due_changes())
    with stores[1].read() as connection:
        states = connection.execute(
            select(assignment.c.status, func.count()).group_by(assignment.c.status)
        ).all()
        counts = connection.execute(select(hit.c.pending, hit.c.submitted, hit.c.completed)).all()
    assert dict(map(tuple, states)) == {"Abandoned": 24, "Approved": 24}
    assert set(map(tuple, counts)) == {(0, 0, 4)}
    # 24 paid at 0.30, five places of six HITs still held
    balance = api.call("GetAccountBalance", {})
    assert balance == {"AvailableBalance": "9983.80", "OnHoldBalance": "9.00"}
    for store in stores:
        store.close()


def test_mixed_work_on_the_same_hits_never_fails(cluster, examples):
    """Concurrent submissions, approvals, bonuses and returns cause no deadlocks or lost counts."""
    db, clock = cluster.create("mixed"), SystemClock()
    stores = [Database(db) for _ in range(2)]
    works, apis = (
        [WorkerService(database, clock) for database in stores],
        [Api(database, clock, {}) for database in stores],
    )
    hit_ids = [
        apis[0].call("CreateHIT", examples.HIT | {"MaxAssignments": 9})["HIT"]["HITId"]
        for _ in range(2)
    ]
    for number in range(8):
        works[0].register(f"AW{number}")

    def act(number):
        worker = f"AW{number}"
        for hit_id in hit_ids if number % 2 else reversed(hit_ids):
            its = works[number % 2].accept(worker, hit_id).assignment_id
            api = apis[(number + 1) % 2]
            if number == 0:
                works[0].return_assignment(its, worker)
                continue
            works[number % 2].submit(its, worker, [("q", "a")])
            api.call("ApproveAssignment", {"AssignmentId": its})
            bonus = {"WorkerId": worker, "AssignmentId": its, "BonusAmount": "0.05", "Reason": "r"}
            api.call("SendBonus", bonus | {"UniqueRequestToken": f"{worker}-{hit_id}"})

    at_once(8, act)
    for one in hit_ids:
        hit = apis[0].call("GetHIT", {"HITId": one})["HIT"]
        assert hit["NumberOfAssignmentsCompleted"] == 7
        assert hit["NumberOfAssignmentsAvailable"] == 2
    # 14 at 0.30 and bonuses at 0.06 are paid, four places are held
    balance = apis[0].call("GetAccountBalance", {})
    assert balance == {"AvailableBalance": "9993.76", "OnHoldBalance": "1.20"}
    for store in stores:
        store.close()


class Submitting:
    """Workers submit to the processes in turn; confirmations are recorded."""

    def __init__(self, sites, secret, pairs, pause_after):
        self.sites, self.secret, self.pause_after = sites, secret, pause_after
        self.left = iter(pairs)
        self.confirmed = []
        self.lock = threading.Lock()
        self.enough, self.broken = threading.Event(), threading.Event()

    def run(self, number):
        http = urllib3.PoolManager(retries=False)
        while pair := self._next():
            for turn in range(400):  # every process is tried, and again
                if self._send(http, self.sites[(number + turn) % len(self.sites)], *pair):
                    break
                self.broken.wait(0.25)

    def _send(self, http, site, assignment_id, worker):
        address = submit_address(
            site, self.secret, assignment_id=assignment_id, worker_id=worker, language="en"
        )
        try:
            answer = http.request_encode_body(
                "POST", f"{address}/mturk/externalSubmit", encode_multipart=False,
                fields={"assignmentId": assignment_id, "answer": assignment_id}, redirect=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError:
            return False
        if answer.status < 400:
            with self.lock:
                self.confirmed.append(assignment_id)
                if len(self.confirmed) >= self.pause_after:
                    self.enough.set()
        return answer.status < 400

    def _next(self):
        with self.lock:
            return next(self.left, None)


def test_nothing_is_lost_when_a_process_and_the_database_server_are_killed(
    cluster, commands, examples
):
    db = cluster.create("killed")
    with serving(commands, db, 3) as running:
        sites = [url for _, url in running]
        hits = [
            client(sites[0]).create_hit(**examples.HIT, MaxAssignments=9)["HIT"]["HITId"]
            for _ in range(20)
        ]
        database = Database(db)
        work, secret = WorkerService(database, SystemClock()), database.secret()
        pairs = []
        for number in range(6):
            work.register(f"AW{number}")
            pairs += [
                (work.accept(f"AW{number}", thread).assignment_id, f"AW{number}") for thread in hits
            ]
        submitting = Submitting(sites, secret, pairs, pause_after=30)
        threads = [threading.Thread(target=submitting.run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        assert submitting.enough.wait(120)
        running[1][0].kill()
        cluster.stop()  # at once, as a crash does
        confirmed = len(submitting.confirmed)
        cluster.start()
        for thread in threads:
            thread.join(120)
        database.close()
        pages = client(sites[2]).get_paginator("list_assignments_for_hit")
        stored = Counter(
            assignment["AssignmentId"]
            for its_id in hits
            for page in pages.paginate(HITId=its_id)
            for assignment in page["Assignments"]
            if assignment["AssignmentId"] in assignment["Answer"]
        )
    assert 30 <= confirmed < len(pairs)
    assert set(submitting.confirmed) == {its_id for its_id, _ in pairs} == set(stored)
    assert set(stored.values()) == {1}


@pytest.mark.nightly
@pytest.mark.skipif(
    not (shutil.which("nginx") or Path("/usr/sbin/nginx").exists()), reason="nginx is not installed"
)
def test_a_study_behind_nginx_loses_and_doubles_nothing(cluster):
    """A small run of the benchmark."""
    db = cluster.create("behind_nginx")
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.study_processes", "--db", db, "--processes", "2",
         "--workers", "12", "--hits", "6", "--assignments", "10", "--clients", "1", "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=300, env=os.environ,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    (row,) = json.loads(result.stdout)
    assert (row["submissions"], row["lost"], row["doubled"], row["over"], row["errors"]) == (
        60,
        0,
        0,
        0,
        0,
    )
    assert row["balance"] == "exact"
