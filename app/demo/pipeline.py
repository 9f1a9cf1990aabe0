"""The steps of the demo in their order: annotation, scores and benchmark, models, report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.demo.annotation import ANNOTATION_STEPS, annotate
from app.demo.folder import Folder
from app.demo.plan import Plan
from app.demo.steps import Steps
from bws.command import Console

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bws.agreement import Agreement
    from bws.split_half import Reliability
    from giccs.benchmark import Benchmark
    from giccs.measures.metrics import Estimate
    from giccs.measures.results import Result

__all__ = ["Outcome", "run_pipeline"]

SCORING_STEPS, EVALUATION_STEPS, REPORT_STEPS = 2, 2, 1
BY = ("source", "n_turns")
"""The columns of Tables 1 and 3."""


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
    annotate(folder, plan, steps)
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
    from giccs.measures.ceiling import ceiling_with_results

    with steps.step("Agreement, reliability, noise ceiling") as said:
        judgments = read_judgments(folder.judgments)
        by = dict(read_metadata(folder.dialogues).of_tuples(judgments.tuples, BY))
        agreed, reliable = agreement(judgments, by=by), reliability(judgments, by=by)
        ceiling = ceiling_with_results(folder.results, judgments, benchmark, folder.note)
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
