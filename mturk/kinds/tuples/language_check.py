"""Language check: one gap to fill per page, in the language of the dialogues.

The country of a worker does not show the languages the worker knows. The right words are stored with the page
texts, but not contained in the page. An answer is required; wrong answers are only reported in the review.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from giccs.benchmark.languages import base_language
from mturk.kinds.texts import built_in_texts, is_built_in, parse_texts

if TYPE_CHECKING:
    from mturk.study.settings import Settings


@dataclass(frozen=True, slots=True)
class Cloze:
    """A sentence with a gap and options for it."""

    key: str
    sentence: str
    """Sentence with ``___`` for the gap."""
    options: tuple[str, ...]
    right: str
    language: str = "de"

    @property
    def field(self) -> str:
        """Name of the form field."""
        return (
            f"german-{self.key}" if self.language == "de" else f"cloze-{self.language}-{self.key}"
        )


def load_clozes(settings: Settings) -> tuple[Cloze, ...]:
    """Return the sentences in the language of a study's dialogues; possibly empty."""
    language = base_language(settings.dialogue_language)
    texts = parse_texts(settings.texts) if settings.texts else {}
    if base_language(texts.get("language", "")) != language:
        texts = built_in_texts(__package__, language) if is_built_in(__package__, language) else {}
    return tuple(
        Cloze(entry["key"], entry["sentence"], tuple(entry["options"]), entry["right"], language)
        for entry in texts.get("cloze", ())
    )


def cloze_for(text: str, clozes: Sequence[Cloze]) -> Cloze:
    """Return the sentence of a HIT, determined by a hash of the text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return clozes[int.from_bytes(digest[:8]) % len(clozes)]


def check_cloze(fields: Sequence[tuple[str, str]], clozes: Sequence[Cloze]) -> bool | None:
    """Return whether a form's word is right; None if the form has no answer to the language check.

    >>> cinema = [Cloze("kino", "Ich war nicht im Kino, ___ im Theater.", ("aber", "sondern"), "sondern")]
    >>> check_cloze([("german-kino", "sondern")], cinema), check_cloze([("german-kino", "aber")], cinema)
    (True, False)
    >>> check_cloze([("comment", "")], cinema)
    """
    values = dict(fields)
    results = [values[cloze.field] == cloze.right for cloze in clozes if cloze.field in values]
    return all(results) if results else None
