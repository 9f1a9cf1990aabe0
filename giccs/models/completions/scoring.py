"""Tokens of a prompt, and of the same with each of its options: how likely is each option?

Where an option begins is found as for a model on this machine (see `giccs.models.causal.boundary`): the
prompt is asked by itself, too, and the first place is taken at which one of the options parts from it. (By
the options alone, words with which they all begin would be taken for the prompt's.) What a server calls its
tokens is enough for that, and no tokenizer is needed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from giccs.models.causal.boundary import shared
from giccs.models.causal.records import OptionScore
from giccs.models.completions.tokens import FILE, Tokens
from giccs.models.generation import TOLERANCE

__all__ = ["option_scores"]


def option_scores(
    alone: Tokens, wholes: Sequence[Tokens], options: Sequence[str]
) -> tuple[OptionScore, ...]:
    """Return how likely the options are, from the tokens of the prompt alone, and with each of them.

    ValueError, in words, where an option cannot be told from its prompt, or where the server gives
    the prompt's own tokens other numbers each time.

    >>> alone = Tokens(("A", ":"), (None, -1.0))
    >>> yes = Tokens(("A", ":", " Ja"), (None, -1.0, -2.0))
    >>> no = Tokens(("A", ":", " N", "ein"), (None, -1.0, -3.0, -1.0))
    >>> [one.logprob for one in option_scores(alone, (yes, no), (" Ja", " Nein"))]
    [-2.0, -4.0]
    """
    start = min(shared(alone.texts, whole.texts) for whole in wholes)
    return tuple(
        OptionScore(
            float(np.sum(_own(alone, whole, start))),
            len(whole.texts) - start,
            len(option.lstrip().encode()),
        )
        for whole, option in zip(wholes, options, strict=True)
    )


def _own(alone: Tokens, whole: Tokens, start: int) -> list[float]:
    """Return ln p of an option's tokens, which stand from `start` on."""
    own = [one for one in whole.logprobs[start:] if one is not None]
    if not own or len(own) < len(whole.logprobs) - start:
        raise ValueError(
            "an option has no tokens of its own, or nothing before its first one; "
            "let the prompt end where a word does"
        )
    before = [
        abs(one - other)
        for one, other in zip(alone.logprobs[:start], whole.logprobs[:start], strict=True)
        if one is not None and other is not None
    ]
    if before and np.mean(before) > TOLERANCE["bfloat16"]:  # more than half precision explains
        raise ValueError(
            "the server gives the prompt's tokens other log-probabilities each time, on average "
            f"{np.mean(before):.2f} nats apart; let one model answer under this name, and move {FILE} away "
            "if it held another one's answers"
        )
    return own
