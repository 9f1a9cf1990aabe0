"""What kinds of study there are: what a HIT of each shows, and what an answer to it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import os

    from mturk.answers import ExpectedTuple, Fields
    from mturk.judged import Judged
    from mturk.records import PlannedStudy
    from mturk.settings import SettingsFile
    from mturk.simulate import Behaviour, Truth

__all__ = ["Kind", "check", "kind_of"]


class Kind(Protocol):
    """A kind of study: a module with these names. Everything else is the same for all kinds."""

    PART: str
    """What one question of a HIT is about, such as ``tuple``."""
    ANSWER: str
    """What a valid answer to it is, such as ``judgment``."""
    FILE: str
    """The file that is collected, where no other is named."""

    def problems(self, one: ExpectedTuple, fields: Fields) -> list[str]:
        """Return all that keeps the fields from being an answer; fields of other names are let be."""
        ...

    def remarks(self, one: ExpectedTuple, fields: Fields) -> list[str]:
        """Return what a reviewer should look at in a valid answer."""
        ...

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return what the batch file calls the answer's fields -> the names of these fields."""
        ...

    def planned(
        self, file: str, dialogues: str | None, settings: SettingsFile, language: str | None
    ) -> PlannedStudy:
        """Return a study from its files.

        language: BCP 47 tag of files that state none.
        """
        ...

    def simulated(
        self, one: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the fields with which a simulated worker answers; the same again for the same worker."""
        ...

    def write(self, found: Judged, path: str | os.PathLike[str]) -> None:
        """Write what was collected, whole or not at all."""
        ...


def kind_of(name: str) -> Kind:
    """Return a kind of study by its name; ValueError where there is none of it.

    >>> kind_of("conditions").PART
    'pair'
    """
    if name == "tuples":
        from mturk import tuples

        return tuples
    if name == "conditions":
        import mturk.csts.conditions

        return mturk.csts.conditions
    if name == "verification":
        import mturk.csts.verification

        return mturk.csts.verification
    raise ValueError(f"kind is {name!r}; tuples, conditions and verification are allowed")


def check(asked: Sequence[ExpectedTuple], fields: Sequence[tuple[str, Any]]) -> list[str]:
    """Return all that keeps a form's fields from answering everything that a HIT asks."""
    return [problem for one in asked for problem in kind_of(one.kind).problems(one, fields)]
