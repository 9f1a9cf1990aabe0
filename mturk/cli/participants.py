"""giccs annotate participants, release, revoke: people in studies, and the links by which they enter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.text import write_atomic
from bws.cli.options import option, output_option
from mturk.cli.audit import command_user
from mturk.cli.service import database_option, note_remaining_log, open_database

if TYPE_CHECKING:
    from mturk.service.rules.participation import Participants

COLUMNS = (
    "study", "worker_id", "participant_id", "study_id", "session_id", "joined", "completed", "released",
    "outcome", "consent_version", "consent_digest", "consent_language", "consented", "withdrawn",
    "n_studies", "assignment_id", "status",
)  # fmt: skip
study_option = option("--study", "Name of the study.", metavar="NAME", required=True)


@command(
    "giccs annotate participants",
    example="""
    giccs annotate participants --db hits.db -o participants.csv
    giccs annotate participants --study pilot
    """,
)
@database_option
@option("--study", "Only this study.", metavar="NAME")
@output_option
def participants(console: Console, db: str, study: str | None, output: str) -> None:
    """List the participants of studies with their assignments.

    One row per assignment, with STUDY_ID and SESSION_ID of the panel, the consent, the answers before the
    study (question_ID) and the number of studies of the participant (n_studies). The file contains worker
    ids: do not share it.
    """
    with _open_participants(db) as people:
        names = people.studies()
        rows = [_row(row) for row in people.rows(study, actor=command_user())]
    if study is not None and study not in names:
        message = (
            f"no participants in study {study!r}; studies: {', '.join(sorted(names)) or 'none'}"
        )
        raise InputError(Problem("--study", None, message))
    if console.as_json:
        console.answer("", {"participants": rows})
        return
    questions = sorted({name for row in rows for name in row.keys() - set(COLUMNS)})
    write_atomic(output, csv_text(rows, (*COLUMNS, *questions)))
    if output != "-":
        n_participants = len({row["worker_id"] for row in rows})
        console.answer(f"{output}: {n_participants} participants", {})


def _row(row: Any) -> dict[str, Any]:
    from mturk.service.site.links import own_id
    from mturk.service.site.texts import iso

    times = {
        name: "" if getattr(row, name) is None else iso(getattr(row, name))
        for name in ("joined", "completed", "released", "consented", "withdrawn")
    }
    consent = {
        name: getattr(row, name) or ""
        for name in ("outcome", "consent_version", "consent_digest", "consent_language")
    }
    answers = {f"question_{name}": answer for name, answer in (row.answers or {}).items()}
    return {
        "study": row.study, "worker_id": row.worker_id, "participant_id": own_id(row.worker_id),
        "study_id": row.panel_study, "session_id": row.panel_session, **times, **consent,
        "n_studies": row.n_studies, "assignment_id": row.assignment_id or "",
        "status": row.status or "", **answers,
    }  # fmt: skip


@command(
    "giccs annotate release",
    example="giccs annotate release 5f3c1a2b4d5e6f708192a3b4 --study pilot",
)
@click.argument("worker")
@study_option
@database_option
def release(console: Console, worker: str, study: str, db: str) -> None:
    """Let a participant enter a study again from another session and browser.

    WORKER is the worker id or the id at Prolific. Running sessions of the participant in the study end, and
    tasks in progress are returned. Submitted tasks remain and continue to count; without any, the place in
    the study is free for others.
    """
    from mturk.service.site.links import worker_id_of

    with _open_participants(db) as people:
        released = people.release(worker_id_of(worker), study, actor=command_user())
    if not released.bindings:
        message = f"{worker} is not bound in study {study!r}; see giccs annotate participants"
        raise InputError(Problem("WORKER", None, message))
    place = (
        f"the place stays taken: {released.submitted} submitted"
        if released.submitted
        else "the place is free: nothing was submitted"
    )
    tasks = f"; {released.returned} in progress returned" if released.returned else ""
    console.answer(
        f"{worker} can enter {study} again; {place}{tasks}",
        {
            "released": released.bindings, "place_freed": not released.submitted,
            "submitted": released.submitted, "returned": released.returned,
        },
    )  # fmt: skip


@command(
    "giccs annotate withdraw",
    example="giccs annotate withdraw 5f3c1a2b4d5e6f708192a3b4 --study pilot --yes",
)
@click.argument("worker")
@study_option
@database_option
@option("--yes", "Do not ask for confirmation.", is_flag=True, show_default=False)
def withdraw(console: Console, worker: str, study: str, db: str, yes: bool) -> None:
    """Delete a participant's answers in a study, at the participant's request.

    WORKER is the worker id or the id at Prolific. Submitted assignments can still be paid. The next
    giccs annotate collect deletes the answers from the ledger; files written before are not changed.
    """
    from mturk.service.site.links import worker_id_of

    if not yes:
        click.confirm(f"delete all answers of {worker} in study {study}?", abort=True, err=True)
    with _open_participants(db) as people:
        n_deleted = people.withdraw(worker_id_of(worker), study, actor=command_user())
        note_remaining_log(console, people.database)
    if n_deleted is None:
        message = f"{worker} did not take part in study {study!r}; see giccs annotate participants"
        raise InputError(Problem("WORKER", None, message))
    console.answer(
        f"answers: {n_deleted} deleted; run giccs annotate collect", {"deleted": n_deleted}
    )


@command(
    "giccs annotate revoke",
    example="giccs annotate revoke 'https://work.example.org/join/WyJwaWxvdCJd.x'",
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

    with open_database(db) as database:
        yield Participants(database, SystemClock())
