"""Feature structures: what two sentences say of an entity, feature by feature."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from giccs.csts.records import INVALID, LABELS

__all__ = ["HIGHEST", "LOWEST", "Comparison", "Feature", "Value", "shown"]

Value = str | int | float | bool | Mapping[str, "Value | None"]
"""What a feature is set to; a mapping is a sub-structure."""

LOWEST, HIGHEST = LABELS[0], LABELS[-1]


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the condition in both sentences."""

    name: str
    value1: Value | None
    """None: N/A, the sentence does not say."""
    value2: Value | None
    similarity: float | None
    """From 1 to 5, as people labelled it; None: the feature does not apply."""
    weight: float | None
    """0 or more; None only where the feature does not apply."""

    @property
    def applies(self) -> bool:
        """Tell whether the feature counts: Figure 6 sums over the features that are not N/A."""
        return self.similarity is not None

    @property
    def one_sided(self) -> bool:
        """Tell whether only one of the sentences says a value."""
        return (self.value1 is None) != (self.value2 is None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sentences' feature structures under one condition."""

    uid: str
    condition: str
    """The entity type whose features these are."""
    sentence1: str
    sentence2: str
    features: tuple[Feature, ...]
    label: float | None = None
    """Similarity as a whole, from 1 to 5; -1: invalid; None: not labelled."""

    @property
    def labelled(self) -> bool:
        """Tell whether there is a label to compare a score with."""
        return self.label is not None and self.label != INVALID


def shown(value: Value | None) -> str:
    """Return a value as a table has it; a sub-structure in brackets.

    >>> print(shown({"type": "sandwich", "on": {"type": "plate", "color": None}}), shown(None))
    [type=sandwich, on=[type=plate, color=N/A]] N/A
    """
    if value is None:
        return "N/A"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name}={shown(inner)}" for name, inner in value.items())
        return f"[{inner}]"
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value)
