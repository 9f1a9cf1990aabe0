"""Word vectors as a folder with a .npy matrix and, beside it, the words of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bws.problems import InputError, Problem
from bws.textio import read_text
from giccs.benchmark.parquet import read_table
from giccs.models.static.blocks import BLOCK_BYTES, Block

__all__ = ["pair_blocks", "pair_files"]


def pair_files(folder: Path) -> tuple[Path, Path]:
    """Return the matrix and the words in a folder; InputError where there is not one of each."""
    matrices = sorted(folder.glob("*.npy"))
    words = sorted([*folder.glob("*.txt"), *folder.glob("*.parquet")])
    if len(matrices) != 1 or len(words) != 1:
        message = (
            "a folder of word vectors has one .npy file and one file of words (.txt or .parquet); "
            f"here are {len(matrices)} and {len(words)}"
        )
        raise InputError(Problem(str(folder), None, message))
    return matrices[0], words[0]


def pair_blocks(matrix_file: Path, words_file: Path) -> Iterator[Block]:
    """Yield the blocks; InputError where matrix and words do not fit together."""
    try:
        matrix = np.load(matrix_file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(Problem(str(matrix_file), None, f"is no .npy file ({error})")) from None
    words = _words(words_file)
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or len(matrix) != len(words):
        message = (
            f"has shape {matrix.shape} of {matrix.dtype}; floats, {len(words):,} rows, are expected"
        )
        raise InputError(Problem(str(matrix_file), None, message))
    step = max(1, BLOCK_BYTES // (4 * matrix.shape[1] or 1))
    for start in range(0, len(words), step):
        vectors = np.asarray(matrix[start : start + step], dtype=np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            message = f"row {start + int(np.argmin(finite)):,} has a number that is not finite"
            raise InputError(Problem(str(matrix_file), None, message))
        yield Block(words[start : start + step], vectors)


def _words(file: Path) -> list[str]:
    if file.suffix == ".txt":
        return read_text(file).removesuffix("\n").split("\n")
    import polars as pl

    try:
        table = read_table(file)
    except (ValueError, OSError) as error:
        raise InputError(Problem(str(file), None, f"is no Parquet file ({error})")) from None
    if table.width != 1 or table.dtypes[0] != pl.String:
        raise InputError(Problem(str(file), None, "one column of words is expected"))
    return [word or "" for word in table.to_series().to_list()]
