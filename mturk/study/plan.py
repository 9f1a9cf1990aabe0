"""The HITs of a study as planned: everything about each that must be known before the first call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

from bws.problems import InputError, Problem
from mturk import limits
from mturk.study.settings import Settings

__all__ = [
    "HitPlan",
    "PlannedStudy",
    "describe_hit",
    "has_repeated_group",
    "plan_hits",
    "random_key",
    "separate_groups",
    "shuffle_parts",
    "study_digest",
]  # fmt: skip

P = TypeVar("P", bound="HitPart")


class HitPart(Protocol):
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
class HitPlan:
    """A HIT as it is meant, before any call: rendered, checked, with its tokens."""

    number: int
    """From 1, within the study."""
    parts: tuple[HitPart, ...]
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


def study_digest(page_contents: Sequence[Any], settings: Settings, page: Sequence[Any]) -> str:
    """Return SHA-256 over what workers are asked and on which terms.

    Lifetime, spending limit, wages and pseudonyms may change during a study; they are not in it. Nor is
    the page's markup: a later version of this package continues a study.

    asked: per HIT, what each part asks, as JSON. page: the settings that change the page, as JSON.
    """
    terms = settings.hit_type() | {
        "MaxAssignments": settings.assignments,
        "page": [*page, *([settings.texts] if settings.texts else [])],
        "seed": settings.seed,
    }
    text = json.dumps([page_contents, terms], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def plan_hits(
    pages: Sequence[Sequence[P]],
    settings: Settings,
    digest: str,
    question: Callable[[Sequence[P], Settings], str],
    name: str,
    round_number: int = 0,
) -> list[HitPlan]:
    """Return a HIT for each page, rendered and checked; InputError with all that is wrong.

    digest: see `study_digest`. question: makes the XML of a page. name: what messages
    call the file.
    """
    problems = [Problem(name, None, message) for message in _setting_problems(settings)]
    plans = []
    for number, page in enumerate(pages, start=1):
        annotation = f"giccs:{digest[:32]}:{round_number}:{number}"
        token = f"{digest[:32]}-{round_number}-{number}"
        try:
            limits.ANNOTATION.check(annotation)
            limits.TOKEN.check(token)
            xml = question(page, settings)
        except ValueError as error:
            problems.append(Problem(name, None, f"{describe_hit(number, page)}: {error}"))
        else:
            plans.append(HitPlan(number, tuple(page), xml, annotation, token))
    if problems:
        raise InputError(problems)
    return plans


def _setting_problems(settings: Settings) -> list[str]:
    """Check again what the settings file's reader checks, for settings made in a program."""
    problems = [
        limits.TITLE.problem(settings.title),
        limits.DESCRIPTION.problem(settings.description),
        limits.KEYWORDS.problem(settings.keywords),
        limits.reward_problem(str(settings.reward)),
        limits.MAX_ASSIGNMENTS.problem(settings.assignments),
        limits.LIFETIME.problem(settings.lifetime),
        limits.ASSIGNMENT_DURATION.problem(settings.duration),
        limits.AUTO_APPROVAL_DELAY.problem(settings.auto_approval_delay),
        *limits.qualification_problems(settings.qualifications()),
    ]
    return [problem for problem in problems if problem]


def shuffle_parts(parts: Sequence[P], seed: int) -> list[P]:
    """Return the parts in a random order that is the same in every version."""
    return sorted(parts, key=lambda part: random_key(seed, part))


def random_key(seed: int, part: HitPart, stratum: int | None = None) -> bytes:
    """Return a random sort key; a hash, because no generator promises its numbers for later versions."""
    return hashlib.sha256(json.dumps([seed, stratum, part.tuple_id]).encode("ascii")).digest()


def separate_groups(pages: list[list[P]]) -> None:
    """Swap parts between pages so that, where possible, no page asks about one group twice."""
    hopeless: set[tuple[str, int]] = set()
    slots = ((page, position) for page in pages for position in range(1, len(page)))
    for page, position in slots:
        key = (page[position].group, position)
        if key in hopeless or not _clashes(page, position, page[position]):
            continue
        partner = next((other for other in pages if _may_swap(page, other, position)), None)
        if partner is None:
            hopeless.add(key)
        else:
            page[position], partner[position] = partner[position], page[position]


def _may_swap(page: list[P], partner: list[P], position: int) -> bool:
    return not _clashes(page, position, partner[position]) and not _clashes(
        partner, position, page[position]
    )


def _clashes(page: list[P], position: int, part: P) -> bool:
    """Tell whether a part's group is on the page already, elsewhere than at `place`."""
    other_parts = chain(page[:position], page[position + 1 :])
    return any(other_part.group == part.group for other_part in other_parts)


def has_repeated_group(parts: Sequence[HitPart]) -> bool:
    """Tell whether a page asks about one group twice."""
    return len({part.group for part in parts}) < len(parts)


def describe_hit(number: int, parts: Sequence[HitPart]) -> str:
    """Return what messages call a HIT."""
    return f"HIT {number} (tuples {', '.join(part.tuple_id for part in parts)})"
