"""Which examples stand before a question?

C-STS (4.2): both rows of a sentence pair always together, "so models will always see contrasting pairs in the
examples, but won't see a paired example for the query". The paper does not say whether all questions have
the same examples; the authors' program draws them anew for each, and puts the row with the higher label
first, as in Figure 5. So it is here. Unlike there, what is drawn for a row depends on the seed and its uid
alone, not on the rows before it, and its own sentences are never drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bws.problems import InputError, Problem
from giccs.csts.data import Dataset, pairs
from giccs.csts.records import Instance

__all__ = ["Examples"]

SPARE = 2
"""Sentence pairs that are drawn over: those of the question itself, in both orders, do not count."""


@dataclass(frozen=True)
class Examples:
    """Draws examples from labelled sentence pairs; InputError where there are too few of them."""

    dataset: Dataset
    shots: int
    """Rows before a question: an even number."""
    seed: int = 0

    def __post_init__(self) -> None:
        wanted = self.shots // 2 + SPARE
        if len(self._pairs) < wanted:
            message = (
                f"has {len(self._pairs)} sentence pairs of two labelled rows; {self.shots} examples "
                f"are drawn from {wanted} at least"
            )
            raise InputError(Problem(self.dataset.name, None, message))

    def of(self, asked: Instance) -> list[Instance]:
        """Return the examples of a row: of each sentence pair first the row with the higher label."""
        draw = random.Random(f"examples {self.seed} {asked.uid}")  # noqa: S311 - drawn again by its seed, no secret
        drawn = draw.sample(self._pairs, self.shots // 2 + SPARE)
        others = [pair for pair in drawn if _sentences(pair[0]) != _sentences(asked)]
        return [row for pair in others[: self.shots // 2] for row in pair]

    @cached_property
    def _pairs(self) -> Sequence[tuple[Instance, Instance]]:
        return [pair for pair in pairs(self.dataset) if pair[0].label is not None]


def _sentences(one: Instance) -> frozenset[str]:
    return frozenset([one.sentence1.strip(), one.sentence2.strip()])
