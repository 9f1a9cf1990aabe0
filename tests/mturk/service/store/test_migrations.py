"""Schema versions on SQLite and PostgreSQL: create, recognise, migrate, refuse."""

import itertools
import json
import os
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from click.testing import CliRunner
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import IntegrityError

from bws.base.problems import InputError
from mturk.cli import main
from mturk.service.api.protocol import Api
from mturk.service.clock import ManualClock
from mturk.service.rules.work import WorkerService
from mturk.service.store import migrations
from mturk.service.store.database import Database
from mturk.service.store.migrations.versions import v0001_first
from mturk.service.store.schema import VERSIONS, metadata

NUMBERS = itertools.count()
SECRET = b"0123456789abcdef0123456789abcdef"


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request, tmp_path):
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hits.db"
    return request.getfixturevalue("cluster").create(f"tables{next(NUMBERS)}")


def older(url):
    """Create a database of the first version, with a HIT and an accepted assignment."""
    engine = create_engine(url)
    with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
        v0001_first.upgrade()
        for line in ROWS:
            connection.execute(text(line))
        connection.execute(text("INSERT INTO setting VALUES ('secret', :key)"), {"key": SECRET})
    engine.dispose()


ROWS = (
    "INSERT INTO account VALUES (1, 9970, 30)",
    "INSERT INTO worker (worker_id, registered) VALUES ('AONE', 1)",
    "INSERT INTO hit_type VALUES ('K', 'G', 'D', 'Wörter', '🙂', '', 25, 600, 60, '[]')",
    "INSERT INTO hit (hit_id, hit_type_id, created, expiration, question, annotation, max_assignments,"
    " status, review_status, pending, submitted, completed, unit, committed, held, due)"
    " VALUES ('H', 'K', 1, 2e9, 'Q', 'a', 1, 'Unassignable', 'NotReviewed', 1, 0, 0, 30, 30, 30, 2e9)",
    "INSERT INTO assignment (assignment_id, hit_id, worker_id, status, reward, unit,"
    " auto_approval_delay, accepted, deadline, due)"
    " VALUES ('A', 'H', 'AONE', 'Accepted', 25, 30, 60, 1, 1.9e9, 1.9e9)",
)


def tables(url):
    """Return the schema of a database."""
    engine = create_engine(url)
    result = inspect(engine)
    values = {
        name: {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"])
                for column in result.get_columns(name)
            },
            "checks": {constraint["name"] for constraint in result.get_check_constraints(name)},
            "indexes": {
                (
                    constraint["name"],
                    constraint["unique"],
                    *constraint["column_names"],
                    *map(str, constraint.get("dialect_options", {}).values()),
                )
                for constraint in result.get_indexes(name)
            },
            "unique": {
                tuple(constraint["column_names"])
                for constraint in result.get_unique_constraints(name)
            },
            "foreign": {
                (*foreign_key["constrained_columns"], foreign_key["referred_table"])
                for foreign_key in result.get_foreign_keys(name)
            },
        }
        for name in result.get_table_names()
    }
    engine.dispose()
    return values


def stamp(url, version):
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version_num = :v"), {"v": version})
    engine.dispose()


def test_the_steps_lead_from_the_first_version_to_the_newest():
    scripts = ScriptDirectory(migrations.__path__[0])
    chain = [step.revision for step in scripts.walk_revisions()]
    assert tuple(reversed(chain)) == VERSIONS
    assert scripts.get_heads() == [VERSIONS[-1]]


def test_an_empty_database_is_made_at_the_newest_version(empty):
    database = Database(empty)
    assert database.previous_version is None
    with database.read() as connection:
        assert migrations.version(connection) == VERSIONS[-1]
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()
    again = Database(empty)
    assert again.previous_version == VERSIONS[-1]
    again.close()


def test_tables_brought_forward_are_those_made_anew(empty, tmp_path, cluster):
    older(empty)
    Database(empty, migrate=True).close()
    fresh = (
        f"sqlite:///{tmp_path}/fresh.db"
        if empty.startswith("sqlite")
        else cluster.create(f"tables{next(NUMBERS)}")
    )
    Database(fresh).close()
    assert tables(empty) == tables(fresh)


def test_an_older_version_is_recognised_and_waits_until_it_is_asked_for(empty):
    older(empty)
    before = tables(empty)
    with pytest.raises(
        InputError, match=r"version 0001; expected 0004.*\n?.*giccs annotate migrate"
    ):
        Database(empty)
    assert tables(empty) == before


def test_work_that_was_begun_goes_on_after_migrating(empty):
    older(empty)
    database = Database(empty, migrate=True)
    assert database.previous_version == VERSIONS[0]
    assert database.secret() == SECRET
    clock = ManualClock(1.8e9)
    assert WorkerService(database, clock).submit("A", "AONE", [("q", "ü")])
    api = Api(database, clock, {})
    api.call("ApproveAssignment", {"AssignmentId": "A"})
    balance = api.call("GetAccountBalance", {})
    assert balance == {"AvailableBalance": "99.70", "OnHoldBalance": "0.00"}
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(text("INSERT INTO notification VALUES ('none such', '{}', true)"))
    database.close()
    Database(empty).close()


def test_migrating_again_changes_nothing(empty):
    older(empty)
    Database(empty, migrate=True).close()
    before = tables(empty)
    database = Database(empty, migrate=True)
    assert database.previous_version == VERSIONS[-1]
    database.close()
    assert tables(empty) == before


def test_a_step_that_fails_leaves_the_older_version_as_it_was(empty):
    """Two workers on one assignment violate the new constraint."""
    older(empty)
    engine = create_engine(empty)
    with engine.begin() as connection:
        connection.execute(text("UPDATE hit SET submitted = 1"))
    engine.dispose()
    before = tables(empty)
    with pytest.raises(InputError, match="hit_places"):
        Database(empty, migrate=True)
    assert tables(empty) == before


def test_a_newer_version_is_refused_also_by_migrate(empty):
    Database(empty).close()
    stamp(empty, "9999")
    for migrate in (False, True):
        with pytest.raises(InputError, match="version 9999, created by a newer giccs"):
            Database(empty, migrate=migrate)


def test_tables_of_others_are_refused(empty):
    engine = create_engine(empty)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE worker (name TEXT)"))
    engine.dispose()
    with pytest.raises(InputError, match="another program"):
        Database(empty)
    assert list(tables(empty)) == ["worker"]


def test_tables_with_other_names_are_in_no_file_and_are_not_migrated(empty):
    engine = create_engine(empty)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE other (name TEXT)"))
    engine.dispose()
    is_file = engine.dialect.name == "sqlite"
    path = engine.url.database
    before = (Path(path).read_bytes(), os.stat(path).st_mode) if is_file else None
    for migrate in (True, False) if is_file else (True,):
        with pytest.raises(InputError, match="another program"):
            Database(empty, migrate=migrate)
        assert list(tables(empty)) == ["other"]
        if is_file:
            assert (Path(path).read_bytes(), os.stat(path).st_mode) == before
    if not is_file:  # the schema may be shared
        Database(empty).close()
        assert "other" in tables(empty)


def test_an_empty_file_is_restricted_to_its_owner(tmp_path):
    path = tmp_path / "hits.db"
    path.touch(mode=0o644)
    Database(path).close()
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_the_database_refuses_more_assignments_than_places(empty, examples):
    database = Database(empty)
    api = Api(database, ManualClock(1.8e9), {})
    api.call("CreateHIT", {**examples.HIT, "MaxAssignments": 2})
    with pytest.raises(IntegrityError, match="hit_places"), database.write() as connection:
        connection.execute(text("UPDATE hit SET pending = 3"))
    with pytest.raises(IntegrityError, match="hit_counts"), database.write() as connection:
        connection.execute(text("UPDATE hit SET pending = -1"))
    database.close()


def test_the_command(empty, tmp_path):
    older(empty)
    result = CliRunner().invoke(main, ["serve", "--db", empty, "--port", "0"])
    assert result.exit_code == 2
    assert "giccs annotate migrate" in result.output
    result = CliRunner().invoke(main, ["migrate", "--db", empty])
    assert result.output == "the database was migrated from version 0001 to 0004\n"
    result = CliRunner().invoke(main, ["migrate", "--db", empty, "--json"])
    assert json.loads(result.output)["from"] == json.loads(result.output)["to"] == "0004"
    result = CliRunner().invoke(main, ["migrate", "--db", str(tmp_path / "none.db")])
    assert result.exit_code == 2
    assert not (tmp_path / "none.db").exists()


def test_other_kinds_of_database_are_refused():
    with pytest.raises(InputError, match=r"a mysql database; .*postgresql"):
        Database("mysql://user@host/name")
    with pytest.raises(InputError, match="--db: names no file"):
        Database("sqlite://")
