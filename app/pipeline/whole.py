"""The steps of the pipeline in their order, and what comes out of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.pipeline.annotation import ANNOTATION_STEPS, annotate
from app.pipeline.evaluation import EVALUATION_STEPS, evaluated
from app.pipeline.folder import Folder
from app.pipeline.plan import Plan
from app.pipeline.scoring import SCORING_STEPS, Quality, assembled, quality
from app.pipeline.steps import Steps
from bws.command import Console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from giccs.benchmark import Benchmark
    from giccs.results import Result

__all__ = ["Outcome", "run_pipeline"]

PAGE_STEPS = 1


@dataclass(frozen=True)
class Outcome:
    """What a run made, or found made."""

    folder: Folder
    benchmark: Benchmark
    quality: Quality
    results: Sequence[Result]


def run_pipeline(path: str | os.PathLike[str], plan: Plan, console: Console) -> Outcome:
    """Go through all steps in a folder; whatever ends it, the same call goes on where it was.

    InputError for a folder of another plan. No process of it is left when it ends, however it ends.
    """
    folder = Folder(path, console.note)
    folder.begin(plan)
    steps = Steps(console, ANNOTATION_STEPS + SCORING_STEPS + EVALUATION_STEPS + PAGE_STEPS)
    annotate(folder, plan, steps)
    benchmark = assembled(folder, steps)
    found = quality(folder, benchmark, steps)
    results = evaluated(folder, plan, benchmark, steps)
    _write_page(folder, steps)
    return Outcome(folder, benchmark, found, results)


def _write_page(folder: Folder, steps: Steps) -> None:
    from app.page.inputs import Inputs
    from app.page.write import write_page

    with steps.step("The report, a page of its own") as said:
        written = write_page(Inputs(folder.path, simulated=True), folder.report)
        said.append(str(folder.report) if written else f"{folder.report}, kept from before")
