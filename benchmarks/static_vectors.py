"""Loading word vectors from text: first, again (memory-mapped), and by gensim; one thread.

    python -m benchmarks.static_vectors [--words 400000]

Files of random words with 50 and 300 numbers of five decimals each, like GloVe's 6B files. Each load is a
separate process that looks up one word; seconds and peak are those of the whole process, including imports.
The first load checks every number and writes the memory-mapped form; gensim's load_word2vec_format does
neither.
"""

from __future__ import annotations

import argparse
import os
import tempfile

import numpy as np
from tabulate import tabulate

from benchmarks.harness import Cost, cost_of_code

WIDTHS = (50, 300)
OURS = """
from pathlib import Path
from giccs.models.static import StaticModel
from giccs.progress import silent
StaticModel("made", Path({path!r})).vectors(["w7"], silent)
"""
GENSIM = """
from gensim.models import KeyedVectors
KeyedVectors.load_word2vec_format({path!r}, no_header=True)["w7"]
"""


def write_vectors(path: str, words: int, width: int) -> None:
    """Write a GloVe text file."""
    import polars as pl

    numbers = np.random.default_rng(0).normal(scale=0.4, size=(words, width)).astype(np.float32)
    table = pl.DataFrame(numbers, [str(n) for n in range(width)])
    table.insert_column(0, pl.Series("word", [f"w{n}" for n in range(words)]))
    table.write_csv(path, include_header=False, separator=" ", float_precision=5)


def rows_of(words: int, width: int) -> list[list[object]]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/vectors.txt"
        # in a separate process, so that its peak memory is not inherited
        cost_of_code(
            f"import benchmarks.static_vectors as b; b.write_vectors({path!r}, {words}, {width})"
        )
        os.environ["GICCS_CACHE"] = f"{folder}/cache"
        ours = OURS.format(path=path)
        costs = {
            "giccs, first": cost_of_code(ours),
            "giccs, again": cost_of_code(ours),
            "gensim": cost_of_code(GENSIM.format(path=path)),
        }
        size = os.path.getsize(path) / 1e6
    return [[words, width, size, label, *_cost_columns(cost)] for label, cost in costs.items()]


def _cost_columns(cost: Cost) -> list[float]:
    return [cost.wall, cost.cpu, cost.peak]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=400_000)
    words = parser.parse_args().words
    rows = [row for width in WIDTHS for row in rows_of(words, width)]
    headers = ["words", "numbers", "MB", "opened by", "wall s", "CPU s", "peak MiB"]
    print(tabulate(rows, headers, floatfmt=("", "", ",.0f", "", ".2f", ".2f", ",.0f"), intfmt=","))


if __name__ == "__main__":
    main()
