"""What a study meant, sent, created, collected and decided: one SQLite file that survives a crash.

Every step is committed to the disk (WAL, synchronous FULL) before and after the call that it is about.
Times are seconds since 1970 as float, amounts are text with two decimals.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from decimal import Decimal
from typing import Any, Literal

from bws.problems import InputError, Problem
from mturk.study.plan import HitPlan
from mturk.study.settings import Settings

__all__ = [
    "Action",
    "ActionKind",
    "Assignment",
    "Hit",
    "Ledger",
    "LedgerPart",
    "LedgerStudy",
]

log = logging.getLogger(__name__)

APPLICATION = 0x474D5455
VERSION = 1
BUSY_SECONDS = 30.0
MISTAKES = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
"""What SQLite says of this program, not of disk and file."""
DAMAGED = "is damaged ({}); put a backup in its place, then publish and collect again"
MAY_CHANGE = frozenset(
    ["lifetime", "spending_limit", "expected_seconds", "currency", "exchange_rate", "minimum_wage"]
)
"""Settings that may change while a study runs."""

HitState = Literal["meant", "sent", "created", "closed"]
ActionKind = Literal["approve", "reject", "bonus", "extend", "expire"]
ActionState = Literal["meant", "sent", "done", "failed"]

SCHEMA = """
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE hit (
    number INTEGER PRIMARY KEY,
    annotation TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL UNIQUE,
    question TEXT NOT NULL,
    question_sha256 TEXT NOT NULL,
    max_assignments INTEGER NOT NULL CHECK (max_assignments > 0),
    state TEXT NOT NULL CHECK (state IN ('meant', 'sent', 'created', 'closed')),
    first_sent REAL,
    hit_id TEXT UNIQUE,
    created_at REAL,
    CHECK ((state IN ('created', 'closed')) = (hit_id IS NOT NULL))
);
CREATE TABLE part (
    number INTEGER NOT NULL REFERENCES hit,
    position INTEGER NOT NULL,
    tuple_id TEXT NOT NULL,
    grp TEXT NOT NULL,
    items TEXT NOT NULL,
    PRIMARY KEY (number, position)
) WITHOUT ROWID;
CREATE TABLE assignment (
    assignment_id TEXT PRIMARY KEY,
    hit_id TEXT NOT NULL REFERENCES hit (hit_id),
    worker TEXT NOT NULL,
    status TEXT NOT NULL,
    accept_time REAL,
    submit_time REAL,
    answer_xml TEXT NOT NULL,
    collected_at REAL NOT NULL,
    auto_approval_time REAL,
    approval_time REAL,
    rejection_time REAL,
    feedback TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX assignment_hit ON assignment (hit_id);
CREATE TABLE action (
    token TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('approve', 'reject', 'bonus', 'extend', 'expire')),
    target TEXT NOT NULL,
    amount TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('meant', 'sent', 'done', 'failed')),
    at REAL NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class LedgerStudy:
    """What all HITs of a ledger share."""

    endpoint: str
    """The service's address."""
    settings: Settings
    created: float
    hit_type_id: str | None = None
    """None until the service has given one."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A HIT as the ledger knows it."""

    number: int
    annotation: str
    token: str
    question_sha256: str
    max_assignments: int
    state: HitState
    first_sent: float | None
    """None: never."""
    hit_id: str | None
    created_at: float | None


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """A tuple, pair or triplet of a HIT."""

    number: int
    """Of the HIT."""
    position: int
    tuple_id: str
    group: str
    items: tuple[str, ...]

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The items, as in a planned part."""
        return self.items


@dataclass(frozen=True, slots=True)
class Assignment:
    """What came back, the answer as it was."""

    assignment_id: str
    hit_id: str
    worker: str
    """A pseudonym, unless the study keeps ids."""
    status: str
    """Submitted, Approved or Rejected."""
    accept_time: float | None
    submit_time: float | None
    answer_xml: str
    collected_at: float
    auto_approval_time: float | None = None
    approval_time: float | None = None
    rejection_time: float | None = None
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A decision that costs or ends something: done at most once, by its token."""

    token: str
    kind: ActionKind
    target: str
    """The assignment's id, or the HIT's for extend and expire."""
    amount: str = ""
    """Dollars of a bonus; assignments or seconds of an extension."""
    text: str = ""
    """Feedback or reason."""
    state: ActionState = "meant"
    at: float = 0.0
    """When it came into this state."""


class Ledger:
    """The ledger of one study; `open` it in a ``with`` statement.

    Several processes may read and collect at the same time; who creates, pays or ends something
    does it `exclusive_lock`.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self.connection = connection
        self.path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Ledger:
        """Open a ledger; with `create` make the file (mode 0600) where there is none.

        Raises InputError where there is no file, or it is damaged, no ledger or one of another version, and
        OSError where the disk is full or the folder cannot be written.
        """
        name = os.fspath(path)
        if create:
            with suppress(FileExistsError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if not os.path.isfile(name):
            raise _input_error(
                name, "no such ledger; mturk-hits publish makes it, --ledger names it"
            )
        connection = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            _prepare(connection, name)
        except sqlite3.DatabaseError as error:
            connection.close()
            raise _translate_error(name, error) from None
        except BaseException:
            connection.close()
            raise
        if log.isEnabledFor(logging.DEBUG):
            counts = [_count(connection, table) for table in ("hit", "assignment", "action")]
            log.debug("ledger %s: %d HITs, %d assignments, %d decisions", name, *counts)
        return cls(connection, name)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file; what SQLite says of disk and file becomes an OSError or an InputError."""
        self.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, MISTAKES):
            raise _translate_error(self.path, error) from None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write: all of it is on the disk at the end, or nothing. Waits while another process writes."""
        with _explain_busy(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # a full disk may have ended it
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Keep every other process that asks for the same out; InputError where one is at work.

        The lock is SQLite's own on ``<ledger>.lock``, so the end of the process, however it comes,
        frees it on every system.
        """
        lock_connection = sqlite3.connect(f"{self.path}.lock", timeout=0, isolation_level=None)
        try:
            with _explain_busy(self.path):
                lock_connection.execute("BEGIN EXCLUSIVE")
            yield
        finally:
            lock_connection.close()

    # The study and its HITs

    def study(self) -> LedgerStudy:
        """Return the study; InputError where none was begun."""
        values = dict(self.connection.execute("SELECT key, value FROM study"))
        if "endpoint" not in values:
            raise _input_error(self.path, "holds no study yet; mturk-hits publish begins one")
        try:
            settings, created = (
                _settings_from_json(values["settings"]),
                float(values["created"]),
            )
        except (ArithmeticError, KeyError, TypeError, ValueError):
            raise _input_error(self.path, DAMAGED.format("its settings cannot be read")) from None
        return LedgerStudy(values["endpoint"], settings, created, values.get("hit_type_id"))

    def start_study(
        self, endpoint: str, settings: Settings, plans: Sequence[HitPlan], now: float
    ) -> None:
        """Write down what is meant; the same again is fine, and before anything was sent so is a change.

        Raises InputError with every difference where the ledger holds another study.
        """
        with self.transaction() as connection:
            if self._is_unpublished():
                for table in ("part", "hit", "study"):
                    connection.execute(f"DELETE FROM {table}")
                study = {"endpoint": endpoint, "created": repr(now)}
                connection.executemany("INSERT INTO study VALUES (?, ?)", study.items())
                self._insert(plans, settings.assignments)
            elif differences := self._differences(endpoint, settings, plans):
                raise InputError(Problem(self.path, None, text) for text in differences)
            self._set("settings", _settings_to_json(settings))

    def add_hits(self, plans: Sequence[HitPlan], max_assignments: int) -> int:
        """Write down further HITs of the study, such as those that top up tuples; return how many are new.

        They are numbered on from the last. A HIT whose annotation is known is not written twice.
        """
        with self.transaction():
            existing_hits = self.hits()
            last = max((hit.number for hit in existing_hits), default=0)
            annotations = {hit.annotation for hit in existing_hits}
            new = [plan for plan in plans if plan.annotation not in annotations]
            numbered = [replace(plan, number=n) for n, plan in enumerate(new, start=last + 1)]
            self._insert(numbered, max_assignments)
        return len(numbered)

    def hits(self) -> tuple[Hit, ...]:
        """Return all HITs by number."""
        rows = self.connection.execute(f"SELECT {_columns(Hit)} FROM hit ORDER BY number")
        return tuple(Hit(*row) for row in rows)

    def question(self, number: int) -> str:
        """Return the question of a HIT as it was rendered when it was meant."""
        cursor = self.connection.execute("SELECT question FROM hit WHERE number = ?", [number])
        return str(cursor.fetchone()[0])

    def parts(self) -> tuple[LedgerPart, ...]:
        """Return all tuples by HIT and position."""
        rows = self.connection.execute(
            "SELECT number, position, tuple_id, grp, items FROM part ORDER BY number, position"
        )
        try:
            return tuple(
                LedgerPart(number, position, tuple_id, group, tuple(json.loads(items)))
                for number, position, tuple_id, group, items in rows
            )
        except ValueError:
            raise _input_error(self.path, DAMAGED.format("its tuples cannot be read")) from None

    def set_hit_type(self, hit_type_id: str) -> None:
        """Write down the HIT type that the service made."""
        with self.transaction():
            self._set("hit_type_id", hit_type_id)

    def mark_sent(self, numbers: Iterable[int], now: float) -> None:
        """Write down, before the calls, that HITs are sent: from now on they may exist."""
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE hit SET state = 'sent', first_sent = COALESCE(first_sent, ?) "
                "WHERE number = ? AND state IN ('meant', 'sent')",
                [(now, number) for number in numbers],
            )

    def mark_created(self, number: int, hit_id: str, max_assignments: int, now: float) -> None:
        """Write down which HIT the service has, made just now or found there."""
        self._update_row(
            "UPDATE hit SET state = 'created', hit_id = ?, max_assignments = ?, created_at = ? "
            "WHERE number = ? AND state IN ('meant', 'sent')",
            [hit_id, max_assignments, now, number],
        )

    def set_max_assignments(self, number: int, max_assignments: int) -> None:
        """Write down how many assignments a HIT has now."""
        self._update_row(
            "UPDATE hit SET max_assignments = ? WHERE number = ?", [max_assignments, number]
        )

    def mark_closed(self, number: int) -> None:
        """Write down that a HIT is offered no more."""
        self._update_row(
            "UPDATE hit SET state = 'closed' WHERE number = ? AND state IN ('created', 'closed')",
            [number],
        )

    def mark_reopened(self, number: int) -> None:
        """Write down that a HIT is offered again."""
        self._update_row(
            "UPDATE hit SET state = 'created' WHERE number = ? AND state IN ('created', 'closed')",
            [number],
        )

    # What came back

    def store_assignments(self, assignments: Iterable[Assignment]) -> tuple[int, int]:
        """Write down assignments; return how many are new and how many changed.

        What a worker said and when is never overwritten; the review's outcome is.
        """
        rows = [astuple(assignment) for assignment in assignments]
        reviewed = ("status", "auto_approval_time", "approval_time", "rejection_time", "feedback")
        names = _columns(Assignment)
        with self.transaction() as connection:
            before = _count(connection, "assignment")
            changes = connection.total_changes
            connection.executemany(
                f"INSERT INTO assignment ({names}) VALUES ({_placeholders(Assignment)}) "
                "ON CONFLICT (assignment_id) DO UPDATE SET "
                + ", ".join(f"{name} = excluded.{name}" for name in reviewed)
                + f" WHERE ({', '.join(reviewed)}) IS NOT "
                f"({', '.join(f'excluded.{name}' for name in reviewed)})",
                rows,
            )
            new = _count(connection, "assignment") - before
            return new, connection.total_changes - changes - new

    def assignments(self) -> tuple[Assignment, ...]:
        """Return all assignments, by HIT and then by the time of submission."""
        rows = self.connection.execute(
            f"SELECT {_columns(Assignment, 'a.')} FROM assignment a JOIN hit USING (hit_id) "
            "ORDER BY hit.number, a.submit_time, a.assignment_id"
        )
        return tuple(Assignment(*row) for row in rows)

    # What was decided

    def plan_actions(self, actions: Iterable[Action], now: float) -> int:
        """Write down decisions before they are carried out; return how many are new.

        An action whose token is known stays as it is.
        """
        rows = [(*astuple(action)[:5], float(now)) for action in actions]
        with self.transaction() as connection:
            before = _count(connection, "action")
            connection.executemany(
                "INSERT INTO action (token, kind, target, amount, text, state, at) "
                "VALUES (?, ?, ?, ?, ?, 'meant', ?) ON CONFLICT (token) DO NOTHING",
                rows,
            )
            return _count(connection, "action") - before

    def set_action_state(self, token: str, state: ActionState, now: float) -> None:
        """Write down how far an action is."""
        self._update_row("UPDATE action SET state = ?, at = ? WHERE token = ?", [state, now, token])

    def actions(self, *states: ActionState) -> tuple[Action, ...]:
        """Return the actions in these states (all where none is named), oldest first."""
        rows = self.connection.execute(f"SELECT {_columns(Action)} FROM action ORDER BY at, token")
        all_actions = (Action(*row) for row in rows)
        return tuple(action for action in all_actions if not states or action.state in states)

    # What is kept besides, and what is forgotten

    def get_note(self, key: str) -> str:
        """Return what was noted under a key; empty where nothing was."""
        cursor = self.connection.execute("SELECT value FROM study WHERE key = ?", [f"note {key}"])
        row = cursor.fetchone()
        return str(row[0]) if row else ""

    def set_note(self, key: str, value: str) -> None:
        """Note something about the study; it replaces what was noted under this key."""
        with self.transaction():
            self._set(f"note {key}", value)

    def exclude_deleted(self, assignments: Iterable[Assignment]) -> list[Assignment]:
        """Return the assignments that nobody asked to forget."""
        forgotten = self.get_note("forgotten").split()
        return [
            assignment
            for assignment in assignments
            if _sha256(assignment.assignment_id) not in forgotten
        ]

    def delete_assignments(self, assignment_ids: Sequence[str]) -> int:
        """Delete assignments and every trace of their workers; return how many were there.

        Of what was decided on them, kind and amount stay, so that nothing is paid twice. What is deleted
        is no longer in the file; InputError where another process that has it open keeps it there.
        """
        marks = [(assignment_id,) for assignment_id in assignment_ids]
        with self.transaction() as connection:
            before = _count(connection, "assignment")
            connection.executemany("DELETE FROM assignment WHERE assignment_id = ?", marks)
            connection.executemany(
                "UPDATE action SET target = '', text = '', "
                "state = CASE state WHEN 'done' THEN 'done' ELSE 'failed' END WHERE target = ?",
                marks,
            )
            hashes = {*self.get_note("forgotten").split(), *map(_sha256, assignment_ids)}
            self._set("note forgotten", " ".join(sorted(hashes)))
            gone = before - _count(connection, "assignment")
        self.connection.execute("VACUUM")
        busy = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            message = (
                "it is deleted, but stays in the file until the other process that reads it ends"
            )
            raise _input_error(self.path, message)
        return gone

    # Inside

    def _is_unpublished(self) -> bool:
        """Tell whether the service knows nothing of this ledger yet."""
        touched = self.connection.execute("SELECT 1 FROM hit WHERE state != 'meant' LIMIT 1")
        typed = self.connection.execute("SELECT 1 FROM study WHERE key = 'hit_type_id'")
        return not touched.fetchone() and not typed.fetchone()

    def _insert(self, plans: Sequence[HitPlan], max_assignments: int) -> None:
        self.connection.executemany(
            "INSERT INTO hit (number, annotation, token, question, question_sha256, max_assignments, "
            "state) VALUES (?, ?, ?, ?, ?, ?, 'meant')",
            [
                (p.number, p.annotation, p.token, p.question, _sha256(p.question), max_assignments)
                for p in plans
            ],
        )
        self.connection.executemany(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?)",
            [
                (plan.number, position, part.tuple_id, part.group, _items_json(part.item_ids))
                for plan in plans
                for position, part in enumerate(plan.parts)
            ],
        )

    def _differences(
        self, endpoint: str, settings: Settings, plans: Sequence[HitPlan]
    ) -> list[str]:
        study = self.study()
        differences = []
        if study.endpoint != endpoint:
            differences.append(f"belongs to the service {study.endpoint}, not to {endpoint}")
        for field in fields(Settings):
            was, is_now = getattr(study.settings, field.name), getattr(settings, field.name)
            if was != is_now and field.name not in MAY_CHANGE:
                differences.append(
                    f"was begun with {field.name} {_shorten(was)}, not {_shorten(is_now)}"
                )
        existing_hits = {hit.number: hit for hit in self.hits()}
        changed = [
            plan.number for plan in plans if not _is_same_hit(existing_hits.get(plan.number), plan)
        ]
        if changed:
            numbers = ", ".join(map(str, changed[:5])) + (", ..." if len(changed) > 5 else "")
            differences.append(
                f"{len(changed)} of {len(plans)} HITs are others than those it holds ({numbers}): "
                "tuples, dialogues or the settings have changed"
            )
        advice = "a ledger keeps one study; name another --ledger for another one"
        return [f"{text}; {advice}" for text in differences]

    def _set(self, key: str, value: str) -> None:
        self.connection.execute(
            "INSERT INTO study VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [key, value],
        )

    def _update_row(self, statement: str, values: Sequence[Any]) -> None:
        """Change exactly one row; LookupError where there is none in such a state."""
        with self.transaction() as connection:
            if connection.execute(statement, values).rowcount != 1:
                raise LookupError(f"{self.path} has no row for {statement!r} with {values!r}")


def _prepare(connection: sqlite3.Connection, name: str) -> None:
    if not _count(connection, "sqlite_master"):
        _use_write_ahead_log(connection)
        connection.execute("BEGIN IMMEDIATE")  # of two that make a ledger the second waits here
        if not _count(connection, "sqlite_master"):
            for statement in SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    if _pragma_value(connection, "application_id") != APPLICATION:
        raise _input_error(name, "is a database, but no ledger; name another --ledger")
    if (version := _pragma_value(connection, "user_version")) != VERSION:
        raise _input_error(name, f"is a ledger of version {version}; this giccs reads {VERSION}")
    _check_integrity(connection, name)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to the journal mode WAL; tried again while another process does the same.

    Of two connections that switch, SQLite refuses one at once, without the wait that other locks have.
    """
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _check_integrity(connection: sqlite3.Connection, name: str) -> None:
    """Refuse a file whose pages do not fit together: rows would be missing without a word."""
    problems = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
    problems = problems if problems != ["ok"] else []
    for table, _, of, _ in connection.execute("PRAGMA foreign_key_check"):
        problems.append(f"a row of {table} belongs to no {of}")
    if problems:
        raise _input_error(name, DAMAGED.format(" ".join(problems[0].split())))


def _pragma_value(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


@contextmanager
def _explain_busy(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" not in str(error) and "busy" not in str(error):
            raise
        message = "another mturk-hits is at work on this ledger; wait until it has ended"
        raise _input_error(path, message) from None


def _translate_error(path: str, error: sqlite3.DatabaseError) -> InputError | OSError:
    """Return what SQLite's error means to people: a file that cannot be used, or a disk that cannot."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return OSError(errno.EROFS, f"cannot be written, nor the folder it is in ({error})", path)
    if name.startswith("SQLITE_IOERR"):
        return OSError(errno.EIO, f"cannot be read or written ({error})", path)
    return _input_error(path, f"cannot be used as a ledger ({error})")


def _input_error(path: str, message: str) -> InputError:
    return InputError(Problem(path, None, message))


def _columns(record: type, prefix: str = "") -> str:
    return ", ".join(prefix + field.name for field in fields(record))


def _placeholders(record: type) -> str:
    return ", ".join("?" for _ in fields(record))


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _items_json(item_ids: Sequence[str]) -> str:
    return json.dumps(item_ids, ensure_ascii=False)


def _is_same_hit(hit: Hit | None, plan: HitPlan) -> bool:
    """The page's markup may differ: the one that was meant first is sent."""
    return hit is not None and (hit.annotation, hit.token) == (plan.annotation, plan.token)


def _shorten(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _settings_to_json(settings: Settings) -> str:
    values = {field.name: getattr(settings, field.name) for field in fields(Settings)}
    return json.dumps(values, default=str, ensure_ascii=False)


def _settings_from_json(text: str) -> Settings:
    field_types = {field.name: type(getattr(Settings(), field.name)) for field in fields(Settings)}
    values = json.loads(text).items()
    return Settings(**{key: field_types[key](value) for key, value in values if key in field_types})
