"""Downstream classification: CPU seconds of each set of EvalRank's paper, without the encoding, one thread.

    OMP_NUM_THREADS=1 python -m benchmarks.classification [--dimensions N] [SET ...]

Vectors are random, with the published sizes and classes and a direction per class; all logistic regressions
of a set are fitted, including the choice of C. Uniformity is that of the background of sentences.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from tabulate import tabulate

from giccs.evalrank.logistic import Learner
from giccs.evalrank.uniformity import normalize_vectors, uniformity

SIZES = {
    "SCICITE": ((7320, 916, 1861), 3, 1), "MR": ((10662,), 2, 1), "CR": ((3771,), 2, 1),
    "MPQA": ((10603,), 2, 1), "SUBJ": ((10000,), 2, 1), "SST2": ((67349, 872, 1821), 2, 1),
    "SST5": ((8544, 1101, 2210), 5, 1), "TREC": ((5452, 0, 500), 6, 1),
    "MRPC": ((4076, 0, 1725), 2, 2), "SICK-E": ((4500, 500, 4927), 3, 2),
}  # fmt: skip
"""Set -> rows per split, number of classes, vectors per row."""
BACKGROUND = 24_957


def seconds_of(name: str, dimensions: int) -> float:
    """Return the CPU seconds of training and testing on one set."""
    parts, classes, sides = SIZES[name]
    draw = np.random.default_rng(0)
    labels = draw.integers(classes, size=sum(parts))
    spread = 1 / np.sqrt(np.arange(1, dimensions * sides + 1))
    directions = draw.normal(size=(classes, dimensions * sides)) * spread / 3
    vectors = draw.normal(size=(len(labels), dimensions * sides)) * spread + directions[labels]
    learner = Learner(vectors.astype(np.float32), [str(label) for label in labels])
    start = time.process_time()
    if len(parts) == 1:
        learner.cross_validate()
    else:
        learner.predict_test(*np.split(np.arange(len(labels)), np.cumsum(parts)[:2]))
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", choices=[*SIZES, []], metavar="SET")
    parser.add_argument("--dimensions", type=int, default=384)
    options = parser.parse_args()
    rows = [[name, seconds_of(name, options.dimensions)] for name in options.sets or SIZES]
    draw = np.random.default_rng(0)
    units, _ = normalize_vectors(
        draw.normal(size=(BACKGROUND, options.dimensions)).astype(np.float32)
    )
    start = time.process_time()
    uniformity(units)
    rows.append(["uniformity", time.process_time() - start])
    print(tabulate(rows, ["set", f"CPU s, {options.dimensions} dimensions"], floatfmt=".1f"))


if __name__ == "__main__":
    main()
