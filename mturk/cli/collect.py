"""mturk-hits status, collect: how far a study is, and its judgments."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import option
from bws.command import Console, command
from bws.options import RESAMPLES, Number
from mturk.cli.published_study import Opened, ledger_option, opened, workers_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from mturk.study.collect import CollectionResult
    from mturk.study.ledger import Assignment, Ledger
    from mturk.study.status import Status
    from mturk.study.valid_answers import ValidAnswers

__all__ = ["collect", "status", "worker_names"]


@command(
    "mturk-hits status",
    example="""
    mturk-hits status
    mturk-hits status --watch 10
    mturk-hits status --ledger study.db --json
    """,
)
@ledger_option
@option(
    "--watch", "Look again every so many seconds until every tuple has its judgments.",
    type=Number(1, 86_400), metavar="SECONDS",
)  # fmt: skip
@option(
    "--trials",
    "Random halves for the reliability.",
    type=RESAMPLES,
    default=100,
    metavar="N",
)
def status(console: Console, ledger: str, watch: float | None, trials: int) -> None:
    """Show how far a study is and how good its answers are so far.

    How many judgments the tuples have, pace and expected end, split-half reliability, and how each
    annotator's answers compare with the others'. What is new is collected on the way. Of sentence pairs it
    is the answers that are counted.
    """
    if watch is not None and console.as_json:
        raise click.UsageError(
            "--watch and --json cannot be given together: --json is one document"
        )
    with opened(console, ledger) as study:
        found = _status(study, trials)
        while watch is not None and not found.complete:
            click.clear()  # does nothing where nobody watches
            click.echo(f"{found.table()}\n")
            time.sleep(watch)
            found = _status(study, trials)
    console.answer(found.table(), found.document())


def _status(study: Opened, trials: int) -> Status:
    from mturk.study.status import study_status as status_of
    from mturk.study.valid_answers import read_valid_answers

    hits = study.collect().hits
    return status_of(
        study.book, hits, read_valid_answers(study.book), now=time.time(), trials=trials
    )


@command(
    "mturk-hits collect",
    example="""
    mturk-hits collect -o judgments.csv
    mturk-hits collect -o judgments.csv --offline
    mturk-hits collect -o judgments.csv --worker-ids real
    """,
    interrupt_message="{ledger} has what was collected; the same command goes on",
)
@ledger_option
@option(
    "-o --output",
    "Where to write them.  [default: judgments.csv, conditions.csv or verification.csv]", metavar="FILE",
)  # fmt: skip
@workers_option
@option(
    "--offline", "Write what was collected before, without asking the service.", is_flag=True,
    show_default=False,
)  # fmt: skip
def collect(
    console: Console, ledger: str, output: str | None, worker_ids: str | None, offline: bool
) -> None:
    """Collect what was submitted, and write it as judgments, or conditions, or labels of conditions.

    It may be run at any time and as often as one likes. The answers are kept in the ledger as they came;
    the file has one line for each valid answer to a tuple that was not rejected, or two where conditions
    were written. Comments are written as
    workers wrote them: look whether they name people before you pass the file on.
    """
    from mturk.kinds import get_kind
    from mturk.study.ledger import Ledger
    from mturk.study.valid_answers import read_valid_answers, write_answers

    if output == "-" and console.as_json:
        raise click.UsageError("--json prints one document and nothing else; name a file with -o")
    found: CollectionResult | None = None
    if offline:
        with Ledger.open(ledger) as book:
            judgments = read_valid_answers(book, worker_names(book, None, worker_ids))
            everything = len(book.assignments())
    else:
        with opened(console, ledger) as study:
            found = study.collect()
            judgments = read_valid_answers(
                study.book, worker_names(study.book, study.client, worker_ids)
            )
            everything = len(study.book.assignments())
    output = output or get_kind(judgments.kind).file
    write_answers(judgments, output)
    for said in judgments.notes():
        console.note(f"note: {said}")
    document = _document(found, judgments, everything, output)
    if output == "-":
        console.note(_text(document, judgments.kind))
    else:
        console.answer(_text(document, judgments.kind), document)


def _document(
    found: CollectionResult | None, judgments: ValidAnswers, everything: int, output: str
) -> dict[str, Any]:
    from mturk.kinds import get_kind

    return {
        "output": output,
        "assignments": everything,
        "new": found.n_new if found else 0,
        "reviewed_since": found.n_changed if found else 0,
        "hits_deleted": list(found.deleted_hits) if found else [],
        f"{get_kind(judgments.kind).answer}s": len(judgments.answers),
        "annotators": len({one.annotator for one in judgments.answers}),
        "left_out": {reason: count for reason, count in judgments.counts.items() if count},
        "left_out_each": [
            {"assignment_id": out.assignment_id, "tuple_id": out.tuple_id, "reason": out.reason,
             "text": out.text}
            for out in judgments.excluded
        ],
    }  # fmt: skip


def _text(document: dict[str, Any], kind: str) -> str:
    from mturk.kinds import get_kind

    what = f"{get_kind(kind).answer}s"
    return (
        f"{document['output']}: {document[what]} {what} by {document['annotators']} annotators "
        f"from {document['assignments']} assignments, {document['new']} of them new"
    )


def worker_names(
    ledger: Ledger, client: Any, wanted: str | None
) -> Callable[[Assignment], str] | None:
    """Return who an assignment is by, as --worker-ids has it; None for what the ledger says."""
    from mturk.study.collect import worker_ids
    from mturk.study.privacy import pseudonym_namer

    kept = ledger.study().settings.pseudonyms
    if wanted is None or (wanted == "pseudonyms") == kept:
        return None
    if wanted == "pseudonyms":
        name = pseudonym_namer(ledger)
        return lambda assignment: name(assignment.worker)
    if client is None:
        raise click.UsageError(
            "--worker-ids real needs the service: the ledger has pseudonyms only"
        )
    ids = worker_ids(client, ledger)
    return lambda assignment: ids[assignment.assignment_id]
