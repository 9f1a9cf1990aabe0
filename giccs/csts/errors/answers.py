"""What do the files say: answers and labels, reannotated labels beside them; and the file of suspicious ones.

ANSWERS.csv (CSV or TSV, any order of columns): ``uid,label,answer1,answer2`` and, where it is known,
``condition``. The uid is that of the reannotated file, the label the annotated one, 1 to 5; further columns
are passed over.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bws.files.schema import NAME, TEXT, Field, Schema, Unique, choice
from bws.files.table import read_table
from bws.textio import csv_text
from giccs.csts.data import NUMBERS
from giccs.csts.errors.records import UNKNOWN, AnswerPair, Ints, Suspect
from giccs.csts.records import INVALID

__all__ = ["Truths", "read_answers", "suspects_csv", "with_truth"]

REANNOTATED = "validation:"
"""What stands before a uid of the split that was reannotated, where answers are about several."""
LINE = Field(lambda written: " ".join(TEXT.parse(written).split()), "")
"""Text with single spaces."""
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
OUT = (
    "uid", "label", "rank_label", "gap", "similarity", "cluster", "rank", "cluster_size", "truth",
    "condition", "answer1", "answer2", "neighbours", "reason",
)  # fmt: skip


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
    def known(self) -> Ints:
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
    kept = [(pair, truth) for pair, truth in zip(pairs, truths, strict=True) if truth != INVALID]
    return Truths(
        pairs=tuple(pair for pair, _ in kept),
        truth=np.array([truth for _, truth in kept], dtype=np.intp),
        invalid=len(pairs) - len(kept),
        unused=len(labels.keys() - set(names)),
    )


def suspects_csv(suspects: Sequence[Suspect]) -> str:
    """Return suspicious instances as CSV, a row each, the furthest off first.

    ``neighbours`` are uid=label, the closest first, with ``;`` between them.
    """
    return csv_text(map(_row, suspects), OUT)


def _row(one: Suspect) -> tuple[object, ...]:
    near = ";".join(f"{pair.uid}={pair.label}" for pair in one.neighbours)
    return (
        one.pair.uid, one.pair.label, one.rank_label, one.gap, f"{one.similarity:.6f}", one.cluster,
        f"{one.rank:g}", one.size, one.truth or "", one.pair.condition, one.pair.answer1,
        one.pair.answer2, near, one.reason,
    )  # fmt: skip
