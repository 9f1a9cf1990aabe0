"""Time of scoring: 2N 4-tuples and 8N judgments, from arrays; and many judgments of few items.

    python -m benchmarks.bws_scoring [--large] [--method NAME ...]

Times are those of `bws.scoring.score` on judgments in memory, including imports; memory is the peak of the
process, including the judgments. Choice models have a fixed prior. Elo and the learning rules on few items
are compared with a loop that shuffles and processes the same matches one by one.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from tabulate import tabulate

from benchmarks.harness import cost_of_code
from bws.records import Judgments, Tuples
from bws.scoring import METHODS, sequential, utilities

SIZES = (1_000, 10_000, 100_000)
LARGE = 1_000_000
K, ANNOTATIONS, ANNOTATORS = 4, 4, 200
DEFAULT = ("counting", "bradley-terry")
FEW_ITEMS, MANY_JUDGMENTS, PASSES = 13, 4_550, 100
RULES: dict[str, tuple[sequential.Update, sequential.State]] = {
    "elo": (sequential.elo, (1000.0,)),
    "value-learning": (sequential.value_learning, (0.5,)),
    "rescorla-wagner": (sequential.rescorla_wagner, (1e-4, 1e-4)),
}
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
score(judgments, {method!r}, **{options})
open({path!r}, "w").write(str(time.perf_counter() - start))
"""


def judgments_of(items: int, seed: int = 0) -> Judgments:
    """Return 8N noisy judgments of 2N tuples in which every item appears equally often."""
    rng = np.random.Generator(np.random.PCG64(seed))
    order = np.concatenate([rng.permutation(items) for _ in range(2 * K)])
    members = _with_distinct_items(order.reshape(2 * items, K).astype(np.int32))
    return _simulate_judgments(members, ANNOTATIONS, items, rng)


def judgments_of_few_items(seed: int = 0) -> Judgments:
    """Return 350 noisy judgments per tuple; each pair of the 13 items occurs in one of 13 tuples."""
    first = np.array([0, 1, 3, 9])  # a difference set modulo 13
    members = (np.arange(FEW_ITEMS)[:, np.newaxis] + first) % FEW_ITEMS
    rng = np.random.Generator(np.random.PCG64(seed))
    return _simulate_judgments(
        members.astype(np.int32), MANY_JUDGMENTS // FEW_ITEMS, FEW_ITEMS, rng
    )


def _simulate_judgments(
    members: np.ndarray, annotations: int, items: int, rng: np.random.Generator
) -> Judgments:
    number = len(members)
    tuple_of = np.repeat(np.arange(number, dtype=np.int32), annotations)
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
    """Replace rows with a repeated item by rows of K consecutive items."""
    repeated = (np.diff(np.sort(members, axis=1), axis=1) == 0).any(axis=1)
    members[repeated] = np.arange(repeated.sum() * K).reshape(-1, K) % (members.max() + 1)
    return members


def _names(letter: str, number: int) -> np.ndarray:
    return np.array([f"{letter}{i}" for i in range(number)], dtype=object)


def seconds_and_peak(method: str, items: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "seconds")
        options = {"prior": 3.0} if METHODS[method].stages else {}
        code = CODE.format(items=items, method=method, options=options, path=str(path))
        cost = cost_of_code(code)
        return float(path.read_text()), cost.peak


def cost_of_the_prior() -> list[list[object]]:
    """Return a row per size: CPU seconds of a fit with a fixed and with an estimated prior."""
    rows: list[list[object]] = []
    for items in SIZES:
        judgments = judgments_of(items)

        def fit(prior: float | None, judgments: Judgments = judgments) -> None:
            utilities(judgments, "best-worst-logit", prior=prior)

        fit(None)  # first call, for imports
        fixed, estimated = (_cpu_seconds(partial(fit, prior)) for prior in (1.5, None))
        rows.append([f"{items:,}", fixed, estimated, estimated / fixed])
    return rows


def few_items() -> list[list[object]]:
    """Return a row per rule: CPU seconds of a loop and of giccs, and the correlation of two seeds."""
    judgments = judgments_of_few_items()
    sides = [side.ravel() for side in judgments.canonical.comparisons()]
    matches = list(zip(*(side.tolist() for side in sides), strict=True))
    rows: list[list[object]] = []
    for method, (update, start) in RULES.items():
        values = [start] * FEW_ITEMS

        def loop(
            update: sequential.Update = update, values: list[sequential.State] = values
        ) -> None:
            for _ in range(PASSES):
                random.shuffle(matches)
                for w, l in matches:  # noqa: E741
                    values[w], values[l] = update(values[w], values[l], 0.01)

        def ours(seed: int = 0, method: str = method) -> np.ndarray:
            return utilities(judgments, method, seed=seed, passes=PASSES).utility

        agreement = np.corrcoef(ours(1), ours(2))[0, 1]
        rows.append([method, _cpu_seconds(loop), _cpu_seconds(ours), f"{agreement:.5f}"])
    return rows


def _cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also a million items")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=DEFAULT)
    options = parser.parse_args()
    sizes = (*SIZES, LARGE) if options.large else SIZES
    rows = []
    for method in options.method:
        costs = [seconds_and_peak(method, items) for items in sizes]
        rows.append([method, *(f"{seconds:.2f} s, {peak:.0f} MiB" for seconds, peak in costs)])
    print(tabulate(rows, ["giccs, this machine, one thread", *(f"{n:,} items" for n in sizes)]))
    print()
    print(
        "Published figures of other programs, in seconds of the whole program on two shared cores:"
    )
    print(tabulate(PEERS, ["peer", *(f"{n:,} items" for n in SIZES)]))
    print()
    print("Best–worst logit, CPU seconds with a fixed and with an estimated prior:")
    head = ["items", "fixed", "estimated", "ratio"]
    print(tabulate(cost_of_the_prior(), head, floatfmt=".2f", disable_numparse=[0]))
    print()
    print(f"{FEW_ITEMS} items, {MANY_JUDGMENTS:,} judgments, {PASSES} passes, CPU seconds:")
    head = ["method", "plain loop", "giccs", "correlation of two seeds"]
    print(tabulate(few_items(), head, floatfmt=".2f", disable_numparse=[3]))


if __name__ == "__main__":
    main()
