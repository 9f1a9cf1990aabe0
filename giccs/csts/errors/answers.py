"""Answer pairs with labels: their file, the reannotated labels and their vectors (L-CSTS, 4.2).

ANSWERS.csv (CSV or TSV, any order of columns): ``uid,label,answer1,answer2`` and, optionally, ``condition``.
The uid is that of the reannotated file. The label is the annotated one, 1 to 5. Other columns are ignored.

Similarity is computed from the separate answers, and the topic from their concatenation. The paper does not
specify the concatenation; here the answers are joined by a space.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.files.schema import NAME, TEXT, Field, Schema, Unique, choice
from bws.files.table import read_table
from giccs.csts.data import INVALID, NUMBERS
from giccs.csts.mining.embeddings import encoded
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models.abilities import Model

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]
UNKNOWN = 0
"""In arrays of true labels: the instance was not reannotated."""

REANNOTATED = "validation:"
"""Prefix of uids of the reannotated split in files with answers about several splits."""
LINE = Field(lambda written: " ".join(TEXT.parse(written).split()), "")
"""Text with single spaces."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The answers for the two sentences of an instance, and its annotated label."""

    uid: str
    label: int
    """The annotated label, 1 to 5, which may be an error."""
    answer1: str
    answer2: str
    condition: str = ""
    """For readers of the output; not used in computations."""
    line: int | None = None
    """Line number in its file."""


@dataclass(frozen=True, eq=False, slots=True)
class Vectors:
    """Embeddings of N answer pairs; each array is (N, D), finite and without zero rows."""

    first: Floats
    second: Floats
    joint: Floats
    """Embeddings of the concatenated answers (4.2: "concatenated and then encoded into a single
    embedding")."""

    def __post_init__(self) -> None:
        shapes = [matrix.shape for matrix in (self.first, self.second, self.joint)]
        if len(set(shapes)) > 1 or self.first.ndim != 2:
            raise ValueError(f"the shapes are {shapes}; expected three equal shapes (N, D)")
        for name in ("first", "second", "joint"):
            bad = unusable(getattr(self, name))
            if len(bad):
                message = f"{name}[{bad[0]}] is zero or not finite, and {len(bad) - 1} more rows"
                raise ValueError(f"{message}; expected nonzero, finite vectors")

    def __len__(self) -> int:
        return len(self.first)

    def rows(self, rows_selected: Ints) -> Vectors:
        """Return the vectors of the selected pairs."""
        return Vectors(
            self.first[rows_selected], self.second[rows_selected], self.joint[rows_selected]
        )


def unusable(vectors: Floats) -> Ints:
    """Return the rows of (N, D) vectors that are zero or not finite.

    >>> unusable(np.array([[1.0, 0.0], [0.0, 0.0], [np.nan, 1.0]]))
    array([1, 2])
    """
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))


ANSWERS = Schema(
    AnswerPair,
    {
        "uid": NAME,
        "label": choice(NUMBERS, UNKNOWN, "1, 2, 3, 4 or 5"),
        "answer1": LINE,
        "answer2": LINE,
        "condition": Field(lambda written: " ".join(written.split()), "", required=False),
    },
    unique=[Unique("uid", lambda pair: pair.uid)],
    located=True,
)


def read_answers(path: str | os.PathLike[str]) -> tuple[AnswerPair, ...]:
    """Read answer pairs with their labels; white space is normalised.

    Raises InputError with every problem: missing columns, empty answers, labels outside 1 to 5, empty or
    repeated uids.
    """
    return ANSWERS.read(read_table(path)).checked("rows; expected answers")


@dataclass(frozen=True, slots=True)
class Truths:
    """Answer pairs with their reannotated labels."""

    pairs: tuple[AnswerPair, ...]
    """Pairs with a valid condition or without reannotation."""
    truth: Ints
    """(N,) reannotated labels, 0 for missing ones."""
    invalid: int
    """Number of excluded pairs whose condition is invalid according to the reannotation (L-CSTS, 3.3)."""
    unused: int
    """Number of reannotated labels whose uid has no answers."""

    @property
    def known_rows(self) -> Ints:
        """Return the rows with reannotated labels."""
        return np.flatnonzero(self.truth != UNKNOWN)


def with_truth(pairs: Sequence[AnswerPair], labels: Mapping[str, int]) -> Truths:
    """Join answer pairs with reannotated labels (1 to 5, or -1) by uid.

    The labels are of the validation split: in answers about several splits, ``validation:8`` matches ``8``.

    >>> pairs = [AnswerPair("7", 3, "red", "blue"), AnswerPair("8", 1, "a", "b")]
    >>> truths = with_truth(pairs, {"8": -1, "9": 2})
    >>> [pair.uid for pair in truths.pairs], truths.truth.tolist(), truths.invalid, truths.unused
    (['7'], [0], 1, 1)
    """
    names = [
        pair.uid if pair.uid in labels else pair.uid.removeprefix(REANNOTATED) for pair in pairs
    ]
    truths = [labels.get(name, UNKNOWN) for name in names]
    valid = [(pair, truth) for pair, truth in zip(pairs, truths, strict=True) if truth != INVALID]
    return Truths(
        pairs=tuple(pair for pair, _ in valid),
        truth=np.array([truth for _, truth in valid], dtype=np.intp),
        invalid=len(pairs) - len(valid),
        unused=len(labels.keys() - set(names)),
    )


def concatenated(pair: AnswerPair) -> str:
    """Return both answers as one text.

    >>> concatenated(AnswerPair("0", 1, "two dogs", "a cat"))
    'two dogs a cat'
    """
    return f"{pair.answer1} {pair.answer2}"


def encode(
    model: Model,
    pairs: Sequence[AnswerPair],
    file: str,
    progress: Progress = silent,
) -> Vectors:
    """Return the vectors of N answer pairs; each distinct text is encoded once.

    `file` is the name of the answers in messages. Raises InputError if the model returns no vectors, or a
    vector that is zero or not finite.
    """
    sides = (
        [pair.answer1 for pair in pairs],
        [pair.answer2 for pair in pairs],
        [concatenated(pair) for pair in pairs],
    )
    vectors = encoded(model, [text for side in sides for text in side], progress)
    bad = unusable(vectors)
    if len(bad):
        texts = sides[0] + sides[1] + sides[2]
        message = (
            f"{model.name} returns a zero or non-finite vector for {{!r}}; remove the row or "
            "use another model"
        )
        raise InputError(
            Problem(file, pairs[row % len(pairs)].line, message.format(texts[row]))
            for row in bad.tolist()
        )
    n = len(pairs)
    return Vectors(vectors[:n], vectors[n : 2 * n], vectors[2 * n :])
