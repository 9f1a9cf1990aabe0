"""Split-half reliability (100 trials) and alpha by number of items, in separate processes.

N items, 2N 4-tuples, 8N judgments (4 per tuple) by 100 annotators. The judgments are simulated in
memory; the first line per size is the cost of that including imports, which is part of the other lines.
Run: python -m benchmarks.bws_reliability [--large]
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.harness import cost_of_code
from bws.records import Judgments, Tuples

SIZES, LARGE = (1_000, 10_000, 100_000), 1_000_000
WORK = {
    "making the judgments": "",
    "reliability, 100 trials": (
        "from bws.split_half import reliability; reliability(judgments, split='annotation')"
    ),
    "alpha, strong agreement": "from bws.chance_agreement import agreement; agreement(judgments)",
    "annotator report": "from bws.annotators import annotator_report; annotator_report(judgments)",
}
PEERS = {
    "reliability, 100 trials": {
        1_000: "Kiritchenko & Mohammad 1.8",
        10_000: "Kiritchenko & Mohammad 48",
    },
    "alpha, strong agreement": {1_000: "krippendorff, items as values: MemoryError"},
}
"""Wall seconds of other programs for the same work, measured once on two shared cores."""


def judgments_of(n_items: int, annotations: int = 4, noise: float = 0.3) -> Judgments:
    """Return judgments of 2N tuples by noisy true scores; every item is in eight tuples."""
    rng = np.random.Generator(np.random.PCG64(0))
    shuffles = [rng.permutation(n_items).reshape(-1, 4) for _ in range(8)]
    members = np.concatenate(shuffles).astype(np.int32)
    tuples = Tuples(
        ids=np.array([f"t{t}" for t in range(len(members))], dtype=object),
        items=np.array([f"i{i}" for i in range(n_items)], dtype=object),
        group_of_item=np.zeros(n_items, dtype=np.int32),
        groups=np.array([""], dtype=object),
        members=members,
    )
    tuple_of = np.repeat(np.arange(len(members), dtype=np.int32), annotations)
    seen = rng.normal(size=n_items)[members[tuple_of]] + noise * rng.normal(size=(len(tuple_of), 4))
    return Judgments(
        tuples,
        tuple_of,
        seen.argmax(axis=1).astype(np.int8),
        seen.argmin(axis=1).astype(np.int8),
        annotator_of=rng.integers(100, size=len(tuple_of), dtype=np.int32),
        annotators=np.array([f"w{w}" for w in range(100)], dtype=object),
    )


def main() -> None:
    sizes = (*SIZES, LARGE) if "--large" in sys.argv[1:] else SIZES
    print(f"{'items':>9}  {'':<25} {'wall s':>7} {'CPU s':>7} {'peak MiB':>9}  peers, wall s")
    for n in sizes:
        for label, work in WORK.items():
            setup = f"from benchmarks.bws_reliability import judgments_of; judgments = judgments_of({n})"
            cost = cost_of_code(f"{setup}\n{work}")
            peer = PEERS.get(label, {}).get(n, "")
            numbers = f"{cost.wall:>7.2f} {cost.cpu:>7.2f} {cost.peak:>9.0f}"
            print(f"{n:>9,}  {label:<25} {numbers}  {peer}", flush=True)


if __name__ == "__main__":
    main()
