"""What a recruiting link leads to: which work, how much of it, and the code at its end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

__all__ = ["PROLIFIC", "Study"]

PROLIFIC = "https://app.prolific.com/submissions/complete?cc={code}"
NAME = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Study:
    """A study that participants of a panel join by one link."""

    name: str
    """In the link's token; 1 to 64 letters, digits, ``.``, ``_`` or ``-``."""
    completion_code: str
    """Shown at the end, never before."""
    title: str = ""
    group_id: str | None = None
    """The HIT group (HITGroupId) that is worked on; None: whatever the worker may do."""
    hits: int | None = None
    """After how many HITs the study is done for a participant; None: when there is no work left.

    Counted in the group; without a group, since the participant entered in this browser.
    """
    return_url: str = PROLIFIC
    """Where the participant goes at the end; ``{code}`` is the completion code; empty: nowhere."""
    information: Mapping[str, str] = field(default_factory=dict)
    """Language (de, en) -> what participants are told before they consent; blank lines part paragraphs."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"study name {self.name!r}: 1 to 64 letters, digits, '.', '_' or '-' are allowed"
            )
        if not self.completion_code.strip():
            raise ValueError(f"study {self.name!r} has no completion code")
        if self.hits is not None and self.hits < 1:
            raise ValueError(f"study {self.name!r}: hits is {self.hits}; 1 or more is allowed")
        if self.return_url and urlsplit(self.return_url).scheme not in ("http", "https"):
            raise ValueError(
                f"study {self.name!r}: return_url is {self.return_url!r}; https or http is allowed"
            )

    def way_back(self) -> str:
        """Return the address at which the panel takes the participant back; empty where there is none.

        >>> Study("pilot", "C1 X").way_back()
        'https://app.prolific.com/submissions/complete?cc=C1%20X'
        """
        return self.return_url.replace("{code}", quote(self.completion_code, safe=""))

    def paragraphs(self, language: str) -> list[str]:
        """Return the information in this language, else in the other, a paragraph each."""
        text = self.information.get(language) or next(iter(self.information.values()), "")
        return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]
