"""EvalRank: exact ranks compared with the published loop and the bare matrix product, one thread.

    python -m benchmarks.evalrank [--large] [--vectors FILE]

6,989 pairs of 6,784 anchors among 24,957 vectors of 384 dimensions, the sizes of the published sentences.
--vectors FILE (.npy), with GICCS_SHARED in the environment, uses MiniLM's vectors of those sentences; they
are computed and stored in FILE if missing (two to four minutes). Otherwise vectors are random: variances fall
as 1/n, roughly as with text encoders, and a positive is its anchor plus noise. --large adds 250,000 vectors
with 1,000 and 10,000 pairs, and extrapolates to 1 million by 100,000 at the rate of the last row.

The published loop repeats the steps of that program per pair: look up both vectors, score the positive, score
the whole background, sort the scores, and search the rank of the positive. It is timed on every tenth pair,
times ten. "product" is the CPU time of the float32 product of all anchors by all rows, from the best of three
blocks in the same process; "share" is that time divided by the time of ranking. Each row is a separate
process; the peak includes the vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tabulate import tabulate

from benchmarks.harness import cost_of_code

if TYPE_CHECKING:
    from giccs.evalrank.spaces import Similarity

WIDTH = 384
PUBLISHED = (24_957, 6_989, 6_784)
EVERY = 10
LARGE = [(250_000, 1_000, 1_000), (250_000, 10_000, 10_000)]
PAPER = (1_000_000, 100_000)


def make_vectors(background: int, pairs: int, anchors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors and pairs: positives are anchors plus noise; some anchors have two."""
    rng = np.random.Generator(np.random.PCG64(0))
    spread = np.sqrt(1 / np.arange(1, WIDTH + 1, dtype=np.float32))
    vectors = rng.standard_normal((background, WIDTH), dtype=np.float32)
    vectors *= spread
    x = np.arange(pairs) % anchors
    y = (x + background // 2) % background
    noise = rng.standard_normal((anchors, WIDTH), dtype=np.float32) * spread
    vectors[y[:anchors]] = vectors[:anchors] + noise
    y[anchors:] += 1
    return vectors, np.stack([x, y], axis=1)


def published(file: str) -> tuple[np.ndarray, np.ndarray]:
    """Return MiniLM's vectors of the published sentences, and the published pairs."""
    from giccs.evalrank.data import read_sentences
    from giccs.models import open_model
    from giccs.models.abilities import VectorModel
    from giccs.progress import silent

    data = read_sentences(str(Path(os.environ["GICCS_SHARED"], "data/evalrank/sent_evalrank")))
    if not Path(file).exists():
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        model = open_model("package:minilm")
        assert isinstance(model, VectorModel)
        np.save(file, model.vectors(data.texts, silent))
    return np.load(file), data.pairs


def product_seconds(vectors: np.ndarray, anchors: int) -> float:
    """Return the CPU seconds of the float32 product of the anchors by all vectors, in blocks."""
    block = vectors[: min(anchors, 1024)].copy()
    some = np.ascontiguousarray(vectors[:24_957])
    seconds = []
    for _ in range(3):
        start = time.process_time()
        block @ some.T
        seconds.append(time.process_time() - start)
    return min(seconds) * anchors / len(block) * len(vectors) / len(some)


def as_published(vectors: np.ndarray, pairs: np.ndarray, similarity: str) -> np.ndarray:
    """Return ranks by the published loop."""
    row_of = {f"text {index}": index for index in range(len(vectors))}
    texts = list(row_of)
    vectors = vectors - vectors.mean(axis=0, keepdims=True)
    if similarity == "cos":
        vectors = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    embed = lambda names: np.stack([vectors[row_of[name]] for name in names])  # noqa: E731
    background, ranks = embed(texts), []
    for x, y in pairs:
        first, second = embed([texts[x]]), embed([texts[y]])
        if similarity == "cos":
            similarity_scores = np.dot(first, second.T).squeeze()
            scores = np.squeeze(np.dot(background, first.T))
        else:
            similarity_scores = 1 / (np.linalg.norm(first - second) + 1)
            scores = 1 / (np.linalg.norm(background - first, axis=1) + 1)
        ascending = np.sort(scores)
        ranks.append(
            max(1, len(ascending) - np.searchsorted(ascending, similarity_scores, side="right"))
        )
    return np.array(ranks)


def measure(
    implementation: str, similarity: Similarity, sizes: list[int], file: str, output: str
) -> None:
    """Rank once; write the cost as JSON."""
    from giccs.evalrank.ranking import compute_ranks

    vectors, pairs = published(file) if file else make_vectors(*sizes)
    start = time.process_time()
    if implementation == "published loop":
        ranks = as_published(vectors, pairs[::EVERY], similarity)
        seconds = (time.process_time() - start) * EVERY
    else:
        ranks = compute_ranks(vectors, pairs, similarity).rank
        seconds = time.process_time() - start
    anchors = len(np.unique(pairs[:, 0]))
    facts = {
        "sizes": [len(vectors), len(pairs)],
        "seconds": seconds,
        "product": product_seconds(vectors, anchors),
        "rate": 2 * anchors * len(vectors) * WIDTH,
        "mrr": float(np.mean(1 / ranks)),
    }
    Path(output).write_text(json.dumps(facts))


def row_of(
    implementation: str, similarity: str, sizes: tuple[int, int, int], file: str
) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/facts.json"
        call = f"b.measure({implementation!r}, {similarity!r}, {[*sizes]}, {file!r}, {output!r})"
        cost = cost_of_code(f"import benchmarks.evalrank as b; {call}")
        facts = json.loads(Path(output).read_text())
    seconds, product = facts["seconds"], facts["product"]
    rate = facts["rate"] / product / 1e9
    return [
        *facts["sizes"], similarity, implementation, seconds, product, rate, product / seconds, cost.peak,
        facts["mrr"],
    ]  # fmt: skip


HEADERS = [
    "background", "pairs", "similarity", "by", "CPU s", "product CPU s", "GFLOP/s", "share",
    "peak MiB", "MRR",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also 250,000 vectors")
    parser.add_argument("--vectors", default="", help="file of MiniLM's vectors")
    options, _ = parser.parse_known_args()
    rows = [
        row_of(implementation, similarity, PUBLISHED, options.vectors)
        for similarity in ("cos", "l2")
        for implementation in ("published loop", "giccs")
    ]
    if options.large:
        rows += [row_of("giccs", "cos", sizes, "") for sizes in LARGE]
    formats = (",.0f", ",.0f", "", "", ".2f", ".2f", ".0f", ".2f", ",.0f", ".4f")
    print(tabulate(rows, HEADERS, floatfmt=formats, intfmt=","))
    for loop, ours in (rows[:2], rows[2:4]):
        print(f"{ours[2]}: {loop[4] / ours[4]:.0f} times less CPU time than the published loop")
    if options.large:
        flops = 2 * PAPER[0] * PAPER[1] * WIDTH
        hours = flops / (rows[-1][6] * 1e9 * rows[-1][7]) / 3600
        gib = (PAPER[0] + PAPER[1]) * WIDTH * 4 / 2**30
        print(
            f"1,000,000 x 100,000 on paper: {flops:.1e} operations, {hours:.2f} CPU hours at the last "
            f"row's rate; vectors and anchors {gib:.1f} GiB"
        )


if __name__ == "__main__":
    main()
