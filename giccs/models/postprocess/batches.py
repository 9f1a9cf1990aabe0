"""Vectors that depend on all texts at once, for those who take them batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_one_batch"]

Vectors = NDArray[np.float32]


def in_one_batch(
    vectors: Callable[[Sequence[str]], Vectors],
) -> Callable[[Sequence[str]], Iterator[tuple[list[int], Vectors]]]:
    """Return what yields the places of all texts and their vectors, once."""

    def batches(texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        yield list(range(len(texts))), vectors(texts)

    return batches
