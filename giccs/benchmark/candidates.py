"""What candidates must be like: how many, all different, of all levels, none the last turn itself."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from giccs.benchmark.items import Candidate, Dialogue

__all__ = ["LEVELS", "SPREAD", "missing_levels", "plain", "repeated", "unlike_a_set"]

LEVELS = (5, 4, 3, 2, 1)
"""The writer's levels, from paraphrase to unrelated (paper, section 3.1, after Cer et al. 2017)."""
SPREAD = 0.5
"""Scores of a dialogue that span less leave little to be told apart."""


def plain(text: str) -> str:
    """Return what two texts have in common that differ only in Unicode form, case or white space.

    >>> plain("Um  ACHT Uhr ") == plain("um acht uhr")
    True
    >>> plain("f\\N{LATIN SMALL LETTER U WITH DIAERESIS}r") == plain("fu\\N{COMBINING DIAERESIS}r")
    True
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def repeated(dialogue: Dialogue) -> Iterator[tuple[Candidate, str]]:
    """Yield each candidate that says again what stands before it, and what that is."""
    said = {plain(dialogue.turns[-1].text): "the last turn"}
    for one in dialogue.candidates:
        earlier = said.setdefault(plain(one.text), f"candidate {one.utterance_id}")
        if earlier != f"candidate {one.utterance_id}":
            yield one, earlier


def missing_levels(candidates: Sequence[Candidate]) -> list[int]:
    """Return the levels that no candidate has; none where no candidate has a level.

    >>> missing_levels([Candidate("a", "Ja.", 5), Candidate("b", "Nein.", 1)])
    [4, 3, 2]
    """
    levels = Counter(one.intended for one in candidates)
    return [level for level in LEVELS if level not in levels] if any(levels) else []


def unlike_a_set(dialogue: Dialogue, number: int) -> Iterator[str]:
    """Yield what keeps the candidates of a dialogue from being the set that `number` asks for."""
    if len(dialogue.candidates) != number:
        yield f"has {len(dialogue.candidates)} candidates instead of {number}"
    for one, earlier in repeated(dialogue):
        yield f"candidate {one.utterance_id} says the same as {earlier}"
    if missing := missing_levels(dialogue.candidates):
        yield f"has no candidate of level {', '.join(map(str, missing))}"
