"""Requirements for candidates: number, uniqueness, levels, and difference from the last turn."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from giccs.benchmark.items import Candidate, Dialogue

LEVELS = (5, 4, 3, 2, 1)
"""The writer's levels, from paraphrase to unrelated (paper, section 3.1, after Cer et al. 2017)."""
MIN_SCORE_RANGE = 0.5
"""Minimum range of the scores of a dialogue without a warning."""


def comparable_text(text: str) -> str:
    """Return a normalised text, equal for texts that differ only in Unicode form, case or white space.

    >>> comparable_text("Um  ACHT Uhr ") == comparable_text("um acht uhr")
    True
    >>> composed, decomposed = "f\\N{LATIN SMALL LETTER U WITH DIAERESIS}r", "fu\\N{COMBINING DIAERESIS}r"
    >>> comparable_text(composed) == comparable_text(decomposed)
    True
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def repeated_candidates(dialogue: Dialogue) -> Iterator[tuple[Candidate, str]]:
    """Yield each candidate that repeats an earlier text, and what it repeats."""
    first_uses = {comparable_text(dialogue.turns[-1].text): "the last turn"}
    for candidate in dialogue.candidates:
        earlier = first_uses.setdefault(
            comparable_text(candidate.text), f"candidate {candidate.utterance_id}"
        )
        if earlier != f"candidate {candidate.utterance_id}":
            yield candidate, earlier


def missing_levels(candidates: Sequence[Candidate]) -> list[int]:
    """Return the levels without a candidate; empty if no candidate has a level.

    >>> missing_levels([Candidate("a", "Ja.", 5), Candidate("b", "Nein.", 1)])
    [4, 3, 2]
    """
    levels = Counter(candidate.intended for candidate in candidates)
    return [level for level in LEVELS if level not in levels] if any(levels) else []


def candidate_problems(dialogue: Dialogue, n_candidates: int) -> Iterator[str]:
    """Yield the problems of a dialogue's candidates, of which `n_candidates` are expected."""
    if len(dialogue.candidates) != n_candidates:
        yield f"has {len(dialogue.candidates)} candidates instead of {n_candidates}"
    for candidate, earlier in repeated_candidates(dialogue):
        yield f"candidate {candidate.utterance_id} repeats {earlier}"
    if missing := missing_levels(dialogue.candidates):
        yield f"has no candidate of level {', '.join(map(str, missing))}"
