"""The service on a real PostgreSQL server, started for the test."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, insert, select
from sqlalchemy.exc import DBAPIError

from bws.base.problems import InputError
from mturk.service.api.protocol import Api
from mturk.service.clock import ManualClock
from mturk.service.rules.admission import Entry, StudyRules
from mturk.service.rules.ends import SCREENED_OUT
from mturk.service.rules.inquiries import MAX_PER_HOUR, Inquiries
from mturk.service.rules.participation import Participants
from mturk.service.rules.work import WorkError, WorkerService
from mturk.service.store import database as module
from mturk.service.store.database import Database
from mturk.service.store.schema import worker


@pytest.fixture(scope="module")
def server(cluster):
    """The URL of an empty database."""
    return cluster.create("study")


@pytest.fixture(scope="module")
def database(server):
    database = Database(server)
    yield database
    database.close()


@pytest.fixture
def api(database):
    return Api(database, ManualClock(1.8e9), {})


def test_a_study_from_the_hit_to_the_bonus(api, database, examples):
    work = WorkerService(database, api.clock)
    hit = api.call("CreateHIT", {**examples.HIT, "UniqueRequestToken": "once"})["HIT"]["HITId"]
    work.register("AONE", country="DE")
    (offer,) = work.offers("AONE")
    assignment = work.accept("AONE", None, offer.group_id).assignment_id
    assert work.submit(assignment, "AONE", [("q", "ü 🙂 ]]>")])
    assert not work.submit(assignment, "AONE", [("q", "again")])
    (result,) = api.call("ListAssignmentsForHIT", {"HITId": hit})["Assignments"]
    assert "ü 🙂" in result["Answer"]
    api.call("ApproveAssignment", {"AssignmentId": assignment})
    bonus = {"WorkerId": "AONE", "AssignmentId": assignment, "BonusAmount": "1.00", "Reason": "r"}
    api.call("SendBonus", bonus)
    assert str(work.progress("AONE").earned) == "1.25"
    balance = api.call("GetAccountBalance", {})
    assert balance == {"AvailableBalance": "9998.50", "OnHoldBalance": "0.00"}


def test_twelve_messages_at_once_are_five_and_get_replies(api, database):
    work, inquiries = WorkerService(database, api.clock), Inquiries(database, api.clock)
    work.register("AWRITER")
    with ThreadPoolExecutor(12) as pool:
        texts = [f"Message {number}" for number in range(12)]
        sent = list(pool.map(lambda text: inquiries.send("AWRITER", "pilot", "S", text), texts))
    assert sent.count(True) == MAX_PER_HOUR
    rows = inquiries.rows(only_open=True, actor="test")
    assert {row.text for row in rows} == {
        text for text, done in zip(texts, sent, strict=True) if done
    }
    assert inquiries.reply(rows[0].number, "Thank you.", actor="test")
    assert [(letter.subject, letter.text) for letter in work.messages("AWRITER")] == [
        ("Re: S", "Thank you.")
    ]
    assert len(inquiries.rows(only_open=True, actor="test")) == MAX_PER_HOUR - 1


def test_a_participant_who_is_screened_out_leaves_no_answers(api, database):
    participants = Participants(database, api.clock)
    for worker_id, outcome in (("AOUT", SCREENED_OUT), ("AIN", None)):
        entry = Entry(worker_id, "asking", "s1", "x1")
        participants.enter(
            entry, f"nonce {worker_id}", "browser", StudyRules(1), answers={"age": "17"}, outcome=outcome
        )  # fmt: skip
    rows = participants.rows("asking", actor="test")
    assert [(row.outcome, row.answers) for row in rows] == [
        (SCREENED_OUT, None),
        (None, {"age": "17"}),
    ]
    progress = participants.progress("AOUT", "asking", rows[0].number, max_seconds=None)
    assert (progress.outcome, progress.submitted) == (SCREENED_OUT, 0)


def test_opening_it_again_keeps_the_secret_and_the_balance(database, server):
    again = Database(server)
    assert again.secret() == database.secret()
    again.close()


def test_fifty_workers_get_ten_places(api, database, examples):
    hit = api.call("CreateHIT", {**examples.HIT, "MaxAssignments": 10})["HIT"]["HITId"]
    work = WorkerService(database, api.clock)
    workers = [f"AW{number}" for number in range(50)]
    for name in workers:
        work.register(name)

    def accept_hit(name):
        try:
            return work.accept(name, hit).assignment_id
        except WorkError as error:
            return error.code

    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(accept_hit, workers))
    accepted = [result for result in found if result != "Full"]
    assert (len(accepted), len(set(accepted))) == (10, 10)
    assert api.call("GetHIT", {"HITId": hit})["HIT"]["NumberOfAssignmentsPending"] == 10


def test_an_answer_that_is_sent_twenty_times_is_taken_once(api, database, examples):
    hit = api.call("CreateHIT", examples.HIT)["HIT"]["HITId"]
    work = WorkerService(database, api.clock)
    work.register("AONE")
    assignment = work.accept("AONE", hit).assignment_id
    with ThreadPoolExecutor(20) as pool:
        taken = list(
            pool.map(
                lambda number: work.submit(assignment, "AONE", [("q", str(number))]), range(20)
            )
        )
    assert sum(taken) == 1


def test_a_writer_that_hangs_is_rolled_back_and_the_others_go_on(cluster, monkeypatch):
    stuck = str(module.IDLE_TIMEOUT_MILLISECONDS)
    assert stuck in module.SESSION_SETTINGS
    monkeypatch.setattr(module, "SESSION_SETTINGS", module.SESSION_SETTINGS.replace(stuck, "300"))
    url = cluster.create("hanging")
    hanging, other = Database(url), Database(url)

    def hang():
        with hanging.write() as first:
            first.execute(insert(worker).values(worker_id="AONE", registered=1))
            with other.write() as second:  # has its turn when the server has ended the first
                second.execute(insert(worker).values(worker_id="ATWO", registered=1))

    with pytest.raises(DBAPIError):
        hang()
    for store in (hanging, other):
        with store.read() as connection:
            assert connection.scalars(select(worker.c.worker_id)).all() == ["ATWO"]
        store.close()


def test_looking_is_of_one_moment_and_does_not_wait(cluster):
    url = cluster.create("looking")
    one, other = Database(url), Database(url)
    with one.read() as looking, other.write() as writing:
        before = looking.scalar(select(func.count()).select_from(worker))
        writing.execute(insert(worker).values(worker_id="AONE", registered=1))
        writing.commit()
        assert looking.scalar(select(func.count()).select_from(worker)) == before == 0
    with one.read() as looking, pytest.raises(DBAPIError, match="read-only"):
        looking.execute(insert(worker).values(worker_id="ATWO", registered=1))
    for store in (one, other):
        store.close()


def test_answers_wait_for_the_disk_also_where_the_server_would_not(cluster):
    url = cluster.create("careless")
    name = "careless"
    cluster.run("psql", "-h", cluster.folder, "-U", "giccs", "-d", name, "-c",
                f"ALTER DATABASE {name} SET synchronous_commit = off")  # fmt: skip
    database = Database(url)
    with database.write() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    database.close()


def test_a_database_that_cannot_hold_every_text_is_refused(cluster):
    cluster.run("createdb", "-h", cluster.folder, "-U", "giccs", "-E", "LATIN1", "--locale=C",
                "-T", "template0", "latin")  # fmt: skip
    with pytest.raises(InputError, match="LATIN1; expected UTF8"):
        Database(cluster.create("other").replace("/other", "/latin"))
