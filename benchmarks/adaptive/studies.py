"""Simulated studies of known truth: items, kinds of noise, and three ways to spend the judgments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from bws.adaptive import Fit, join_rounds, next_round, rounds, stop
from bws.adaptive.model import fit
from bws.design import fresh_rounds, make_tuples
from bws.records import Floats, Judgments, Tuples

K = 4
N_ANNOTATORS = 10
"""Annotators who take turns, each with an own scale of noise in the kind `uneven`."""


@dataclass(frozen=True)
class Setting:
    """Items and annotators of a simulated study."""

    items: int
    sd: float = 2.75
    """Standard deviation of the utilities, in logits."""
    noise: str = "gumbel"
    """``gumbel``: the best–worst logit. ``thurstone`` and ``t3``: the highest and lowest of impressions with
    an error that is normal or has Student's t distribution with 3 degrees of freedom. ``uneven``: the
    best–worst logit with a lognormal scale per annotator (SD 0.5 of the logarithm), and 10 % of the answers
    at random. Errors have the variance of the Gumbel distribution.
    """


class Study:
    """A study whose tuples are judged by one annotator each, in the order in which they are added."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.seed = setting, seed
        self.random = np.random.default_rng([seed, setting.items])
        self.truth = setting.sd * self.random.standard_normal(setting.items)
        self.names = [f"i{n:05}" for n in range(setting.items)]
        self.scale = np.exp(0.5 * self.random.standard_normal(N_ANNOTATORS))
        self.design: Tuples | None = None
        self.best = np.empty(0, dtype=np.int8)
        self.worst = np.empty(0, dtype=np.int8)

    @property
    def judgments(self) -> Judgments:
        """All judgments so far, one per tuple."""
        if self.design is None:
            raise ValueError("no tuples were judged")
        count = len(self.design)
        return Judgments(
            tuples=self.design,
            tuple_of=np.arange(count, dtype=np.int32),
            best=self.best,
            worst=self.worst,
            annotator_of=(np.arange(count) % N_ANNOTATORS).astype(np.int32),
            annotators=np.array([f"simulated-{n}" for n in range(N_ANNOTATORS)], dtype=object),
            columns=self.design.columns,
        )

    def judge(self, tuples: Tuples) -> None:
        """Add tuples and a judgment of each."""
        before = 0 if self.design is None else len(self.design)
        annotator = (before + np.arange(len(tuples))) % N_ANNOTATORS
        best, worst = self.answers(self.truth[tuples.members], annotator)
        self.design = tuples if self.design is None else join_rounds([self.design, tuples])
        self.best = np.concatenate([self.best, best])
        self.worst = np.concatenate([self.worst, worst])

    def answers(
        self, merit: Floats, annotator: NDArray[np.intp]
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Return the positions of best and worst in each row of merits."""
        draw = self.random
        kind, rows = self.setting.noise, np.arange(len(merit))
        if kind in ("gumbel", "uneven"):
            scale = self.scale[annotator][:, None] if kind == "uneven" else 1.0
            best = (merit + scale * draw.gumbel(size=merit.shape)).argmax(axis=1)
            badness = -merit + scale * draw.gumbel(size=merit.shape)
            badness[rows, best] = -np.inf
            worst = badness.argmax(axis=1)
        else:
            spread = np.pi / np.sqrt(6)
            error = (
                draw.standard_normal(merit.shape)
                if kind == "thurstone"
                else draw.standard_t(3, merit.shape) / np.sqrt(3)
            )
            seen = merit + spread * error
            best, worst = seen.argmax(axis=1), seen.argmin(axis=1)
        if kind == "uneven":
            guess = draw.random(merit.shape).argsort(axis=1)
            careless = draw.random(len(merit)) < 0.1
            best, worst = (
                np.where(careless, guess[:, 0], best),
                np.where(careless, guess[:, 1], worst),
            )
        return best.astype(np.int8), worst.astype(np.int8)

    def fit(self) -> Fit:
        """Fit the choice model to all judgments."""
        judgments = self.judgments
        return rounds.fit(judgments.tuples, judgments)  # type: ignore[attr-defined]

    def true_scores(self) -> Floats:
        """Return the true scores on the scale of counting."""
        fitted = self.fit()
        return replace(fitted, utility=self.truth).scores()

    def adaptive(self, n_rounds: int, size: int) -> Iterator[int]:
        """Judge a warm-up of N tuples and further rounds; yield the number of judgments after each."""
        self.judge(fresh_rounds(self.names, K, 1, factor=1, seed=self.seed))
        yield len(self.best)
        for _ in range(n_rounds):
            judgments = self.judgments
            self.judge(next_round(judgments, judgments.tuples, size, seed=self.seed))
            yield len(self.best)

    def fresh(self, n_rounds: int, size: int) -> Iterator[int]:
        """Judge a round of N fresh tuples and further rounds; yield the number of judgments after each."""
        n = self.setting.items
        n_designs = 1 + ceil(n_rounds * size / n)
        design = fresh_rounds(self.names, K, n_designs, count=n, seed=self.seed)
        self.judge(_part(design, 0, n))
        yield n
        for number in range(n_rounds):
            self.judge(_part(design, n + number * size, n + (number + 1) * size))
            yield len(self.best)

    def counting(self, annotators: int) -> Iterator[tuple[int, Floats]]:
        """Yield judgments and counting scores of 2N tuples, judged by 1, 2, ... annotators each."""
        design = make_tuples(self.names, K, seed=self.seed)
        counts = np.zeros((2, self.setting.items))
        for number in range(1, annotators + 1):
            best, worst = self.answers(
                self.truth[design.members], np.arange(len(design)) % N_ANNOTATORS
            )
            rows = np.arange(len(design))
            for row, chosen in enumerate((best, worst)):
                counts[row] += np.bincount(
                    design.members[rows, chosen], minlength=self.setting.items
                )
            appearances = number * np.bincount(design.members.ravel(), minlength=self.setting.items)
            yield number * len(design), (counts[0] - counts[1]) / appearances


@contextmanager
def each_fit_once() -> Iterator[None]:
    """Reuse the fits of one study, whose judgments are told apart by their number.

    The choice of a round, the gates and the audit of later rounds need the same fits.
    """
    fits: dict[int, Fit] = {}

    def cached(tuples: Tuples, judgments: Judgments) -> Fit:
        if len(judgments) not in fits:
            fits[len(judgments)] = fit(tuples, judgments)
        return fits[len(judgments)]

    with patch.object(rounds, "fit", cached), patch.object(stop, "fit", cached):
        yield


def _part(design: Tuples, start: int, stop: int) -> Tuples:
    return replace(
        design,
        ids=design.ids[start:stop],
        members=design.members[start:stop],
        columns={name: column[start:stop] for name, column in design.columns.items()},
    )


def spearman(x: Floats, y: Floats) -> float:
    """Return Spearman's correlation."""
    return float(spearmanr(x, y).statistic)


def correlation(x: Floats, y: Floats) -> float:
    """Return Pearson's correlation; NaN for constant values."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
