"""mturk-hits audit: the audit log of the service."""

from __future__ import annotations

import getpass
import json
import os
from datetime import UTC, datetime
from typing import Any

from bws.cli.options import option, output_option
from bws.command import Console, command
from bws.problems import InputError, Problem
from bws.textio import csv_text, write_atomic
from mturk.cli.service import check_database_exists, database_option

__all__ = ["audit", "command_user"]

COLUMNS = ("at", "actor", "action", "subject", "details")


@command(
    "mturk-hits audit",
    example="""
    mturk-hits audit --db hits.db
    mturk-hits audit --db hits.db --since 2026-11-01 -o audit.csv
    """,
)
@database_option
@option("--since", "Only entries from this date or time on, such as 2026-11-01; without a zone in UTC.",
        metavar="DATE")  # fmt: skip
@output_option
def audit(console: Console, db: str, since: str | None, output: str) -> None:
    """List who saw ids of workers, and who decided, paid or deleted what.

    The actor is an access key, the user of a command, `participant` or `service`. The file contains neither
    worker ids nor answers.
    """
    from mturk.service.rules.audit import entries
    from mturk.service.site.texts import iso
    from mturk.service.store.database import Database

    check_database_exists(db)
    start = None if since is None else _parse_time(since)
    database = Database(db)
    try:
        with database.read() as connection:
            found = entries(connection, start)
    finally:
        database.close()
    rows: list[dict[str, Any]] = [
        {"at": iso(row.at), "actor": row.actor, "action": row.action, "subject": row.subject,
         "details": row.details}
        for row in found
    ]  # fmt: skip
    if console.as_json:
        console.answer("", {"entries": rows})
        return
    lines = [row | {"details": json.dumps(row["details"])} for row in rows]
    write_atomic(output, csv_text(lines, COLUMNS))
    if output != "-":
        console.answer(f"{output}: {len(rows)} entries", {})


def command_user() -> str:
    """Return the name of the user of this command, for the audit log."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a user id without a name, as in a container
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "user"


def _parse_time(text: str) -> float:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        message = f"is {text!r}; expected a date such as 2026-11-01, or 2026-11-01T12:00:00+01:00"
        raise InputError(Problem("--since", None, message)) from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
