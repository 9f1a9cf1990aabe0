"""Planning of studies: expected reliability and cost of alternative designs, from variance components."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bws.base.notes import note
from bws.base.tables import Column, ResultTable
from bws.components import Generalisability, possible_tuples
from bws.records import CanonicalJudgments

MAX_TUPLES_PER_ITEM = 1000
ANNOTATIONS = (1, 2, 3, 4, 5, 6, 8, 10)
"""Annotations per tuple of the compared designs."""
MIN_REPEATED = 1.05
"""Judgments per item and annotator from which additional annotators are considered as an alternative."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Design and the expected reliability of its scores."""

    what: str
    tuples_per_item: float
    annotations_per_tuple: float
    annotators_per_item: float
    """Number of annotators per item (effective number if they judge it unequally often)."""
    judgments: int
    reliability: float
    cost: float | None = None

    @property
    def root(self) -> float:
        """The expected correlation of the scores with the true scores."""
        return math.sqrt(self.reliability)

    def document(self) -> dict[str, Any]:
        """Return the alternative as a JSON-serialisable dict."""
        return asdict(self) | {"root": self.root}


@dataclass(frozen=True, slots=True)
class Planner:
    """Variance components and sizes of a study, from which the reliability of other designs is predicted."""

    item: float
    design: float
    annotator: float
    residual: float
    n_items: int
    k: int
    group_size: float
    """Mean number of items per group."""
    possible: float
    """Number of sets of K items of a group that contain a given item."""
    tuples_per_item: float
    annotations_per_tuple: float
    judgments_per_annotator: float
    """Judgments per item and annotator; 1 if each judgment of an item is by a different annotator."""
    design_share: float
    """Factor of the design's component in the error variance of the present scores."""
    has_repeated_tuples: bool = True
    """Whether a tuple has two judgments. Otherwise the design's component is part of the residual, and only
    designs of one annotation per tuple can be predicted."""

    @classmethod
    def from_study(cls, judgments: CanonicalJudgments, study: Generalisability) -> Planner | None:
        """Return the planner of a study; None if its components are undefined."""
        components, shares, reliability = (
            study.components,
            study.error_shares,
            study.reliability.value,
        )
        if not 0 < reliability < 1:
            return None
        n_tuples = len(judgments.members)
        n_items = judgments.n_scored
        group_of = judgments.group_of[:n_items]
        sizes = np.bincount(group_of)[group_of]
        tuples, annotations = (
            np.count_nonzero(judgments.members < n_items) / n_items,
            len(judgments) / n_tuples,
        )
        planner = cls(
            item=components.item,
            design=_clip_variance(components.design),
            annotator=_clip_variance(components.annotator),
            residual=_clip_variance(components.residual),
            n_items=n_items,
            k=judgments.k,
            group_size=float(sizes.mean()),
            possible=float(possible_tuples(judgments).mean()),
            tuples_per_item=tuples,
            annotations_per_tuple=annotations,
            judgments_per_annotator=max(shares["annotator"] * tuples * annotations, 1.0),
            design_share=shares["design"],
            has_repeated_tuples=len(np.unique(judgments.tuple_of)) < len(judgments),
        )
        error = planner.error(tuples, annotations, planner.judgments_per_annotator)
        # The present design has the reliability of the study, computed from the errors of single items.
        return replace(planner, item=error * reliability / (1 - reliability)) if error > 0 else None

    def error(self, tuples: float, annotations: float, per_annotator: float) -> float:
        """Return the error variance of scores for given tuples per item and annotations per tuple."""
        judgments = tuples * annotations
        return (
            self._design_share(tuples) * self.design
            + per_annotator / judgments * self.annotator
            + self.residual / judgments
        )

    def _design_share(self, tuples: float) -> float:
        """Return the factor of the design's component in a score, for balanced opponents.

        As in `bws.components`, computed from the counts of opponents. They differ by 1 at most, and by 1/2 on
        average if they are about 1/2 or more. The factor is 0 if every possible tuple is judged.
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
        """Return the judgments per item and annotator if annotators judge the same share of tuples as now."""
        return max(self.judgments_per_annotator * tuples / self.tuples_per_item, 1.0)

    def alternative(
        self, label: str, tuples: float, annotations: float, per_annotator: float
    ) -> Alternative:
        """Return the design with its predicted reliability and cost."""
        return Alternative(
            label,
            tuples,
            annotations,
            tuples * annotations / per_annotator,
            whole_number(self.n_items * tuples / self.k * annotations),
            self.reliability(tuples, annotations, per_annotator),
        )

    @property
    def annotation_limit(self) -> float:
        """Limit of the reliability for many annotations of the present tuples; NaN if tuples have one."""
        if not self.has_repeated_tuples:
            return math.nan
        return self.reliability(self.tuples_per_item, math.inf, 1.0)

    def annotations_for(self, target: float) -> float:
        """Return the annotations per tuple with which the present tuples reach a target reliability.

        Infinite if the error of the design alone is too large; NaN if tuples have one annotation.
        """
        if not self.has_repeated_tuples:
            return math.nan
        allowed_error = self.item * (1 - target) / target
        allowed_error -= self._design_share(self.tuples_per_item) * self.design
        tuples = self.tuples_per_item
        error_per_annotation = (
            self.judgments_per_annotator * self.annotator + self.residual
        ) / tuples
        return error_per_annotation / allowed_error if allowed_error > 0 else math.inf

    def annotation_needs(self, target: float) -> dict[str, float]:
        """Return annotations per tuple that reach the target, and the limit, as a JSON-serialisable dict."""
        return {"needed": self.annotations_for(target), "limit": self.annotation_limit}


@dataclass(frozen=True, eq=False)
class Plan:
    """Comparison of the present design with larger designs, designs of equal cost, and sufficient designs."""

    target: float
    price: float | None
    alternatives: tuple[Alternative, ...]
    """Compared designs, the present design first."""
    sufficient: tuple[Alternative, ...]
    """Cheapest design per number of annotations per tuple that reaches the target, sorted by cost."""
    planner: Planner

    @property
    def cheapest(self) -> Alternative | None:
        """Design with the fewest judgments that reaches the target; None if there is none."""
        return self.sufficient[0] if self.sufficient else None

    def document(self) -> dict[str, Any]:
        """Return the plan as a JSON-serialisable dict."""
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
        return "\n\n".join(map(str, self.result_tables()))

    def result_tables(self) -> list[ResultTable]:
        """Return the compared designs and, if there are any, those that reach the target."""
        title = f"Designs that reach a reliability of {self.target:g}, cheapest first"
        tables = [_table(self.alternatives, "Compared designs", "design")]
        notes = [describe_annotation_needs(self.target, self.planner), ASSUMPTION_NOTE]
        if self.sufficient:
            tables.append(
                _table(self.sufficient, title, f"reaches {self.target:g}, cheapest first")
            )
        else:
            notes.insert(
                0,
                note("none of the designs reaches a reliability of {target:g}", target=self.target),
            )
        return [*tables[:-1], replace(tables[-1], notes=notes)]


ASSUMPTION_NOTE = note(
    "the plan assumes that further items, tuples and annotators are like the present ones, and that tuples "
    "have balanced opponents, like those of giccs design"
)


def describe_annotation_needs(target: float, planner: Planner) -> str:
    """Return a sentence with the number of annotations of the present tuples that reaches a target."""
    needed, current = planner.annotations_for(target), planner.annotations_per_tuple
    if not planner.has_repeated_tuples:
        return note(
            "no tuple has two judgments, so that effects of tuples cannot be separated from those of single "
            "answers: only designs of fresh tuples with one annotation each are compared"
        )
    if math.isinf(needed):
        return note(
            "a reliability of {target:g} cannot be reached with more annotations of the same tuples (at most "
            "{limit:.4f}); it requires more tuples per item",
            target=target,
            limit=planner.annotation_limit,
        )
    if (whole := whole_number(needed)) == 1:
        return note(
            "with the present tuples, one annotation per tuple is enough for a reliability of {target:g} "
            "(now {now:.4g})",
            target=target,
            now=current,
        )
    return note(
        "with the present tuples, a reliability of {target:g} requires {n:d} annotations per tuple "
        "(now {now:.4g})",
        target=target,
        n=whole,
        now=current,
    )


def whole_number(needed: float) -> int:
    """Return the smallest whole number of annotations or judgments that is enough, at least 1.

    >>> whole_number(3.2), whole_number(0.6), whole_number(400.0000000001)
    (4, 1, 400)
    """
    return max(1, math.ceil(round(needed, 6)))


def _table(designs: Sequence[Alternative], title: str, what: str) -> ResultTable:
    columns = [
        Column("what", what),
        Column("tuples_per_item", "tuples per item", ".4g", align="right"),
        Column("annotations_per_tuple", "annotations per tuple", ".4g", align="right"),
        Column("annotators_per_item", "annotators per item", ".4g", align="right"),
        Column("judgments", "judgments", align="right"),
        Column("cost", "cost", ".2f", align="right", is_detail=designs[0].cost is None),
        Column("reliability", "reliability", ".4f", align="right"),
        Column("root", "root", ".4f", align="right"),
    ]
    rows = [[getattr(design, column.key) for column in columns] for design in designs]
    return ResultTable(columns, rows, (), title, "nan")


def check_target(target: float) -> None:
    """Raise ValueError unless the target reliability is between 0 and 1."""
    if not 0 < target < 1:
        raise ValueError(f"target is {target}; it must be above 0 and below 1")


def plan(planner: Planner, target: float = 0.9, price: float | None = None) -> Plan:
    """Compare designs of the items of a study by the expected reliability of the scores.

    The error variance of a score is design x factor + annotator / annotators per item + residual / judgments
    per item. The factor depends on the balance of opponents and is 0 if all possible tuples are judged.
    Annotators judge the same share of an item's tuples as now. In designs with "other annotators", each
    judgment of an item is by a different annotator.

    target: the reliability (not its root) to reach. price: price per judgment, in any currency.

    Raises ValueError for a target that is not between 0 and 1 or a negative price.
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
    """Return the variance, or 0 if it is undefined or negative."""
    return max(variance, 0.0) if variance == variance else 0.0


def _annotation_options(planner: Planner) -> Sequence[int]:
    """Return the annotations per tuple of the designs that can be predicted."""
    return ANNOTATIONS if planner.has_repeated_tuples else ANNOTATIONS[:1]


def _alternatives(planner: Planner) -> Iterator[Alternative]:
    """Yield the present design, designs with one factor doubled, and designs of equal cost."""
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
    if planner.has_repeated_tuples:
        yield planner.alternative(
            "twice the annotations per tuple", tuples, 2 * annotations, per_annotator
        )
    if planner.annotator > 0 and per_annotator > MIN_REPEATED:
        yield planner.alternative(
            "twice the annotators", tuples, annotations, max(per_annotator / 2, 1)
        )
    for n_annotations in _annotation_options(planner):
        n_tuples = tuples * annotations / n_annotations
        if n_annotations != annotations and 1 <= n_tuples <= planner.possible:
            yield planner.alternative(
                "equal cost", n_tuples, n_annotations, planner.judgments_per_annotator_at(n_tuples)
            )


def _sufficient_designs(planner: Planner, target: float) -> Iterator[Alternative]:
    """Yield the design with the fewest tuples that reaches the target, per number of annotations."""
    max_tuples = int(min(planner.possible, MAX_TUPLES_PER_ITEM))
    annotator_options = {"annotators as now": planner.judgments_per_annotator_at}
    if planner.annotator > 0 and planner.judgments_per_annotator > MIN_REPEATED:
        annotator_options["other annotators"] = lambda tuples: 1.0
    for n_annotations in _annotation_options(planner):
        designs = (
            (label, tuples, per_annotator(tuples))
            for tuples in range(1, max_tuples + 1)
            for label, per_annotator in annotator_options.items()
        )
        for label, tuples, judgments_per_annotator in designs:
            if planner.reliability(tuples, n_annotations, judgments_per_annotator) >= target:
                design = planner.alternative(label, tuples, n_annotations, judgments_per_annotator)
                n_tuples = whole_number(planner.n_items * tuples / planner.k)
                yield replace(design, judgments=n_tuples * n_annotations)
                break
