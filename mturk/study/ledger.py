"""Ledger of a study: planned and published HITs, assignments and actions in one crash-safe SQLite file.

Every step is committed to disk (WAL, synchronous FULL) before and after the corresponding call.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from decimal import Decimal
from typing import Any, Literal

from bws.base.problems import InputError, Problem
from mturk.study.plan import HitPlan, PlannedAnchors, Rounds
from mturk.study.settings import Settings

log = logging.getLogger(__name__)

APPLICATION_ID = 0x474D5455
VERSION = 1
BUSY_SECONDS = 30.0
PROGRAMMING_ERRORS = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
"""SQLite errors caused by this program, not by the disk or the file."""
AUDIT_NOTE = "audit"
ROUNDS_NOTE = "rounds"
CONTROLS_NOTE = "controls"
ANCHORS_NOTE = "anchors"
DAMAGED = "is damaged ({}); restore a backup, then publish and collect again"
CHANGEABLE_SETTINGS = frozenset(
    ["lifetime", "spending_limit", "expected_seconds", "currency", "exchange_rate", "minimum_wage"]
)
"""Settings that may change during a study."""

HitState = Literal["meant", "sent", "created", "closed"]
ActionKind = Literal["approve", "reject", "bonus", "extend", "expire", "screen-out"]
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
    kind TEXT NOT NULL
        CHECK (kind IN ('approve', 'reject', 'bonus', 'extend', 'expire', 'screen-out')),
    target TEXT NOT NULL,
    amount TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('meant', 'sent', 'done', 'failed')),
    at REAL NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class LedgerStudy:
    """Properties shared by all HITs of a ledger."""

    endpoint: str
    """Address of the service."""
    settings: Settings
    created: float
    hit_type_id: str | None = None
    """None until the HIT type is created."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A HIT as stored in the ledger."""

    number: int
    annotation: str
    token: str
    question_sha256: str
    max_assignments: int
    state: HitState
    first_sent: float | None
    """None if never sent."""
    hit_id: str | None
    created_at: float | None


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """A tuple, pair or triplet of a HIT."""

    number: int
    """Number of the HIT."""
    position: int
    tuple_id: str
    group: str
    items: tuple[str, ...]

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Item ids or texts, as in a planned part."""
        return self.items


@dataclass(frozen=True, slots=True)
class Assignment:
    """A collected assignment with its unchanged answer."""

    assignment_id: str
    hit_id: str
    worker: str
    """Pseudonym, or the worker id if the study stores ids."""
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
    """A paid or irreversible operation, executed at most once per token."""

    token: str
    kind: ActionKind
    target: str
    """Assignment id; for extend and expire, HIT id."""
    amount: str = ""
    """Bonus in US dollars; number of assignments or seconds of an extension."""
    text: str = ""
    """Feedback or reason."""
    state: ActionState = "meant"
    at: float = 0.0
    """Time of the last change of state."""


class Ledger:
    """The ledger of one study; `open` it in a ``with`` statement.

    Several processes may read and collect at the same time. Creating, paying and closing requires
    `exclusive_lock`.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self.connection = connection
        self.path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Ledger:
        """Open a ledger; with `create`, create a missing file with mode 0600.

        Raises InputError if the file is missing, damaged, not a ledger or of another version. Raises OSError
        if the disk is full or the directory is not writable.
        """
        name = os.fspath(path)
        if create:
            with suppress(FileExistsError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if not os.path.isfile(name):
            raise _input_error(
                name,
                "ledger not found; expected a file created by giccs annotate publish (see --ledger)",
            )
        connection = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            _prepare(connection, name)
        except sqlite3.DatabaseError as error:
            connection.close()
            raise _translate_error(name, error) from None
        except BaseException:
            connection.close()
            raise
        if log.isEnabledFor(logging.DEBUG):
            counts = [_count(connection, table) for table in ("hit", "assignment", "action")]
            log.debug("ledger %s: %d HITs, %d assignments, %d actions", name, *counts)
        return cls(connection, name)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file; SQLite errors about the disk or the file become OSError or InputError."""
        self.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, PROGRAMMING_ERRORS):
            raise _translate_error(self.path, error) from None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a write transaction; wait while another process writes."""
        with _explain_busy(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # a full disk may have ended the transaction
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Lock the ledger for this process; InputError if another process holds the lock.

        The lock is a SQLite lock on ``<ledger>.lock``, so it is released on every platform when the process
        ends or crashes.
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
        """Return the study; InputError if it is missing."""
        values = dict(self.connection.execute("SELECT key, value FROM study"))
        if "endpoint" not in values:
            raise _input_error(
                self.path, "contains no study; expected a ledger written by giccs annotate publish"
            )
        try:
            settings, created = (
                _settings_from_json(values["settings"]),
                float(values["created"]),
            )
        except (ArithmeticError, KeyError, TypeError, ValueError):
            raise _input_error(self.path, DAMAGED.format("its settings are unreadable")) from None
        return LedgerStudy(values["endpoint"], settings, created, values.get("hit_type_id"))

    def is_published(self) -> bool:
        """Return whether a HIT or the HIT type of this ledger may exist at the service."""
        sent_hits = self.connection.execute("SELECT 1 FROM hit WHERE state != 'meant' LIMIT 1")
        hit_types = self.connection.execute("SELECT 1 FROM study WHERE key = 'hit_type_id'")
        return bool(sent_hits.fetchone() or hit_types.fetchone())

    def start_study(
        self, endpoint: str, settings: Settings, plans: Sequence[HitPlan], now: float,
        rounds: Rounds | None = None, controls: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Record the plan of a study; the call can be repeated, with changes until HITs are sent.

        Raises InputError with all differences if the ledger contains another study.
        """
        with self.transaction() as connection:
            if not self.is_published():
                for table in ("part", "hit", "study"):
                    connection.execute(f"DELETE FROM {table}")
                study = {"endpoint": endpoint, "created": repr(now)}
                connection.executemany("INSERT INTO study VALUES (?, ?)", study.items())
                self._insert(plans, settings.assignments)
                self._add_rounds(rounds or {})
                if controls:
                    text = json.dumps(dict(controls), ensure_ascii=False)
                    self._set(f"note {CONTROLS_NOTE}", text)
            elif differences := self._differences(endpoint, settings, plans):
                raise InputError(Problem(self.path, None, text) for text in differences)
            self._set("settings", _settings_to_json(settings))

    def add_hits(
        self, plans: Sequence[HitPlan], max_assignments: int, rounds: Rounds | None = None,
        notes: Sequence[tuple[str, str]] = (),
    ) -> int:  # fmt: skip
        """Record further HITs of the study, such as those of a top-up; return the number of new ones.

        Numbering continues after the last HIT. HITs with an existing annotation are skipped. notes: keys and
        texts of notes that are stored with them.
        """
        with self.transaction():
            existing_hits = self.hits()
            last = max((hit.number for hit in existing_hits), default=0)
            annotations = {hit.annotation for hit in existing_hits}
            new_plans = [plan for plan in plans if plan.annotation not in annotations]
            numbered = [replace(plan, number=n) for n, plan in enumerate(new_plans, start=last + 1)]
            self._insert(numbered, max_assignments)
            self._add_rounds(rounds or {})
            for key, text in notes:
                self._set(f"note {key}", text)
        return len(numbered)

    def add_anchors(self, anchors: PlannedAnchors, max_assignments: int) -> int:
        """Record the HITs of the anchors; return the number of new ones. The call can be repeated.

        Raises InputError if the ledger contains other anchors.
        """
        text = self.get_note(ANCHORS_NOTE)
        if text and json.loads(text)["digest"] != anchors.digest:
            message = (
                "contains other anchors: their plan, tuples, dialogues or settings have changed"
            )
            raise _input_error(self.path, f"{message}; a study has one plan of anchors")
        parts = [part.tuple_id for plan in anchors.hits for part in plan.parts]
        note = {"kind": anchors.kind, "digest": anchors.digest, "parts": parts}
        text = json.dumps(note, ensure_ascii=False)
        return self.add_hits(anchors.hits, max_assignments, notes=[(ANCHORS_NOTE, text)])

    def anchors(self) -> dict[str, str]:
        """Return the kind of each part that is an anchor; empty for a study without anchors."""
        note = json.loads(self.get_note(ANCHORS_NOTE) or "{}")
        return {str(part_id): str(note["kind"]) for part_id in note.get("parts", ())}

    def rounds(self) -> Rounds:
        """Return the rounds of the tuples; empty for a study without rounds."""
        text = self.get_note(ROUNDS_NOTE)
        return {name: tuple(values) for name, values in json.loads(text).items()} if text else {}

    def controls(self) -> dict[str, str]:
        """Return the column ``control`` by tuple; empty for a study without control items."""
        text = self.get_note(CONTROLS_NOTE)
        return dict(json.loads(text)) if text else {}

    def hits(self) -> tuple[Hit, ...]:
        """Return all HITs by number."""
        rows = self.connection.execute(f"SELECT {_columns(Hit)} FROM hit ORDER BY number")
        return tuple(Hit(*row) for row in rows)

    def question(self, number: int) -> str:
        """Return the question of a HIT as rendered when it was planned."""
        cursor = self.connection.execute("SELECT question FROM hit WHERE number = ?", [number])
        return str(cursor.fetchone()[0])

    def tuple_parts(self) -> tuple[LedgerPart, ...]:
        """Return the parts that are no anchors, by HIT and position."""
        anchors = self.anchors()
        return tuple(part for part in self.parts() if part.tuple_id not in anchors)

    def parts(self) -> tuple[LedgerPart, ...]:
        """Return all tuples and anchors by HIT and position."""
        rows = self.connection.execute(
            "SELECT number, position, tuple_id, grp, items FROM part ORDER BY number, position"
        )
        try:
            return tuple(
                LedgerPart(number, position, tuple_id, group, tuple(json.loads(items)))
                for number, position, tuple_id, group, items in rows
            )
        except ValueError:
            raise _input_error(self.path, DAMAGED.format("its tuples are unreadable")) from None

    def set_endpoint(self, endpoint: str) -> None:
        """Record a new address of the service."""
        with self.transaction():
            self._set("endpoint", endpoint)

    def set_hit_type(self, hit_type_id: str) -> None:
        """Record the HIT type created by the service."""
        with self.transaction():
            self._set("hit_type_id", hit_type_id)

    def mark_sent(self, numbers: Iterable[int], now: float) -> None:
        """Mark HITs as sent, before the calls: they may exist from now on."""
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE hit SET state = 'sent', first_sent = COALESCE(first_sent, ?) "
                "WHERE number = ? AND state IN ('meant', 'sent')",
                [(now, number) for number in numbers],
            )

    def mark_created(self, number: int, hit_id: str, max_assignments: int, now: float) -> None:
        """Record a HIT that was created or found at the service."""
        self._update_row(
            "UPDATE hit SET state = 'created', hit_id = ?, max_assignments = ?, created_at = ? "
            "WHERE number = ? AND state IN ('meant', 'sent')",
            [hit_id, max_assignments, now, number],
        )

    def set_max_assignments(self, number: int, max_assignments: int) -> None:
        """Record the number of assignments of a HIT."""
        self._update_row(
            "UPDATE hit SET max_assignments = ? WHERE number = ?", [max_assignments, number]
        )

    def mark_closed(self, number: int) -> None:
        """Mark a HIT as closed."""
        self._update_row(
            "UPDATE hit SET state = 'closed' WHERE number = ? AND state IN ('created', 'closed')",
            [number],
        )

    def mark_reopened(self, number: int) -> None:
        """Mark a HIT as offered again."""
        self._update_row(
            "UPDATE hit SET state = 'created' WHERE number = ? AND state IN ('created', 'closed')",
            [number],
        )

    # Assignments

    def store_assignments(self, assignments: Iterable[Assignment]) -> tuple[int, int]:
        """Store assignments; return the numbers of new and changed ones.

        Answers and their times are never overwritten; the status of the review is.
        """
        rows = [astuple(assignment) for assignment in assignments]
        review_columns = (
            "status",
            "auto_approval_time",
            "approval_time",
            "rejection_time",
            "feedback",
        )
        names = _columns(Assignment)
        with self.transaction() as connection:
            before = _count(connection, "assignment")
            changes = connection.total_changes
            connection.executemany(
                f"INSERT INTO assignment ({names}) VALUES ({_placeholders(Assignment)}) "
                "ON CONFLICT (assignment_id) DO UPDATE SET "
                + ", ".join(f"{name} = excluded.{name}" for name in review_columns)
                + f" WHERE ({', '.join(review_columns)}) IS NOT "
                f"({', '.join(f'excluded.{name}' for name in review_columns)})",
                rows,
            )
            new = _count(connection, "assignment") - before
            return new, connection.total_changes - changes - new

    def replace_answers(self, assignments: Iterable[Assignment]) -> None:
        """Replace the answers of assignments that were withdrawn, also in the file."""
        values = [(one.answer_xml, one.assignment_id, one.answer_xml) for one in assignments]
        if not values:
            return
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE assignment SET answer_xml = ? WHERE assignment_id = ? AND answer_xml != ?",
                values,
            )
        # If another process has the file open, the log is truncated when the last one closes it.
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def assignments(self) -> tuple[Assignment, ...]:
        """Return all assignments, by HIT and then by the time of submission."""
        rows = self.connection.execute(
            f"SELECT {_columns(Assignment, 'a.')} FROM assignment a JOIN hit USING (hit_id) "
            "ORDER BY hit.number, a.submit_time, a.assignment_id"
        )
        return tuple(Assignment(*row) for row in rows)

    # Actions

    def plan_actions(self, actions: Iterable[Action], now: float) -> int:
        """Record actions before they are executed; return the number of new ones.

        Actions with an existing token are unchanged.
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
        """Record the state of an action."""
        self._update_row("UPDATE action SET state = ?, at = ? WHERE token = ?", [state, now, token])

    def set_action_states(self, tokens: Iterable[str], state: ActionState, now: float) -> None:
        """Record the state of several actions, of all or of none."""
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE action SET state = ?, at = ? WHERE token = ?",
                [(state, now, token) for token in tokens],
            )

    def actions(self, *states: ActionState) -> tuple[Action, ...]:
        """Return the actions in these states (all if none is given), oldest first."""
        rows = self.connection.execute(f"SELECT {_columns(Action)} FROM action ORDER BY at, token")
        all_actions = (Action(*row) for row in rows)
        return tuple(action for action in all_actions if not states or action.state in states)

    # Notes and deletion

    def get_note(self, key: str) -> str:
        """Return the note with this key; empty if missing."""
        cursor = self.connection.execute("SELECT value FROM study WHERE key = ?", [f"note {key}"])
        row = cursor.fetchone()
        return str(row[0]) if row else ""

    def set_note(self, key: str, value: str) -> None:
        """Store a note on the study, replacing an existing one with this key."""
        with self.transaction():
            self._set(f"note {key}", value)

    def exclude_deleted(self, assignments: Iterable[Assignment]) -> list[Assignment]:
        """Return the assignments that were not deleted by `delete_assignments`."""
        deleted_hashes = self.get_note("forgotten").split()
        return [
            assignment
            for assignment in assignments
            if _sha256(assignment.assignment_id) not in deleted_hashes
        ]

    def audit_entries(self) -> list[dict[str, Any]]:
        """Return the recorded deletions, oldest first: at, actor, action and details."""
        return list(json.loads(self.get_note(AUDIT_NOTE) or "[]"))

    def record_audit(self, actor: str, action: str, now: float, **details: int) -> None:
        """Record a deletion, within a transaction; the entry must not name a worker."""
        entry = {"at": now, "actor": actor, "action": action, "details": details}
        self._set(f"note {AUDIT_NOTE}", json.dumps([*self.audit_entries(), entry]))

    def delete_assignments(self, assignment_ids: Sequence[str], *, actor: str, now: float) -> int:
        """Delete assignments and all data about their workers; return the number of deleted ones.

        Kind and amount of their actions are kept, so that nothing is paid twice. The data are also removed
        from the file; InputError if another process has the file open, which delays that.
        """
        parameters = [(assignment_id,) for assignment_id in assignment_ids]
        with self.transaction() as connection:
            before = _count(connection, "assignment")
            connection.executemany("DELETE FROM assignment WHERE assignment_id = ?", parameters)
            connection.executemany(
                "UPDATE action SET target = '', text = '', "
                "state = CASE state WHEN 'done' THEN 'done' ELSE 'failed' END WHERE target = ?",
                parameters,
            )
            hashes = {*self.get_note("forgotten").split(), *map(_sha256, assignment_ids)}
            self._set("note forgotten", " ".join(sorted(hashes)))
            n_deleted = before - _count(connection, "assignment")
            self.record_audit(actor, "purge", now, assignments=n_deleted)
        self.connection.execute("VACUUM")
        busy = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            message = "the data are deleted, but remain in the file until other processes close it"
            raise _input_error(self.path, message)
        return n_deleted

    # Internal

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

    def _add_rounds(self, rounds: Rounds) -> None:
        if rounds:
            text = json.dumps({**self.rounds(), **rounds}, ensure_ascii=False)
            self._set(f"note {ROUNDS_NOTE}", text)

    def _differences(
        self, endpoint: str, settings: Settings, plans: Sequence[HitPlan]
    ) -> list[str]:
        study = self.study()
        differences = []
        if study.endpoint != endpoint:
            differences.append(f"belongs to the service {study.endpoint}, not {endpoint}")
        for field in fields(Settings):
            stored, current = getattr(study.settings, field.name), getattr(settings, field.name)
            if stored != current and field.name not in CHANGEABLE_SETTINGS:
                differences.append(
                    f"was created with {field.name} {_shorten(stored)}, not {_shorten(current)}"
                )
        existing_hits = {hit.number: hit for hit in self.hits()}
        changed_numbers = [
            plan.number for plan in plans if not _is_same_hit(existing_hits.get(plan.number), plan)
        ]
        if changed_numbers:
            numbers = ", ".join(map(str, changed_numbers[:5])) + (
                ", ..." if len(changed_numbers) > 5 else ""
            )
            differences.append(
                f"{len(changed_numbers)} of {len(plans)} HITs differ from those in the ledger ({numbers}): "
                "tuples, dialogues or settings have changed"
            )
        advice = "a ledger contains one study; expected another --ledger for another study"
        return [f"{text}; {advice}" for text in differences]

    def _set(self, key: str, value: str) -> None:
        self.connection.execute(
            "INSERT INTO study VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [key, value],
        )

    def _update_row(self, statement: str, values: Sequence[Any]) -> None:
        """Update exactly one row; LookupError if there is no row in such a state."""
        with self.transaction() as connection:
            if connection.execute(statement, values).rowcount != 1:
                raise LookupError(f"{self.path} has no row for {statement!r} with {values!r}")


def _prepare(connection: sqlite3.Connection, name: str) -> None:
    if not _count(connection, "sqlite_master"):
        _use_write_ahead_log(connection)
        connection.execute("BEGIN IMMEDIATE")  # a second process that creates the ledger waits here
        if not _count(connection, "sqlite_master"):
            for statement in SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    if _pragma_value(connection, "application_id") != APPLICATION_ID:
        raise _input_error(name, "is a database, but not a ledger; expected another --ledger")
    if (version := _pragma_value(connection, "user_version")) != VERSION:
        raise _input_error(name, f"is a ledger of version {version}; expected version {VERSION}")
    _check_integrity(connection, name)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to journal mode WAL; retry while another process does the same.

    If two connections switch at the same time, SQLite refuses one immediately, without the lock timeout.
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
    """Raise InputError for an inconsistent file, in which rows could be missing without notice."""
    problems = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
    problems = problems if problems != ["ok"] else []
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        problems.append(f"a row of {table} has no {parent}")
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
        message = "another giccs annotate process uses this ledger; wait until it has ended"
        raise _input_error(path, message) from None


def _translate_error(path: str, error: sqlite3.DatabaseError) -> InputError | OSError:
    """Convert an SQLite error: InputError for an unusable file, OSError for the disk."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return OSError(errno.EROFS, f"the file or its directory is not writable ({error})", path)
    if name.startswith("SQLITE_IOERR"):
        return OSError(errno.EIO, f"input/output error ({error})", path)
    return _input_error(path, f"is not a readable ledger ({error})")


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
    """Return whether annotation and token agree; the question may differ, the recorded one is sent."""
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
