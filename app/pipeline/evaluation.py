"""From the benchmark to results: pairs for encoders and baselines, questions for causal models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.pipeline.folder import Folder
from app.pipeline.plan import Plan
from app.pipeline.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from giccs.benchmark import Benchmark
    from giccs.results import Result

__all__ = ["EVALUATION_STEPS", "evaluated", "one_in"]

EVALUATION_STEPS = 2


def evaluated(folder: Folder, plan: Plan, benchmark: Benchmark, steps: Steps) -> list[Result]:
    """Return the results of all models; those in the folder are not computed again."""
    from giccs.benchmark import write_benchmark

    part = folder.part(plan.every)
    few = one_in(plan.every, benchmark, part.name)
    folder.derive(part, lambda path: write_benchmark(few.items, path))
    with steps.step(f"Pairwise STS: {', '.join(plan.pairs)}") as said:
        pairs = _run(folder, plan.pairs, "pairwise-sts", benchmark, steps, said)
    asked = ", ".join(plan.causal) or "no causal model"
    with steps.step(f"Multiple choice on one dialogue of {plan.every}: {asked}") as said:
        return pairs + _run(folder, plan.causal, "multiple-choice-sts", few, steps, said)


def _run(
    folder: Folder, names: Sequence[str], task: str, data: Benchmark, steps: Steps, said: list[str]
) -> list[Result]:
    from giccs.results import Store
    from giccs.run import open_models, run
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


def one_in(every: int, benchmark: Benchmark, name: str) -> Benchmark:
    """Return the benchmark of the first of each `every` dialogues, so that all domains are in it."""
    from giccs.benchmark import Benchmark

    kept = set(benchmark.dialogue_ids[::every])
    items = tuple(item for item in benchmark.items if item.dialogue_id in kept)
    return Benchmark(name, items)
