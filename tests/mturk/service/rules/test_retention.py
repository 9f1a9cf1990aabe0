"""Automatic erasure of workers whose time is over, of sessions and of request tokens."""

import os
import sqlite3
import time

import pytest
from sqlalchemy import func, insert, select

from mturk.service import server as server_module
from mturk.service.rules import retention as module
from mturk.service.rules.admission import Entry, StudyRules
from mturk.service.rules.audit import entries
from mturk.service.rules.inquiries import Inquiries
from mturk.service.rules.participation import Participants
from mturk.service.rules.person import export
from mturk.service.rules.retention import SESSION_SECONDS, Retention
from mturk.service.server import ServerOptions
from mturk.service.site.studies import PanelStudy
from mturk.service.store.database import Database
from mturk.service.store.schema import account, assignment, block, hit, session, token
from tests.mturk.service.rules.test_person import (
    ANNA,
    anna,  # noqa: F401 - a fixture
    approve,
    prepare,
)
from tests.mturk.service.site.conftest import Service, service  # noqa: F401 - a fixture

DAY = 86_400


def erased(service, study_days=None, other_days=None):  # noqa: F811
    return Retention(service.database, service.clock, study_days or {}, other_days).run()


def is_stored(service, worker_id=ANNA):  # noqa: F811
    with service.database.read() as connection:
        return any(export(connection, worker_id).values())


def work(service, worker_id, participation=None):  # noqa: F811
    """Submit an assignment of a new HIT, also if blocked; it is approved."""
    hit_id = service.publish()
    with service.database.write() as connection:
        connection.execute(block.delete())
    service.work.register(worker_id)
    taken = service.work.accept(worker_id, hit_id, participation=participation)
    service.work.submit(taken.assignment_id, worker_id, [("answer", f"secret of {worker_id}")])
    approve(service, taken)


def count(service, table):  # noqa: F811
    with service.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(table))


def test_identities_are_erased_when_their_time_is_over(anna):  # noqa: F811
    service, taken = anna  # noqa: F811
    service.clock.advance(31 * DAY)
    with service.database.write() as connection:  # the automatic approval is not due
        connection.execute(assignment.update().values(due=service.clock.now() + DAY))
    assert erased(service, {"pilot": 30}) == 0
    approve(service, taken)
    assert erased(service, {"pilot": 32}) == 0
    assert erased(service, {"other": 1}) == 0
    assert erased(service, {}, 1) == 0
    assert is_stored(service)
    assert erased(service, {"pilot": 31}) == 1
    assert not is_stored(service)
    assert erased(service, {"pilot": 31}) == 0
    with service.database.read() as connection:
        [row] = connection.execute(select(assignment)).all()
        [entry] = entries(connection)
    assert "secret-answer" in row.answer
    assert row.worker_id.startswith("AERASED")
    assert row.feedback is None
    assert (entry.actor, entry.action, entry.details) == (
        "service", "person erase", {"keep_answers": True},
    )  # fmt: skip


def test_the_last_activity_counts(anna):  # noqa: F811
    service, taken = anna  # noqa: F811
    approve(service, taken)
    service.clock.advance(20 * DAY)
    work(service, ANNA, participation=1)
    service.clock.advance(29 * DAY)
    assert erased(service, {"pilot": 30}) == 0
    service.clock.advance(DAY)
    assert erased(service, {"pilot": 30}) == 1


def test_another_study_or_work_outside_keeps_the_identity(anna):  # noqa: F811
    service, taken = anna  # noqa: F811
    approve(service, taken)
    participants = Participants(service.database, service.clock)
    participants.enter(Entry(ANNA, "second"), "nonce2", "browser", StudyRules())
    service.clock.advance(40 * DAY)
    work(service, ANNA)
    assert erased(service, {"pilot": 30}, 10) == 0
    assert erased(service, {"pilot": 30, "second": 30}) == 0
    assert erased(service, {"pilot": 30, "second": 30}, 10) == 0
    service.clock.advance(10 * DAY)
    assert erased(service, {"pilot": 30, "second": 30}, 10) == 1


def test_who_has_withdrawn_is_erased_after_the_review(anna):  # noqa: F811
    service, taken = anna  # noqa: F811
    Participants(service.database, service.clock).withdraw(ANNA, "pilot")
    assert erased(service) == 0
    approve(service, taken)
    service.clock.advance(7 * DAY - 1)
    assert erased(service) == 0  # the code and the messages are open
    service.clock.advance(1)
    assert erased(service) == 1
    assert not is_stored(service)
    with service.database.read() as connection:
        assert connection.scalar(select(assignment.c.answer)) is None


def test_messages_of_who_has_withdrawn_stay_for_a_reply(service):  # noqa: F811
    people = Participants(service.database, service.clock)
    inquiries = Inquiries(service.database, service.clock)
    people.enter(Entry(ANNA, "pilot", "s", "x"), "nonce", "browser", StudyRules())
    people.withdraw(ANNA, "pilot")
    inquiries.send(ANNA, "pilot", "Pay", "Was my answer counted?")
    service.clock.advance(6 * DAY)
    assert erased(service) == 0
    inquiries.reply(1, "Yes.", actor="test")
    service.clock.advance(6 * DAY)
    assert erased(service) == 0
    service.clock.advance(DAY)
    assert erased(service) == 1
    assert not is_stored(service)


def test_who_has_withdrawn_without_work_and_messages_is_erased_at_once(service):  # noqa: F811
    people = Participants(service.database, service.clock)
    people.enter(Entry(ANNA, "pilot", "s", "x"), "nonce", "browser", StudyRules())
    people.withdraw(ANNA, "pilot")
    assert erased(service) == 1


def test_workers_outside_studies_are_erased_if_configured(service):  # noqa: F811
    work(service, "AWORKER")
    service.work.register("AIDLE")
    service.clock.advance(30 * DAY)
    assert erased(service) == 0
    work(service, "ARECENT")
    assert erased(service, other_days=30) == 2
    assert not is_stored(service, "AWORKER")
    assert not is_stored(service, "AIDLE")
    assert is_stored(service, "ARECENT")


def test_an_erasure_stops_at_its_limit_and_continues(service, monkeypatch):  # noqa: F811
    monkeypatch.setattr(module, "MAX_ERASED", 2)
    for number in range(3):
        service.work.register(f"A{number}")
    service.clock.advance(DAY)
    assert [erased(service, other_days=1) for _ in range(3)] == [2, 1, 0]


def test_who_becomes_active_meanwhile_is_not_erased(anna, monkeypatch):  # noqa: F811
    service, taken = anna  # noqa: F811
    approve(service, taken)
    service.clock.advance(31 * DAY)
    job = Retention(service.database, service.clock, {"pilot": 30})
    erase_one = job._erase

    def after_new_work(worker_id, now):
        work(service, ANNA, participation=1)
        return erase_one(worker_id, now)

    monkeypatch.setattr(job, "_erase", after_new_work)
    assert job.run() == 0
    assert is_stored(service)


def test_sessions_are_deleted_when_they_have_ended_or_are_not_used(anna):  # noqa: F811
    service, taken = anna  # noqa: F811
    approve(service, taken)
    participants = Participants(service.database, service.clock)
    participants.enter(Entry("AOTHER"), "unused", "browser", StudyRules())
    participants.enter(Entry(ANNA, "pilot"), "left", "browser", StudyRules())
    participants.leave("left")
    erased(service)
    assert count(service, session) == 3
    service.clock.advance(DAY + 1)
    erased(service)
    assert count(service, session) == 2
    service.clock.advance(SESSION_SECONDS - DAY - 2)
    work(service, ANNA, participation=1)
    service.clock.advance(2)
    erased(service)
    assert count(service, session) == 1  # of the worker who is active
    assert participants.is_open("nonce")


def test_a_long_read_delays_neither_the_erasure_nor_writers_for_long(anna):  # noqa: F811
    service, taken = anna  # noqa: F811
    approve(service, taken)
    service.clock.advance(31 * DAY)
    with service.database.read() as connection:
        connection.execute(select(account)).all()  # a snapshot that needs the log
        began = time.monotonic()
        assert erased(service, {"pilot": 30}) == 1
        assert not service.database.truncate_log()
        assert time.monotonic() - began < 20
    assert service.database.truncate_log()


def test_expired_request_tokens_are_deleted(service):  # noqa: F811
    with service.database.write() as connection:
        for name, age in (("old", DAY), ("new", DAY - 10)):
            row = {"operation": "CreateHIT", "token": name, "made": "3X"}
            connection.execute(insert(token).values(**row, at=service.clock.now() - age))
    erased(service)
    with service.database.read() as connection:
        assert connection.scalars(select(token.c.token)).all() == ["new"]


def test_the_service_erases_by_itself(endpoint_running, tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "DUE_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(server_module, "ERASURE_SECONDS", 0.1)
    studies = [PanelStudy("pilot", "C0DE", retention_days=30)]
    options = ServerOptions(port=0, studies=studies, retention_days=50)
    with endpoint_running(tmp_path, options) as running:
        participants = Participants(running.database, running.clock)
        participants.enter(Entry(ANNA, "pilot"), "nonce", "browser", StudyRules())
        running.work.register("AWORKER")
        running.clock.advance(40 * DAY)
        wait_until(lambda: not is_stored(running))
        assert is_stored(running, "AWORKER")
        running.clock.advance(10 * DAY)
        wait_until(lambda: not is_stored(running, "AWORKER"))


def test_data_that_others_are_reading_are_removed_soon_after(
    endpoint_running, tmp_path, monkeypatch
):
    monkeypatch.setattr(server_module, "DUE_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(server_module, "ERASURE_RETRY_SECONDS", 0.1)
    with endpoint_running(tmp_path, ServerOptions(port=0)) as running:
        path = running.database.url.database
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM account").fetchall()  # a snapshot that needs the log
        running.work.register("AWORKER")
        calls = []
        truncate = running.database.truncate_log
        monkeypatch.setattr(running.database, "truncate_log", lambda: calls.append(truncate()))
        wait_until(lambda: len(calls) >= 2)  # not after an hour
        assert os.path.getsize(f"{path}-wal") > 0
        monkeypatch.setattr(running.database, "truncate_log", truncate)
        reader.close()
        wait_until(lambda: not os.path.getsize(f"{path}-wal"))


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def on_postgresql(cluster):
    database = Database(cluster.create("retention"))
    yield Service(database)
    database.close()


def test_export_erasure_and_counts_on_postgresql(on_postgresql):
    service = on_postgresql  # noqa: F811
    taken = prepare(service)
    assert is_stored(service)
    approve(service, taken)
    with service.database.read() as connection:
        before = connection.execute(select(account)).all()
    service.clock.advance(31 * DAY)
    assert erased(service, {"pilot": 30}) == 1
    assert not is_stored(service)
    with service.database.read() as connection:
        [question] = connection.execute(select(hit)).all()
        [money] = connection.execute(select(account)).all()
    assert question.completed == 1
    assert money.on_hold == question.held
    assert money.available + money.on_hold == sum(before[0][1:])
