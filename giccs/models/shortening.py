"""Inputs in the longest form that fits into a model, such as a text with as much history as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["first_fitting"]

Form = TypeVar("Form")


def first_fitting(
    inputs: Sequence[Form],
    shorter: Callable[[Form], Form | None],
    fits: Callable[[Sequence[Form]], Sequence[bool]],
) -> list[Form | None]:
    """Return the first form of each input that fits; None if none does.

    shorter: function from a form to the next shorter one, None if there is none. fits: function to (N,)
    whether each of N forms fits; called with all inputs, then with the shorter forms of those that do not.

    >>> are_short = lambda texts: [len(text) < 3 and "x" not in text for text in texts]
    >>> first_fitting(["abc", "a", "xxx"], lambda text: text[1:] or None, are_short)
    ['bc', 'a', None]
    """
    forms: list[Form | None] = [*inputs]
    remaining = [*enumerate(inputs)]
    while remaining:
        fitting = fits([form for _, form in remaining])
        too_long = [
            each for each, is_fitting in zip(remaining, fitting, strict=True) if not is_fitting
        ]
        remaining = []
        for index, form in too_long:
            forms[index] = shorter_form = shorter(form)
            if shorter_form is not None:
                remaining.append((index, shorter_form))
    return forms
