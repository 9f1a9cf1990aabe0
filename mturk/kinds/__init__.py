"""Kinds of HIT: the page and the answers of each kind.

A kind is a package: a subpackage of this one, or a package of another distribution registered in the entry
point group ``mturk.kinds`` (``NAME = "PACKAGE:KIND"``). Its ``KIND`` is an instance of a subclass of
`HitKind`. The package also contains ``page.html`` (a Jinja template), ``texts.LANGUAGE.toml`` and, for
qualification tests, ``test.LANGUAGE.toml``. No other file refers to the kind.
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

from bws.base.problems import InputError, Problem
from mturk.kinds.registry import DEFAULT_KIND, kind_locations, kind_names

if TYPE_CHECKING:
    from bws.records import Judgments
    from mturk.study.ledger import Assignment
    from mturk.study.plan import HitPart, PlannedStudy
    from mturk.study.settings import Settings

__all__ = [
    "Behaviour", "ExpectedTuple", "Fields", "HitKind", "PartContent", "StatedSettings",
    "Truth",
    "ValidAnswer", "find_problems", "get_kind",
]  # fmt: skip

Fields = Sequence[tuple[str, str]]
"""The (name, value) pairs of a form, in order."""
Truth = Mapping[tuple[str, str], float]
"""(group, item) -> true score, with an empty group for items without one. For sentence pairs,
(pair, condition) -> similarity from 1 to 5, or -1 if the condition does not apply."""


@dataclass(frozen=True, slots=True)
class ExpectedTuple:
    """A tuple, a sentence pair, or a triplet (pair and condition) that a HIT asks about."""

    tuple_id: str
    group: str
    """Id of the dialogue or of the sentence pair."""
    items: tuple[str, ...]
    """Item ids in the order of the tuple; or the two sentences and the condition."""
    kind: str = DEFAULT_KIND
    """Name of the kind of HIT."""
    round: str = ""
    """Number of the round of a study in rounds; otherwise empty."""
    purpose: str = ""
    """Purpose of the tuple in its round: warmup, adaptive or audit."""
    control: str = ""
    """Control items of the tuple, as in the column ``control``."""
    assignment_number: int = 0
    """For anchors: number of the assignment among those of the HIT, from 0, which selects the slot."""


@dataclass(frozen=True, slots=True)
class ValidAnswer:
    """A valid answer to a tuple, pair or triplet."""

    expected: ExpectedTuple
    fields: Fields
    """All fields of the form."""
    assignment: Assignment
    annotator: str


@dataclass(frozen=True, slots=True)
class PartContent:
    """Texts of a tuple, for annotation tools other than the worker page."""

    texts: tuple[str, ...]
    """One text per item, in the order of the tuple."""
    turns: tuple[tuple[str, str], ...] = ()
    """(speaker, text) of each turn of the dialogue."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour of simulated workers; shares are in [0, 1]."""

    noise: float = 0.25
    """Standard deviation of the noise on true scores, as in `bws.simulate`."""
    disagreement: float = 0.0
    """Standard deviation of a worker's constant deviation per item, as in `bws.simulate`."""
    careless: float = 0.0
    """Share of tuples and anchors answered at random."""
    middle: float = 0.0
    """Share of anchors answered with 50, or without a mark."""
    is_unit_truth: bool = False
    """Whether true scores are from 0 to 1 and not from -1 to 1, for the answers to anchors."""
    returns: float = 0.0
    """Share of accepted HITs that are returned."""
    abandons: float = 0.0
    """Share of accepted HITs that are abandoned; the worker does not return."""
    pace: float = 0.0
    """Mean seconds per HIT."""
    country: str = "DE"
    seed: int = 0

    def __post_init__(self) -> None:
        shares = {
            "careless": self.careless, "middle": self.middle, "returns": self.returns,
            "abandons": self.abandons,
        }  # fmt: skip
        problems = [
            f"{name} is {share}; expected a share from 0 to 1"
            for name, share in shares.items()
            if not 0 <= share <= 1
        ]
        if not problems and self.careless + self.middle > 1:
            problems.append(
                f"careless plus middle is {self.careless + self.middle}; expected at most 1"
            )
        if self.returns == 1:
            problems.append("returns is 1; expected less, since the simulation would never end")
        numbers = {"noise": self.noise, "disagreement": self.disagreement, "pace": self.pace}
        problems += [
            f"{name} is {value}; expected a number of at least 0"
            for name, value in numbers.items()
            if not 0 <= value < float("inf")
        ]
        if problems:
            raise ValueError("\n".join(problems))


class StatedSettings(Protocol):
    """Settings stated in a file, see `mturk.study.settings_file.SettingsFile`."""

    @property
    def kind(self) -> str:
        """Name of the kind of HIT."""
        ...

    @property
    def values(self) -> Mapping[str, Any]:
        """Setting -> value, for the stated settings."""
        ...

    def settings(self, language: str | None) -> Settings:
        """Return all settings of a study in a language; InputError if the file states another language."""
        ...


@runtime_checkable
class HitKind(Protocol):
    """A kind of HIT. Subclasses implement the abstract methods; the others have defaults for all kinds."""

    part: str
    """Name of a part of a HIT, such as ``tuple``."""
    answer: str
    """Name of a valid answer, such as ``judgment``."""
    file: str
    """Default output file of `giccs annotate collect`."""
    defaults: Mapping[str, Any] = {}
    """Settings whose defaults differ from those of `mturk.study.settings.Settings`."""
    setting_names: Mapping[str, str] = {}
    """Setting -> name in the settings file, if different."""
    setting_comments: Mapping[str, str] = {}
    """Setting -> comment in the default settings file, if different."""
    unused_settings: Sequence[str] = ()
    """Settings that are not supported by this kind."""
    has_question: bool = True
    """Whether the built-in texts have a question; otherwise each study has a file of texts."""
    no_judgments_note: str = "not available; requires judgments of tuples"
    """Reason for a missing reliability if there are no judgments."""

    @property
    def package(self) -> str:
        """Import package of the kind, which contains its page and texts."""
        return str(getattr(sys.modules[type(self).__module__].__spec__, "parent", ""))

    @abstractmethod
    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Plan a study from its files; see `mturk.study.plan.plan_hits`.

        language: BCP 47 tag for files without a stated language.
        """
        ...

    @abstractmethod
    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return column of the answer in a batch file -> name of the form field."""
        ...

    @abstractmethod
    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as an answer; other fields are ignored."""
        ...

    @abstractmethod
    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the fields of a simulated worker's answer; deterministic per worker."""
        ...

    @abstractmethod
    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write valid answers atomically.

        answers: valid answers in the order of submission. n_items: number of items of the largest tuple.
        """
        ...

    def read_truth(self, path: str | os.PathLike[str]) -> Truth | None:
        """Return the truth from a CSV or TSV file; None if the file is not of this kind."""
        return None

    def content(self, part: HitPart, texts: Mapping[str, Any]) -> PartContent:
        """Return the texts of a tuple for export; InputError for other kinds, and for tuples without texts.

        texts: the texts of the page.
        """
        message = (
            f"a {self.part} of {self.answer}s cannot be exported; expected kind tuples or items"
        )
        raise InputError(Problem("settings", None, message))

    def remarks(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return remarks on a valid answer for the reviewer."""
        return []

    def form_remarks(self, fields: Fields, settings: Settings) -> list[str]:
        """Return remarks on a whole form for the reviewer."""
        return []

    def batch_value(self, column: str, value: str) -> str:
        """Return a field's value in the format of the batch file."""
        return value

    def judgments(self, answers: Sequence[ValidAnswer], file: str) -> tuple[Judgments | None, int]:
        """Return the answers as best-worst judgments (None for other kinds), and how many lack the order.

        answers: at least one valid answer. file: name of the file in messages.
        """
        return None, 0


@cache
def get_kind(name: str) -> HitKind:
    """Return a kind by name; ValueError if it is unknown.

    >>> get_kind("conditions").part
    'pair'
    """
    names = kind_names()
    if name not in kind_locations():
        expected = f"{', '.join(names[:-1])} or {names[-1]}"
        raise ValueError(f"kind is {name!r}; expected {expected}")
    kind = pkgutil.resolve_name(kind_locations()[name])
    if not isinstance(kind, HitKind):
        raise TypeError(f"{kind_locations()[name]} is a {type(kind).__name__}; expected a HitKind")
    return kind


def find_problems(
    expected_tuples: Sequence[ExpectedTuple], fields: Sequence[tuple[str, Any]]
) -> list[str]:
    """Return the problems of a form's fields as answers to all parts of a HIT."""
    return [
        problem
        for expected in expected_tuples
        for problem in get_kind(expected.kind).problems(expected, fields)
    ]
