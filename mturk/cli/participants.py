"""mturk-hits participants, release, revoke: people in studies, and the links by which they enter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import option, output_option
from bws.command import Console, command
from bws.problems import InputError, Problem
from bws.textio import csv_text, write_atomic
from mturk.cli.service import check_database_exists, database_option

if TYPE_CHECKING:
    from mturk.service.rules.participation import Participants

__all__ = ["participants", "release", "revoke"]

COLUMNS = (
    "study", "worker_id", "study_id", "session_id", "joined", "completed", "released", "n_studies",
    "assignment_id", "status",
)  # fmt: skip
study_option = option("--study", "Name of the study.", metavar="NAME", required=True)


@command(
    "mturk-hits participants",
    example="""
    mturk-hits participants --db hits.db -o participants.csv
    mturk-hits participants --study pilot
    """,
)
@database_option
@option("--study", "Only this study.", metavar="NAME")
@output_option
def participants(console: Console, db: str, study: str | None, output: str) -> None:
    """List the participants of studies with their assignments.

    One row per assignment, with STUDY_ID and SESSION_ID of the panel and the number of studies of the
    participant (n_studies). The file contains worker ids: do not share it.
    """
    with _open_participants(db) as people:
        names = people.studies()
        rows = [_row(row) for row in people.rows(study)]
    if study is not None and study not in names:
        message = (
            f"no participants in study {study!r}; studies: {', '.join(sorted(names)) or 'none'}"
        )
        raise InputError(Problem("--study", None, message))
    if console.as_json:
        console.answer("", {"participants": rows})
        return
    write_atomic(output, csv_text(rows, COLUMNS))
    if output != "-":
        n_participants = len({row["worker_id"] for row in rows})
        console.answer(f"{output}: {n_participants} participants", {})


def _row(row: Any) -> dict[str, Any]:
    from mturk.service.site.texts import iso

    times = {
        name: "" if getattr(row, name) is None else iso(getattr(row, name))
        for name in ("joined", "completed", "released")
    }
    return {
        "study": row.study, "worker_id": row.worker_id, "study_id": row.panel_study,
        "session_id": row.panel_session, **times, "n_studies": row.n_studies,
        "assignment_id": row.assignment_id or "", "status": row.status or "",
    }  # fmt: skip


@command(
    "mturk-hits release",
    example="mturk-hits release APROLIFIC5F3C1A2B4D5E6F708192A3B4 --study pilot",
)
@click.argument("worker")
@study_option
@database_option
def release(console: Console, worker: str, study: str, db: str) -> None:
    """Let a participant enter a study again from another session and browser.

    Running sessions of the participant in the study end. Submitted work remains and continues to count.
    """
    with _open_participants(db) as people:
        n_released = people.release(worker, study)
    if not n_released:
        message = f"{worker} is not bound in study {study!r}; see mturk-hits participants"
        raise InputError(Problem("WORKER", None, message))
    console.answer(f"{worker} can enter {study} again", {"released": n_released})


@command(
    "mturk-hits revoke", example="mturk-hits revoke 'https://work.example.org/join/WyJwaWxvdCJd.x'"
)
@click.argument("links", nargs=-1, required=True, metavar="LINK...")
@database_option
def revoke(console: Console, links: tuple[str, ...], db: str) -> None:
    """Revoke personal or recruiting links, also while the service runs.

    Workers who have entered remain signed in.
    """
    from mturk.service.site.links import LinkError, check_link, link_token

    with _open_participants(db) as people:
        try:
            tokens = [link_token(link) for link in links]
            for token in tokens:
                check_link(people.database.secret(), token)
        except LinkError as error:
            raise InputError(Problem("LINK", None, str(error))) from None
        for token in tokens:
            people.revoke(token)
    console.answer(f"links: {len(tokens)} revoked", {"revoked": len(tokens)})


@contextmanager
def _open_participants(db: str) -> Iterator[Participants]:
    from mturk.service.clock import SystemClock
    from mturk.service.rules.participation import Participants
    from mturk.service.store.database import Database

    check_database_exists(db)
    database = Database(db)
    try:
        yield Participants(database, SystemClock())
    finally:
        database.close()
