"""giccs annotate audit: the audit log of the service."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from bws.base.commands import Console, command
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.text import write_atomic
from bws.cli.options import option, output_option
from mturk.cli.published_study import ledgers_option
from mturk.cli.service import database_option, open_database

COLUMNS = ("at", "actor", "action", "subject", "details")


@command(
    "giccs annotate audit",
    example="""
    giccs annotate audit --db hits.db
    giccs annotate audit --db hits.db --ledger study.db --since 2026-11-01 -o audit.csv
    """,
)
@database_option
@option("--since", "Only entries from this date or time on, such as 2026-11-01; without a zone in UTC.",
        metavar="DATE")  # fmt: skip
@ledgers_option
@output_option
def audit(
    console: Console, db: str, since: str | None, ledgers: Sequence[str], output: str
) -> None:
    """List who saw ids of workers, and who decided, paid or deleted what.

    The actor is an access key, the user of a command, `participant` or `service`. The file contains neither
    worker ids nor answers.
    """
    from mturk.service.rules.audit import entries
    from mturk.service.site.texts import iso

    start = float("-inf") if since is None else parse_time(since)
    with open_database(db) as database, database.read() as connection:
        records = [dict(row._mapping) for row in entries(connection)]
    records += [entry for path in ledgers for entry in _ledger_entries(path)]
    rows = [
        {name: entry[name] for name in COLUMNS} | {"at": iso(entry["at"])}
        for entry in sorted(records, key=itemgetter("at"))
        if entry["at"] >= start
    ]
    if console.as_json:
        console.answer("", {"entries": rows})
        return
    lines = [row | {"details": json.dumps(row["details"])} for row in rows]
    write_atomic(output, csv_text(lines, COLUMNS))
    if output != "-":
        console.answer(f"{output}: {len(rows)} entries", {})


def _ledger_entries(path: str) -> list[dict[str, Any]]:
    from mturk.study.ledger import Ledger

    with Ledger.open(path) as ledger:
        return [entry | {"subject": path} for entry in ledger.audit_entries()]


def command_user() -> str:
    """Return the name of the user of this command, for the audit log."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a user id without a name, as in a container
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "user"


def parse_time(text: str) -> float:
    """Return the seconds since the epoch of the value of --since; raise InputError if it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        message = f"is {text!r}; expected a date such as 2026-11-01, or 2026-11-01T12:00:00+01:00"
        raise InputError(Problem("--since", None, message)) from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
