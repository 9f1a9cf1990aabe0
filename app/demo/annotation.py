"""The annotation of the demo: tuples, HITs at the service, simulated workers, judgments."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from app.demo.folder import Folder
from app.demo.plan import Plan
from app.demo.service import service
from app.demo.steps import Steps

if TYPE_CHECKING:
    from mturk.study.ledger import Ledger

__all__ = ["ANNOTATION_STEPS", "annotate"]

ANNOTATION_STEPS = 6
K = 3
TUPLES = 10
"""Of each dialogue (paper section 3.2)."""


def annotate(folder: Folder, plan: Plan, steps: Steps) -> None:
    """Write tuples.csv and judgments.csv; what ledger and service have from before is kept.

    The ledger's study is at the service's default address, not at the free port of the moment: there
    `mturk-hits serve --db hits.db` finds it again.
    """
    from mturk.study.ledger import Ledger

    with steps.step("Tuples of the candidates of each dialogue") as said:
        said.append(f"{_write_tuples(folder, plan)} tuples of {K}")
    with Ledger.open(folder.ledger, create=True) as book, book.alone():
        _mean(book, folder)
        if _complete(book):
            steps.skip(ANNOTATION_STEPS - 2, "endpoint, HITs, workers: kept, all judgments are in")
        else:
            _ask(book, folder, plan, steps)
        with steps.step("Writing the judgments") as said:
            said.append(_write_judgments(book, folder))


def _write_tuples(folder: Folder, plan: Plan) -> int:
    from bws.design import make_tuples
    from bws.files import read_items, write_tuples

    listed = read_items(folder.dialogues)
    tuples = make_tuples(listed.items, K, count=TUPLES, groups=listed.groups, seed=plan.seed)
    folder.derive(folder.tuples, lambda path: write_tuples(tuples, path))
    return len(tuples)


def _mean(book: Ledger, folder: Folder) -> None:
    """Write down the HITs that are meant; the same again changes nothing."""
    from bws.files import read_tuples
    from giccs.benchmark.assemble import read_dialogues
    from giccs.benchmark.languages import data_language
    from mturk.kinds.tuples.plan import plan as hits_of
    from mturk.study.client import LOCAL
    from mturk.study.settings_file import read_settings

    tuples, dialogues = read_tuples(folder.tuples), read_dialogues(folder.dialogues)
    settings = read_settings(folder.settings, data_language(dialogues, str(folder.dialogues)))
    book.begin(LOCAL, settings, hits_of(tuples, dialogues, settings), time.time())


def _complete(book: Ledger) -> bool:
    return len(book.assignments()) == sum(hit.max_assignments for hit in book.hits())


def _ask(book: Ledger, folder: Folder, plan: Plan, steps: Steps) -> None:
    """Publish, work and collect while the service runs."""
    with ExitStack() as running:
        with steps.step("Starting the endpoint, mturk-hits serve") as said:
            address = running.enter_context(service(folder.database, folder.log))
            said.append(f"{address}, until the judgments are in")
        with steps.step("Publishing the HITs with boto3") as said:
            said.append(_publish(book, address, steps))
        with steps.step(f"{plan.workers} simulated workers do the HITs over HTTP") as said:
            said.append(_work(book, address, folder, plan, steps))
        with steps.step("Collecting the assignments with boto3") as said:
            said.append(_collect(book, address, folder, steps))


def _publish(book: Ledger, address: str, steps: Steps) -> str:
    from mturk.study.client import connect, resolve
    from mturk.study.publish import adopt, send

    client = connect(resolve(address))
    adopted = adopt(client, book).adopted
    made = send(client, book, progress=lambda hits: steps.bar(hits, "publishing", len(hits)))
    before = len(book.hits()) - made - adopted
    counts = {"created": made, "found there": adopted, "published before": before}
    return f"{len(book.hits())} HITs: {', '.join(f'{n} {what}' for what, n in counts.items() if n)}"


def _work(book: Ledger, address: str, folder: Folder, plan: Plan, steps: Steps) -> str:
    from mturk.kinds import Behaviour
    from mturk.study.simulated_workers import read_truth, rehearse, worker_ids

    most = sum(hit.max_assignments for hit in book.hits()) - len(book.assignments())
    bar = steps.bar(range(most), "submissions", most)
    done = rehearse(
        address, worker_ids(plan.workers), read_truth(folder.dialogues),
        Behaviour(plan.noise, plan.disagreement, plan.careless, seed=plan.seed),
        told=lambda _: next(bar, None),
    )  # fmt: skip
    return f"{done.counts['submitted']} assignments submitted"


def _collect(book: Ledger, address: str, folder: Folder, steps: Steps) -> str:
    from mturk.study.client import connect, resolve
    from mturk.study.collect import collect
    from mturk.study.privacy import namer

    found = collect(
        connect(resolve(address)), book, namer(book),
        progress=lambda hits: steps.bar(hits, "collecting", len(hits)),
    )  # fmt: skip
    if not _complete(book):
        message = "assignments are missing, and the service offers no more"
        raise click.ClickException(f"{message}; remove {folder.path} and run the command again")
    return f"{len(book.assignments())} assignments, {found.new} of them new"


def _write_judgments(book: Ledger, folder: Folder) -> str:
    from mturk.study.valid_answers import judged, write

    found = judged(book)
    folder.derive(folder.judgments, lambda path: write(found, path))
    assert found.judgments is not None
    left_out = "".join(f"; {said}" for said in found.notes())
    people = len(found.judgments.annotators)
    return f"{len(found.judgments)} judgments by {people} simulated annotators{left_out}"
