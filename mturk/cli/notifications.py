"""giccs annotate notifications: the recorded notifications of the service."""

from __future__ import annotations

from bws.base.commands import Console, command
from bws.base.rows import csv_text
from bws.base.text import write_atomic
from bws.cli.options import option, output_option
from mturk.cli.audit import parse_time
from mturk.cli.service import database_option, open_database

COLUMNS = ("at", "event", "hit_type_id", "hit_id", "assignment_id", "transport", "destination")


@command(
    "giccs annotate notifications",
    example="""
    giccs annotate notifications --db hits.db
    giccs annotate notifications --db hits.db --since 2026-11-01 -o notifications.csv
    """,
)
@database_option
@option("--since", "Only events from this date or time on, such as 2026-11-01; without a zone in UTC.",
        metavar="DATE")  # fmt: skip
@output_option
def notifications(console: Console, db: str, since: str | None, output: str) -> None:
    """List the events that a requester subscribed to; the service records notifications, but sends none.

    Subscribe with UpdateNotificationSettings. One row per event, oldest first.
    """
    from sqlalchemy import select

    from mturk.service.site.texts import iso
    from mturk.service.store.schema import event

    start = float("-inf") if since is None else parse_time(since)
    query = select(event).where(event.c.at >= start).order_by(event.c.number)
    with open_database(db) as database, database.read() as connection:
        events = connection.execute(query).all()
    rows = [
        {
            "at": iso(row.at), "event": row.kind, "hit_type_id": row.hit_type_id, "hit_id": row.hit_id,
            "assignment_id": row.assignment_id, "transport": row.specification.get("Transport"),
            "destination": row.specification.get("Destination"),
        }
        for row in events
    ]  # fmt: skip
    if console.as_json:
        console.answer(
            "", {"notifications": [{name: row[name] for name in COLUMNS} for row in rows]}
        )
        return
    write_atomic(output, csv_text(rows, COLUMNS))
    if output != "-":
        console.answer(f"{output}: {len(rows)} notifications", {})
