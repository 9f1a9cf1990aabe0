"""Which dialogues are to be selected, and what they are to be labelled: a TOML file, checked.

::

    seed = 0
    dialogues = 6           # of each source and domain; without it as many as can be had
    lengths = [3, 5]        # as many dialogues cut to each
    start = "any"           # or "user", "system": turns before the first of that speaker are dropped
    last = "any"            # or "user", "system": who speaks the last turn, the target

    [[take]]                # rules of their own; what no rule takes is left out
    source = "CROWDSS"      # without it every source
    domain = "restaurant"   # or a list; without it every domain
    dialogues = 24
    start = "system"

    [relabel]               # the source's label = the consistent one
    cinema = "find_cinema"

    [dialogue.w001_pk]      # one dialogue
    domain = "find_hotel"
    leave_out = "reason"
    edit = {2 = "What turn 2 is to say."}
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bws.options import MAX_COUNT, MAX_SEED
from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml

__all__ = ["SPEAKERS", "Rules", "Special", "Take", "read_rules"]

SPEAKERS = ("any", "user", "system")


@dataclass(frozen=True, slots=True)
class Take:
    """How many dialogues of every source and domain that it fits, and how they are cut."""

    source: str | None = None
    """None fits every source."""
    domains: tuple[str, ...] = ()
    """Empty fits every domain."""
    dialogues: int | None = None
    """Of each source and domain; None is as many as can be had, the same number of each length."""
    lengths: tuple[int, ...] = (3, 5)
    """Turns to cut to; the dialogues are shared out evenly, the first lengths take what is over."""
    start: str = "any"
    """Whose turn comes first: any, user or system."""
    last: str = "any"
    """Whose turn is the last one, the target: any, user or system."""

    def fits(self, source: str, domain: str) -> bool:
        """Tell whether it is about dialogues of this source and domain.

        >>> Take("CROWDSS").fits("CROWDSS", "restaurant"), Take(domains=("tv",)).fits("", "fax")
        (True, False)
        """
        return self.source in (None, source) and (not self.domains or domain in self.domains)


@dataclass(frozen=True, slots=True)
class Special:
    """What is to be done with one dialogue."""

    domain: str = ""
    """Its label; empty for that of the table ``relabel``."""
    leave_out: str = ""
    """Why it is left out; empty where it is not."""
    edit: Mapping[int, str] = field(default_factory=dict)
    """New texts of turns, counted from 1 in the dialogue before it is cut."""


@dataclass(frozen=True)
class Rules:
    """What is selected, and how it is labelled."""

    seed: int = 0
    take: tuple[Take, ...] = (Take(),)
    """The first one that fits is followed."""
    relabel: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[str, Special] = field(default_factory=dict)
    """By dialogue id."""

    @property
    def relabels(self) -> bool:
        """Whether labels are given at all."""
        return bool(self.relabel) or any(special.domain for special in self.special.values())


def read_rules(path: str | os.PathLike[str]) -> Rules:
    """Read a TOML file as the module shows it; InputError with every fault and, where known, its line."""
    name = display_name(path)
    faults: list[str] = []
    top = _checked(read_toml(path), TOP, "", faults)
    usual = {key: top.pop(key) for key in TAKE if key in top}
    take = [Take(**usual | _checked(one, RULE, "take: ", faults)) for one in top.pop("take", [])]
    special = {
        key: Special(**_checked(one, SPECIAL, f"dialogue {key}: ", faults))
        for key, one in top.pop("dialogue", {}).items()
    }
    if faults:
        raise InputError(Problem(name, None, fault) for fault in faults)
    return Rules(**top, take=tuple(take) or (Take(**usual),), special=special)


Check = tuple[Callable[[Any], bool], str, Callable[[Any], Any]]


def _checked(
    table: Mapping[str, Any], checks: Mapping[str, Check], where: str, faults: list[str]
) -> dict[str, Any]:
    values = {}
    for key, value in table.items():
        if key not in checks:
            faults.append(f"{where}{key} is no setting; allowed: {', '.join(checks)}")
            continue
        good, allowed, convert = checks[key]
        if good(value):
            values["domains" if key == "domain" and where == "take: " else key] = convert(value)
        else:
            faults.append(f"{where}{key} is {value!r}; {allowed} is allowed")
    return values


def _same(value: Any) -> Any:
    return value


def _whole(low: int, high: int) -> Check:
    allowed = f"a whole number from {low} to {high}"
    return lambda v: type(v) is int and low <= v <= high, allowed, _same


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


TEXT: Check = (_is_text, "a text", _same)
SPEAKER: Check = (lambda v: v in SPEAKERS, " or ".join(SPEAKERS), _same)
TAKE: dict[str, Check] = {
    "dialogues": _whole(1, MAX_COUNT),
    "lengths": (
        lambda v: isinstance(v, list) and bool(v) and len(set(v)) == len(v)
        and all(type(one) is int and one >= 2 for one in v),
        "a list of different whole numbers from 2",
        tuple,
    ),
    "start": SPEAKER,
    "last": SPEAKER,
}  # fmt: skip
RULE: dict[str, Check] = TAKE | {
    "source": TEXT,
    "domain": (
        lambda v: _is_text(v) or (isinstance(v, list) and bool(v) and all(map(_is_text, v))),
        "a text or a list of texts",
        lambda v: (v,) if isinstance(v, str) else tuple(v),
    ),
}
SPECIAL: Mapping[str, Check] = {
    "domain": TEXT,
    "leave_out": TEXT,
    "edit": (
        lambda v: _texts(v) and all(key.isdecimal() and int(key) > 0 for key in v),
        'a table such as {2 = "new text of turn 2"}',
        lambda v: {int(key): text for key, text in v.items()},
    ),
}
TOP: dict[str, Check] = TAKE | {
    "seed": _whole(0, MAX_SEED),
    "take": (
        lambda v: isinstance(v, list) and all(isinstance(one, dict) for one in v),
        "a table [[take]]",
        _same,
    ),
    "relabel": (_texts, 'a table such as cinema = "find_cinema"', _same),
    "dialogue": (
        lambda v: isinstance(v, dict) and all(isinstance(one, dict) for one in v.values()),
        "a table [dialogue.ID]",
        _same,
    ),
}
