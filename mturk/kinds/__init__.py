"""The kinds of HIT: what each kind shows, and what an answer to it says.

A kind is one folder: a package in this one, or one of another distribution that names it in the entry point
group ``mturk.kinds`` (``NAME = "PACKAGE:KIND"``). Its ``KIND`` is an instance of a subclass of `HitKind`. The
folder also holds ``page.html`` (a Jinja template), ``texts.LANGUAGE.toml`` and, where workers take a test,
``test.LANGUAGE.toml``. No other file names the kind.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mturk.kinds.registry import DEFAULT_KIND, kind_locations, kind_names

if TYPE_CHECKING:
    from bws.records import Judgments
    from mturk.study.ledger import Assignment
    from mturk.study.plan import PlannedStudy
    from mturk.study.settings import Settings

__all__ = [
    "Behaviour", "ExpectedTuple", "Fields", "HitKind", "StatedSettings", "Truth",
    "ValidAnswer", "find_problems", "get_kind",
]  # fmt: skip

Fields = Sequence[tuple[str, str]]
"""The (name, value) pairs of a form, in their order."""
Truth = Mapping[tuple[str, str], float]
"""(group, item) -> true score; the group is empty where items have none. For sentence pairs it is
(pair, condition) -> similarity, 1 to 5."""


@dataclass(frozen=True, slots=True)
class ExpectedTuple:
    """A tuple that a question asks about; or a sentence pair, or a triplet of one with a condition."""

    tuple_id: str
    group: str
    """The dialogue's id, or the sentence pair's."""
    items: tuple[str, ...]
    """Item ids in the order of the tuple; or the two sentences, and the condition."""
    kind: str = DEFAULT_KIND
    """Name of the kind of HIT."""


@dataclass(frozen=True, slots=True)
class ValidAnswer:
    """A valid answer to a tuple, pair or triplet."""

    expected: ExpectedTuple
    fields: Fields
    """Of the whole form."""
    assignment: Assignment
    annotator: str


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How simulated workers behave; shares are in [0, 1]."""

    noise: float = 0.25
    """How far judgments stray from the truth, as in `bws.simulate`."""
    disagreement: float = 0.0
    """How far workers differ for good in what they think of an item, as in `bws.simulate`."""
    careless: float = 0.0
    """Share of tuples answered without looking."""
    returns: float = 0.0
    """Share of accepted HITs that are returned."""
    abandons: float = 0.0
    """Share of accepted HITs that are abandoned; the worker does not come back."""
    pace: float = 0.0
    """Mean seconds spent on a HIT."""
    country: str = "DE"
    seed: int = 0

    def __post_init__(self) -> None:
        shares = {"careless": self.careless, "returns": self.returns, "abandons": self.abandons}
        wrong = [
            f"{name} is {share}; a share from 0 to 1 is allowed"
            for name, share in shares.items()
            if not 0 <= share <= 1
        ]
        if self.returns == 1:
            wrong.append("returns is 1; less is allowed, or the work would never end")
        numbers = {"noise": self.noise, "disagreement": self.disagreement, "pace": self.pace}
        wrong += [
            f"{name} is {value}; a number from 0 is allowed"
            for name, value in numbers.items()
            if not 0 <= value < float("inf")
        ]
        if wrong:
            raise ValueError("\n".join(wrong))


class StatedSettings(Protocol):
    """The settings that a file states, see `mturk.study.settings_file.SettingsFile`."""

    @property
    def kind(self) -> str:
        """Name of the kind of HIT."""
        ...

    @property
    def values(self) -> Mapping[str, Any]:
        """Setting -> its value, of those that are stated."""
        ...

    def settings(self, language: str | None) -> Settings:
        """Return all settings of a study in a language; InputError where the file states another."""
        ...


@runtime_checkable
class HitKind(Protocol):
    """A kind of HIT. Subclasses define what is abstract here; everything else is the same for all kinds."""

    part: str
    """What one question of a HIT is about, such as ``tuple``."""
    answer: str
    """What a valid answer to it is, such as ``judgment``."""
    file: str
    """The file that `mturk-hits collect` writes by default."""
    defaults: Mapping[str, Any] = {}
    """Settings whose defaults differ from those of `mturk.study.settings.Settings`."""
    setting_names: Mapping[str, str] = {}
    """Setting -> its name in the settings file, where that is another."""
    setting_comments: Mapping[str, str] = {}
    """Setting -> the comment above it in the default settings file, where that is another."""
    unused_settings: Sequence[str] = ()
    """Settings that the settings file of this kind does not have."""
    no_judgments_note: str = "is for judgments of tuples"
    """Why there is no reliability, where there are no judgments."""

    @property
    def package(self) -> str:
        """The import package of the kind's folder, in which its page and texts are."""
        return str(getattr(sys.modules[type(self).__module__].__spec__, "parent", ""))

    @abstractmethod
    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Return a study from its files; see `mturk.study.plan.plan_hits`.

        language: BCP 47 tag of files that state none.
        """
        ...

    @abstractmethod
    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return the columns of the answer in a batch file -> the names of the form's fields."""
        ...

    @abstractmethod
    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return all that keeps the fields from being an answer; fields of other names are ignored."""
        ...

    @abstractmethod
    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the fields of a simulated worker's answer; always the same for the same worker."""
        ...

    @abstractmethod
    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write valid answers, whole or not at all.

        answers: in the order of submission. n_items: of the largest tuple of the study.
        """
        ...

    def read_truth(self, path: str | os.PathLike[str]) -> Truth | None:
        """Return the truth of a CSV or TSV file; None where it is not of this kind."""
        return None

    def remarks(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return what a reviewer should look at in a valid answer."""
        return []

    def form_remarks(self, fields: Fields, settings: Settings) -> list[str]:
        """Return what a reviewer should look at in a form as a whole."""
        return []

    def batch_value(self, column: str, value: str) -> str:
        """Return a field's value as the batch file has it."""
        return value

    def judgments(self, answers: Sequence[ValidAnswer], file: str) -> tuple[Judgments | None, int]:
        """Return the answers as best-worst judgments, and how many do not state the order shown.

        answers: at least one. file: as messages call it. None: the kind has no such judgments.
        """
        return None, 0


@cache
def get_kind(name: str) -> HitKind:
    """Return a kind by its name; ValueError where there is none.

    >>> get_kind("conditions").part
    'pair'
    """
    names = kind_names()
    if name not in names:
        allowed = f"{', '.join(names[:-1])} and {names[-1]}"
        raise ValueError(f"kind is {name!r}; {allowed} are allowed")
    kind = pkgutil.resolve_name(kind_locations()[name])
    if not isinstance(kind, HitKind):
        raise TypeError(f"{kind_locations()[name]} is a {type(kind).__name__}; expected a HitKind")
    return kind


def find_problems(
    expected_tuples: Sequence[ExpectedTuple], fields: Sequence[tuple[str, Any]]
) -> list[str]:
    """Return all that keeps a form's fields from answering everything that a HIT asks."""
    return [
        problem
        for expected in expected_tuples
        for problem in get_kind(expected.kind).problems(expected, fields)
    ]
