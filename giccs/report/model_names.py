"""Short names of models in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["short_names"]


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Return the last part of each hub id and path, without those that would be ambiguous.

    >>> short_names(["intfloat/e5-base", "a/mini", "b/mini", "package:minilm"])
    {'intfloat/e5-base': 'e5-base'}
    """
    parts = {model: model.rpartition("/")[2] or model for model in models}
    counts = Counter(parts.values())
    return {model: part for model, part in parts.items() if part != model and counts[part] == 1}
