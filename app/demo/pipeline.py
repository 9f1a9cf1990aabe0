"""The steps of the demo in their order: annotation, scores and benchmark, models, report."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from app.demo.folder import Folder
from app.demo.plan import Plan
from app.demo.service import service
from bws.command import Console

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bws.agreement import Agreement
    from bws.split_half import Reliability
    from giccs.benchmark import Benchmark
    from giccs.measures.metrics import Estimate
    from giccs.measures.results import Result
    from mturk.study.ledger import Ledger

__all__ = ["Outcome", "run_pipeline"]

SCORING_STEPS, EVALUATION_STEPS, REPORT_STEPS = 2, 2, 1
ANNOTATION_STEPS = 6
TUPLE_SIZE = 3
TUPLES_PER_DIALOGUE = 10
"""As in the paper, section 3.2."""
BY = ("source", "n_turns")
"""The columns of Tables 1 and 3."""
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What a run made, or found made."""

    folder: Folder
    benchmark: Benchmark
    agreement: Agreement
    reliability: Reliability
    ceiling: Mapping[str, Estimate]
    """What a perfect model would reach."""
    results: Sequence[Result]


def run_pipeline(path: str | os.PathLike[str], plan: Plan, console: Console) -> Outcome:
    """Go through all steps in a folder; whatever ends it, the same call goes on where it was.

    InputError for a folder of another plan. No process of it is left when it ends, however it ends.
    """
    folder = Folder(path, console.note)
    folder.begin(plan)
    steps = Steps(console, ANNOTATION_STEPS + SCORING_STEPS + EVALUATION_STEPS + REPORT_STEPS)
    _annotate(folder, plan, steps)
    benchmark = _build(folder, steps)
    quality = _measure_quality(folder, benchmark, steps)
    results = _evaluate(folder, plan, benchmark, steps)
    _write_report(folder, steps)
    return Outcome(folder, benchmark, *quality, results)


def _build(folder: Folder, steps: Steps) -> Benchmark:
    """Write scores.csv and benchmark.jsonl and return the benchmark.

    It is called by its file's name, so that results say the same wherever the folder lies.
    """
    from bws.files import read_judgments, read_scores, write_scores
    from bws.scoring import score
    from giccs.benchmark import Benchmark, write_benchmark
    from giccs.benchmark.assemble import assemble, read_dialogues

    with steps.step("Scores by counting, and the benchmark") as said:
        scores = score(read_judgments(folder.judgments), scale="unit")
        folder.derive(folder.scores, lambda path: write_scores(scores, path))
        table = read_scores(folder.scores)
        keys = zip(table.groups, table.items, strict=True)
        by_id = dict(zip(keys, map(float, table.score), strict=True))
        items = assemble(read_dialogues(folder.dialogues), by_id)
        folder.derive(folder.benchmark, lambda path: write_benchmark(items, path))
        benchmark = Benchmark(folder.benchmark.name, items)
        said.append(f"{len(items)} items of {len(benchmark.dialogue_ids)} dialogues")
    return benchmark


def _measure_quality(
    folder: Folder, benchmark: Benchmark, steps: Steps
) -> tuple[Agreement, Reliability, Mapping[str, Estimate]]:
    """Return agreement, reliability and noise ceiling as the commands compute them."""
    from bws.agreement import agreement
    from bws.files import read_judgments
    from bws.metadata import read_metadata
    from bws.split_half import reliability
    from giccs.measures.ceiling import cached_ceiling

    with steps.step("Agreement, reliability, noise ceiling") as said:
        judgments = read_judgments(folder.judgments)
        by = dict(read_metadata(folder.dialogues).of_tuples(judgments.tuples, BY))
        agreed, reliable = agreement(judgments, by=by), reliability(judgments, by=by)
        ceiling = cached_ceiling(folder.results, judgments, benchmark, folder.note)
        alpha, halves = agreed.groups[0].alpha["both"].value, reliable.groups[0].spearman.mean
        said.append(f"alpha {alpha:.3f}, split-half rho {halves:.3f}")
    return agreed, reliable, ceiling


def _evaluate(folder: Folder, plan: Plan, benchmark: Benchmark, steps: Steps) -> list[Result]:
    """Return the results of all models; those in the folder are not computed again."""
    from giccs.benchmark import write_benchmark

    part = folder.part(plan.every)
    few = _one_in(plan.every, benchmark, part.name)
    folder.derive(part, lambda path: write_benchmark(few.items, path))
    with steps.step(f"Pairwise STS: {', '.join(plan.pairs)}") as said:
        pairs = _run(folder, plan.pairs, "pairwise-sts", benchmark, steps, said)
    asked = ", ".join(plan.causal) or "no causal model"
    with steps.step(f"Multiple choice on one dialogue of {plan.every}: {asked}") as said:
        return pairs + _run(folder, plan.causal, "multiple-choice-sts", few, steps, said)


def _run(
    folder: Folder, names: Sequence[str], task: str, data: Benchmark, steps: Steps, said: list[str]
) -> list[Result]:
    from giccs.evaluation.run import open_models, run
    from giccs.measures.results import Store
    from giccs.tasks import open_tasks

    notes: list[str] = []
    results = list(
        run(
            open_models(names), open_tasks(task), data, Store(folder.results),
            note=notes.append, progress=steps.bar,
        )
    )  # fmt: skip
    kept = sum("kept from before" in note for note in notes)
    said.append(
        f"results: {len(results)}"
        if not kept
        else f"results: {len(results)}, {kept} of them kept from before"
    )
    return results


def _one_in(every: int, benchmark: Benchmark, name: str) -> Benchmark:
    """Return the benchmark of the first of each `every` dialogues, so that all domains are in it."""
    from giccs.benchmark import Benchmark

    kept = set(benchmark.dialogue_ids[::every])
    items = tuple(item for item in benchmark.items if item.dialogue_id in kept)
    return Benchmark(name, items)


def _write_report(folder: Folder, steps: Steps) -> None:
    from app.report.html import write_page
    from app.report.inputs import Inputs

    with steps.step("The report, a page of its own") as said:
        written = write_page(Inputs(folder.path, simulated=True), folder.report)
        said.append(str(folder.report) if written else f"{folder.report}, kept from before")


def _annotate(folder: Folder, plan: Plan, steps: Steps) -> None:
    """Write tuples.csv and judgments.csv; what ledger and service have from before is kept.

    The ledger's study is at the service's default address, not at the free port of the moment: there
    `mturk-hits serve --db hits.db` finds it again.
    """
    from mturk.study.ledger import Ledger

    with steps.step("Tuples of the candidates of each dialogue") as said:
        said.append(f"{_write_tuples(folder, plan)} tuples of {TUPLE_SIZE}")
    with Ledger.open(folder.ledger, create=True) as book, book.alone():
        _plan_hits(book, folder)
        if _complete(book):
            steps.skip(ANNOTATION_STEPS - 2, "endpoint, HITs, workers: kept, all judgments are in")
        else:
            _collect_judgments(book, folder, plan, steps)
        with steps.step("Writing the judgments") as said:
            said.append(_write_judgments(book, folder))


def _write_tuples(folder: Folder, plan: Plan) -> int:
    from bws.design import make_tuples
    from bws.files import read_items, write_tuples

    listed = read_items(folder.dialogues)
    tuples = make_tuples(
        listed.items, TUPLE_SIZE, count=TUPLES_PER_DIALOGUE, groups=listed.groups, seed=plan.seed
    )
    folder.derive(folder.tuples, lambda path: write_tuples(tuples, path))
    return len(tuples)


def _plan_hits(book: Ledger, folder: Folder) -> None:
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


def _collect_judgments(book: Ledger, folder: Folder, plan: Plan, steps: Steps) -> None:
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


@dataclass
class Steps:
    """Numbers the steps; what they say goes to standard error, and nowhere with --quiet."""

    console: Console
    total: int
    number: int = 0

    @contextmanager
    def step(self, what: str) -> Iterator[list[str]]:
        """Say what begins, and at the end the lines that were put into the list, with the seconds."""
        self.number += 1
        mark = f"[{self.number:>{len(str(self.total))}}/{self.total}]"
        self.console.note(f"{mark} {what} ...")
        began = time.perf_counter()
        said: list[str] = []
        yield said
        seconds = time.perf_counter() - began
        self.console.note(f"{' ' * len(mark)} {'; '.join(said) or 'done'} ({seconds:.1f} s)")

    def skip(self, steps: int, why: str) -> None:
        """Say that some steps are not needed."""
        first, self.number = self.number + 1, self.number + steps
        self.console.note(f"[{first}-{self.number}/{self.total}] {why}")

    def bar(self, work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """Pass work on under a bar, inside a step."""
        return self.console.progress(work, label, total)
