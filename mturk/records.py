"""What an annotation study is made of: the parts of a HIT, the HIT as planned, and what came back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from giccs.records import Candidate, Dialogue

if TYPE_CHECKING:
    from mturk.settings import Settings

__all__ = ["Asked", "HitPlan", "Part", "PlannedStudy", "TupleAnswer"]


class Asked(Protocol):
    """What one question of a HIT is about, as the ledger keeps it."""

    @property
    def tuple_id(self) -> str:
        """Unique in the study."""

    @property
    def group(self) -> str:
        """What several questions can be about alike, such as a dialogue; best not twice on a page."""

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Ids of what is compared, or the texts themselves."""


@dataclass(frozen=True, slots=True)
class Part:
    """One dialogue and one tuple of its candidates: two questions of a HIT."""

    tuple_id: str
    dialogue: Dialogue
    items: tuple[Candidate, ...]
    """In the order of the tuple; the page shuffles them for each assignment."""

    @property
    def group(self) -> str:
        """The dialogue's id."""
        return self.dialogue.dialogue_id

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The utterances' ids."""
        return tuple(item.utterance_id for item in self.items)


@dataclass(frozen=True, slots=True)
class HitPlan:
    """A HIT as it is meant, before any call: rendered, checked, with its tokens."""

    number: int
    """From 1, within the study."""
    parts: tuple[Asked, ...]
    question: str
    """HTMLQuestion XML, at most 65,535 bytes."""
    annotation: str
    """RequesterAnnotation: names the HIT across crashes; at most 255 characters, the same in every run."""
    token: str
    """UniqueRequestToken: at most 64 characters, the same in every run."""


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """A study before any call."""

    settings: Settings
    hits: tuple[HitPlan, ...]
    notes: tuple[str, ...]
    """What a requester should know of the HITs."""


@dataclass(frozen=True, slots=True)
class TupleAnswer:
    """What one worker said of one tuple."""

    tuple_id: str
    best: str
    worst: str
    shown: tuple[str, ...]
    """Item ids in the order in which the page showed them; empty where that is not known."""
    seconds: float | None = None
