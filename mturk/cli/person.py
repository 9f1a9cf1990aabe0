"""giccs annotate person: export and erasure of all data about one person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command, group
from bws.base.options import Choice
from bws.base.problems import InputError, Problem
from bws.base.terminal import echo
from bws.base.text import write_atomic
from bws.cli.options import option, output_option
from mturk.cli.audit import command_user
from mturk.cli.published_study import ledgers_option, yes_option
from mturk.cli.service import database_option, note_remaining_log, open_database

if TYPE_CHECKING:
    from mturk.service.store.database import Database

COMMANDS = {"export": "mturk.cli.person:export", "erase": "mturk.cli.person:erase"}
"""Command name -> location of its function."""
EXAMPLE = """
giccs annotate person export 5f3c1a2b4d5e6f708192a3b4 --db hits.db --ledger study.db -o person.json
giccs annotate person erase 5f3c1a2b4d5e6f708192a3b4 --db hits.db --ledger study.db
"""


@group("giccs annotate person", COMMANDS, EXAMPLE)
def main() -> None:
    """Export or erase all data about one person, at the person's request.

    WORKER is the worker id or the id at Prolific.
    """


@command(
    "giccs annotate person export",
    example="giccs annotate person export 5f3c1a2b4d5e6f708192a3b4 --ledger study.db -o person.json",
)
@click.argument("worker")
@database_option
@ledgers_option
@output_option
def export(console: Console, worker: str, db: str, ledgers: Sequence[str], output: str) -> None:
    """Write everything that is stored about a person, from the service and from ledgers, as JSON.

    Give the file to this person only.
    """
    from mturk.service.rules import audit
    from mturk.service.site.links import worker_id_of

    worker_id = worker_id_of(worker)
    with open_database(db) as database:
        tables, by_ledger = _stored_data(database, ledgers, worker_id)
        if not any(tables.values()) and not any(by_ledger.values()):
            raise _nothing_stored(worker)
        with database.write() as connection:
            audit.record(connection, _now(), command_user(), "person export", "")
    document = _with_iso_times({"worker_id": worker_id, "service": tables, "ledgers": by_ledger})
    if console.as_json and output == "-":
        console.answer("", document)
        return
    write_atomic(output, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    if output != "-":
        n_rows = sum(map(len, tables.values())) + sum(map(len, by_ledger.values()))
        console.answer(f"{output}: {n_rows} records", {"records": n_rows})


@command(
    "giccs annotate person erase",
    example="""
    giccs annotate person erase 5f3c1a2b4d5e6f708192a3b4 --ledger study.db
    giccs annotate person erase AANNA1 --unreviewed approve --yes
    """,
)
@click.argument("worker")
@database_option
@ledgers_option
@option("--unreviewed", "What to do with submitted assignments that are not reviewed.",
        type=Choice(["refuse", "approve"]), default="refuse")  # fmt: skip
@yes_option
def erase(
    console: Console, worker: str, db: str, ledgers: Sequence[str], unreviewed: str, yes: bool
) -> None:
    """Remove a person's identity and answers from the service and from ledgers.

    Times and amounts of payments, and the consent without the person, stay under a random id. Files written
    before are not changed. Submitted assignments must be reviewed first. If the command is interrupted, run
    it again.
    """
    from mturk.service.site.links import worker_id_of

    worker_id = worker_id_of(worker)
    with open_database(db) as database:
        tables, by_ledger = _stored_data(database, ledgers, worker_id)
        if not any(tables.values()) and not any(by_ledger.values()):
            raise _nothing_stored(worker)
        if not yes:
            echo(_announcement(worker, tables, by_ledger), err=True)
            click.confirm("Continue?", abort=True, err=True)
        counts = (
            _erase_in_service(database, worker_id, approve=unreviewed == "approve")
            if any(tables.values())
            else {}
        )
        note_remaining_log(console, database)
    in_ledgers = {path: len(rows) for path, rows in by_ledger.items()}
    for path, count in in_ledgers.items():
        if count:
            _purge(path, worker_id)
    total = sum(counts.values()) + sum(in_ledgers.values())
    console.answer(
        f"{worker}: {total} records deleted or made anonymous; files written before are not changed",
        {"service": counts, "ledgers": in_ledgers},
    )


def _stored_data(
    database: Database, ledgers: Sequence[str], worker_id: str
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]:
    """Return table -> rows of the service, and path -> rows of the ledgers."""
    from mturk.service.rules.person import export

    with database.read() as connection:
        tables = export(connection, worker_id)
    return tables, {path: _ledger_rows(path, worker_id) for path in ledgers}


def _erase_in_service(database: Database, worker_id: str, *, approve: bool) -> dict[str, int]:
    from mturk.service.rules.person import PendingPaymentError, erase

    try:
        with database.write() as connection:
            return erase(connection, worker_id, _now(), actor=command_user(), approve=approve)
    except PendingPaymentError as error:
        message = (
            f"{error}; review them first, or use --unreviewed approve: "
            f"{', '.join(error.assignment_ids)}"
        )
        raise InputError(Problem("WORKER", None, message)) from None


def _announcement(
    worker: str, tables: Mapping[str, Sequence[Any]], ledgers: Mapping[str, Sequence[Any]]
) -> str:
    """Return what an erasure removes and what stays."""
    from mturk.service.rules.person import KEPT_TABLES

    kept = {table.name for table in KEPT_TABLES} | {"consent"}
    counts = {name: len(rows) for name, rows in tables.items() if rows}
    removed = [f"{count} {name}" for name, count in counts.items() if name not in kept]
    stays = [f"{count} {name}" for name, count in counts.items() if name in kept]
    lines = [
        f"{worker}: the id, all answers, feedback and ids of the panel are permanently deleted",
        f"deleted:                {', '.join(removed) or 'nothing'}",
        f"kept under a random id: {', '.join(stays) or 'nothing'} (times, amounts, counts)",
        *(f"{path}: {len(rows)} records deleted" for path, rows in ledgers.items()),
        "Files written before, and backups, are not changed.",
    ]
    return "\n".join(lines)


def _nothing_stored(worker: str) -> InputError:
    return InputError(Problem("WORKER", None, f"nothing is stored about {worker}"))


def _with_iso_times(value: Any) -> Any:
    """Return a document whose numbers with a fraction, all of them times, are in ISO 8601."""
    from mturk.service.site.texts import iso

    if isinstance(value, float):
        return iso(value)
    if isinstance(value, dict):
        return {name: _with_iso_times(element) for name, element in value.items()}
    return [_with_iso_times(element) for element in value] if isinstance(value, list) else value


def _ledger_rows(path: str, worker_id: str) -> list[dict[str, Any]]:
    """Return the assignments of a person in a ledger and their actions; empty if there are none."""
    from mturk.study.ledger import Ledger

    with Ledger.open(path) as ledger:
        ids = {
            assignment_id for name in _names(worker_id) for assignment_id in _found(ledger, name)
        }
        assignments = [asdict(one) for one in ledger.assignments() if one.assignment_id in ids]
        actions = [asdict(one) for one in ledger.actions() if one.target in ids]
    return [*assignments, *actions]


def _purge(path: str, worker_id: str) -> None:
    from mturk.study.ledger import Ledger
    from mturk.study.privacy import purge_workers

    with Ledger.open(path) as ledger, ledger.exclusive_lock():
        names = [name for name in _names(worker_id) if _found(ledger, name)]
        purge_workers(ledger, names, actor=command_user(), now=_now())


def _found(ledger: Any, name: str) -> list[str]:
    from mturk.study.privacy import find_assignments

    try:
        return find_assignments(ledger, [name])[name]
    except InputError:
        return []


def _names(worker_id: str) -> list[str]:
    """Return the ids of a person in ledgers: at the service, and at Prolific."""
    from mturk.service.site.links import own_id

    return list(dict.fromkeys([worker_id, own_id(worker_id)]))


def _now() -> float:
    from mturk.service.clock import SystemClock

    return SystemClock().now()
