"""Texts of encoders that include the history of a dialogue: the turns before the last one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.benchmark.items import Item

INSTRUCTION = (
    "Represent the last utterance in the context of its dialogue.\nDialogue:\n{context}\n"
    "Last utterance: {utterance}"
)
TEMPLATES = {
    "joined": "{turns before the last, a line each}\n{utterance}",
    "speakers": "{turns before the last, a line each as speaker: text}\n"
    "{speaker of the last turn}: {utterance}",
    "instruction": INSTRUCTION.format(
        context="{turns before the last, a line each}", utterance="{utterance}"
    ),
    "mean": "mean of the vectors of each turn before the last and of {utterance}",
}
"""Encoding of the history -> texts on either side of a pair."""


def texts_of_pair(item: Item, encoding: str) -> tuple[list[str], list[str]]:
    """Return the texts of the target and of the candidate: one each, or for ``mean`` one per turn.

    encoding: one of `TEMPLATES`, or an empty string for no history. The candidate takes the place of the
    target, the last turn, and has its speaker.
    """
    context = [turn.text for turn in item.turns[:-1]] if encoding else []
    target, candidate = item.last_turn, item.utterance
    if encoding == "mean":
        return [*context, target], [*context, candidate]
    if encoding == "instruction":
        history = "\n".join(context)
        return (
            [INSTRUCTION.format(context=history, utterance=target)],
            [INSTRUCTION.format(context=history, utterance=candidate)],
        )
    if encoding == "speakers":
        context = [f"{turn.speaker}: {turn.text}" for turn in item.turns[:-1]]
        target, candidate = (f"{item.turns[-1].speaker}: {text}" for text in (target, candidate))
    return ["\n".join([*context, target])], ["\n".join([*context, candidate])]


def check_speakers(data: str, items: Sequence[Item]) -> None:
    """Raise InputError if the speaker of a turn is not stated."""
    dialogues = {item.dialogue_id: item for item in items}.values()
    if missing := sum(not turn.speaker for item in dialogues for turn in item.turns):
        message = (
            f"{missing} turns have no speaker; expected another --history-encoding than speakers"
        )
        raise InputError(Problem(data, None, message))


def mean_of_turns(vectors: NDArray[np.float32], counts: Sequence[int]) -> NDArray[np.float64]:
    """Return the (N, D) mean vectors of N texts from those of their turns, in order.

    vectors: (sum of counts, D). Turns without a vector (NaN) are excluded; a text whose last turn has none
    has none either.

    >>> mean_of_turns(np.array([[1, 0], [0, 1], [2, 2]], dtype=np.float32), [2, 1]).tolist()
    [[0.5, 0.5], [2.0, 2.0]]
    """
    is_defined = np.asarray(np.isfinite(vectors).all(axis=1))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    sums = np.add.reduceat(np.where(is_defined[:, None], vectors, 0.0), starts, axis=0)
    has_last = is_defined[np.cumsum(counts) - 1]
    n_defined = np.where(has_last, np.add.reduceat(is_defined.astype(int), starts), np.nan)
    return np.asarray(sums / n_defined[:, None], dtype=np.float64)
