"""Top-up of tuples with missing judgments by extended or republished HITs.

Additional assignments of a HIT are preferred to a new HIT, because no worker gets the same HIT twice. HITs
created with fewer than ten assignments cannot be extended to ten. Their pages are published again as HITs of
a further round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mturk.limits import ANNOTATION, TOKEN, assignments_increase_problem
from mturk.money import cost, fee
from mturk.study import hit_updates
from mturk.study.actions import ActionResults, execute_actions, make_action
from mturk.study.client import translate_errors
from mturk.study.collect import Listing, hit_counts
from mturk.study.ledger import Action, Hit, Ledger, LedgerPart
from mturk.study.plan import HitPlan
from mturk.study.publish import adopt_hits, create_hits, unpublished_cost, unpublished_hits
from mturk.study.valid_answers import ValidAnswers


@dataclass(frozen=True, slots=True)
class TopUp:
    """Plan that collects the missing judgments of all tuples."""

    missing_judgments: Mapping[str, int]
    """Tuple id -> number of missing judgments, without expected ones."""
    reopen: tuple[Hit, ...]
    """Expired HITs with available assignments, to be offered again."""
    extensions: tuple[Action, ...]
    """Extensions of HITs by further assignments; expired HITs are offered again."""
    republish: tuple[tuple[Hit, int], ...]
    """HITs to publish again, each with its number of assignments."""
    n_unpublished: int
    """Number of planned HITs that do not exist at the service, because a command was interrupted."""
    cost: Decimal
    """Total cost with fees, in US dollars."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.reopen or self.extensions or self.republish or self.n_unpublished)


@dataclass(frozen=True, slots=True)
class _Page:
    """HITs with the same tuples: the original one, and those of further rounds."""

    hits: tuple[Hit, ...]
    n_missing: int


def plan_top_up(ledger: Ledger, hits: Listing, valid_answers: ValidAnswers) -> TopUp:
    """Plan a top-up from collected answers and the service's list of the HITs.

    Expected judgments count as collected: assignments that are open or in progress, and unpublished HITs of
    the ledger. A HIT gets the maximum number of judgments missing for one of its tuples.
    """
    settings = ledger.study().settings
    expected_answers = _expected_answers(ledger, hits)
    collected = {**valid_answers.answers_per_tuple, **valid_answers.answers_per_anchor}
    reopen: list[Hit] = []
    extensions: list[Action] = []
    republish: list[tuple[Hit, int]] = []
    total = unpublished_cost(ledger)
    missing_judgments: dict[str, int] = {}
    for members, parts in _pages(ledger):
        needs = {
            part.tuple_id: settings.assignments
            - collected[part.tuple_id]
            - sum(expected_answers[hit.number] for hit in members)
            for part in parts
        }
        missing_judgments |= {tuple_id: need for tuple_id, need in needs.items() if need > 0}
        page = _Page(members, max(needs.values()))
        total += _plan_page(page, hits, settings.reward, reopen, extensions, republish)
    return TopUp(
        missing_judgments,
        tuple(reopen),
        tuple(extensions),
        tuple(republish),
        len(unpublished_hits(ledger)),
        total,
    )


def _pages(ledger: Ledger) -> list[tuple[tuple[Hit, ...], tuple[LedgerPart, ...]]]:
    """Return groups of HITs with the same tuples, oldest first, and these tuples."""
    parts: dict[int, list[LedgerPart]] = {}
    for part in ledger.parts():
        parts.setdefault(part.number, []).append(part)
    pages: dict[tuple[str, ...], list[Hit]] = {}
    for hit in ledger.hits():
        key = tuple(part.tuple_id for part in parts[hit.number])
        pages.setdefault(key, []).append(hit)
    return [(tuple(hits), tuple(parts[hits[0].number])) for hits in pages.values()]


def _expected_answers(ledger: Ledger, hits: Listing) -> dict[int, int]:
    """Return HIT number -> number of answers that can arrive without further action."""
    return {
        hit.number: hit.max_assignments if hit.hit_id is None else _open_assignments(hits, hit)
        for hit in ledger.hits()
    }


def _open_assignments(hits: Listing, hit: Hit) -> int:
    listed_hit = hits.get(str(hit.hit_id))
    if listed_hit is None:
        return 0
    counts = hit_counts(listed_hit)
    return counts.pending + (counts.available if counts.is_offered else 0)


def _plan_page(
    page: _Page, hits: Listing, reward: Decimal,
    reopen: list[Hit], extensions: list[Action], republish: list[tuple[Hit, int]],
) -> Decimal:  # fmt: skip
    """Add the actions for the HITs of one page, and return their cost."""
    n_missing, total = page.n_missing, Decimal("0.00")
    existing_hits = [
        (hit, hit_counts(hits[str(hit.hit_id)])) for hit in page.hits if hit.hit_id in hits
    ]
    for hit, counts in existing_hits:
        if n_missing > 0 and counts.available and not counts.is_offered:
            reopen.append(hit)
            n_missing -= counts.available
            total += counts.available * (reward + fee(reward, counts.max_assignments))
    if n_missing <= 0:
        return total
    for hit, counts in reversed(existing_hits):
        if not assignments_increase_problem(counts.max_assignments, n_missing):
            max_assignments = counts.max_assignments + n_missing
            extensions.append(make_action("extend", str(hit.hit_id), str(max_assignments)))
            return total + n_missing * (reward + fee(reward, max_assignments))
    republish.append((page.hits[0], n_missing))
    return total + cost(reward, n_missing)


def execute_top_up(client: Any, ledger: Ledger, plan: TopUp, until: float) -> ActionResults:
    """Execute a plan; the caller must hold `ledger.exclusive_lock()`. After an interruption, plan again.

    until: end of the offer of reopened HITs, in seconds since 1970. Raises ServiceError.
    """
    for hit in plan.reopen:
        hit_updates.extend_hit(client, ledger, hit, until)
    results = execute_actions(
        ledger, plan.extensions, lambda action: _extend_and_reopen(client, ledger, action, until)
    )
    for new, assignments in plan_republished_hits(ledger, plan.republish):
        ledger.add_hits([new], assignments)
    adopt_hits(client, ledger)
    create_hits(client, ledger)
    return results


def _extend_and_reopen(client: Any, ledger: Ledger, action: Action, until: float) -> bool:
    extended = hit_updates.add_assignments(client, ledger, action)
    with translate_errors():
        hit_data = client.get_hit(HITId=action.target)["HIT"]
    if hit_data["HITStatus"] != "Assignable":  # expired by the service's clock
        (hit,) = hit_updates.select_hits(ledger, [action.target])
        hit_updates.extend_hit(client, ledger, hit, until)
    return extended


def plan_republished_hits(
    ledger: Ledger, republish: Sequence[tuple[Hit, int]]
) -> list[tuple[HitPlan, int]]:
    """Return the plans of republished HITs, each with its number of assignments.

    `Ledger.add_hits` assigns the HIT numbers. The page is the one published before.
    """
    annotations = [hit.annotation for hit in ledger.hits()]
    parts: dict[int, list[LedgerPart]] = {}
    for part in ledger.parts():
        parts.setdefault(part.number, []).append(part)
    return [
        (_republish_plan(ledger, hit, tuple(parts[hit.number]), annotations), assignments)
        for hit, assignments in republish
    ]


def _republish_plan(
    ledger: Ledger, hit: Hit, parts: tuple[LedgerPart, ...], annotations: Sequence[str]
) -> HitPlan:
    digest, number = _parse_annotation(hit.annotation)
    existing_rounds = [
        _round(entry) for entry in annotations if _parse_annotation(entry) == (digest, number)
    ]
    round_number = 1 + max(existing_rounds, default=0)
    annotation, token = (
        f"giccs:{digest}:{round_number}:{number}",
        f"{digest}-{round_number}-{number}",
    )
    ANNOTATION.check(annotation)
    TOKEN.check(token)
    return HitPlan(hit.number, parts, ledger.question(hit.number), annotation, token)


def _parse_annotation(annotation: str) -> tuple[str, str]:
    """Return digest and number of an annotation ``giccs:<digest>:<round>:<number>``."""
    _, digest, _, number = annotation.split(":")
    return digest, number


def _round(annotation: str) -> int:
    return int(annotation.split(":")[2])
