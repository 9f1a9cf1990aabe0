"""Coverage of the 95 % intervals printed by the commands, in simulated studies.

    python -m benchmarks.coverage [--only SECTION ...] [--replications N] [-o docs/background/coverage.md]

With -o the tables are written as CSV to the folder with the name of the document, and the document is made
anew from all tables in this folder. The exit code is 1 if intervals without a note are too narrow or too
wide, or a share is not as required.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

from benchmarks.coverage.cells import FAILURES, Cell, SimulatedStudy, Summary
from benchmarks.coverage.page import SECTIONS, page, write_rows
from bws.base.text import write_atomic

REPLICATIONS = 400
TOGETHER = 10
"""Studies per task of a process."""


def _studies(cell: Cell, seeds: range) -> list[SimulatedStudy]:
    return [cell.simulate(seed) for seed in seeds]


def simulated(cells: Sequence[Cell], replications: int) -> list[Summary]:
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


def code_version() -> str:
    """Return the version of the package, the commit of the checkout and the date."""
    found = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False
    )
    commit = found.stdout.strip() or "unknown commit"
    return f"giccs {version('giccs')}, {commit}, {datetime.now(UTC).date()}"


def main(arguments: list[str] | None = None) -> int:
    """Simulate the requested sections, and print or write their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=SECTIONS, metavar="SECTION")
    parser.add_argument("--replications", type=int, default=REPLICATIONS, metavar="N")
    parser.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    failed = False
    for section in options.only:
        module = import_module(f"benchmarks.coverage.{section}")
        summaries = simulated(module.cells(), options.replications)
        tables = {section: [summary.row for summary in summaries]}
        if hasattr(module, "further"):
            tables[f"{section}_further"] = module.further()
        code = code_version()
        for name, rows in tables.items():
            marked = [{**row, "code": code} for row in rows]
            write_rows(options.output and options.output.with_suffix("") / f"{name}.csv", marked)
        failed |= any(summary.verdict in FAILURES for summary in summaries)
    if options.output:
        write_atomic(options.output, page(options.output.with_suffix("")))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
