"""Tuples that lack valid judgments: which HITs are to be offered to more workers, or once more.

A further assignment of the same HIT is better than a new HIT, because nobody gets the same HIT twice.
Where a HIT may take no more (one made with fewer than ten assignments never gets ten), the same page is
published again as a HIT of a further round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from giccs.records import Candidate, Dialogue
from mturk.actions import action
from mturk.collect import Listing, places
from mturk.judged import Judged
from mturk.ledger import Action, Hit, Ledger, LedgerPart
from mturk.limits import ANNOTATION, TOKEN, assignments_increase_problem
from mturk.money import cost, fee
from mturk.records import HitPlan, Part

__all__ = ["TopUp", "rounds", "top_up"]


@dataclass(frozen=True, slots=True)
class TopUp:
    """What gives every tuple the judgments that it lacks."""

    lacking: Mapping[str, int]
    """Tuple id -> judgments that are missing and not on their way."""
    reopen: tuple[Hit, ...]
    """HITs that have expired and are to be offered again: they have places left, or get some."""
    more: tuple[Action, ...]
    """HITs that get further assignments; see `offering.more_assignments`."""
    again: tuple[tuple[Hit, int], ...]
    """HITs that are to be published once more, with so many assignments."""
    cost: Decimal
    """Of the further assignments, with fees, in US dollars. Places that are left were paid for already."""

    @property
    def nothing(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.reopen or self.more or self.again)


@dataclass(frozen=True, slots=True)
class _Page:
    """The HITs that show the same tuples: one of the study itself, and those of further rounds."""

    hits: tuple[Hit, ...]
    lack: int


def top_up(ledger: Ledger, hits: Listing, found: Judged, *, now: float) -> TopUp:
    """Return what is to be done, from what was collected and the service's list of the HITs.

    Judgments on their way count as there: places that are open or being worked on, and HITs of the ledger
    that are not yet published. A HIT gets as many more as the neediest of its tuples lacks.
    """
    settings = ledger.study().settings
    coming = _coming(ledger, hits, now)
    reopen: list[Hit] = []
    more: list[Action] = []
    again: list[tuple[Hit, int]] = []
    total = Decimal("0.00")
    lacking: dict[str, int] = {}
    for members, parts in _pages(ledger):
        needs = {
            part.tuple_id: settings.assignments
            - found.of_tuple[part.tuple_id]
            - sum(coming[hit.number] for hit in members)
            for part in parts
        }
        lacking |= {tuple_id: need for tuple_id, need in needs.items() if need > 0}
        page = _Page(members, max(needs.values()))
        total += _of_page(page, hits, now, settings.reward, reopen, more, again)
    return TopUp(lacking, tuple(reopen), tuple(more), tuple(again), total)


def _pages(ledger: Ledger) -> list[tuple[tuple[Hit, ...], tuple[LedgerPart, ...]]]:
    """Return the HITs with the same tuples, the oldest first, with these tuples."""
    parts: dict[int, list[LedgerPart]] = {}
    for part in ledger.parts():
        parts.setdefault(part.number, []).append(part)
    pages: dict[tuple[str, ...], list[Hit]] = {}
    for hit in ledger.hits():
        key = tuple(part.tuple_id for part in parts[hit.number])
        pages.setdefault(key, []).append(hit)
    return [(tuple(hits), tuple(parts[hits[0].number])) for hits in pages.values()]


def _coming(ledger: Ledger, hits: Listing, now: float) -> dict[int, int]:
    """Return for each HIT, by number, how many answers can still come of themselves."""
    return {
        hit.number: hit.max_assignments if hit.hit_id is None else _still(hits, hit, now)
        for hit in ledger.hits()
    }


def _still(hits: Listing, hit: Hit, now: float) -> int:
    there = hits.get(str(hit.hit_id))
    if there is None:
        return 0
    counts = places(there)
    return counts.pending + (counts.available if _offered(there, now) else 0)


def _offered(there: Mapping[str, object], now: float) -> bool:
    return there["Expiration"].timestamp() > now  # type: ignore[attr-defined, no-any-return]


def _of_page(
    page: _Page, hits: Listing, now: float, reward: Decimal,
    reopen: list[Hit], more: list[Action], again: list[tuple[Hit, int]],
) -> Decimal:  # fmt: skip
    """Decide for the HITs of one page, and return what it costs."""
    lack = page.lack
    for hit in page.hits:
        there = hits.get(str(hit.hit_id))
        if lack <= 0:
            return Decimal("0.00")
        if there is not None and not _offered(there, now) and places(there).available:
            reopen.append(hit)
            lack -= places(there).available
    if lack <= 0:
        return Decimal("0.00")
    for hit in reversed(page.hits):
        there = hits.get(str(hit.hit_id))
        if there is not None and not assignments_increase_problem(places(there).most, lack):
            most = places(there).most + lack
            more.append(action("extend", str(hit.hit_id), str(most)))
            if not _offered(there, now) and hit not in reopen:
                reopen.append(hit)
            return lack * (reward + fee(reward, most))
    again.append((page.hits[0], lack))
    return cost(reward, lack)


def rounds(ledger: Ledger, again: Sequence[tuple[Hit, int]]) -> list[tuple[HitPlan, int]]:
    """Return the plans of HITs that show pages once more, with the number of assignments of each.

    For `Ledger.add_hits`, which gives them their numbers. The page is the one that was published before.
    """
    annotations = [hit.annotation for hit in ledger.hits()]
    parts: dict[int, list[Part]] = {}
    for part in ledger.parts():
        parts.setdefault(part.number, []).append(_part(part))
    return [
        (_once_more(ledger, hit, tuple(parts[hit.number]), annotations), assignments)
        for hit, assignments in again
    ]


def _once_more(
    ledger: Ledger, hit: Hit, parts: tuple[Part, ...], annotations: Sequence[str]
) -> HitPlan:
    digest, number = _named(hit.annotation)
    taken = [_round(one) for one in annotations if _named(one) == (digest, number)]
    this = 1 + max(taken, default=0)
    annotation, token = f"giccs:{digest}:{this}:{number}", f"{digest}-{this}-{number}"
    ANNOTATION.check(annotation)
    TOKEN.check(token)
    return HitPlan(hit.number, parts, ledger.question(hit.number), annotation, token)


def _named(annotation: str) -> tuple[str, str]:
    """Return digest and number of an annotation such as ``giccs:<digest>:<round>:<number>``."""
    _, digest, _, number = annotation.split(":")
    return digest, number


def _round(annotation: str) -> int:
    return int(annotation.split(":")[2])


def _part(part: LedgerPart) -> Part:
    """Return a part by its ids alone; its texts are in the page that was rendered before."""
    items = tuple(Candidate(item, "") for item in part.items)
    return Part(part.tuple_id, Dialogue(part.group, "", "", (), items), items)
