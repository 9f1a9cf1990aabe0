"""Pair mining for C-STS: neighbours of sources, then filters over millions of caption pairs, one thread.

    python -m benchmarks.csts_pairs [--large]

100,000 captions of 20,000 sources with COCO's thresholds and k = 64; --large adds 415,000 captions of 83,000
sources, as in COCO. Captions consist of 3,000 words drawn by Zipf's law. Embeddings have 384 dimensions whose
variances fall as 1/n, roughly as with text encoders; a caption's embedding is that of its source plus noise.

"bound" is the time of the matrix multiplication of all pairs of sources: the best of three products of 8
million cosines, measured in the same process and scaled up. Each row is a separate process; the peak includes
the creation of the captions, the seconds do not.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tabulate import tabulate

from benchmarks.harness import cost_of_code

if TYPE_CHECKING:
    from giccs.csts.mining.captions import Captions
    from giccs.csts.mining.embeddings import Matrix

WIDTH, WORDS, EACH = 384, 3_000, 5
NOISE = 0.7
CASES = [(20_000, 64)]
LARGE = [(83_000, 64)]


def captions_of(sources: int, rng: np.random.Generator) -> Captions:
    """Return captions of 8 to 14 words, about a third of them stop words."""
    from giccs.csts.mining.captions import Captions
    from giccs.csts.mining.filters import english_stop_words

    stop = sorted(english_stop_words())
    share = 1 / np.arange(1, WORDS + 1)
    number = sources * EACH
    word_indices = rng.choice(WORDS, size=(number, 14), p=share / share.sum())
    lengths = rng.integers(8, 15, size=number)
    stops = rng.random((number, 14)) < 0.35
    texts = tuple(
        " ".join(
            stop[w % len(stop)] if s else f"word{w}"
            for w, s in zip(row[:n], is_stop[:n], strict=True)
        )
        for row, is_stop, n in zip(
            word_indices.tolist(), stops.tolist(), lengths.tolist(), strict=True
        )
    )
    indices = np.arange(number)
    names = tuple(map(str, range(sources)))
    starts = np.arange(sources + 1) * EACH
    return Captions("made", names, texts, starts, indices + 1, indices, number)


def embeddings_of(sources: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Return unit-length embeddings of the sources and of their captions."""
    from giccs.csts.mining.embeddings import units_of

    spread = np.sqrt(1 / np.arange(1, WIDTH + 1, dtype=np.float32))
    vectors = rng.standard_normal((sources, WIDTH), dtype=np.float32) * spread
    texts = np.repeat(vectors, EACH, axis=0)
    for part in np.array_split(texts, 50):
        part += NOISE * spread * rng.standard_normal(part.shape, dtype=np.float32)
    return units_of(vectors, "made"), units_of(texts, "made")


def bound(units: np.ndarray) -> float:
    """Return the CPU seconds of all S x S cosines, scaled from the best of three blocks of 8 million."""
    rows = max(1, 8_000_000 // len(units))
    block = units[:rows].copy()
    seconds = []
    for _ in range(3):
        start = time.process_time()
        block @ units.T
        seconds.append(time.process_time() - start)
    return min(seconds) * len(units) / rows


def measure(sources: int, k: int, output: str) -> None:
    """Mine once; write the cost as JSON."""
    from giccs.csts.mining.candidates import Candidates, Tally, mine, sampled
    from giccs.csts.mining.filters import bags_of, english_stop_words
    from giccs.csts.mining.neighbours import nearest, source_pairs
    from giccs.csts.mining.thresholds import PRESETS

    rng = np.random.Generator(np.random.PCG64(0))
    captions = captions_of(sources, rng)
    units, texts = embeddings_of(sources, rng)
    ticks = [time.process_time()]
    neighbours = nearest(units, k)
    ticks.append(time.process_time())
    bags = bags_of(captions.texts, english_stop_words())
    ticks.append(time.process_time())
    tally = Tally()
    candidates = Candidates(captions, texts, bags, *source_pairs(neighbours))
    sampled_pairs = sampled(mine(candidates, PRESETS["coco"].thresholds, tally), 20_000)
    ticks.append(time.process_time())
    facts = {
        "bound": bound(units),
        "seconds": np.diff(ticks).tolist(),
        "candidates": tally.candidates,
        "passed": tally.passed,
        "kept": len(sampled_pairs),
    }
    Path(output).write_text(json.dumps(facts))


def row_of(sources: int, k: int) -> list[object]:
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/facts.json"
        code = f"import benchmarks.csts_pairs as b; b.measure({sources}, {k}, {output!r})"
        cost = cost_of_code(code)
        facts = json.loads(Path(output).read_text())
    sizes = [sources * EACH, sources, k]
    return [
        *sizes, facts["bound"], *facts["seconds"], facts["candidates"], facts["passed"], cost.peak,
    ]  # fmt: skip


HEADERS = [
    "captions", "sources", "k", "bound CPU s", "neighbours CPU s", "words CPU s",
    "filters CPU s", "candidates", "passed", "peak MiB",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also 415,000 captions")
    options = parser.parse_args()
    cases = [*CASES, *LARGE] if options.large else CASES
    rows = [row_of(*case) for case in cases]
    print(
        tabulate(rows, HEADERS, floatfmt=(",.0f",) * 3 + (".1f",) * 4 + (",.0f",) * 3, intfmt=",")
    )


if __name__ == "__main__":
    main()
