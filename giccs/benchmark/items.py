"""What a benchmark is made of: turns, dialogues with candidate utterances, and scored items."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Candidate", "Dialogue", "Item", "Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One contribution to a dialogue."""

    speaker: str
    """``user`` or ``system``, as a rule; empty where the source does not tell."""
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
    """What the source called the domain, where `domain` is a label given afterwards (section 3.4)."""
    language: str | None = None
    """BCP 47 tag of the language, such as ``de`` or ``pt-BR``; None where it is not stated."""


@dataclass(frozen=True, slots=True)
class Item:
    """One candidate utterance, its dialogue, and how similar people judged it to the last turn."""

    item_id: str
    dialogue_id: str
    source: str
    domain: str
    turns: tuple[Turn, ...]
    utterance_id: str
    utterance: str
    score: float
    """Similarity to the last turn, from 0 (least) to 1 (most)."""
    original_domain: str = ""
    """What the source called the domain, where `domain` is a label given afterwards (section 3.4)."""
    language: str | None = None
    """BCP 47 tag of the language, such as ``de`` or ``pt-BR``; None where it is not stated."""

    @property
    def n_turns(self) -> int:
        """Length of the dialogue, the last turn included."""
        return len(self.turns)

    @property
    def last_turn(self) -> str:
        """Text of the target utterance."""
        return self.turns[-1].text
