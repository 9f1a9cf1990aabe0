"""From judgments to a benchmark, and how far the judgments hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.pipeline.folder import Folder
from app.pipeline.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bws.agreement import Agreement
    from bws.records import Judgments
    from bws.reliability import Reliability
    from giccs.benchmark import Benchmark
    from giccs.metrics import Estimate

__all__ = ["BY", "SCORING_STEPS", "Quality", "assembled", "quality"]

SCORING_STEPS = 2
BY = ("source", "n_turns")
"""The columns of Tables 1 and 3."""


@dataclass(frozen=True)
class Quality:
    """What Tables 1 and 3 show, and what a perfect model would reach."""

    agreement: Agreement
    reliability: Reliability
    ceiling: Mapping[str, Estimate]


def assembled(folder: Folder, steps: Steps) -> Benchmark:
    """Write scores.csv and benchmark.jsonl and return the benchmark.

    It is called by its file's name, so that results say the same wherever the folder lies.
    """
    from bws.files import read_judgments, read_scores, write_scores
    from bws.scoring import score
    from giccs.assemble import assemble, read_dialogues
    from giccs.benchmark import Benchmark, write_benchmark

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


def quality(folder: Folder, benchmark: Benchmark, steps: Steps) -> Quality:
    """Return agreement, reliability and noise ceiling as the commands compute them."""
    from bws.agreement import agreement
    from bws.files import read_judgments
    from bws.metadata import read_metadata
    from bws.reliability import reliability
    from giccs.stored_ceiling import ceiling_with_results

    with steps.step("Agreement, reliability, noise ceiling") as said:
        judgments: Judgments = read_judgments(folder.judgments)
        by = dict(read_metadata(folder.dialogues).of_tuples(judgments.tuples, BY))
        found = Quality(
            agreement(judgments, by=by),
            reliability(judgments, by=by),
            ceiling_with_results(folder.results, judgments, benchmark, folder.note),
        )
        alpha = found.agreement.groups[0].alpha["both"].value
        halves = found.reliability.groups[0].spearman.mean
        said.append(f"alpha {alpha:.3f}, split-half rho {halves:.3f}")
    return found
