"""Statements that the driver executes give what SQLAlchemy gives, on both databases."""

import pytest
from sqlalchemy import bindparam, insert, literal_column, select, update
from sqlalchemy.exc import IntegrityError

from mturk.service.store.database import Database
from mturk.service.store.schema import hit, hit_type, setting, worker
from mturk.service.store.statements import Statement

TYPE = {
    "hit_type_id": "T", "group_id": "G", "digest": "d", "title": "ü 🙂", "description": "", "keywords": "",
    "reward": 25, "duration": 60, "auto_approval_delay": 60,
}  # fmt: skip
REQUIREMENTS = [{"Comparator": "In", "IntegerValues": [1, 2]}]
NEW_WORKER = Statement(insert(worker).inline())


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def database(request, tmp_path):
    is_file = request.param == "SQLite"
    name = request.node.name.partition("[")[0][:50]
    url = tmp_path / "h.db" if is_file else request.getfixturevalue("cluster").create(name)
    result = Database(url)
    yield result
    result.close()


def test_rows_are_those_of_sqlalchemy(database):
    query = select(hit_type).where(hit_type.c.reward >= bindparam("least")).limit(5)
    with database.write() as connection:
        connection.execute(insert(hit_type).values(qualifications=REQUIREMENTS, **TYPE))
        rows = Statement(query).all(connection, {"least": 25})
        expected = connection.execute(query, {"least": 25}).all()
    assert [row._asdict() for row in rows] == [dict(row._mapping) for row in expected]
    assert rows[0].qualifications == REQUIREMENTS
    assert database.first(Statement(query), {"least": 26}) is None


def test_changes_are_counted_and_set_the_columns_among_the_parameters(database):
    change = Statement(update(worker).where(worker.c.worker_id == bindparam("of")))
    with database.write() as connection:
        assert NEW_WORKER.change(connection, {"worker_id": "A1", "registered": 1.5}) == 1
        assert change.change(connection, {"of": "A1", "country": "DE"}) == 1
        assert change.change(connection, {"of": "A2", "country": "DE", "registered": 2.0}) == 0
        (row,) = connection.execute(select(worker)).all()
    assert tuple(row) == ("A1", "DE", None, 1.5)


def test_errors_are_those_of_sqlalchemy_without_values(database):
    values = {"worker_id": "ASECRET", "registered": 1.0}
    with database.write() as connection:
        NEW_WORKER.change(connection, values)
    with pytest.raises(IntegrityError) as caught, database.write() as connection:
        NEW_WORKER.change(connection, values)
    error = caught.value
    assert "ASECRET" not in f"{error} {error.args} {error.orig} {error.orig.args} {error.__cause__}"
    with database.write() as connection:  # the failed writer has ended
        assert NEW_WORKER.change(connection, {**values, "worker_id": "A2"}) == 1


def test_missing_parameters_are_an_error_and_no_null(database):
    query = Statement(select(worker).where(worker.c.country == bindparam("country")))
    with pytest.raises(KeyError, match="country"):
        database.first(query, {})


def test_statements_that_need_sqlalchemy_are_refused(database):
    with database.read() as connection:
        with pytest.raises(TypeError, match="column value is LargeBinary"):
            Statement(select(setting.c.value)).first(connection, {})
        with pytest.raises(ValueError, match="default"):
            Statement(insert(hit)).change(connection, {"hit_id": "3A"})
        unnamed = Statement(select(literal_column("1", worker.c.country.type)))
        assert unnamed.scalar(connection, {}) == 1
