"""Coverage of the 95 % intervals printed by the commands, in simulated studies.

    python -m benchmarks.coverage [--only SECTION ...] [--replications N] [-o docs/background/coverage.md]

With -o the tables replace the block `coverage-SECTION` of a document. The exit code is 1 if a cell fails:
coverage outside of 93 to 97 %, by more than twice its standard error, without a warning, or intervals
with a model that are more than 2 % wider than without it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

from tqdm import tqdm

from benchmarks.coverage.cells import Cell, SimulatedStudy, Summary
from benchmarks.machine import provenance, replace_block

SECTIONS = (
    "scores",
    "ranks",
    "prediction_powered",
    "powered_correlations",
    "powered_accuracies",
    "alpha",
    "components",
    "ceiling",
    "model_ceiling",
    "correlations",
    "annotators",
    "comparison",
)
"""Modules of this package with `cells() -> list[Cell]` and optionally a further table `notes() -> str`."""
REPLICATIONS = 400
TOGETHER = 10
"""Studies per task of a process."""


def _studies(cell: Cell, seeds: range) -> list[SimulatedStudy]:
    return [cell.simulate(seed) for seed in seeds]


def simulated(cells: list[Cell], replications: int) -> list[Summary]:
    """Simulate all studies of all cells on all CPUs."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        parts = []
        for cell in cells:
            seeds = range(cell.studies or replications)
            starts = range(0, len(seeds), TOGETHER)
            parts.append([pool.submit(_studies, cell, seeds[i : i + TOGETHER]) for i in starts])
        summaries = []
        for cell, futures in zip(tqdm(cells, disable=None, unit="cell"), parts, strict=True):
            studies = [study for future in futures for study in future.result()]
            summaries.append(Summary.of(cell, studies))
    return summaries


def table(summaries: list[Summary]) -> str:
    """Return a Markdown table, one row per cell."""
    from tabulate import tabulate

    settings = list(dict.fromkeys(name for summary in summaries for name in summary.cell.setting))
    with_bias = any(summary.bias == summary.bias for summary in summaries)
    with_width = any(summary.width == summary.width for summary in summaries)
    with_allowed = len({summary.cell.allowed for summary in summaries}) > 1
    with_studies = len({summary.studies for summary in summaries}) > 1
    headers = [
        "statement",
        *settings,
        "coverage",
        "±",
        *(["allowed"] if with_allowed else []),
        *(["studies"] if with_studies else []),
        "warned",
        *(["bias"] if with_bias else []),
        *(["width", "fewer judgments"] if with_width else []),
        "",
    ]
    rows = [
        [
            summary.cell.statement,
            *(summary.cell.setting.get(name, "") for name in settings),
            "" if summary.coverage != summary.coverage else f"{100 * summary.coverage:.1f} %",
            "" if summary.coverage != summary.coverage else f"{100 * summary.error:.1f}",
            *([_percent(summary.cell.allowed)] if with_allowed else []),
            *([summary.studies] if with_studies else []),
            f"{100 * summary.warned:.0f} %",
            *([f"{summary.bias:+.4f}"] if with_bias else []),
            *([f"{summary.width:.2f}", f"{_saving(summary.width):.0f} %"] if with_width else []),
            summary.verdict,
        ]
        for summary in summaries
    ]
    return str(tabulate(rows, headers, "github", disable_numparse=True))


def _saving(width: float) -> float:
    """Return the percentage of fewer judgments for the width that people's judgments alone have."""
    return 100 * (1 - width**2)


def _percent(allowed: tuple[float, float]) -> str:
    low, high = (f"{100 * limit:.0f}" for limit in allowed)
    return f"{low}–{high} %"


def main(arguments: list[str] | None = None) -> int:
    """Simulate the requested sections and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, metavar="SECTION")
    parser.add_argument("--replications", type=int, default=REPLICATIONS, metavar="N")
    parser.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    failed = False
    for section in options.only:
        start = time.monotonic()
        module = import_module(f"benchmarks.coverage.{section}")
        summaries = simulated(module.cells(), options.replications)
        tables = [table(summaries), *([module.notes()] if hasattr(module, "notes") else [])]
        studies = "–".join(map(str, sorted({summary.studies for summary in summaries})))
        took = f"{studies} studies per cell, {time.monotonic() - start:.0f} s."
        text = "\n\n".join(tables) + f"\n\n{provenance('make coverage')} {took}"
        print(f"{section}\n\n{text}\n")
        if options.output:
            replace_block(options.output, f"coverage-{section}", text)
        failed |= any(summary.verdict == "FAILS" for summary in summaries)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
