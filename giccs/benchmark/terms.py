"""Licence of a benchmark, and origin of the judgments behind its scores.

Exports use this information and the language of the items. Unknown values stay unknown; the authors of a data
set state them in card.toml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from giccs.benchmark.front_matter import read_front_matter

Annotators = Literal["human", "simulated", "unknown"]
SIMULATED_TAG, HUMAN_TAG = "simulated annotations", "human annotations"
"""Tags of dataset cards that state the origin of the judgments."""
HUMAN_CREATORS = {"crowdsourced", "expert-generated"}
"""Values of the hub's ``annotations_creators`` that denote humans."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Licence and annotators of a benchmark."""

    license: str = ""
    """Id used by the hub, such as ``cc-by-4.0``; empty if unknown."""
    license_link: str = ""
    annotators: Annotators = "unknown"
    attribution: str = ""
    """The required attribution; empty if unknown."""

    @property
    def no_derivatives(self) -> bool:
        """Return whether the licence is a Creative Commons licence that prohibits sharing of adaptations."""
        return re.fullmatch(r"cc-by(-nc)?-nd(-.*)?", self.license) is not None

    def warning(self) -> str:
        """Return a warning about the distribution of exported texts, or an empty string."""
        if self.no_derivatives:
            return (
                f"the licence {self.license} allows no derivatives, which include exported files: use "
                "them only privately"
            )
        if not self.license:
            return (
                "the licence is unknown: without one, nobody may distribute the exported texts; state it "
                "in card.toml (--config)"
            )
        return ""

    def lines(self) -> list[str]:
        """Return the terms as text, with the warning last."""
        link = f", {self.license_link}" if self.license_link else ""
        warning = self.warning()
        return [
            f"Licence of the texts: {self.license}{link}" if self.license else "Licence: unknown",
            *([f"Attribution: {self.attribution}"] if self.attribution else []),
            f"Annotators: {self.annotators}",
            *([f"WARNING: {warning}"] if warning else []),
        ]


UNKNOWN_TERMS = Terms()


def terms_of_card(path: Path) -> Terms:
    """Return the terms in the front matter of a dataset card (README.md); unknown without a card."""
    if not path.is_file():
        return UNKNOWN_TERMS
    front_matter = read_front_matter(path)
    tags, creators = (
        _texts(front_matter.get("tags")),
        _texts(front_matter.get("annotations_creators")),
    )
    annotators: Annotators = "unknown"
    if SIMULATED_TAG in tags:
        annotators = "simulated"
    elif HUMAN_TAG in tags or (creators and creators <= HUMAN_CREATORS):
        annotators = "human"
    licenses = _texts(front_matter.get("license"))
    return Terms(
        licenses.pop() if len(licenses) == 1 else "",
        str(front_matter.get("license_link") or ""),
        annotators,
    )


def _texts(value: Any) -> set[str]:
    values = value if isinstance(value, list) else [value]
    return {text for text in values if isinstance(text, str)}
