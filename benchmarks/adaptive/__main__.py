"""Acceptance table of adaptive studies, from simulated studies with fixed seeds and real judgments.

    python -m benchmarks.adaptive [--only SECTION ...] [--studies N] [-o docs/background/adaptive.md]

With -o the tables replace the blocks `adaptive-SECTION` of a document. Missed goals are printed as such.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.adaptive.sections import SECTIONS
from benchmarks.machine import provenance, replace_block

__all__ = ["main"]

STUDIES = 400
WITHOUT_STUDIES = ("speed", "real")


def _run(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call a function with each tuple of arguments on all CPUs, with a progress bar."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(function, *values) for values in arguments]
        return [future.result() for future in tqdm(futures, disable=None, unit="study")]


def main(arguments: list[str] | None = None) -> None:
    """Measure the requested sections and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adaptive")
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=[*SECTIONS], metavar="SECTION"
    )
    parser.add_argument("--studies", type=int, default=STUDIES, metavar="N")
    parser.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    for section in options.only:
        start = time.monotonic()
        table = SECTIONS[section](_run, options.studies)
        took = f"{time.monotonic() - start:.0f} s."
        if section not in WITHOUT_STUDIES:
            took = f"{options.studies} studies per cell, {took}"
        text = f"{table}\n\n{provenance('make adaptive')} {took}"
        print(f"{section}\n\n{text}\n", flush=True)
        if options.output:
            replace_block(options.output, f"adaptive-{section}", text)


if __name__ == "__main__":
    main()
