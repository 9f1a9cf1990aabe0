"""Flags of scales in the annotator report: random answers found, false alarms, coverage of intervals.

    python -m benchmarks.annotators [--studies N] [-o docs/background/measures.md]

Studies are simulated. With -o the tables replace the block `annotator-flags` of a document.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.machine import provenance, replace_block
from bws.annotators import Annotator, annotator_report
from bws.design import make_tuples
from bws.records import Judgments, Tuples
from bws.simulation import simulate

NOISE = 0.25
"""Noise of a judgment, the default of giccs simulate; true scores are uniform from -1 to 1."""
CARE = (0.6, 0.8, 1.0, 1.25, 1.6)
"""Factors of the noise of careful annotators, with equal probability."""
PER_TUPLE = 5
REVERSED_SHARE = 0.05
RANDOM_SHARES = (0.05, 0.2)
STUDIES = {16: 20, 300: 2}
"""Annotators per study -> studies per setting."""
FALSE_ALARMS = 0.01
DISAGREEMENTS = (0.0, 0.25)
JUDGMENTS = (10, 30, 60)
"""Judgments per annotator whose intervals are compared with the true scale."""
COPIES = 12
"""Answers to each tuple from which an annotator's true scale is estimated."""
REPLICATES = 60
"""Annotators per kind and study whose intervals are compared with their true scales."""
COVERED: dict[str, dict[str, float]] = {
    **{f"careful, noise x {care:g}": {"noise": NOISE * care} for care in (0.6, 1.0, 1.6)},
    "half of the answers random": {"careless": 0.5},
    "random": {"careless": 1.0},
    "reversed": {},
}
"""Kinds of annotators -> arguments of the simulation."""


@dataclass(frozen=True)
class Setting:
    """Settings of a simulated study."""

    k: int = 4
    judgments: int = 30
    """Judgments per annotator."""
    disagreement: float = 0.0
    annotators: int = 16
    random_share: float = 0.2
    """Share of annotators with random answers; at least one."""


def simulated_study(setting: Setting, seed: int) -> tuple[Judgments, NDArray[np.str_]]:
    """Return a study whose annotators are careful, random or reversed, and the kind of each annotator."""
    n = setting.annotators
    n_random, n_reversed = (
        max(1, round(share * n)) for share in (setting.random_share, REVERSED_SHARE)
    )
    kinds = np.repeat(
        ["random", "reversed", "careful"], [n_random, n_reversed, n - n_random - n_reversed]
    )
    drawn = partial(
        simulate, *_design(setting, seed), n,
        per_tuple=PER_TUPLE, disagreement=setting.disagreement, seed=seed,
    )  # fmt: skip
    # With the same seed, all variants have the same tuples per annotator and the same tastes.
    variants = [*(drawn(noise=NOISE * care) for care in CARE), drawn(careless=1.0)]
    care_of = np.random.default_rng(seed).integers(0, len(CARE), n)
    annotator_of = variants[0].annotator_of
    variant_of = np.where(kinds == "random", len(CARE), care_of)[annotator_of]
    best, worst = (
        np.choose(variant_of, [getattr(variant, answer) for variant in variants])
        for answer in ("best", "worst")
    )
    judgments = replace(variants[0], best=best, worst=worst, shown=None)
    return _reversed(judgments, kinds == "reversed"), kinds


def _design(setting: Setting, seed: int) -> tuple[Tuples, NDArray[np.float64]]:
    """Return tuples and true scores, two tuples per item."""
    tuples = _tuples(setting.k, setting.annotators * setting.judgments // PER_TUPLE)
    truth = np.random.default_rng([seed, 1]).uniform(-1, 1, len(tuples.items))
    return tuples, truth


@cache
def _tuples(k: int, count: int) -> Tuples:
    return make_tuples([f"i{n}" for n in range(max(count // 2, 2 * k))], k, count=count)


def _reversed(judgments: Judgments, is_reversed: NDArray[np.bool_]) -> Judgments:
    """Exchange best and worst of some annotators."""
    rows = is_reversed[judgments.annotator_of]
    best, worst = judgments.best, judgments.worst
    return replace(judgments, best=np.where(rows, worst, best), worst=np.where(rows, best, worst))


def annotators_by_kind(setting: Setting, seed: int) -> dict[str, list[Annotator]]:
    """Return the report of a simulated study per kind of annotator: random, reversed, careful."""
    judgments, kinds = simulated_study(setting, seed)
    reported = {each.annotator: each for each in annotator_report(judgments).annotators}
    by_kind: dict[str, list[Annotator]] = {"random": [], "reversed": [], "careful": []}
    for name, kind in zip(judgments.annotators, kinds, strict=True):
        by_kind[kind].append(reported[name])
    return by_kind


def _limits_and_flags(setting: Setting, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return (n, 2) upper limits relative to the upper quartile, and flags of the scale, per kind."""
    by_kind = annotators_by_kind(setting, seed)
    typical = np.quantile([each.scale for group in by_kind.values() for each in group], 0.75)
    return {
        kind: np.array(
            [
                (
                    each.scale_high / typical,
                    bool({"random", "inexact", "reversed"}.intersection(each.flags)),
                )
                for each in group
            ]
        )
        for kind, group in by_kind.items()
    }


def power_rows(factor: int) -> Iterator[list[Any]]:
    """Yield a row per disagreement, K and judgments per annotator, over all other settings."""
    cells = list(product(DISAGREEMENTS, (3, 4, 5), (10, 20, 30, 60)))
    settings = [
        Setting(k, judgments, disagreement, annotators, share)
        for disagreement, k, judgments in cells
        for annotators, studies in STUDIES.items()
        for share in RANDOM_SHARES
        for _ in range(factor * studies)
    ]
    results = _in_parallel(
        _limits_and_flags, list(zip(settings, range(len(settings)), strict=True))
    )
    for cell in cells:
        studies = [
            (setting.annotators, result)
            for setting, result in zip(settings, results, strict=True)
            if (setting.disagreement, setting.k, setting.judgments) == cell
        ]
        random, reverse, careful = (
            np.concatenate([result[kind] for _, result in studies]).T
            for kind in ("random", "reversed", "careful")
        )
        at_rate = np.mean(random[0] < np.quantile(careful[0], FALSE_ALARMS))
        shares = [random[1].mean(), at_rate, reverse[1].mean()]
        alarms = [
            np.mean([result["careful"][:, 1].any() for of, result in studies if of == n])
            for n in STUDIES
        ]
        disagreement, k, judgments = cell
        yield [
            f"{disagreement:g}", k, judgments, *(f"{100 * share:.0f} %" for share in shares),
            f"{100 * careful[1].mean():.2f} %", *(f"{100 * share:.0f} %" for share in alarms),
        ]  # fmt: skip


def _covered(kind: str, disagreement: float, seed: int) -> list[list[bool]]:
    """Return whether the intervals of annotators of a kind contain their true scales, per `JUDGMENTS`.

    These annotators are compared with a study of 16 others, as models are. True are the scales from many
    answers to all tuples, with the annotator's own tastes.
    """
    setting = Setting(judgments=60, disagreement=disagreement)
    people, _ = simulated_study(setting, seed)
    tuples, truth = _design(setting, seed)
    n = len(tuples)
    repeated = replace(
        tuples,
        ids=np.array([f"{name}-{copy}" for copy in range(COPIES) for name in tuples.ids], object),
        members=np.tile(tuples.members, (COPIES, 1)),
        columns={},
    )
    answers = simulate(
        repeated, truth, REPLICATES, seed=seed + 1, disagreement=disagreement,
        **COVERED[kind],  # type: ignore[arg-type]
    )  # fmt: skip
    answers = _reversed(answers, np.full(REPLICATES, kind == "reversed"))
    names = np.array([f"model:{number}" for number in range(REPLICATES)], dtype=object)
    answers = replace(answers, annotators=names, shown=None)
    rank = np.random.default_rng(seed).random((REPLICATES, n)).argsort(axis=1).argsort(axis=1)
    rank_of = np.where(answers.tuple_of < n, rank[answers.annotator_of, answers.tuple_of % n], n)
    true, *estimates = (
        annotator_report(people, [part]).annotators[-REPLICATES:]
        for part in (answers, *(answers.select(rank_of < count) for count in JUDGMENTS))
    )
    return [
        [
            estimate.scale_low <= value.scale <= estimate.scale_high
            for value, estimate in zip(true, estimated, strict=True)
        ]
        for estimated in estimates
    ]


def coverage_rows(studies: int) -> Iterator[list[Any]]:
    """Yield a row per disagreement and kind of annotator, with the coverage per number of judgments."""
    cells = list(product(DISAGREEMENTS, COVERED))
    tasks = [(kind, disagreement, seed) for disagreement, kind in cells for seed in range(studies)]
    results = np.array(_in_parallel(_covered, tasks)).reshape(
        len(cells), studies, len(JUDGMENTS), -1
    )
    for (disagreement, kind), shares in zip(cells, results.mean(axis=(1, 3)), strict=True):
        yield [f"{disagreement:g}", kind, *(f"{100 * share:.1f} %" for share in shares)]


def _in_parallel(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> list[Any]:
    """Call a function with each tuple of arguments, on all CPUs."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = pool.map(function, *zip(*tasks, strict=True))
        return list(tqdm(results, total=len(tasks), disable=None, unit="study"))


def main(arguments: list[str] | None = None) -> None:
    """Simulate all studies and print the tables."""
    from tabulate import tabulate

    parser = argparse.ArgumentParser(prog="python -m benchmarks.annotators")
    parser.add_argument("--studies", type=int, default=1, metavar="N", help="factor of the studies")
    parser.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    power = tabulate(
        power_rows(options.studies),
        [
            "disagreement", "K", "judgments", "random found", "at 1 % false alarms", "reversed found",
            "false alarms", *(f"studies of {n} with any" for n in STUDIES),
        ],
        "github", disable_numparse=True,
    )  # fmt: skip
    coverage = tabulate(
        coverage_rows(5 * options.studies),
        ["disagreement", "annotator", *(f"{count} judgments" for count in JUDGMENTS)],
        "github", disable_numparse=True,
    )  # fmt: skip
    took = f"{time.monotonic() - start:.0f} s."
    text = f"{power}\n\nCoverage of the 95 % interval of the scale, 4-tuples:\n\n{coverage}\n\n"
    text += f"{provenance('python -m benchmarks.annotators')} {took}"
    print(text)
    if options.output:
        replace_block(options.output, "annotator-flags", text)


if __name__ == "__main__":
    main()
