"""Answer pairs with labels: their file, the reannotated labels beside them, and their vectors (L-CSTS, 4.2).

ANSWERS.csv (CSV or TSV, any order of columns): ``uid,label,answer1,answer2`` and, where it is known,
``condition``. The uid is that of the reannotated file, the label the annotated one, 1 to 5; further columns
are passed over.

The answers alone give the similarity, their concatenation gives the topic. Chosen here, where the paper says
nothing: they are concatenated in their order with one space between them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.files.schema import NAME, TEXT, Field, Schema, Unique, choice
from bws.files.table import read_table
from bws.problems import InputError, Problem
from giccs.csts.data import INVALID, NUMBERS
from giccs.csts.mining.embeddings import encoded
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models.abilities import Model

__all__ = [
    "UNKNOWN",
    "AnswerPair",
    "Floats",
    "Ints",
    "Truths",
    "Vectors",
    "encode",
    "read_answers",
    "with_truth",
]

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]
UNKNOWN = 0
"""In arrays of true labels: the instance was not reannotated."""

REANNOTATED = "validation:"
"""What stands before a uid of the split that was reannotated, where answers are about several."""
LINE = Field(lambda written: " ".join(TEXT.parse(written).split()), "")
"""Text with single spaces."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """What was answered for the two sentences of an instance, and the label it was given."""

    uid: str
    label: int
    """1 to 5, as annotated; this is what is doubted."""
    answer1: str
    answer2: str
    condition: str = ""
    """For people who read the findings; nothing is computed from it."""
    line: int | None = None
    """Where it stands in its file."""


@dataclass(frozen=True, eq=False, slots=True)
class Vectors:
    """What an encoder makes of N answer pairs; all (N, D), finite and not zero."""

    first: Floats
    second: Floats
    joint: Floats
    """Of the two answers as one text (4.2: "concatenated and then encoded into a single embedding")."""

    def __post_init__(self) -> None:
        shapes = [matrix.shape for matrix in (self.first, self.second, self.joint)]
        if len(set(shapes)) > 1 or self.first.ndim != 2:
            raise ValueError(f"the shapes are {shapes}; three equal (N, D) are allowed")
        for name in ("first", "second", "both"):
            bad = unusable(getattr(self, name))
            if len(bad):
                message = f"{name}[{bad[0]}] is zero or not finite, and {len(bad) - 1} more rows"
                raise ValueError(f"{message}; every vector must have a direction")

    def __len__(self) -> int:
        return len(self.first)

    def rows(self, rows_selected: Ints) -> Vectors:
        """Return the vectors of some of the pairs."""
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
    """Read answer pairs with their labels; white space outside and between words is made one space.

    Raises InputError with every problem: columns that are missing, empty answers, labels that are not 1 to
    5, uids that are empty or repeat.
    """
    return ANSWERS.read(read_table(path)).checked("rows; answers are expected")


@dataclass(frozen=True, slots=True)
class Truths:
    """Answer pairs beside their reannotated labels."""

    pairs: tuple[AnswerPair, ...]
    """Those whose condition is valid, or that were not reannotated."""
    truth: Ints
    """(N,) their reannotated labels, 0 where there is none."""
    invalid: int
    """Left out: the reannotation calls the condition invalid (L-CSTS, 3.3)."""
    unused: int
    """Reannotated labels whose uid has no answers."""

    @property
    def known_rows(self) -> Ints:
        """Return the rows that were reannotated."""
        return np.flatnonzero(self.truth != UNKNOWN)


def with_truth(pairs: Sequence[AnswerPair], labels: Mapping[str, int]) -> Truths:
    """Join answer pairs with reannotated labels (1 to 5, or -1) by uid.

    The labels are of the validation split: a uid of answers about several splits, ``validation:8``, is
    found as ``8`` too.

    >>> pairs = [AnswerPair("7", 3, "red", "blue"), AnswerPair("8", 1, "a", "b")]
    >>> found = with_truth(pairs, {"8": -1, "9": 2})
    >>> [pair.uid for pair in found.pairs], found.truth.tolist(), found.invalid, found.unused
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

    Raises InputError where the model gives no vectors, or one that is zero or not finite; `file` is how
    the message calls the place of the answers.
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
            f"{model.name} gives no direction to {{!r}}; leave the row out or name another model"
        )
        raise InputError(
            Problem(file, pairs[row % len(pairs)].line, message.format(texts[row]))
            for row in bad.tolist()
        )
    n = len(pairs)
    return Vectors(vectors[:n], vectors[n : 2 * n], vectors[2 * n :])
