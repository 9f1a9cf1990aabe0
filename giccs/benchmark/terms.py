"""Under which licence is a benchmark, and who gave the judgments behind its scores?

What exports claim of a benchmark comes from here, and from the items' own language. What is not known stays
unknown; the people behind a data set state it in card.toml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "HUMAN_TAG",
    "SIMULATED_TAG",
    "UNKNOWN_TERMS",
    "Annotators",
    "Terms",
    "terms_of_card",
]

Annotators = Literal["human", "simulated", "unknown"]
SIMULATED_TAG, HUMAN_TAG = "simulated annotations", "human annotations"
"""Tags by which a dataset card states who judged."""
HUMAN_CREATORS = {"crowdsourced", "expert-generated"}
"""Of the hub's ``annotations_creators``, those that are people."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Licence and annotators of a benchmark."""

    license: str = ""
    """Id as the hub has it, such as ``cc-by-4.0``; empty where it is unknown."""
    license_link: str = ""
    annotators: Annotators = "unknown"
    attribution: str = ""
    """Whom to name; empty where it is unknown."""

    @property
    def no_derivatives(self) -> bool:
        """Tell whether the licence is a Creative Commons one that does not allow to share adaptations."""
        return re.fullmatch(r"cc-by(-nc)?-nd(-.*)?", self.license) is not None

    def warning(self) -> str:
        """Return what must be heeded before files made of the texts are passed on; empty where nothing."""
        if self.no_derivatives:
            return (
                f"the licence {self.license} allows no derivatives, and exported files are one: "
                "use them yourself, but do not pass them on"
            )
        if not self.license:
            return (
                "the licence is unknown: without one nobody may pass on the exported texts; "
                "state it in card.toml (--config)"
            )
        return ""

    def lines(self) -> list[str]:
        """Return the terms as text, the warning last."""
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
    """Return what the front matter of a dataset card (README.md) states; unknown where there is no card."""
    if not path.is_file():
        return UNKNOWN_TERMS
    front_matter = _front_matter(path)
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


def _front_matter(path: Path) -> Mapping[str, Any]:
    from huggingface_hub import metadata_load

    try:
        return metadata_load(path) or {}
    except Exception:  # whatever the parser raises: a README that is no dataset card states nothing
        return {}


def _texts(value: Any) -> set[str]:
    values = value if isinstance(value, list) else [value]
    return {text for text in values if isinstance(text, str)}
