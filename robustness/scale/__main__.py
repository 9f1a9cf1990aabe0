"""Projected cost of studies of a million items and sweeps of a thousand models, from measurements.

    python -m robustness.scale [--assumptions FILE] [-o docs/operations/scale.md]

Measures small runs of every part in CPU seconds, each in a separate process with one thread, and prints the
tables of docs/operations/scale.md; with -o they replace those in the document. FILE is TOML with the tables
`study` and `hardware` and a list `models`; the document's first table lists their keys.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.machine import provenance, replace_block
from bws.problems import InputError
from robustness.scale.assumptions import Assumptions, read_assumptions
from robustness.scale.costs import Projection
from robustness.scale.measurements import measure
from robustness.scale.tables import BLOCKS

DOCUMENT = "docs/operations/scale.md"


def main(arguments: list[str] | None = None) -> None:
    """Measure, compute, and print or write the tables."""
    parser = argparse.ArgumentParser(prog="python -m robustness.scale")
    parser.add_argument("--assumptions", metavar="FILE", help="TOML with other assumptions")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=f"such as {DOCUMENT}")
    options = parser.parse_args(arguments)
    try:
        assumed = read_assumptions(options.assumptions) if options.assumptions else Assumptions()
    except InputError as error:
        sys.exit(str(error))
    projection = Projection(assumed, measure(lambda said: print(said, file=sys.stderr, flush=True)))
    write(projection, options.output)


def write(projection: Projection, document: Path | None) -> None:
    """Write every block into the document, or print them without one."""
    command = (
        f"python -m robustness.scale -o {DOCUMENT}" if document else "python -m robustness.scale"
    )
    for name, block in BLOCKS.items():
        text = f"{provenance(command)}\n\n{block(projection)}"
        if document:
            replace_block(document, name, text)
        else:
            print(f"== {name}\n\n{text}\n")


if __name__ == "__main__":
    main()
