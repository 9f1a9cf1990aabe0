"""The steps of the demo: annotation, scores and benchmark, models, report."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bws.base.commands import Console
from giccs.benchmark.items import TARGETS
from giccs_app.demo.folder import Folder
from giccs_app.demo.plan import Plan
from giccs_app.demo.service import service

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bws.chance_agreement import Agreement
    from bws.split_half import Reliability
    from bws.stats.estimates import Estimate
    from giccs.benchmark import Benchmark
    from giccs.measures.results import Limits, Result
    from mturk.study.ledger import Ledger

SCORING_STEPS, EVALUATION_STEPS, REPORT_STEPS = 2, 2, 1
ANNOTATION_STEPS = 6
TUPLE_SIZE = 3
ANCHORS = "rating:2"
TUPLES_PER_DIALOGUE = 10
"""As in the paper, section 3.2."""
GROUP_COLUMNS = ("source", "n_turns")
"""Grouping columns of Tables 1 and 3."""
T = TypeVar("T")


@dataclass(frozen=True)
class DemoResult:
    """The outcome of a run."""

    folder: Folder
    benchmark: Benchmark
    agreement: Agreement
    reliability: Reliability
    ceiling: Mapping[str, Estimate]
    """Noise ceiling."""
    limits: Limits
    results: Sequence[Result]


def run_pipeline(path: str | os.PathLike[str], plan: Plan, console: Console) -> DemoResult:
    """Run all steps in a folder; after an interruption the same call continues.

    Raises InputError for a folder of another plan. All subprocesses end with this process.
    """
    folder = Folder(path, console.note)
    folder.begin(plan)
    steps = Steps(console, ANNOTATION_STEPS + SCORING_STEPS + EVALUATION_STEPS + REPORT_STEPS)
    _annotate(folder, plan, steps)
    benchmark, limits = _build(folder, steps)
    agreement, reliability, ceiling = _measure_quality(folder, benchmark, steps)
    results = _evaluate(folder, plan, benchmark, steps)
    _write_report(folder, steps)
    return DemoResult(folder, benchmark, agreement, reliability, ceiling, limits, results)


def _build(folder: Folder, steps: Steps) -> tuple[Benchmark, Limits]:
    """Write scores.csv and benchmark.jsonl and return the benchmark, and the limits from its anchors.

    Its name is the file name, so that results do not depend on the location of the folder.
    """
    from bws.absolute.files import read_anchors
    from bws.absolute.scores import absolute_scale
    from bws.files import read_judgments, read_scores, write_scores
    from bws.scoring import score
    from giccs.benchmark import Benchmark, write_benchmark
    from giccs.benchmark.assemble import assemble, read_dialogues
    from giccs.measures.absolute_ceiling import cached_limits

    with steps.step("Scores by counting, absolute scores, and the benchmark") as messages:
        judgments, anchors = read_judgments(folder.judgments), read_anchors(folder.anchors)
        scores = score(judgments, scale="unit")
        scale = absolute_scale(judgments, anchors, scores)
        folder.derive(folder.scores, lambda path: write_scores(scale.added_to(scores), path))
        table = read_scores(folder.scores)
        assert table.absolute_score is not None
        by_id, absolute = (
            dict(zip(table.item_keys, values.tolist(), strict=True))
            for values in (table.score, table.absolute_score)
        )
        items = assemble(read_dialogues(folder.dialogues), by_id, absolute)
        folder.derive(folder.benchmark, lambda path: write_benchmark(items, path))
        benchmark = Benchmark(folder.benchmark.name, items)
        limits = cached_limits(
            folder.results, judgments, anchors, benchmark, folder.note, scale=scale
        )
        messages.append(f"{len(items)} items of {len(benchmark.dialogue_ids)} dialogues")
    return benchmark, limits


def _measure_quality(
    folder: Folder, benchmark: Benchmark, steps: Steps
) -> tuple[Agreement, Reliability, Mapping[str, Estimate]]:
    """Return agreement, reliability and noise ceiling."""
    from bws.chance_agreement import agreement
    from bws.files import read_judgments
    from bws.metadata import read_metadata
    from bws.split_half import reliability
    from giccs.measures.ceiling import cached_ceiling

    with steps.step("Agreement, reliability, noise ceiling") as messages:
        judgments = read_judgments(folder.judgments)
        by = dict(read_metadata(folder.dialogues).of_tuples(judgments.tuples, GROUP_COLUMNS))
        agreement_result, reliability_result = (
            agreement(judgments, by=by),
            reliability(judgments, by=by),
        )
        ceiling = cached_ceiling(folder.results, judgments, benchmark, folder.note)
        alpha, split_half = (
            agreement_result.groups[0].alpha["both"].value,
            reliability_result.groups[0].spearman.mean,
        )
        messages.append(f"alpha {alpha:.3f}, split-half rho {split_half:.3f}")
    return agreement_result, reliability_result, ceiling


def _evaluate(folder: Folder, plan: Plan, benchmark: Benchmark, steps: Steps) -> list[Result]:
    """Return the results of all models; existing results are reused."""
    from giccs.benchmark import write_benchmark

    subset_file = folder.subset(plan.every)
    subset = _select_dialogues(plan.every, benchmark, subset_file.name)
    folder.derive(subset_file, lambda path: write_benchmark(subset.items, path))
    with steps.step(f"Pairwise STS: {', '.join(plan.pairs)}") as messages:
        targets = [benchmark.with_target(target) for target in TARGETS]
        pairs = _run(folder, plan.pairs, "pairwise-sts", targets, steps, messages)
    causal_models = ", ".join(plan.causal) or "no causal model"
    with steps.step(
        f"Multiple choice on one dialogue of {plan.every}: {causal_models}"
    ) as messages:
        return pairs + _run(folder, plan.causal, "multiple-choice-sts", [subset], steps, messages)


def _run(
    folder: Folder,
    names: Sequence[str],
    task: str,
    data: Sequence[Benchmark],
    steps: Steps,
    messages: list[str],
) -> list[Result]:
    from giccs.evaluation.run import open_models, run
    from giccs.measures.results import Store
    from giccs.tasks import open_tasks

    notes: list[str] = []
    models, tasks, store = open_models(names), open_tasks(task), Store(folder.results)
    results = [
        result
        for benchmark in data
        for result in run(models, tasks, benchmark, store, note=notes.append, progress=steps.bar)
    ]
    n_reused = sum("existing result" in note for note in notes)
    messages.append(
        f"results: {len(results)}"
        if not n_reused
        else f"results: {len(results)}, {n_reused} of them reused"
    )
    return results


def _select_dialogues(step: int, benchmark: Benchmark, name: str) -> Benchmark:
    """Return the benchmark of every `step`-th dialogue, which includes all domains."""
    from giccs.benchmark import Benchmark

    selected = set(benchmark.dialogue_ids[::step])
    items = tuple(item for item in benchmark.items if item.dialogue_id in selected)
    return Benchmark(name, items)


def _write_report(folder: Folder, steps: Steps) -> None:
    from giccs_app.report.html import write_page
    from giccs_app.report.inputs import Inputs

    with steps.step("Report") as messages:
        is_written = write_page(Inputs(folder.path, simulated=True), folder.report)
        messages.append(str(folder.report) if is_written else f"{folder.report}, unchanged")


def _annotate(folder: Folder, plan: Plan, steps: Steps) -> None:
    """Write tuples.csv, judgments.csv and anchors.csv; existing data of ledger and service are reused.

    The study in the ledger has the default address of the service instead of the temporary port, so that
    `giccs annotate serve --db hits.db` serves it later.
    """
    from mturk.study.ledger import Ledger

    with steps.step("Creating tuples of candidates") as messages:
        messages.append(f"{_write_tuples(folder, plan)} tuples of {TUPLE_SIZE}")
    with Ledger.open(folder.ledger, create=True) as ledger, ledger.exclusive_lock():
        _plan_hits(ledger, folder)
        if _is_complete(ledger):
            steps.skip(ANNOTATION_STEPS - 2, "service, HITs, workers: skipped, all judgments exist")
        else:
            _collect_judgments(ledger, folder, plan, steps)
        with steps.step("Writing the judgments") as messages:
            messages.append(_write_judgments(ledger, folder, plan))


def _write_tuples(folder: Folder, plan: Plan) -> int:
    from bws.design import make_tuples
    from bws.files import read_items, write_tuples

    item_list = read_items(folder.dialogues)
    tuples = make_tuples(
        item_list.items,
        TUPLE_SIZE,
        count=TUPLES_PER_DIALOGUE,
        groups=item_list.groups,
        seed=plan.seed,
    )
    folder.derive(folder.tuples, lambda path: write_tuples(tuples, path))
    return len(tuples)


def _plan_hits(ledger: Ledger, folder: Folder) -> None:
    """Record the planned HITs; repeated calls have no effect."""
    from bws.files import read_tuples
    from giccs.benchmark.assemble import read_dialogues
    from giccs.benchmark.languages import data_language
    from mturk.kinds.tuples.plan import plan as hits_of
    from mturk.study.client import LOCAL
    from mturk.study.settings_file import read_settings

    tuples, dialogues = read_tuples(folder.tuples), read_dialogues(folder.dialogues)
    settings = read_settings(folder.settings, data_language(dialogues, str(folder.dialogues)))
    ledger.start_study(LOCAL, settings, hits_of(tuples, dialogues, settings), time.time())


def _is_complete(ledger: Ledger) -> bool:
    return len(ledger.assignments()) == sum(hit.max_assignments for hit in ledger.hits())


def _collect_judgments(ledger: Ledger, folder: Folder, plan: Plan, steps: Steps) -> None:
    """Publish HITs, run simulated workers, and collect while the service is running."""
    with ExitStack() as stack:
        with steps.step("Starting the annotation service (giccs annotate serve)") as messages:
            address = stack.enter_context(service(folder.database, folder.log))
            messages.append(f"{address}, until all judgments are collected")
        with steps.step("Publishing the HITs with boto3") as messages:
            messages.append(_publish(ledger, address, steps))
        with steps.step(
            f"{plan.workers} simulated workers complete the HITs over HTTP"
        ) as messages:
            messages.append(_work(ledger, address, folder, plan, steps))
        with steps.step("Collecting the assignments with boto3") as messages:
            messages.append(_collect(ledger, address, folder, steps))


def _publish(ledger: Ledger, address: str, steps: Steps) -> str:
    from mturk.study.client import connect, resolve
    from mturk.study.publish import adopt_hits, create_hits

    client = connect(resolve(address))
    adopted = adopt_hits(client, ledger).n_adopted
    n_created = create_hits(
        client, ledger, progress=lambda hits: steps.bar(hits, "publishing", len(hits))
    )
    n_before = len(ledger.hits()) - n_created - adopted
    counts = {"created": n_created, "found at the service": adopted, "published before": n_before}
    return f"{len(ledger.hits())} HITs: {', '.join(f'{n} {label}' for label, n in counts.items() if n)}"


def _work(ledger: Ledger, address: str, folder: Folder, plan: Plan, steps: Steps) -> str:
    from mturk.kinds import Behaviour
    from mturk.study.simulated_workers import read_truth, simulate_workers, simulated_worker_ids

    n_submissions = sum(hit.max_assignments for hit in ledger.hits()) - len(ledger.assignments())
    bar = steps.bar(range(n_submissions), "submissions", n_submissions)
    done = simulate_workers(
        address, simulated_worker_ids(plan.workers), read_truth(folder.dialogues),
        Behaviour(plan.noise, plan.disagreement, plan.careless, seed=plan.seed),
        on_submission=lambda _: next(bar, None),
    )  # fmt: skip
    return f"{done.counts['submitted']} assignments submitted"


def _collect(ledger: Ledger, address: str, folder: Folder, steps: Steps) -> str:
    from mturk.study.client import connect, resolve
    from mturk.study.collect import collect
    from mturk.study.privacy import worker_namer

    collected = collect(
        connect(resolve(address)), ledger, worker_namer(ledger),
        progress=lambda hits: steps.bar(hits, "collecting", len(hits)),
    )  # fmt: skip
    if not _is_complete(ledger):
        message = "assignments are missing, and the service has no open HITs"
        raise click.ClickException(f"{message}; remove {folder.path} and run the command again")
    return f"{len(ledger.assignments())} assignments, {collected.n_new} of them new"


def _write_judgments(ledger: Ledger, folder: Folder, plan: Plan) -> str:
    from mturk.study.valid_answers import read_valid_answers, write_answers

    answers = read_valid_answers(ledger)
    folder.derive(folder.judgments, lambda path: write_answers(answers, path))
    assert answers.judgments is not None
    annotators = answers.judgments.annotators
    n_ratings = _write_ratings(folder, plan, sorted(annotators))
    notes = "".join(f"; {note}" for note in answers.notes())
    counts = f"{len(answers.judgments)} judgments and {n_ratings} ratings"
    return f"{counts} by {len(annotators)} simulated annotators{notes}"


def _write_ratings(folder: Folder, plan: Plan, annotators: Sequence[str]) -> int:
    """Write simulated ratings of single candidates; return their number.

    They do not pass the service, where it depends on the order of the workers who rates which candidates.
    """
    from bws.absolute.design import plan_anchors
    from bws.absolute.files import write_anchors
    from bws.absolute.simulation import simulate_anchors
    from bws.files import read_tuples
    from bws.simulation import read_truth, simulate

    tuples = read_tuples(folder.tuples)
    truth = read_truth(folder.dialogues, tuples)
    settings: dict[str, Any] = {
        "noise": plan.noise, "disagreement": plan.disagreement, "careless": plan.careless, "seed": plan.seed,
    }  # fmt: skip
    judged = simulate(tuples, truth, plan.workers, **settings)
    anchors = plan_anchors(tuples, ANCHORS, seed=plan.seed)
    simulated = simulate_anchors(judged, truth, anchors, offset_sd=plan.offset_sd, **settings)
    names = dict(zip(judged.annotators, annotators, strict=True))
    rows = [replace(row, annotator=names[row.annotator]) for row in simulated.rows]
    folder.derive(folder.anchors, lambda path: write_anchors(rows, path))
    return len(rows)


@dataclass
class Steps:
    """Numbered progress messages on standard error, hidden by --quiet."""

    console: Console
    total: int
    number: int = 0

    @contextmanager
    def step(self, title: str) -> Iterator[list[str]]:
        """Print the title, and at the end the messages in the yielded list with the elapsed seconds."""
        self.number += 1
        prefix = f"[{self.number:>{len(str(self.total))}}/{self.total}]"
        self.console.note(f"{prefix} {title} ...")
        started = time.perf_counter()
        messages: list[str] = []
        yield messages
        seconds = time.perf_counter() - started
        self.console.note(f"{' ' * len(prefix)} {'; '.join(messages) or 'done'} ({seconds:.1f} s)")

    def skip(self, n_steps: int, reason: str) -> None:
        """Report skipped steps."""
        first, self.number = self.number + 1, self.number + n_steps
        self.console.note(f"[{first}-{self.number}/{self.total}] {reason}")

    def bar(self, work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """Iterate with a progress bar."""
        return self.console.progress(work, label, total)
