"""The same service on a real PostgreSQL server, started for the test."""

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mturk.endpoint.clock import ManualClock
from mturk.endpoint.database import Database
from mturk.endpoint.protocol import Api
from mturk.endpoint.work import Work, WorkError


def programs():
    """Return the folder of PostgreSQL's newest programs."""
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found = shutil.which("initdb")
    folders += [Path(found).resolve().parent] if found else []
    return max(folders, key=lambda path: path.parent.name, default=None)


@pytest.fixture(scope="module")
def server():
    """The URL of an empty database; the server listens on a socket in a private folder only."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if programs() is None:
        pytest.skip("PostgreSQL's programs are not installed")
    root = os.geteuid() == 0  # as which PostgreSQL does not run
    if root and not (
        shutil.which("runuser") and Path("/etc/passwd").read_text().count("\npostgres:")
    ):
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    user = ["runuser", "-u", "postgres", "--"] if root else []
    folder = tempfile.mkdtemp(prefix="giccs-postgresql-")
    if root:
        shutil.chown(folder, "postgres")
    data = f"{folder}/data"

    def run(name, *arguments):
        subprocess.run([*user, str(programs() / name), *arguments], check=True, cwd=folder,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip

    try:
        run(
            "initdb",
            "-D",
            data,
            "-U",
            "giccs",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-N",
        )
        options = (
            f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c max_connections=120"
        )
        run("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://giccs@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def database(server):
    database = Database(server)
    yield database
    database.close()


@pytest.fixture
def api(database):
    return Api(database, ManualClock(1.8e9), {})


def test_a_study_from_the_hit_to_the_bonus(api, database, made):
    work = Work(database, api.clock)
    hit = api.call("CreateHIT", {**made.HIT, "UniqueRequestToken": "once"})["HIT"]["HITId"]
    work.register("AONE", country="DE")
    (offer,) = work.offers("AONE")
    assignment = work.accept("AONE", None, offer.group_id).assignment_id
    assert work.submit(assignment, "AONE", [("q", "ü 🙂 ]]>")])
    assert not work.submit(assignment, "AONE", [("q", "again")])
    (found,) = api.call("ListAssignmentsForHIT", {"HITId": hit})["Assignments"]
    assert "ü 🙂" in found["Answer"]
    api.call("ApproveAssignment", {"AssignmentId": assignment})
    bonus = {"WorkerId": "AONE", "AssignmentId": assignment, "BonusAmount": "1.00", "Reason": "r"}
    api.call("SendBonus", bonus)
    assert str(work.progress("AONE").earned) == "1.25"
    balance = api.call("GetAccountBalance", {})
    assert balance == {"AvailableBalance": "9998.50", "OnHoldBalance": "0.00"}


def test_opening_it_again_keeps_the_secret_and_the_balance(database, server):
    again = Database(server)
    assert again.secret() == database.secret()
    again.close()


def test_fifty_workers_get_ten_places(api, database, made):
    hit = api.call("CreateHIT", {**made.HIT, "MaxAssignments": 10})["HIT"]["HITId"]
    work = Work(database, api.clock)
    workers = [f"AW{number}" for number in range(50)]
    for worker in workers:
        work.register(worker)

    def take(worker):
        try:
            return work.accept(worker, hit).assignment_id
        except WorkError as error:
            return error.code

    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(take, workers))
    given = [one for one in found if one != "Full"]
    assert (len(given), len(set(given))) == (10, 10)
    assert api.call("GetHIT", {"HITId": hit})["HIT"]["NumberOfAssignmentsPending"] == 10


def test_an_answer_that_is_sent_twenty_times_is_taken_once(api, database, made):
    hit = api.call("CreateHIT", made.HIT)["HIT"]["HITId"]
    work = Work(database, api.clock)
    work.register("AONE")
    assignment = work.accept("AONE", hit).assignment_id
    with ThreadPoolExecutor(20) as pool:
        taken = list(
            pool.map(
                lambda number: work.submit(assignment, "AONE", [("q", str(number))]), range(20)
            )
        )
    assert sum(taken) == 1
