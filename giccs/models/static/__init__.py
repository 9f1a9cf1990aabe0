"""Word vectors as models; the vector of a sentence is the mean of its words' vectors.

static:glove.6B.300d.txt    static:GoogleNews-vectors-negative300.bin.gz    static:crawl-300d-2M.vec
static:FOLDER               a .npy matrix and its words (.txt with one word per line, or .parquet)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import PairModel, VectorModel
from giccs.models.encoding import cosines, encoded
from giccs.models.model_errors import UnsupportedOptionError
from giccs.models.static.cache import Table, content_digest, open_table
from giccs.models.vocabulary import count_tokens
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["Lookup", "StaticModel", "open_static"]

RULES = {
    "whitespace": "white space; exact, lower case, any case",
    "words": "white space, then words and signs; exact, lower case, any case",
}
"""Tokenisation rule -> its short description in the identity of a model."""
PIECE = re.compile(r"\w+(?:[^\w\s]+\w+)*|[^\w\s]")
"""A word with its internal punctuation (``don't``, ``e-mail``), or a punctuation mark."""

TEXTS = 1024
"""Number of texts averaged at a time."""


class Lookup:
    """Maps texts to rows of word vectors.

    A text that is an entry itself, including spaces, is mapped to that entry. Any other text is split at
    white space, as in EvalRank's program, which requires pre-tokenised text. With ``words``, tokens without
    an entry are split again, so that ``off.`` and ``off .`` have the same two entries. An entry is matched
    exactly, then in lower case, then as the first one in the file that differs only in case. Texts are
    normalised to NFC.

    >>> entries = ["the", "Paris", "paris", "."]
    >>> Lookup(entries).rows("The Paris.")
    ([0], 1)
    >>> Lookup(entries, "words").rows("The Paris.")
    ([0, 1, 3], 0)
    """

    def __init__(self, words: Sequence[str], cut: str = "whitespace") -> None:
        if cut not in RULES:
            raise ValueError(f"unknown cut {cut!r}; expected one of {', '.join(RULES)}")
        self._rows = {word: row for row, word in enumerate(words)}
        self._pieces = cut == "words"

    def rows(self, text: str) -> tuple[list[int], int]:
        """Return the rows of the text's words in order, and the number of words without an entry."""
        text = unicodedata.normalize("NFC", text.strip())
        text_row = self._row(text)
        if text_row is not None:
            return [text_row], 0
        word_rows = [self._row(word) for word in self._words(text)]
        rows = [row for row in word_rows if row is not None]
        return rows, len(word_rows) - len(rows)

    def _words(self, text: str) -> Iterator[str]:
        for token in text.split():
            if self._pieces and self._row(token) is None:
                yield from PIECE.findall(token)
            else:
                yield token

    def _row(self, word: str) -> int | None:
        row = self._rows.get(word)
        if row is None:
            lower = word.lower()
            row = self._rows.get(lower)
            if row is None:
                row = self._without_case.get(lower)
        return row

    @cached_property
    def _without_case(self) -> dict[str, int]:
        rows: dict[str, int] = {}
        for word, row in self._rows.items():
            rows.setdefault(word.lower(), row)
        return rows


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of texts by word vectors."""

    texts: int
    unknown_texts: int
    """Number of texts without any known word, whose vectors are NaN."""
    words: int
    unknown_words: int
    """Number of words and punctuation marks that are not in the means."""


class StaticModel(PairModel, VectorModel):
    """Word vectors as a model; similarity is the cosine."""

    name: str

    def __init__(self, name: str, location: Path, cut: str = "whitespace") -> None:
        """Create a model from its name, a file or folder, and a tokenisation rule (see `RULES`)."""
        self.name = name
        self._place = location
        self._cut = cut

    def in_words(self, name: str) -> StaticModel:
        """Return a model with the same vectors that separates punctuation from words."""
        return StaticModel(name, self._place, "words")

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors: the content of the file and the tokenisation."""
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
        """Return the cosine of each pair; NaN if a text has no known word."""
        return cosines(left, right, self._batches, progress)

    def vectors(self, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) vectors of N texts; NaN for texts without a known word."""
        return encoded(texts, self._batches, progress)

    def everything(self) -> NDArray[np.float32]:
        """Return (words, D) vectors of the whole vocabulary, memory-mapped and read-only."""
        return self._table.vectors

    def coverage(self, texts: Sequence[str]) -> Coverage:
        """Return the numbers of texts and words with and without a vector."""
        row_lists = [self._lookup.rows(text) for text in texts]
        unknown = sum(missing for _, missing in row_lists)
        return Coverage(
            texts=len(texts),
            unknown_texts=sum(not rows for rows, _ in row_lists),
            words=sum(len(rows) for rows, _ in row_lists) + unknown,
            unknown_words=unknown,
        )

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the size of the file: words, dimensions, skipped entries."""
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
    """Return (len(rows), D) means of each list of rows; NaN for an empty list.

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


def open_static(name: str, location: str | Path, options: ModelOptions) -> StaticModel:
    """Return the word vectors in a file or folder, which are read on first use.

    No option affects word vectors. Raises InputError if the file or folder does not exist, and for another
    pooling than the mean.
    """
    path = Path(location).expanduser()
    if not str(location) or not path.exists():
        message = "no such file; expected static:FILE (GloVe, word2vec or fastText vectors)"
        raise InputError(Problem(str(location) or name, None, message))
    if options.pooling not in (None, "mean", "model"):
        raise UnsupportedOptionError(name, "supports no other pooling", "pooling")
    return StaticModel(name, path)
