"""Simulated answers to anchors by the annotators of simulated judgments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from bws.absolute.files import Anchor, Plan, anchors_of_group
from bws.absolute.model import RATING_SCALE, Floats
from bws.records import Judgments, Tuples
from bws.simulation import tastes, without_group_means

ANCHORS = 4
"""Stream of the random numbers for anchors."""
SECONDS = {"rating": 12.0, "mark": 6.0}
"""Simulated seconds for the anchors of a group."""


@dataclass(frozen=True, eq=False)
class SimulatedAnchors:
    """Answers to anchors, and the truth behind them."""

    rows: tuple[Anchor, ...]
    utility: Floats
    """(N,) utilities of the items of the tuples, in logits, with the offsets of groups."""
    thresholds: Floats
    """(A,) thresholds of the annotators of the judgments."""
    slopes: Floats
    """(A,)"""

    def true_scores(self, is_rating: bool, has_answered: Floats | None = None) -> Floats:
        """Return (N,) the answer of the average annotator to each item.

        has_answered: (A,) weights of the annotators; by default all are equal.
        """
        threshold = np.average(self.thresholds, weights=has_answered)
        slope = np.exp(np.average(np.log(self.slopes), weights=has_answered))
        distance = self.utility - threshold
        scores: Floats = expit(slope * distance / RATING_SCALE if is_rating else distance)
        return scores


def simulate_anchors(
    judgments: Judgments,
    truth: Floats,
    plan: Plan,
    *,
    noise: float = 0.25,
    disagreement: float = 0.0,
    offset_sd: float = 0.0,
    careless: float | Floats = 0.0,
    threshold_sd: float = 1.0,
    wobble_sd: float = 0.7,
    slider_sd: float = 2.0,
    slope_sd: float = 0.0,
    shift: Floats | None = None,
    per_group: int | None = None,
    seed: int = 0,
) -> SimulatedAnchors:
    """Return answers to the planned anchors by the annotators of each group.

    judgments: of `bws.simulation.simulate` with the same truth, noise, disagreement, careless and seed.
    truth: (N,) true scores of the items of `judgments.tuples`. Utilities in logits are truth / noise, plus a
        normal offset of each group. If all scores are from 0 to 1, 0.5 is the mean threshold instead of 0.
    offset_sd: standard deviation of the offsets, relative to that of the truth within groups.
    careless: share of random answers, or (A,) of each annotator.
    threshold_sd, wobble_sd, slider_sd: standard deviations in logits of an annotator's threshold, of its
        deviation in a group, and of a rating. slope_sd: of the logarithms of annotators' slopes.
    shift: (D,) shift of the thresholds of everybody by group, in logits.
    per_group: number of the annotators of a group who answer, chosen at random; all by default.

    The n-th annotator of a group gets its n-th planned anchors; further ones begin again at the first. Groups
    without planned anchors have no answers.
    Raises ValueError for a noise of 0, for which utilities have no unit, and negative standard deviations.
    """
    tuples, a = judgments.tuples, len(judgments.annotators)
    _check(noise, offset_sd, threshold_sd, wobble_sd, slider_sd, slope_sd)
    random = np.random.Generator(np.random.PCG64([seed, ANCHORS]))
    if truth.min() >= 0 and truth.max() <= 1:
        truth = truth - 0.5
    utility = (
        truth / noise
        + offset_sd
        * _sd_within(tuples, truth / noise)
        * random.standard_normal(len(tuples.groups))[tuples.group_of_item]
    )
    perceived = utility + tastes(a, len(truth), disagreement / noise, seed)
    thresholds = threshold_sd * random.standard_normal(a)
    slopes = np.exp(slope_sd * random.standard_normal(a))
    lapses = np.broadcast_to(careless, a)
    item_of = {key: index for index, key in enumerate(tuples.item_keys)}
    planned = anchors_of_group(plan)
    rows: list[Anchor] = []
    for group, people in _annotators_of_groups(judgments).items():
        name = tuples.groups[group]
        if name not in planned:
            continue
        if per_group is not None:
            people = random.permutation(people)[:per_group].tolist()
        for number, person in enumerate(people):
            anchor = planned[name][number % len(planned[name])]
            threshold = thresholds[person] + wobble_sd * random.standard_normal()
            threshold += 0.0 if shift is None else shift[group]
            for position, item in enumerate(anchor.items, start=1):
                eta = perceived[person, item_of[name, item]] - threshold
                if anchor.kind == "rating":
                    value = slopes[person] * eta + slider_sd * random.standard_normal()
                    answer, guess = (
                        round(100 * float(expit(value / RATING_SCALE))),
                        random.integers(101),
                    )
                else:
                    answer, guess = int(random.random() < expit(eta)), random.integers(2)
                if random.random() < lapses[person]:
                    answer = int(guess)
                rows.append(
                    Anchor(name, item, judgments.annotators[person], anchor.kind, answer, position,
                           SECONDS[anchor.kind])
                )  # fmt: skip
    return SimulatedAnchors(tuple(rows), utility, thresholds, slopes)


def _check(noise: float, offset_sd: float, *sds: float) -> None:
    if not noise > 0:
        raise ValueError(
            f"noise is {noise}; anchors require a number above 0, the unit of utilities"
        )
    if offset_sd < 0 or min(sds) < 0:
        raise ValueError("a standard deviation is negative; expected 0 or more")


def _sd_within(tuples: Tuples, values: Floats) -> float:
    """Return the standard deviation of values within groups."""
    deviations = without_group_means(tuples, values)
    df = max(len(values) - len(tuples.groups), 1)
    return float(np.sqrt(deviations @ deviations / df))


def _annotators_of_groups(judgments: Judgments) -> dict[int, list[int]]:
    """Return the annotators who judged tuples of each group, in ascending order."""
    groups = judgments.tuples.group_of_tuple[judgments.tuple_of]
    pairs = np.unique(np.column_stack((groups, judgments.annotator_of)), axis=0).tolist()
    found: dict[int, list[int]] = {}
    for group, person in pairs:
        found.setdefault(group, []).append(person)
    return found
