"""Word vectors as a model: a word's own vector, a sentence as the mean of its words' vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.cosine import cosines, encoded
from giccs.models.static.bag import RULES, Lookup
from giccs.models.static.cache import Table, content_digest, open_table
from giccs.models.vocabulary import count_tokens
from giccs.progress import Progress

__all__ = ["Coverage", "StaticModel"]

TEXTS = 1024
"""So many texts are averaged at once."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of some texts word vectors know."""

    texts: int
    unknown_texts: int
    """Texts without any known word: their vectors are NaN."""
    words: int
    unknown_words: int
    """Words and signs of the texts that are left out of the means."""


class StaticModel:
    """A table of word vectors; similarity is the cosine."""

    def __init__(self, name: str, place: Path, cut: str = "whitespace") -> None:
        """Take the name that users see, a file or folder, and how texts are cut (see `RULES`)."""
        self.name = name
        self._place = place
        self._cut = cut

    def in_words(self, name: str) -> StaticModel:
        """Return the same vectors, but signs that cling to words are cut from them."""
        return StaticModel(name, self._place, "words")

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return what the vectors depend on: the file's content and how a text is cut into words."""
        return {
            "kind": "static",
            "revision": f"sha256:{content_digest(self._place)[:16]}",
            "tokenisation": RULES[self._cut],
            "pooling": "mean",
            "similarity": "cosine",
        }

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair; NaN where a text has no known word."""
        return cosines(left, right, self._batches, progress)

    def vectors(self, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) the vectors of N texts; a text without any known word is a row of NaN."""
        return encoded(texts, self._batches, progress)

    def everything(self) -> NDArray[np.float32]:
        """Return (words, D) the vectors of the whole vocabulary, mapped, read-only."""
        return self._table.vectors

    def coverage(self, texts: Sequence[str]) -> Coverage:
        """Return how many of the texts, and of their words, have a vector."""
        found = [self._lookup.rows(text) for text in texts]
        unknown = sum(missing for _, missing in found)
        return Coverage(
            texts=len(texts),
            unknown_texts=sum(not rows for rows, _ in found),
            words=sum(len(rows) for rows, _ in found) + unknown,
            unknown_words=unknown,
        )

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and what was read: words, dimensions, what was left out."""
        return {"numpy": np.__version__, "device": "cpu", **asdict(self._table.counts)}

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        for start in range(0, len(texts), TEXTS):
            batch = texts[start : start + TEXTS]
            rows, unknown = zip(*map(self._lookup.rows, batch), strict=True)
            count_tokens(sum(map(len, rows)) + sum(unknown), sum(unknown))
            yield list(range(start, start + len(batch))), _means(self._table.vectors, rows)

    @cached_property
    def _table(self) -> Table:
        return open_table(self._place)

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self._table.words, self._cut)


def _means(matrix: NDArray[np.float32], rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return (len(rows), D) the mean of each list of rows; NaN for an empty one.

    >>> _means(np.array([[1, 2], [3, 6]], np.float32), [[0, 1], [], [1]]).tolist()
    [[2.0, 4.0], [nan, nan], [3.0, 6.0]]
    """
    means = np.full((len(rows), matrix.shape[1]), np.nan, dtype=np.float32)
    filled = np.array([n for n, some in enumerate(rows) if some], dtype=np.int64)
    if len(filled):
        lengths = np.array([len(rows[n]) for n in filled])
        flat = np.concatenate([rows[n] for n in filled])
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        sums = np.add.reduceat(matrix[flat].astype(np.float64), starts, axis=0)
        means[filled] = sums / lengths[:, None]
    return means
