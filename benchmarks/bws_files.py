"""giccs score from a file on disk: 2N 4-tuples, 8N judgments, one thread, the whole command.

    python -m benchmarks.bws_files [--large]

`wall`, `CPU` and `peak` are those of the process, including start and imports; `read + count` is the wall
time without them, measured inside such a process. The files differ in row order and columns; all are read
with --from auto.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from tabulate import tabulate

from benchmarks.harness import cost_of, cost_of_code
from bws.design import make_tuples
from bws.files import write_judgments
from bws.files.writing import JudgmentForm
from bws.records import Judgments
from bws.simulation import simulate

SIZES, LARGE = (1_000, 10_000, 100_000), 1_000_000
PEERS = {1_000: "K&M 0.12", 10_000: "K&M 0.46", 100_000: "K&M 5.2, Potato 2.0"}
"""Wall seconds of counting by other programs, measured once on two shared cores."""
TIMED = """
import time
import polars, bws.scoring, bws.files
start = time.perf_counter()
scores = bws.scoring.score(bws.files.read_judgments({file!r}))
bws.files.write_scores(scores, {output!r})
open({seconds!r}, "w").write(str(time.perf_counter() - start))
"""


def judgments_of(items: int) -> Judgments:
    """Return 8N simulated judgments, tuple by tuple, without the order shown."""
    tuples = make_tuples([f"item{n}" for n in range(items)], 4)
    return replace(simulate(tuples, np.linspace(-1, 1, items), 4), shown=None)


def write_files(items: int, folder: str) -> None:
    """Write the judgments in several formats to files named after their special property."""
    judgments = judgments_of(items)
    shuffled = np.random.Generator(np.random.PCG64(0)).permutation(len(judgments))
    tuples = judgments.tuples
    commas = replace(tuples, items=np.array([f"{i}, x" for i in tuples.items], dtype=object))
    members = np.tile(np.arange(4, dtype=np.int8), (len(judgments), 1))
    variants: dict[str, tuple[Judgments, JudgmentForm]] = {
        "tuple by tuple": (judgments, "csv"),
        "rows shuffled": (judgments.select(shuffled), "csv"),
        "with the order shown": (replace(judgments, shown=members), "csv"),
        "ids with commas": (replace(judgments, tuples=commas), "csv"),
        "K&M, no tuple ids": (judgments, "km"),
    }
    for number, (name, (variant, form)) in enumerate(variants.items()):
        write_judgments(variant, f"{folder}/{number} {name}", form)


def row_of(items: int, file: Path) -> list[object]:
    name, output, seconds = file.name[2:], f"{file}.scores", Path(f"{file}.seconds")
    program = str(Path(sys.executable).with_name("giccs"))
    cost = cost_of([program, "score", str(file), "-o", output, "--quiet"])
    names = {"file": str(file), "output": output, "seconds": str(seconds)}
    cost_of_code(TIMED.format(**names))
    inside = float(seconds.read_text())
    peers = PEERS.get(items, "") if name == "tuple by tuple" else ""
    return [items, name, file.stat().st_size / 2**20, inside, cost.wall, cost.cpu, cost.peak, peers]


def main() -> None:
    rows = []
    for items in (*SIZES, LARGE) if "--large" in sys.argv[1:] else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            # in a separate process, whose memory would otherwise be counted for the commands
            cost_of_code(f"import benchmarks.bws_files as b; b.write_files({items}, {folder!r})")
            rows += [row_of(items, file) for file in sorted(Path(folder).iterdir())]
    headers = [
        "items",
        "file",
        "MiB",
        "read + count s",
        "wall s",
        "CPU s",
        "peak MiB",
        "peers, wall s",
    ]
    print(tabulate(rows, headers, floatfmt=".2f"))


if __name__ == "__main__":
    main()
