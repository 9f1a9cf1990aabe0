"""Does a worker know German? One word to fill in on each page; where a worker lives says nothing of it.

The right words stand here and not in the page. The page asks for an answer, nobody is turned away for a
wrong one: what follows from it is for the review to decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Cloze", "cloze_for", "passed"]

PREFIX = "german-"


@dataclass(frozen=True, slots=True)
class Cloze:
    """A sentence with a gap and the words to choose from."""

    key: str
    sentence: str
    """With ``___`` for the gap."""
    options: tuple[str, ...]
    right: str

    @property
    def field(self) -> str:
        """Name of the form's field."""
        return f"{PREFIX}{self.key}"


CLOZES = (
    Cloze(
        "zug", "Der Zug hat Verspätung, ___ trinken wir noch einen Kaffee.",
        ("obwohl", "deshalb", "damit", "sondern"), "deshalb",
    ),
    Cloze(
        "regen", "Wir gehen spazieren, ___ es in Strömen regnet.",
        ("obwohl", "trotzdem", "deshalb", "sonst"), "obwohl",
    ),
    Cloze(
        "schirm", "Nimm einen Schirm mit, ___ wirst du nass.",
        ("damit", "weil", "obwohl", "sonst"), "sonst",
    ),
    Cloze(
        "warten", "Sie wartet schon seit einer Stunde ___ den Bus.",
        ("an", "für", "auf", "nach"), "auf",
    ),
    Cloze(
        "laut", "Er sprach leise, ___ das Kind nicht aufwachte.",
        ("damit", "denn", "sonst", "trotzdem"), "damit",
    ),
    Cloze(
        "kino", "Ich war nicht im Kino, ___ im Theater.",
        ("aber", "oder", "sondern", "denn"), "sondern",
    ),
    Cloze(
        "brille", "Ohne ___ Brille kann ich das nicht lesen.",
        ("meinem", "meiner", "mein", "meine"), "meine",
    ),
    Cloze(
        "stecken", "Er hat den Schlüssel im Schloss stecken ___.",
        ("lassen", "gelasst", "lässt", "gelassene"), "lassen",
    ),
)  # fmt: skip


def cloze_for(text: str) -> Cloze:
    """Return the sentence for a HIT, always the same one for the same text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return CLOZES[int.from_bytes(digest[:8]) % len(CLOZES)]


def passed(fields: Sequence[tuple[str, str]]) -> bool | None:
    """Return whether a form's word is the right one; None where the form has no answer to that question.

    >>> passed([("german-kino", "sondern")]), passed([("german-kino", "aber")]), passed([("comment", "")])
    (True, False, None)
    """
    values = dict(fields)
    given = [values[cloze.field] == cloze.right for cloze in CLOZES if cloze.field in values]
    return all(given) if given else None
