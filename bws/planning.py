"""What other designs would buy: their reliability, from variance components, and their judgments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bws.components import Generalisability, possible_tuples
from bws.records import CanonicalJudgments
from bws.tables import Column, ResultTable

__all__ = ["Alternative", "Plan", "Planner", "check_target", "plan"]

MAX_TUPLES_PER_ITEM = 1000
ANNOTATIONS = (1, 2, 3, 4, 5, 6, 8, 10)
"""Annotations per tuple of the designs that are compared."""
MIN_REPEATED = 1.05
"""Judgments of an item per annotator from which other annotators are an alternative."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A design, and the reliability that its scores would have."""

    what: str
    tuples_per_item: float
    annotations_per_tuple: float
    annotators_per_item: float
    """Different annotators who judge an item (in effect, where they judge it unequally often)."""
    judgments: int
    reliability: float
    cost: float | None = None

    @property
    def root(self) -> float:
        """The expected correlation of the scores with the true scores."""
        return math.sqrt(self.reliability)

    def document(self) -> dict[str, Any]:
        """Return the alternative as JSON has it."""
        return asdict(self) | {"root": self.root}


@dataclass(frozen=True, slots=True)
class Planner:
    """Variance components and sizes of a study, from which the reliability of other designs follows."""

    item: float
    design: float
    annotator: float
    residual: float
    n_items: int
    k: int
    group_size: float
    """Items in a group, on average."""
    possible: float
    """Sets of K items of a group that contain an item."""
    tuples_per_item: float
    annotations_per_tuple: float
    judgments_per_annotator: float
    """Judgments of an item by one of its annotators: 1 where each judgment is another one's."""
    design_share: float
    """By what the design's component is multiplied in the error variance of the present scores."""

    @classmethod
    def from_study(cls, judgments: CanonicalJudgments, study: Generalisability) -> Planner | None:
        """Return the planner of a study; None where its components are not defined."""
        components, shares, reliability = (
            study.components,
            study.error_shares,
            study.reliability.value,
        )
        if not 0 < reliability < 1:
            return None
        n_tuples = len(judgments.members)
        sizes = np.bincount(judgments.group_of)[judgments.group_of]
        tuples, annotations = (
            n_tuples * judgments.k / len(judgments.items),
            len(judgments) / n_tuples,
        )
        planner = cls(
            item=components.item,
            design=_clip_variance(components.design),
            annotator=_clip_variance(components.annotator),
            residual=_clip_variance(components.residual),
            n_items=len(judgments.items),
            k=judgments.k,
            group_size=float(sizes.mean()),
            possible=float(possible_tuples(judgments).mean()),
            tuples_per_item=tuples,
            annotations_per_tuple=annotations,
            judgments_per_annotator=max(shares["annotator"] * tuples * annotations, 1.0),
            design_share=shares["design"],
        )
        error = planner.error(tuples, annotations, planner.judgments_per_annotator)
        # the present design has the reliability of the study, whose errors are those of single items
        return replace(planner, item=error * reliability / (1 - reliability)) if error > 0 else None

    def error(self, tuples: float, annotations: float, per_annotator: float) -> float:
        """Return the error variance of scores from so many tuples per item and annotations per tuple."""
        judgments = tuples * annotations
        return (
            self._design_share(tuples) * self.design
            + per_annotator / judgments * self.annotator
            + self.residual / judgments
        )

    def _design_share(self, tuples: float) -> float:
        """Return the share of the design's component in a score: of tuples that meet opponents evenly.

        As in `bws.components`, from how often each opponent is met; that number differs by 1 at most, and
        by 1/2 on average where it is about 1/2 or more. 0 where every possible tuple is judged.
        """
        if tuples >= self.possible:
            return 0.0
        if tuples == self.tuples_per_item:
            return self.design_share
        opponents = self.group_size - 1
        met = tuples * (self.k - 1) / opponents
        variance = met * (1 - met) if met < 0.5 else 0.25
        random = (self.k - 1) / opponents
        return opponents * variance / (tuples**2 * (self.k - 1) * (1 - random))

    def reliability(self, tuples: float, annotations: float, per_annotator: float) -> float:
        """Return the reliability of the scores of a design."""
        return self.item / (self.item + self.error(tuples, annotations, per_annotator))

    def judgments_per_annotator_at(self, tuples: float) -> float:
        """Return the judgments of an item per annotator who judge the same share of its tuples as now."""
        return max(self.judgments_per_annotator * tuples / self.tuples_per_item, 1.0)

    def alternative(
        self, label: str, tuples: float, annotations: float, per_annotator: float
    ) -> Alternative:
        """Return the design with its numbers."""
        return Alternative(
            label,
            tuples,
            annotations,
            tuples * annotations / per_annotator,
            round(self.n_items * tuples / self.k * annotations),
            self.reliability(tuples, annotations, per_annotator),
        )

    @property
    def annotation_limit(self) -> float:
        """The reliability that more annotations of the present tuples approach."""
        return self.reliability(self.tuples_per_item, math.inf, 1.0)

    def annotations_for(self, target: float) -> float:
        """Return the annotations per tuple with which the present tuples reach a reliability.

        Infinite where they cannot: the error of the design alone is too large.
        """
        allowed_error = self.item * (1 - target) / target
        allowed_error -= self._design_share(self.tuples_per_item) * self.design
        tuples = self.tuples_per_item
        error_per_annotation = (
            self.judgments_per_annotator * self.annotator + self.residual
        ) / tuples
        return error_per_annotation / allowed_error if allowed_error > 0 else math.inf

    def annotation_needs(self, target: float) -> dict[str, float]:
        """Return annotations per tuple that reach the target, and the limit, as JSON has them."""
        return {"needed": self.annotations_for(target), "limit": self.annotation_limit}


@dataclass(frozen=True, eq=False)
class Plan:
    """Designs beside the present one: what each lever buys, equal cost, and what reaches a target."""

    target: float
    price: float | None
    alternatives: tuple[Alternative, ...]
    """The present design first."""
    sufficient: tuple[Alternative, ...]
    """The cheapest design for each number of annotations per tuple that reaches the target; by cost."""
    planner: Planner

    @property
    def cheapest(self) -> Alternative | None:
        """The design of fewest judgments that reaches the target; None where none does."""
        return self.sufficient[0] if self.sufficient else None

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        return {
            "target": self.target,
            "price": self.price,
            "alternatives": [alternative.document() for alternative in self.alternatives],
            "reaching": [alternative.document() for alternative in self.sufficient],
            "cheapest": self.cheapest.document() if self.cheapest else None,
            "annotations_alone": self.planner.annotation_needs(self.target),
            "notes": [ASSUMPTION_NOTE],
        }

    def table(self) -> str:
        """Return the plan as text."""
        lines = [_table(self.alternatives), ""]
        if self.sufficient:
            lines += [
                f"Designs that reach a reliability of {self.target:g}, the cheapest first:",
                _table(self.sufficient),
            ]
        else:
            lines.append(f"no design that was compared reaches a reliability of {self.target:g}")
        needs_line = describe_annotation_needs(self.target, self.planner)
        return "\n".join([*lines, needs_line, ASSUMPTION_NOTE])


ASSUMPTION_NOTE = (
    "the plan supposes further items, tuples and annotators like those at hand, and tuples that meet "
    "opponents evenly, as those of bws-make-tuples"
)


def describe_annotation_needs(target: float, planner: Planner) -> str:
    """Say how many annotations of the present tuples reach a target, or that none do."""
    needed, current = planner.annotations_for(target), planner.annotations_per_tuple
    if math.isinf(needed):
        return (
            f"a reliability of {target:g} cannot be reached by annotations alone: more annotations of the "
            f"same tuples reach at most {planner.annotation_limit:.4f}; it takes more tuples per item"
        )
    return (
        f"with the present tuples, a reliability of {target:g} takes {needed:.1f} annotations per tuple "
        f"(there are {current:.4g})"
    )


def _table(designs: Sequence[Alternative]) -> str:
    columns = [
        Column("what"),
        Column("tuples_per_item", "tuples per item", ".4g", align="right"),
        Column("annotations_per_tuple", "annotations per tuple", ".4g", align="right"),
        Column("annotators_per_item", "annotators per item", ".4g", align="right"),
        Column("judgments", "judgments", align="right"),
        Column("cost", "cost", ".2f", align="right", is_detail=designs[0].cost is None),
        Column("reliability", "reliability", ".4f", align="right"),
        Column("root", "root", ".4f", align="right"),
    ]
    rows = [[getattr(design, column.key) for column in columns] for design in designs]
    return ResultTable(columns, rows, missing="nan").text()


def check_target(target: float) -> None:
    """Raise ValueError where a reliability to reach is not between 0 and 1."""
    if not 0 < target < 1:
        raise ValueError(f"target is {target}; it must be above 0 and below 1")


def plan(planner: Planner, target: float = 0.9, price: float | None = None) -> Plan:
    """Compare designs of the items of a study by the reliability that the scores would have.

    The error variance of a score is design x (0 where all possible tuples are judged, else by how evenly an
    item meets its opponents) + annotator / annotators per item + residual / judgments per item. Annotators
    judge the same share of an item's tuples as now, except where a design says "other annotators": there
    each judgment of an item is by another one.

    target: the reliability (not its root) to reach. price: of one judgment, in any currency.

    ValueError: a target that is not between 0 and 1, a price below 0.
    """
    check_target(target)
    if price is not None and not 0 <= price < math.inf:
        raise ValueError(f"price is {price}; it must be 0 or more")
    alternatives, sufficient = (
        list(_alternatives(planner)),
        list(_sufficient_designs(planner, target)),
    )
    sufficient.sort(key=lambda design: (design.judgments, -design.reliability))
    if price is not None:
        alternatives, sufficient = (
            [replace(design, cost=design.judgments * price) for design in designs]
            for designs in (alternatives, sufficient)
        )
    return Plan(target, price, tuple(alternatives), tuple(sufficient), planner)


def _clip_variance(variance: float) -> float:
    """Return 0 for a variance that is not defined or estimated below 0."""
    return max(variance, 0.0) if variance == variance else 0.0


def _alternatives(planner: Planner) -> Iterator[Alternative]:
    """Yield the present design, each lever doubled, and designs of the present number of judgments."""
    tuples, annotations = planner.tuples_per_item, planner.annotations_per_tuple
    per_annotator = planner.judgments_per_annotator
    yield planner.alternative("present design", tuples, annotations, per_annotator)
    if 2 * tuples <= planner.possible:
        yield planner.alternative(
            "twice the tuples",
            2 * tuples,
            annotations,
            planner.judgments_per_annotator_at(2 * tuples),
        )
    yield planner.alternative(
        "twice the annotations per tuple", tuples, 2 * annotations, per_annotator
    )
    if planner.annotator > 0 and per_annotator > MIN_REPEATED:
        yield planner.alternative(
            "twice the annotators", tuples, annotations, max(per_annotator / 2, 1)
        )
    for n_annotations in ANNOTATIONS:
        n_tuples = tuples * annotations / n_annotations
        if n_annotations != annotations and 1 <= n_tuples <= planner.possible:
            yield planner.alternative(
                "equal cost", n_tuples, n_annotations, planner.judgments_per_annotator_at(n_tuples)
            )


def _sufficient_designs(planner: Planner, target: float) -> Iterator[Alternative]:
    """Yield, for each number of annotations, the design with the fewest tuples that reaches the target."""
    max_tuples = int(min(planner.possible, MAX_TUPLES_PER_ITEM))
    annotator_options = {"annotators as now": planner.judgments_per_annotator_at}
    if planner.annotator > 0 and planner.judgments_per_annotator > MIN_REPEATED:
        annotator_options["other annotators"] = lambda tuples: 1.0
    for n_annotations in ANNOTATIONS:
        designs = (
            (label, tuples, per_annotator(tuples))
            for tuples in range(1, max_tuples + 1)
            for label, per_annotator in annotator_options.items()
        )
        for label, tuples, judgments_per_annotator in designs:
            if planner.reliability(tuples, n_annotations, judgments_per_annotator) >= target:
                yield planner.alternative(label, tuples, n_annotations, judgments_per_annotator)
                break
