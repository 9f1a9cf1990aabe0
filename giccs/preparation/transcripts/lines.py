"""What every form of transcript is read into: turns, each with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from bws.problems import Problem
from giccs.benchmark.items import Candidate

__all__ = ["Line", "Transcript", "stem"]


@dataclass(frozen=True, slots=True)
class Line:
    """One turn, or a part of one, as a transcript has it."""

    file: str
    line: int
    dialogue: str
    number: str
    """Of the turn in its dialogue; empty where the transcript does not count."""
    speaker: str
    text: str
    source: str = ""
    domain: str = ""
    language: str = ""


@dataclass(frozen=True)
class Transcript:
    """The turns of one file in its order."""

    lines: tuple[Line, ...]
    warnings: tuple[Problem, ...] = ()
    """What was left out, and what is odd."""
    stripped: Counter[str] = field(default_factory=Counter)
    """How many markers of each kind were taken out of the text."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Which speakers are ``user`` and ``system``, where the form itself tells."""
    candidates: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    """The candidates of each dialogue that has some."""
    unused: Counter[str] = field(default_factory=Counter)
    """Columns or keys that are not imported, and how many values each has."""
    notes: Counter[str] = field(default_factory=Counter)
    """How often the text was changed, by kind of change."""


def stem(file: str) -> str:
    """Return a file's name without folder and endings, for dialogues that have no name of their own.

    >>> stem("corpus/w001_pk.trl.gz")
    'w001_pk'
    """
    return PurePath(file).name.partition(".")[0].strip("<>")
