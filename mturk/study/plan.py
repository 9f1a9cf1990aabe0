"""Planned HITs of a study: everything that must be known before the first call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bws.base.problems import InputError, Problem
from bws.base.progress import tracked
from mturk import limits
from mturk.study.settings import Settings

if TYPE_CHECKING:
    from bws.records import Tuples

P = TypeVar("P", bound="HitPart")
Rounds = Mapping[str, tuple[str, ...]]
"""Tuple id -> round, purpose and seed, for the tuples of a study in rounds."""


class HitPart(Protocol):
    """A tuple, pair or triplet of a HIT, as stored in the ledger."""

    @property
    def tuple_id(self) -> str:
        """Id, unique in the study."""

    @property
    def group(self) -> str:
        """Id shared by related parts, such as those of a dialogue; preferably once per page."""

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Ids or texts of the items."""


@dataclass(frozen=True, slots=True)
class HitPlan:
    """A planned HIT: rendered, checked, with its tokens."""

    number: int
    """From 1, within the study."""
    parts: tuple[HitPart, ...]
    question: str
    """HTMLQuestion XML, at most 65,535 bytes."""
    annotation: str
    """RequesterAnnotation: identifies the HIT after a crash; at most 255 characters, the same in every
    run."""
    token: str
    """UniqueRequestToken: at most 64 characters, the same in every run."""


@dataclass(frozen=True, slots=True)
class PlannedAnchors:
    """The planned anchors of a study of tuples, which have HITs of their own."""

    kind: str
    """Name of the kind of their parts: rating or mark."""
    hits: tuple[HitPlan, ...]
    digest: str
    """SHA-256 digest of plan and page."""
    notes: tuple[str, ...] = ()
    """Remarks for the requester."""


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """A planned study."""

    settings: Settings
    hits: tuple[HitPlan, ...]
    notes: tuple[str, ...]
    """Remarks on the HITs for the requester."""
    rounds: Rounds = field(default_factory=dict)
    controls: Mapping[str, str] = field(default_factory=dict)
    """Tuple id -> column ``control``, for tuples with control items."""
    anchors: PlannedAnchors | None = None

    @property
    def all_hits(self) -> tuple[HitPlan, ...]:
        """The HITs of tuples, then those of anchors."""
        return (*self.hits, *(self.anchors.hits if self.anchors else ()))


def study_digest(page_contents: Sequence[Any], settings: Settings, page: Sequence[Any]) -> str:
    """Return the SHA-256 digest of the content and the terms of a study.

    Lifetime, spending limit, wages and pseudonyms may change during a study and are excluded. So is the
    page's markup: a later version of this package can continue a study.

    page_contents: content of each part per HIT, as JSON. page: settings that change the page, as JSON.
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
    """Return one HIT per page, rendered and checked; InputError with all problems.

    digest: see `study_digest`. question: renders the XML of a page. name: name of the file in messages.
    """
    problems = [Problem(name, None, message) for message in _setting_problems(settings)]
    plans = []
    for number, page in enumerate(tracked(pages, "pages", len(pages)), start=1):
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
    """Return the problems of settings; repeats the checks of the settings file for settings from code."""
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


def rounds_of(tuples: Tuples) -> Rounds:
    """Return the rounds of tuples; empty for tuples without rounds."""
    if not tuples.columns:
        return {}
    values = zip(*(tuples.columns[name] for name in ("round", "purpose", "seed")), strict=True)
    return dict(zip(tuples.ids.tolist(), values, strict=True))


def controls_of(tuples: Tuples, file: str) -> dict[str, str]:
    """Return the column ``control`` by tuple; InputError for an item that occurs twice in a tuple."""
    for identity, _, items in tuples.rows():
        if len(set(items)) < len(items):
            message = (
                f"tuple {identity!r} has an item twice; expected distinct items on a worker page"
            )
            raise InputError(Problem(file, None, message))
    column = tuples.control_column
    cells = zip(tuples.ids, column, strict=True) if column is not None else ()
    return {identity: cell for identity, cell in cells if cell}


def round_notes(tuples: Tuples) -> list[str]:
    """Return a note if no adaptive round can follow a first round, so that it is known before it costs."""
    if not tuples.columns:
        return []
    from bws.adaptive.rounds import check_choice, last_round

    try:
        if last_round(tuples) == 1:
            check_choice(tuples)
    except ValueError as error:
        return [f"giccs annotate next will choose no further round: {error}"]
    return []


def shuffle_parts(parts: Sequence[P], seed: int) -> list[P]:
    """Return the parts in a random order that does not depend on the version."""
    return sorted(parts, key=lambda part: random_key(seed, part))


def random_key(seed: int, part: HitPart, stratum: int | None = None) -> bytes:
    """Return a random sort key: a hash, since random generators may change between versions."""
    return hashlib.sha256(json.dumps([seed, stratum, part.tuple_id]).encode("ascii")).digest()


def separate_groups(pages: list[list[P]]) -> None:
    """Swap parts between pages so that, if possible, no page contains a group twice."""
    unswappable: set[tuple[str, int]] = set()
    slots = ((page, position) for page in pages for position in range(1, len(page)))
    for page, position in slots:
        key = (page[position].group, position)
        if key in unswappable or not _clashes(page, position, page[position]):
            continue
        partner = next((p for p in pages if _may_swap(page, p, position)), None)
        if partner is None:
            unswappable.add(key)
        else:
            page[position], partner[position] = partner[position], page[position]


def _may_swap(page: list[P], partner: list[P], position: int) -> bool:
    return not _clashes(page, position, partner[position]) and not _clashes(
        partner, position, page[position]
    )


def _clashes(page: list[P], position: int, part: P) -> bool:
    """Return whether another position of the page has the part's group."""
    other_parts = chain(page[:position], page[position + 1 :])
    return any(other_part.group == part.group for other_part in other_parts)


def has_repeated_group(parts: Sequence[HitPart]) -> bool:
    """Return whether a page contains a group more than once."""
    return len({part.group for part in parts}) < len(parts)


def describe_hit(number: int, parts: Sequence[HitPart]) -> str:
    """Return the description of a HIT in messages."""
    return f"HIT {number} (tuples {', '.join(part.tuple_id for part in parts)})"
