"""Components of a benchmark: turns, dialogues with candidate utterances, and scored items."""

from __future__ import annotations

from dataclasses import dataclass

ABSOLUTE_TARGET = "absolute_score"
TARGETS = ("score", ABSOLUTE_TARGET)
"""Attributes of items with which predictions can be compared."""
ABSOLUTE_SUFFIX = " (absolute scores)"
"""End of the name of a benchmark whose scores are the absolute ones."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One contribution to a dialogue."""

    speaker: str
    """Usually ``user`` or ``system``; empty if the source does not state it."""
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """An utterance to be compared with the last turn of its dialogue."""

    utterance_id: str
    text: str
    intended: int | None = None
    """The writer's level, 1 unrelated … 5 paraphrase (paper section 3.1). Never used as a score."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A dialogue whose last turn is the target utterance, with its candidates."""

    dialogue_id: str
    source: str
    domain: str
    turns: tuple[Turn, ...]
    candidates: tuple[Candidate, ...]
    original_domain: str = ""
    """Label of the domain in the source, if `domain` was assigned later (section 3.4)."""
    language: str | None = None
    """BCP 47 tag of the language, such as ``de`` or ``pt-BR``; None if not stated."""


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate utterance with its dialogue and its judged similarity to the last turn."""

    item_id: str
    dialogue_id: str
    source: str
    domain: str
    turns: tuple[Turn, ...]
    utterance_id: str
    utterance: str
    score: float
    """Similarity to the last turn, from 0 (lowest) to 1 (highest)."""
    original_domain: str = ""
    """Label of the domain in the source, if `domain` was assigned later (section 3.4)."""
    language: str | None = None
    """BCP 47 tag of the language, such as ``de`` or ``pt-BR``; None if not stated."""
    absolute_score: float | None = None
    """Similarity on one scale for all dialogues, from 0 to 1; None for studies without anchors."""

    @property
    def n_turns(self) -> int:
        """Number of turns of the dialogue, including the last one."""
        return len(self.turns)

    @property
    def last_turn(self) -> str:
        """Text of the target utterance."""
        return self.turns[-1].text
