"""Coverage of the scales and position effects of `giccs agreement --annotators`, with and without tastes.

All annotators have the same noise and thus the scale 1, and the same effect of positions. With tastes, an
annotator's utilities deviate from the others'. The true effect of positions is that on an annotator whose
utilities are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.annotator_logit import PositionEffect
from bws.annotators import AnnotatorReport, annotator_report
from bws.design import make_tuples
from bws.records import Tuples
from bws.simulation import simulate
from bws.stats.estimates import Estimate

N_ITEMS, TRUTH_SD, N_DESIGNS = 40, 1.5, 10
EFFECT = 0.5
"""Log odds of the first rather than the last position."""
STUDIES = ((10, 10), (40, 5))
"""Numbers of annotators, and of those who judge a tuple."""
STATEMENTS = ("scale", "first: best", "first: worst")


def cells() -> list[Cell]:
    """Return a cell per study, standard deviation of tastes and statement."""
    return [
        Cell(
            f"--annotators, {statement}",
            {"annotators": f"{per_tuple} of {annotators}", "tastes": tastes},
            partial(_study, statement, annotators, per_tuple, tastes),
        )
        for annotators, per_tuple in STUDIES
        for tastes in (0.0, 0.5, 1.0)
        for statement in STATEMENTS
    ]


def _study(
    statement: str, annotators: int, per_tuple: int, tastes: float, seed: int
) -> SimulatedStudy:
    report = _report(annotators, per_tuple, tastes, seed)
    positions = report.positions
    effects: dict[str, tuple[float, Sequence[PositionEffect | Estimate]]] = {
        "scale": (1.0, [each.scale_interval for each in report.annotators]),
        "first: best": (EFFECT, [positions.best]),
        "first: worst": (-EFFECT, [positions.worst]),
    }
    truth, estimates = effects[statement]
    return SimulatedStudy(
        sum(each.low <= truth <= each.high for each in estimates),
        len(estimates),
        any("preferences of their own" in note for note in report.notes),
        bias=float(np.mean([each.value for each in estimates])) - truth,
    )


@lru_cache(maxsize=1000)
def _report(annotators: int, per_tuple: int, tastes: float, seed: int) -> AnnotatorReport:
    tuples = _tuples(seed % N_DESIGNS)
    utility = TRUTH_SD * np.random.default_rng([seed, 1]).standard_normal(N_ITEMS)
    judgments = simulate(
        tuples, utility, annotators, noise=1.0, disagreement=tastes, position_bias=EFFECT,
        per_tuple=per_tuple, seed=seed,
    )  # fmt: skip
    return annotator_report(judgments)


@lru_cache
def _tuples(seed: int) -> Tuples:
    return make_tuples([f"i{number}" for number in range(N_ITEMS)], 4, seed=seed)
