"""Export and erasure of everything about one person, on request and after a period."""

import json

import pytest
from click.testing import CliRunner
from sqlalchemy import insert, select

from mturk.cli import main
from mturk.service.rules.participation import Consent, Entry, Participants, StudyRules
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
DAY = 86_400


@pytest.fixture
def anna(service):  # noqa: F811
    """A service with a participant in every table; returns it and the assignment."""
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
    return service, taken


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


def run(*arguments):
    return CliRunner().invoke(main, ["person", *arguments])


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


def test_columns_that_are_emptied_exist():
    for table, values in KEPT_TABLES.items():
        assert set(values) <= set(table.c.keys())
