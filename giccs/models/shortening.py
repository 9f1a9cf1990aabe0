"""Inputs in the longest form that fits into a model, such as a text with as much history as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def first_fitting(
    counts: Sequence[int], fits: Callable[[Sequence[tuple[int, int]]], Sequence[bool]]
) -> list[int | None]:
    """Return the index of the first form of each input that fits; None if none does.

    counts: number of forms of each input, at least 1, from longest to shortest. fits: function from
    (input, form) pairs to whether each fits. All first forms are tested at once, then those of a binary
    search, because a form that is shorter than a fitting one fits.

    >>> texts = ["abc", "a", "dddd"]
    >>> def are_short(forms):
    ...     return [len(texts[index][n:]) <= 2 for index, n in forms]
    >>> first_fitting([3, 1, 1], are_short)
    [1, 0, None]
    """
    # Forms before `low` do not fit, those from `high` on do.
    low, high = [0] * len(counts), [*counts]
    remaining = [*range(len(counts))]
    while remaining:
        forms = [(index, low[index] and (low[index] + high[index]) // 2) for index in remaining]
        for (index, form), is_fitting in zip(forms, fits(forms), strict=True):
            if is_fitting:
                high[index] = form
            else:
                low[index] = form + 1
        remaining = [index for index in remaining if low[index] < high[index]]
    return [form if form < count else None for form, count in zip(low, counts, strict=True)]
