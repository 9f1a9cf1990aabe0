"""How long scores take: 2N 4-tuples and 8N judgments, from arrays.

    python -m benchmarks.bws_scoring [--large] [--method NAME ...]

Seconds are those of `bws.scoring.score` on judgments that are in memory, with a module's first
import; memory is the process's peak, the judgments included.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from tabulate import tabulate

from benchmarks.harness import cost_of_code
from bws.records import Judgments, Tuples
from bws.scoring import METHODS

SIZES = (1_000, 10_000, 100_000)
LARGE = 1_000_000
K, ANNOTATIONS, ANNOTATORS = 4, 4, 200
DEFAULT = ("counting", "bradley-terry")
PEERS = [
    ["counting, Kiritchenko and Mohammad", 0.12, 0.46, 5.2],
    ["counting, Potato", 0.01, 0.13, 2.0],
    ["Bradley–Terry, choix ilsr", 0.7, 88, "MemoryError"],
    ["Bradley–Terry, choix opt", 6.2, 83, "MemoryError"],
]
CODE = """
import time
from benchmarks.bws_scoring import judgments_of
judgments = judgments_of({items})
start = time.perf_counter()
from bws.scoring import score
score(judgments, {method!r})
open({path!r}, "w").write(str(time.perf_counter() - start))
"""


def judgments_of(items: int, seed: int = 0) -> Judgments:
    """Return 8N noisy judgments of 2N tuples in which every item stands equally often."""
    rng = np.random.Generator(np.random.PCG64(seed))
    number = 2 * items
    order = np.concatenate([rng.permutation(items) for _ in range(2 * K)])
    members = _with_distinct_items(order.reshape(number, K).astype(np.int32))
    tuple_of = np.repeat(np.arange(number, dtype=np.int32), ANNOTATIONS)
    truth = rng.normal(size=items) * 1.5
    seen = truth[members[tuple_of]] + rng.gumbel(size=(len(tuple_of), K))
    tuples = Tuples(
        _names("t", number),
        _names("i", items),
        np.zeros(items, dtype=np.int32),
        np.array([""], dtype=object),
        members,
    )
    return Judgments(
        tuples,
        tuple_of,
        seen.argmax(axis=1).astype(np.int8),
        seen.argmin(axis=1).astype(np.int8),
        rng.integers(ANNOTATORS, size=len(tuple_of)).astype(np.int32),
        _names("w", ANNOTATORS),
    )


def _with_distinct_items(members: np.ndarray) -> np.ndarray:
    """Return the rows, those with a repeated item replaced by rows of K items in a row."""
    repeated = (np.diff(np.sort(members, axis=1), axis=1) == 0).any(axis=1)
    members[repeated] = np.arange(repeated.sum() * K).reshape(-1, K) % (members.max() + 1)
    return members


def _names(letter: str, number: int) -> np.ndarray:
    return np.array([f"{letter}{i}" for i in range(number)], dtype=object)


def seconds_and_peak(method: str, items: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "seconds")
        cost = cost_of_code(CODE.format(items=items, method=method, path=str(path)))
        return float(path.read_text()), cost.peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also a million items")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=DEFAULT)
    asked = parser.parse_args()
    sizes = (*SIZES, LARGE) if asked.large else SIZES
    rows = []
    for method in asked.method:
        costs = [seconds_and_peak(method, items) for items in sizes]
        rows.append([method, *(f"{seconds:.2f} s, {peak:.0f} MiB" for seconds, peak in costs)])
    print(tabulate(rows, ["giccs, this machine, one thread", *(f"{n:,} items" for n in sizes)]))
    print()
    print("As published for the peers elsewhere, seconds of the whole program on two shared cores:")
    print(tabulate(PEERS, ["peer", *(f"{n:,} items" for n in SIZES)]))


if __name__ == "__main__":
    main()
