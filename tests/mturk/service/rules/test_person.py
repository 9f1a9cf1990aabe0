"""Export and erasure of everything about one person."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import insert, select

from mturk.cli import main
from mturk.service.rules.admission import Entry, StudyRules
from mturk.service.rules.audit import entries
from mturk.service.rules.participation import Consent, Participants
from mturk.service.rules.person import KEPT_TABLES, export, personal_tables
from mturk.service.store.schema import (
    account,
    assignment,
    bonus,
    hit,
    metadata,
    participation,
    session,
    worker,
)
from tests.mturk.service.site.conftest import service  # noqa: F401 - a fixture

ANNA = "APROLIFIC" + "A" * 24
SECRETS = ("secret-answer", "secret-session", "secret-age", "secret-remark", ANNA)


EXEMPT_TABLES = {
    "account": "the balance of the requester",
    "audit": "says who acted, never on whom",
    "consent": "belongs to a participation; exported with it, and kept without the person",
    "consent_wording": "texts of studies",
    "event": "ids of HITs and assignments",
    "hit": "content of requesters, and counts",
    "hit_type": "content of requesters",
    "notification": "settings of requesters",
    "qualification_type": "content of requesters",
    "revoked_link": "digests of links",
    "schema_version": "version of the tables",
    "setting": "the secret of the service",
    "token": "ids of what requests created",
}
"""Tables that identify nobody -> reason. A new table belongs here, or has a column worker_id."""


@pytest.fixture
def anna(service):  # noqa: F811
    """A service with a participant in every table; returns it and the assignment."""
    return service, prepare(service)


def prepare(service):  # noqa: F811
    service.publish()
    participants = Participants(service.database, service.clock)
    entry = Entry(ANNA, "pilot", "s1", "secret-session")
    number = participants.enter(
        entry, "nonce", "browser", StudyRules(), country="DE",
        agreed=Consent("1", "en", "I agree."), answers={"age": "secret-age"},
    )  # fmt: skip
    group = service.work.offers(ANNA)[0].group_id
    taken = service.work.accept(ANNA, None, group, participation=number)
    service.work.submit(taken.assignment_id, ANNA, [("answer", "secret-answer")])
    with service.database.write() as connection:
        for table in metadata.sorted_tables:
            if "worker_id" in table.c and table not in (worker, participation, session, assignment):
                connection.execute(insert(table).values(**_values(table, taken)))
    return taken


def _values(table, taken):
    """Return a row with the person's id and texts in all required columns."""
    values = {"worker_id": ANNA}
    for column in table.c:
        if column.name in values or column.nullable or column.autoincrement is True:
            continue
        if column.name in ("assignment_id", "hit_id"):
            values[column.name] = getattr(taken, column.name)
        elif column.name.endswith("_id"):
            values[column.name] = f"3{table.name}"
        elif column.type.python_type is str:
            values[column.name] = f"secret-remark {column.name}"
        else:
            values[column.name] = column.type.python_type(1)
    return values


def approve(service, taken):  # noqa: F811
    from mturk.service.rules import lifecycle

    with service.database.write() as connection:
        row = lifecycle.assignment_row(connection, taken.assignment_id)
        lifecycle.approve(connection, row, "secret-remark", service.clock.now())


def run(*arguments, **options):
    return CliRunner().invoke(main, ["person", *arguments], **options)


def test_an_export_contains_every_table_with_the_person(anna, tmp_path):
    service, _ = anna  # noqa: F811
    path = tmp_path / "person.json"
    db = service.database.url.database
    result = run("export", "a" * 24, "--db", db, "-o", str(path))
    assert result.exit_code == 0, result.output
    document = json.loads(path.read_text("utf-8"))
    assert document["worker_id"] == ANNA
    empty = [name for name, rows in document["service"].items() if not rows]
    assert empty == []
    assert set(document["service"]) == {table.name for table in personal_tables()} | {"consent"}
    text = path.read_text("utf-8")
    assert all(secret in text for secret in SECRETS)
    assert document["service"]["consent"][0]["text"] == "I agree."
    unknown = run("export", "ANOBODY", "--db", db)
    assert unknown.exit_code == 2
    assert "nothing is stored about ANOBODY" in unknown.output


def test_an_erased_person_is_nowhere_in_the_files(anna):
    service, taken = anna  # noqa: F811
    approve(service, taken)
    with service.database.read() as connection:
        before = connection.execute(select(account)).all()
    db = service.database.url.database
    declined = CliRunner().invoke(main, ["person", "erase", "a" * 24, "--db", db], input="n\n")
    assert declined.exit_code == 1
    result = run("erase", "a" * 24, "--db", db, "--yes", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["service"]["assignment"] == 1
    with service.database.read() as connection:
        assert not any(export(connection, ANNA).values())
        assert connection.execute(select(account)).all() == before
        [paid] = connection.execute(select(assignment)).all()
        [kept] = connection.execute(select(bonus)).all()
        [question] = connection.execute(select(hit)).all()
    assert (paid.status, paid.reward, paid.answer, paid.feedback) == ("Approved", 25, None, None)
    assert paid.worker_id == kept.worker_id
    assert paid.worker_id.startswith("AERASED")
    assert (kept.amount, question.completed, question.withdrawn) == (1, 1, 1)
    service.database.close()
    for suffix in ("", "-wal"):
        try:
            with open(f"{db}{suffix}", "rb") as file:
                content = file.read()
        except FileNotFoundError:
            continue
        assert [secret for secret in SECRETS if secret.encode() in content] == []


def test_nobody_is_erased_before_the_review(anna):
    service, taken = anna  # noqa: F811
    result = run("erase", "a" * 24, "--db", service.database.url.database, "--yes")
    assert result.exit_code == 2
    assert "1 submitted assignments are not reviewed; review them first" in result.output
    assert taken.assignment_id in result.output
    with service.database.read() as connection:
        assert export(connection, ANNA)["worker"]


def test_every_table_is_personal_or_exempt_for_a_reason(anna):
    service, taken = anna  # noqa: F811
    personal = {table.name for table in personal_tables()}
    assert personal | EXEMPT_TABLES.keys() == set(metadata.tables)
    assert not personal & EXEMPT_TABLES.keys()
    approve(service, taken)
    assert run("export", ANNA, "--db", service.database.url.database).exit_code == 0
    with service.database.read() as connection:
        for name in EXEMPT_TABLES:
            content = str(connection.execute(select(metadata.tables[name])).all())
            assert not [secret for secret in SECRETS if secret in content], name


def test_times_of_an_export_are_dates(anna):
    service, _ = anna  # noqa: F811
    result = run("export", ANNA, "--db", service.database.url.database, "--json")
    rows = json.loads(result.stdout)["service"]
    assert rows["assignment"][0]["submitted"] == "2027-01-15T08:00:00Z"
    assert rows["assignment"][0]["reward"] == 25
    assert rows["participation"][0]["answers"] == {"age": "secret-age"}


def test_an_erased_person_is_not_in_the_files_of_a_running_service(anna):
    service, taken = anna  # noqa: F811
    approve(service, taken)
    with service.database.read():  # a connection that stays in the pool of the service
        pass
    db = service.database.url.database
    assert run("erase", ANNA, "--db", db, "--yes").exit_code == 0
    content = b"".join(path.read_bytes() for path in Path(db).parent.glob("hits.db*"))
    assert [secret for secret in SECRETS if secret.encode() in content] == []


def test_who_is_not_reviewed_can_be_approved_and_erased(anna):
    service, taken = anna  # noqa: F811
    db = service.database.url.database
    result = run("erase", ANNA, "--db", db, "--unreviewed", "approve", "--yes")
    assert result.exit_code == 0, result.output
    assert "1 assignment" not in result.stderr
    with service.database.read() as connection:
        [paid] = connection.execute(select(assignment)).all()
        [money] = connection.execute(select(account)).all()
        [question] = connection.execute(select(hit)).all()
        acts = [(row.action, row.subject, row.details) for row in entries(connection)]
    assert (paid.status, paid.approved) == ("Approved", pytest.approx(time.time(), abs=60))
    assert (question.submitted, question.completed) == (0, 1)
    assert money.on_hold == question.held
    assert acts == [
        ("ApproveAssignment", taken.assignment_id, {}),
        ("person erase", "", {"keep_answers": False}),
    ]


def test_an_erasure_says_what_is_removed_and_what_stays(anna):
    service, taken = anna  # noqa: F811
    approve(service, taken)
    db = service.database.url.database
    declined = CliRunner().invoke(main, ["person", "erase", ANNA, "--db", db], input="n\n")
    removed, stays = declined.stderr.splitlines()[1:3]
    assert "1 session" in removed
    assert "1 message" in removed
    assert "1 worker" in removed
    assert "1 assignment" in stays
    assert "1 bonus" in stays
    assert "Files written before, and backups, are not changed." in declined.stderr
    with service.database.read() as connection:
        assert export(connection, ANNA)["session"]
        assert entries(connection) == []


def test_an_interrupted_erasure_is_completed(anna, monkeypatch):
    service, taken = anna  # noqa: F811
    approve(service, taken)
    db = service.database.url.database
    with monkeypatch.context() as patch:
        patch.setattr("mturk.service.rules.person.audit.record", _fail)
        with pytest.raises(RuntimeError):
            run("erase", ANNA, "--db", db, "--yes", catch_exceptions=False)
    with service.database.read() as connection:
        stored = export(connection, ANNA)
    assert stored["assignment"][0]["answer"]
    assert stored["message"]
    assert run("erase", ANNA, "--db", db, "--yes").exit_code == 0
    with service.database.read() as connection:
        assert not any(export(connection, ANNA).values())


def _fail(*_, **__):
    raise RuntimeError("the power failed")


def test_columns_that_are_emptied_exist():
    for table, values in KEPT_TABLES.items():
        assert set(values) <= set(table.c.keys())
