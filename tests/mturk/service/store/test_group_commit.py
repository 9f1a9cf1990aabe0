"""Writers that queue share a commit, and nothing else."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import event, insert, select, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from mturk.service.store.database import Database
from mturk.service.store.group_commit import MAX_WRITERS
from mturk.service.store.schema import assignment, worker


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def database(request, tmp_path):
    name = request.node.name.partition("[")[0][:50]
    is_file = request.param == "SQLite"
    url = tmp_path / "h.db" if is_file else request.getfixturevalue("cluster").create(name)
    result = Database(url)
    yield result
    result.close()


def register(database, number, failure=None):
    """Register a worker; return whether others see it once `write` has ended."""
    with database.write() as connection:
        connection.execute(insert(worker).values(worker_id=f"A{number:02}", registered=1))
        if failure:
            failure(connection)
    return f"A{number:02}" in stored(database)


def stored(database):
    with database.read() as connection:
        return connection.scalars(select(worker.c.worker_id).order_by(worker.c.worker_id)).all()


def run_queueing(database, n, failures=None):
    """Run writers 1 to n, all of which queue while another one writes; return results and exceptions."""
    failures = failures or {}

    def attempt(number):
        try:
            return register(database, number, failures.get(number))
        except Exception as error:
            return error

    with ThreadPoolExecutor(n) as pool:
        with suppress(SQLAlchemyError), database.write():  # may share the fate of the others
            running = [pool.submit(attempt, number) for number in range(1, n + 1)]
            while database._writers._n_queueing < n:
                time.sleep(0.01)
        return [one.result(60) for one in running]


def commits_of(database):
    commits = []
    event.listen(database.engine, "commit", commits.append)
    return commits


def test_queueing_writers_share_a_commit_and_return_after_it(database):
    commits = commits_of(database)
    assert run_queueing(database, 20) == [True] * 20
    reads = 20
    assert len(commits) - reads == 1
    assert len(stored(database)) == 20


def test_the_number_of_writers_of_a_commit_is_limited(database):
    assert run_queueing(database, 2 * MAX_WRITERS) == [True] * (2 * MAX_WRITERS)
    commits = commits_of(database)
    with ThreadPoolExecutor(MAX_WRITERS) as pool:
        list(pool.map(lambda n: register(database, n), range(100, 100 + 2 * MAX_WRITERS)))
    assert len(commits) >= 2


def test_a_writer_with_an_error_undoes_its_own_changes_only(database):
    def refuse(_):
        raise ValueError("refused")

    results = run_queueing(database, 9, dict.fromkeys((1, 4, 9), refuse))
    assert [type(one) is ValueError for one in results] == [n in (1, 4, 9) for n in range(1, 10)]
    assert stored(database) == ["A02", "A03", "A05", "A06", "A07", "A08"]


def test_a_statement_that_fails_is_an_error_of_its_writer_only(database):
    def again(connection):
        connection.execute(insert(worker).values(worker_id="A03", registered=2))

    results = run_queueing(database, 5, {3: again})
    assert isinstance(results[2], IntegrityError)
    assert stored(database) == ["A01", "A02", "A04", "A05"]


def test_all_writers_of_a_lost_transaction_raise_and_later_ones_go_on(database):
    def lose(connection):
        if database.is_file:  # as SQLite itself does when the disk is full
            connection.exec_driver_sql("ROLLBACK")
        else:
            with database.engine.connect() as other:
                pid = connection.connection.driver_connection.info.backend_pid
                other.execute(text(f"SELECT pg_terminate_backend({pid})"))
        connection.execute(select(worker.c.worker_id)).all()

    results = run_queueing(database, 6, {3: lose})
    lost = [
        number for number, one in enumerate(results, start=1) if isinstance(one, SQLAlchemyError)
    ]
    assert 3 in lost
    assert all(one is True or isinstance(one, SQLAlchemyError) for one in results)
    assert stored(database) == [f"A{n:02}" for n in range(1, 7) if n not in lost]
    assert register(database, 7)


def test_all_writers_of_a_commit_that_fails_raise(tmp_path):
    database = Database(tmp_path / "h.db")

    def refer_to_a_missing_row(connection):
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")  # checked by the commit
        values = dict.fromkeys(("reward", "unit", "auto_approval_delay", "accepted", "deadline"), 1)
        connection.execute(
            insert(assignment).values(
                assignment_id="3A", hit_id="missing", worker_id="A02", status="Accepted", **values
            )
        )

    results = run_queueing(database, 5, {2: refer_to_a_missing_row})
    assert all(isinstance(one, IntegrityError) for one in results)
    assert stored(database) == []
    assert register(database, 7)
    database.close()


def test_a_read_in_between_sees_no_uncommitted_change(database):
    seen = []
    begun, go_on = threading.Event(), threading.Event()

    def wait(connection):
        begun.set()
        go_on.wait(60)

    with ThreadPoolExecutor(2) as pool:
        with database.write() as connection:
            connection.execute(insert(worker).values(worker_id="A00", registered=1))
            second = pool.submit(register, database, 1, wait)
            while not database._writers._n_queueing:
                time.sleep(0.01)
            last = pool.submit(
                lambda: (begun.wait(60) and seen.extend(stored(database))) or go_on.set()
            )
            # the first writer leaves its transaction to the second one, and returns after its commit
        assert stored(database) == ["A00", "A01"]
        assert second.result(60)
        assert last.result(60) is None
    assert seen == []
