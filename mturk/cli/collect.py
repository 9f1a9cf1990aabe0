"""giccs annotate status, collect: progress of a study, and its judgments."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import OUTPUT, RESAMPLES, Number
from bws.base.terminal import echo
from bws.cli.options import option, target_option
from mturk.cli.published_study import (
    PublishedStudy,
    endpoint_option,
    ledger_option,
    open_study,
    workers_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mturk.study.collect import CollectionResult
    from mturk.study.ledger import Assignment, Ledger
    from mturk.study.status import Status
    from mturk.study.valid_answers import ValidAnswers


@command(
    "giccs annotate status",
    example="""
    giccs annotate status
    giccs annotate status --watch 10
    giccs annotate status --ledger study.db --json
    """,
)
@ledger_option
@endpoint_option
@option(
    "--watch", "Refresh at this interval until all judgments are collected.",
    type=Number(1, 86_400), metavar="SECONDS",
)  # fmt: skip
@option(
    "--trials",
    "Random splits for the split-half reliability.",
    type=RESAMPLES,
    default=100,
    metavar="N",
)
@target_option
def status(
    console: Console,
    ledger: str,
    endpoint: str | None,
    watch: float | None,
    trials: int,
    target: float,
) -> None:
    """Show the progress of a study and the quality of its answers so far.

    Shows judgments per tuple, pace and expected end, split-half reliability, and the agreement of each
    annotator with the others. For a study in rounds, also time and pay per round; for an adaptive one, the
    three gates of its end instead of the reliability. New assignments are collected first. For sentence
    pairs, answers are counted.
    """
    if watch is not None and console.as_json:
        raise click.UsageError(
            "--watch and --json cannot be combined: --json prints a single document"
        )
    with open_study(console, ledger, endpoint) as study:
        progress = _compute_status(study, trials, target)
        while watch is not None and not progress.complete:
            click.clear()  # no effect unless standard output is a terminal
            echo(f"{progress.table()}\n")
            time.sleep(watch)
            progress = _compute_status(study, trials, target)
    console.answer(progress.table(), progress.document())


def _compute_status(study: PublishedStudy, trials: int, target: float) -> Status:
    from mturk.study.status import study_status as status_of
    from mturk.study.valid_answers import read_valid_answers

    hits = study.collect().hits
    answers = read_valid_answers(study.ledger)
    return status_of(study.ledger, hits, answers, now=time.time(), trials=trials, target=target)


@command(
    "giccs annotate collect",
    example="""
    giccs annotate collect -o judgments.csv
    giccs annotate collect -o judgments.csv --offline
    giccs annotate collect -o judgments.csv --worker-ids real
    giccs annotate collect -o judgments.csv --anchors anchors.csv
    """,
    interrupt_message="collected assignments are stored in {ledger}; run the same command to continue",
)
@ledger_option
@endpoint_option
@option(
    "-o --output",
    "Output file.  [default: judgments.csv, conditions.csv, verification.csv or relabel.csv]",
    type=OUTPUT, metavar="FILE",
)  # fmt: skip
@option(
    "--anchors",
    "Output file of the anchors, for a study published with --anchors.",
    type=OUTPUT, metavar="FILE",
)  # fmt: skip
@workers_option
@option(
    "--offline", "Use the assignments collected before; do not call the service.", is_flag=True,
    show_default=False,
)  # fmt: skip
def collect(
    console: Console,
    ledger: str,
    endpoint: str | None,
    output: str | None,
    anchors: str | None,
    worker_ids: str | None,
    offline: bool,
) -> None:
    """Collect submitted assignments, and write judgments, conditions or labels of conditions.

    Can be run repeatedly at any time. The ledger stores the original answers; the file has one line per
    valid, not rejected answer to a tuple (two for written conditions), that of --anchors one per rated
    candidate, or per candidate of a question with marks. Comments are copied verbatim: check
    them for personal data before you share the file.
    """
    from mturk.kinds import get_kind
    from mturk.study.ledger import Ledger
    from mturk.study.valid_answers import read_valid_answers, write_answers

    if output == "-" and console.as_json:
        raise click.UsageError("--json requires an output file (-o FILE)")
    if offline and endpoint is not None:
        raise click.UsageError("--offline and --endpoint cannot be combined")
    collected: CollectionResult | None = None
    if offline:
        with Ledger.open(ledger) as opened_ledger:
            judgments = read_valid_answers(
                opened_ledger, worker_names(opened_ledger, None, worker_ids)
            )
            _check_anchors(opened_ledger, anchors)
            n_assignments = len(opened_ledger.assignments())
    else:
        with open_study(console, ledger, endpoint) as study:
            _check_anchors(study.ledger, anchors)
            collected = study.collect()
            judgments = read_valid_answers(
                study.ledger, worker_names(study.ledger, study.client, worker_ids)
            )
            n_assignments = len(study.ledger.assignments())
    output = output or get_kind(judgments.kind).file
    anchor_document = _write_anchors(judgments, anchors) if anchors else {}  # may be refused
    write_answers(judgments, output)
    for message in judgments.notes():
        console.note(f"note: {message}")
    if judgments.anchors and not anchors:
        console.note(
            f"note: {len(judgments.anchors)} answers to anchors are not written; expected --anchors FILE"
        )
    document = _document(collected, judgments, n_assignments, output) | anchor_document
    if output == "-":
        console.note(_text(document, judgments.kind))
    else:
        console.answer(_text(document, judgments.kind), document)


def _check_anchors(ledger: Ledger, anchors: str | None) -> None:
    if anchors and not ledger.anchors():
        raise click.UsageError(
            f"--anchors: the study of {ledger.path} has no anchors (giccs annotate publish --anchors)"
        )


def _write_anchors(answers: ValidAnswers, path: str) -> dict[str, Any]:
    from mturk.kinds.tuples.anchors import count_skipped, write_answers

    n_rows = write_answers(answers.anchors, path)
    n_skipped = count_skipped(answers.anchors)
    return {"anchors": {"output": path, "rows": n_rows, "skipped": n_skipped}}


def _document(
    collected: CollectionResult | None, judgments: ValidAnswers, n_assignments: int, output: str
) -> dict[str, Any]:
    from mturk.kinds import get_kind

    return {
        "output": output,
        "assignments": n_assignments,
        "new": collected.n_new if collected else 0,
        "reviewed_since": collected.n_changed if collected else 0,
        "hits_deleted": list(collected.deleted_hits) if collected else [],
        f"{get_kind(judgments.kind).answer}s": len(judgments.answers),
        "annotators": len({judgment.annotator for judgment in judgments.answers}),
        "left_out": {reason: count for reason, count in judgments.counts.items() if count},
        "left_out_each": [
            {"assignment_id": item.assignment_id, "tuple_id": item.tuple_id, "reason": item.reason,
             "text": item.text}
            for item in judgments.excluded
        ],
    }  # fmt: skip


def _text(document: dict[str, Any], kind: str) -> str:
    from mturk.kinds import get_kind

    noun = f"{get_kind(kind).answer}s"
    return (
        f"{document['output']}: {document[noun]} {noun} by {document['annotators']} annotators "
        f"from {document['assignments']} assignments, {document['new']} of them new"
        + _anchor_text(document)
    )


def _anchor_text(document: dict[str, Any]) -> str:
    if not (anchors := document.get("anchors")):
        return ""
    return (
        f"\n{anchors['output']}: {anchors['rows']} answers to anchors, {anchors['skipped']} skipped"
    )


def worker_names(
    ledger: Ledger, client: Any, requested: str | None
) -> Callable[[Assignment], str] | None:
    """Return a function from assignment to worker name as set by --worker-ids; None: names of the ledger."""
    from mturk.study.collect import worker_ids
    from mturk.study.privacy import pseudonym_namer

    has_pseudonyms = ledger.study().settings.pseudonyms
    if requested is None or (requested == "pseudonyms") == has_pseudonyms:
        return None
    if requested == "pseudonyms":
        name = pseudonym_namer(ledger)
        return lambda assignment: name(assignment.worker)
    if client is None:
        raise click.UsageError(
            "--worker-ids real requires the service: the ledger contains only pseudonyms"
        )
    ids = worker_ids(client, ledger)
    return lambda assignment: ids[assignment.assignment_id]
