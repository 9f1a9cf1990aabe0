"""Acceptance table of adaptive studies, from simulated studies with fixed seeds and real judgments.

    python -m benchmarks.adaptive [--only SECTION ...] [--studies N] [--journal FILE]
        [-o docs/background/adaptive.md]

With -o the tables replace the blocks `adaptive-SECTION` of a document. Missed goals are printed as such. All
sections need about two hours on two cores; with --journal an interrupted run of the same code continues.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.adaptive.sections import SECTIONS
from benchmarks.machine import provenance, replace_block

STUDIES = 400
WITHOUT_STUDIES = ("speed", "real")


class Journal:
    """Results of simulated studies in a JSON Lines file: one per function and arguments."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self._results: dict[str, Any] = dict(map(json.loads, lines))

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each tuple of arguments that is missing, on all CPUs; return all results."""
        keys = [f"{function.__name__}{values!r}" for values in arguments]
        missing = {
            key: values
            for key, values in zip(keys, arguments, strict=True)
            if key not in self._results
        }
        with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            futures = {pool.submit(function, *values): key for key, values in missing.items()}
            for future in tqdm(
                as_completed(futures), total=len(futures), disable=None, unit="study"
            ):
                self._add(futures[future], future.result())
        return [self._results[key] for key in keys]

    def _add(self, key: str, result: Any) -> None:
        self._results[key] = result
        if self._path:
            with self._path.open("a") as file:
                file.write(f"{json.dumps([key, result])}\n")


def main(arguments: list[str] | None = None) -> None:
    """Measure the requested sections and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adaptive")
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=[*SECTIONS], metavar="SECTION"
    )
    parser.add_argument("--studies", type=int, default=STUDIES, metavar="N")
    parser.add_argument("--journal", type=Path, metavar="FILE")
    parser.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    journal = Journal(options.journal)
    for section in options.only:
        start = time.monotonic()
        table = SECTIONS[section](journal.run, options.studies)
        took = "with a journal." if options.journal else f"{time.monotonic() - start:.0f} s."
        if section not in WITHOUT_STUDIES:
            took = f"{options.studies} studies per cell, {took}"
        text = f"{table}\n\n{provenance('make adaptive')} {took}"
        print(f"{section}\n\n{text}\n", flush=True)
        if options.output:
            replace_block(options.output, f"adaptive-{section}", text)


if __name__ == "__main__":
    main()
