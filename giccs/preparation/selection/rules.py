"""Rules for the selection and labelling of dialogues, read from a TOML file.

::

    seed = 0
    dialogues = 6           # per source and domain; default: as many as possible
    lengths = [3, 5]        # numbers of turns, with equally many dialogues per length
    start = "any"           # or "user", "system": turns before the first of this speaker are dropped
    last = "any"            # or "user", "system": speaker of the last turn, the target

    [[take]]                # a rule for some dialogues; dialogues without a rule are skipped
    source = "CROWDSS"      # default: every source
    domain = "restaurant"   # or a list; default: every domain
    dialogues = 24
    start = "system"

    [relabel]               # original label = consistent label
    cinema = "find_cinema"

    [dialogue.w001_pk]      # settings of a single dialogue
    domain = "find_hotel"
    leave_out = "reason"
    edit = {2 = "New text of turn 2."}
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bws.options import MAX_COUNT, MAX_SEED
from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml

__all__ = ["SPEAKERS", "DialogueRule", "SamplingRule", "SelectionRules", "read_rules"]

SPEAKERS = ("any", "user", "system")


@dataclass(frozen=True, slots=True)
class SamplingRule:
    """Number and truncation of the dialogues of matching sources and domains."""

    source: str | None = None
    """Source of matching dialogues; None matches every source."""
    domains: tuple[str, ...] = ()
    """Domains of matching dialogues; empty matches every domain."""
    dialogues: int | None = None
    """Number per source and domain; None is the maximum with the same number of each length."""
    lengths: tuple[int, ...] = (3, 5)
    """Numbers of turns after truncation; dialogues are distributed evenly, the remainder to the first
    lengths."""
    start: str = "any"
    """Speaker of the first turn: any, user or system."""
    last: str = "any"
    """Speaker of the last turn, the target: any, user or system."""

    def fits(self, source: str, domain: str) -> bool:
        """Return whether the rule applies to dialogues of this source and domain.

        >>> SamplingRule("CROWDSS").fits("CROWDSS", "restaurant")
        True
        >>> SamplingRule(domains=("tv",)).fits("", "fax")
        False
        """
        return self.source in (None, source) and (not self.domains or domain in self.domains)


@dataclass(frozen=True, slots=True)
class DialogueRule:
    """Settings of a single dialogue."""

    domain: str = ""
    """New label; empty to use the table ``relabel``."""
    leave_out: str = ""
    """Reason for excluding the dialogue; empty if it is not excluded."""
    edit: Mapping[int, str] = field(default_factory=dict)
    """New texts by turn number, counted from 1 before truncation."""


@dataclass(frozen=True)
class SelectionRules:
    """Rules for the selection and labelling of dialogues."""

    seed: int = 0
    sampling: tuple[SamplingRule, ...] = (SamplingRule(),)
    """Sampling rules; the first matching rule applies."""
    relabel: Mapping[str, str] = field(default_factory=dict)
    dialogue_rules: Mapping[str, DialogueRule] = field(default_factory=dict)
    """Settings of single dialogues, by dialogue id."""

    @property
    def has_labels(self) -> bool:
        """Whether the rules assign labels."""
        return bool(self.relabel) or any(
            dialogue_rule.domain for dialogue_rule in self.dialogue_rules.values()
        )


def read_rules(path: str | os.PathLike[str]) -> SelectionRules:
    """Read rules from a TOML file in the format of the module docstring; raise InputError with all
    problems."""
    name = display_name(path)
    faults: list[str] = []
    settings = _check_settings(read_toml(path), TOP_LEVEL_CHECKS, "", faults)
    defaults = {key: settings.pop(key) for key in SAMPLING_CHECKS if key in settings}
    sampling = [
        SamplingRule(**defaults | _check_settings(table, RULE_CHECKS, "take: ", faults))
        for table in settings.pop("take", [])
    ]
    dialogue_rules = {
        key: DialogueRule(**_check_settings(table, DIALOGUE_CHECKS, f"dialogue {key}: ", faults))
        for key, table in settings.pop("dialogue", {}).items()
    }
    if faults:
        raise InputError(Problem(name, None, fault) for fault in faults)
    return SelectionRules(
        **settings,
        sampling=tuple(sampling) or (SamplingRule(**defaults),),
        dialogue_rules=dialogue_rules,
    )


Check = tuple[Callable[[Any], bool], str, Callable[[Any], Any]]


def _check_settings(
    table: Mapping[str, Any], checks: Mapping[str, Check], prefix: str, faults: list[str]
) -> dict[str, Any]:
    values = {}
    for key, value in table.items():
        if key not in checks:
            faults.append(
                f"{prefix}{key} is an unknown setting; expected one of {', '.join(checks)}"
            )
            continue
        is_valid, expected, convert = checks[key]
        if is_valid(value):
            values["domains" if key == "domain" and prefix == "take: " else key] = convert(value)
        else:
            faults.append(f"{prefix}{key} is {value!r}; expected {expected}")
    return values


def _identity(value: Any) -> Any:
    return value


def _integer_check(low: int, high: int) -> Check:
    expected = f"an integer from {low} to {high}"
    return lambda v: type(v) is int and low <= v <= high, expected, _identity


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_text_table(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


TEXT: Check = (_is_text, "a text", _identity)
SPEAKER: Check = (lambda v: v in SPEAKERS, " or ".join(SPEAKERS), _identity)
SAMPLING_CHECKS: dict[str, Check] = {
    "dialogues": _integer_check(1, MAX_COUNT),
    "lengths": (
        lambda v: isinstance(v, list) and bool(v) and len(set(v)) == len(v)
        and all(type(item) is int and item >= 2 for item in v),
        "a list of different integers of at least 2",
        tuple,
    ),
    "start": SPEAKER,
    "last": SPEAKER,
}  # fmt: skip
RULE_CHECKS: dict[str, Check] = SAMPLING_CHECKS | {
    "source": TEXT,
    "domain": (
        lambda v: _is_text(v) or (isinstance(v, list) and bool(v) and all(map(_is_text, v))),
        "a text or a list of texts",
        lambda v: (v,) if isinstance(v, str) else tuple(v),
    ),
}
DIALOGUE_CHECKS: Mapping[str, Check] = {
    "domain": TEXT,
    "leave_out": TEXT,
    "edit": (
        lambda v: _is_text_table(v) and all(key.isdecimal() and int(key) > 0 for key in v),
        'a table such as {2 = "new text of turn 2"}',
        lambda v: {int(key): text for key, text in v.items()},
    ),
}
TOP_LEVEL_CHECKS: dict[str, Check] = SAMPLING_CHECKS | {
    "seed": _integer_check(0, MAX_SEED),
    "take": (
        lambda v: isinstance(v, list) and all(isinstance(entry, dict) for entry in v),
        "a table [[take]]",
        _identity,
    ),
    "relabel": (_is_text_table, 'a table such as cinema = "find_cinema"', _identity),
    "dialogue": (
        lambda v: isinstance(v, dict) and all(isinstance(entry, dict) for entry in v.values()),
        "a table [dialogue.ID]",
        _identity,
    ),
}
