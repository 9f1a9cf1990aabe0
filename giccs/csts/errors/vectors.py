"""What does an encoder make of answer pairs? (L-CSTS, section 4.2)

The answers alone give the similarity, their concatenation gives the topic. Chosen here, where the paper says
nothing: they are concatenated in their order with one space between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bws.problems import InputError, Problem
from giccs.csts.errors.records import AnswerPair, Vectors, unusable
from giccs.csts.mining.embeddings import encoded
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models.abilities import Model

__all__ = ["concatenated", "encode"]


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
