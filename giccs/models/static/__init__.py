"""Word vectors as models: a file of vectors, a word's vector, a sentence as the mean of its words'.

static:glove.6B.300d.txt    static:GoogleNews-vectors-negative300.bin.gz    static:crawl-300d-2M.vec
static:FOLDER               a .npy matrix beside its words (.txt, a word a line, or .parquet)
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

from bws.problems import InputError, Problem
from giccs.models.abilities import PairModel, VectorModel
from giccs.models.encoding import cosines, encoded
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
"""How a text can be cut -> the rule in short, as it stands in the identity of a model."""
PIECE = re.compile(r"\w+(?:[^\w\s]+\w+)*|[^\w\s]")
"""A word with the signs inside it (``don't``, ``e-mail``), or one sign."""

TEXTS = 1024
"""So many texts are averaged at once."""


class Lookup:
    """The rows of a text's words.

    A text that is itself an entry is that entry, spaces and all. Any other is cut at white space, as
    the program of EvalRank does, which is right for text whose signs stand apart. With ``words`` a token
    without an entry is cut again, so that ``off.`` and ``off .`` are the same two entries. An entry is
    sought as it is written, then in lower case, then as the first of the file that differs in case
    only. Texts are brought to NFC.

    >>> entries = ["the", "Paris", "paris", "."]
    >>> Lookup(entries).rows("The Paris.")
    ([0], 1)
    >>> Lookup(entries, "words").rows("The Paris.")
    ([0, 1, 3], 0)
    """

    def __init__(self, words: Sequence[str], cut: str = "whitespace") -> None:
        if cut not in RULES:
            raise ValueError(f"cut is {cut!r}; allowed: {', '.join(RULES)}")
        self._rows = {word: row for row, word in enumerate(words)}
        self._pieces = cut == "words"

    def rows(self, text: str) -> tuple[list[int], int]:
        """Return the rows of the text's words in their order, and how many words have none."""
        text = unicodedata.normalize("NFC", text.strip())
        whole = self._row(text)
        if whole is not None:
            return [whole], 0
        found = [self._row(word) for word in self._words(text)]
        rows = [row for row in found if row is not None]
        return rows, len(found) - len(rows)

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
    """How much of some texts word vectors know."""

    texts: int
    unknown_texts: int
    """Texts without any known word: their vectors are NaN."""
    words: int
    unknown_words: int
    """Words and signs of the texts that are left out of the means."""


class StaticModel(PairModel, VectorModel):
    """A table of word vectors; similarity is the cosine."""

    name: str

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


def open_static(name: str, place: str | Path, options: ModelOptions) -> StaticModel:
    """Return the word vectors in a file or folder; they are read once they are asked for.

    None of the options changes what word vectors say. Raises InputError where nothing is there.
    """
    path = Path(place).expanduser()
    if not str(place) or not path.exists():
        message = "no such file; write static:FILE (GloVe, word2vec or fastText vectors)"
        raise InputError(Problem(str(place) or name, None, message))
    return StaticModel(name, path)
