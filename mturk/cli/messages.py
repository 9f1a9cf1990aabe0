"""giccs annotate messages, reply: what participants write to the researchers, and replies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import MAX_COUNT
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.text import write_atomic
from bws.cli.options import option, output_option
from mturk.cli.audit import command_user
from mturk.cli.service import database_option, open_database

if TYPE_CHECKING:
    from mturk.service.rules.inquiries import Inquiries

COLUMNS = ("number", "at", "study", "worker_id", "participant_id", "subject", "text", "answered")


@command(
    "giccs annotate messages",
    example="""
    giccs annotate messages --db hits.db --open
    giccs annotate messages -o messages.csv
    """,
)
@database_option
@option("--open only_open", "Only messages without a reply.", is_flag=True, show_default=False)
@output_option
def messages(console: Console, db: str, only_open: bool, output: str) -> None:
    """List the messages of participants to the researchers.

    With --output as CSV. Messages are written by participants: check them for personal data before you
    share them.
    """
    with _open_inquiries(db) as inquiries:
        rows = [_row(row) for row in inquiries.rows(only_open=only_open, actor=command_user())]
    if output == "-" or console.as_json:
        text = "\n\n".join(map(_paragraph, rows)) or "no messages"
        console.answer(text, {"messages": rows})
        return
    write_atomic(output, csv_text(rows, COLUMNS))
    console.answer(f"{output}: {len(rows)} messages", {})


def _row(row: Any) -> dict[str, Any]:
    from mturk.service.site.links import own_id
    from mturk.service.site.texts import iso

    return {
        "number": row.number, "at": iso(row.at), "study": row.study or "", "worker_id": row.worker_id,
        "participant_id": own_id(row.worker_id), "subject": row.subject, "text": row.text,
        "answered": "" if row.answered is None else iso(row.answered),
    }  # fmt: skip


def _paragraph(row: dict[str, Any]) -> str:
    """Return a message for the terminal; only lines that are not indented are ours."""
    study = f"  study {row['study']}" if row["study"] else ""
    answered = f"  answered {row['answered']}" if row["answered"] else ""
    head = f"{row['number']}  {row['at']}  {row['participant_id']}{study}{answered}"
    lines = [row["subject"], "", *row["text"].splitlines()]
    return "\n".join([head, *(f"    {line}".rstrip() for line in lines)])


@command(
    "giccs annotate reply", example='giccs annotate reply 3 "Thank you, the page is repaired."'
)
@click.argument("number", type=click.IntRange(1, MAX_COUNT))
@click.argument("text")
@database_option
def reply(console: Console, number: int, text: str, db: str) -> None:
    """Reply to a message of a participant, who sees the reply on the site.

    NUMBER is that of giccs annotate messages.
    """
    if not text.strip():
        raise InputError(Problem("TEXT", None, "is empty; expected the text of the reply"))
    with _open_inquiries(db) as inquiries:
        if not inquiries.reply(number, text, actor=command_user()):
            message = f"there is no message {number}; see giccs annotate messages"
            raise InputError(Problem("NUMBER", None, message))
    console.answer(f"message {number}: reply sent", {"answered": number})


@contextmanager
def _open_inquiries(db: str) -> Iterator[Inquiries]:
    from mturk.service.clock import SystemClock
    from mturk.service.rules.inquiries import Inquiries

    with open_database(db) as database:
        yield Inquiries(database, SystemClock())
