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
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Literal

from annotated_types import Ge, Le

from bws.base.options import MAX_COUNT, MAX_SEED
from bws.base.settings_files import Checked, Listed, Table, Text, read_settings_text

Speaker = Literal["any", "user", "system"]
Count = Annotated[int, Ge(1), Le(MAX_COUNT)]
Texts = Annotated[tuple[Text, ...], Listed()]


def _check_lengths(lengths: tuple[int, ...]) -> tuple[int, ...]:
    if not lengths or len({*lengths}) < len(lengths) or min(lengths) < 2:
        raise ValueError(f"is {list(lengths)}; expected different integers of at least 2")
    return lengths


@dataclass(frozen=True, slots=True)
class SamplingRule(Table):
    """Number and truncation of the dialogues of matching sources and domains."""

    source: Text | None = None
    """Source of matching dialogues; None matches every source."""
    domain: Texts = ()
    """Domains of matching dialogues; empty matches every domain."""
    dialogues: Count | None = None
    """Number per source and domain; None is the maximum with the same number of each length."""
    lengths: Annotated[tuple[int, ...], Checked(_check_lengths)] = (3, 5)
    """Numbers of turns after truncation; dialogues are distributed evenly, the remainder to the first
    lengths."""
    start: Speaker = "any"
    """Speaker of the first turn: any, user or system."""
    last: Speaker = "any"
    """Speaker of the last turn, the target: any, user or system."""

    def fits(self, source: str, domain: str) -> bool:
        """Return whether the rule applies to dialogues of this source and domain.

        >>> SamplingRule("CROWDSS").fits("CROWDSS", "restaurant")
        True
        >>> SamplingRule(domain=("tv",)).fits("", "fax")
        False
        """
        return self.source in (None, source) and (not self.domain or domain in self.domain)


@dataclass(frozen=True, slots=True)
class DialogueRule(Table):
    """Settings of a single dialogue."""

    domain: str = ""
    """New label; empty to use the table ``relabel``."""
    leave_out: str = ""
    """Reason for excluding the dialogue; empty if it is not excluded."""
    edit: Mapping[Annotated[int, Ge(1)], Text] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True)
class _RulesFile(SamplingRule):
    """Keys of the file; those of `SamplingRule` are defaults of ``take``."""

    seed: Annotated[int, Ge(0), Le(MAX_SEED)] = 0
    take: tuple[SamplingRule, ...] = ()
    relabel: Mapping[str, Text] = field(default_factory=dict)
    dialogue: Mapping[str, DialogueRule] = field(default_factory=dict)


def read_rules(path: str | os.PathLike[str]) -> SelectionRules:
    """Read rules from a TOML file in the format of the module docstring; raise InputError with all
    problems."""
    file = read_settings_text(path)
    rules = file.parsed(_RulesFile)
    names = [each.name for each in fields(SamplingRule)]
    defaults = SamplingRule(**{name: getattr(rules, name) for name in names})
    sampling = (
        replace(defaults, **{name: getattr(rule, name) for name in stated})
        for rule, stated in zip(rules.take, file.values.get("take", ()), strict=True)
    )
    return SelectionRules(rules.seed, tuple(sampling) or (defaults,), rules.relabel, rules.dialogue)
