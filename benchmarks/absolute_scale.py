"""Acceptance table of absolute scores, from simulated studies with fixed seeds.

    python -m benchmarks.absolute_scale [--only CELL ...] [--studies N] [--journal FILE]
        [-o docs/background/absolute-scale.md]

With -o the table replaces the block `absolute-scale` of a document. Missed goals are printed as such. With
--journal an interrupted run of the same code continues.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from tabulate import tabulate

from benchmarks.adaptive.__main__ import Journal
from benchmarks.machine import provenance, replace_block
from bws.absolute.design import plan_anchors
from bws.absolute.files import Anchors
from bws.absolute.scores import absolute_scale
from bws.absolute.simulation import SimulatedAnchors, simulate_anchors
from bws.base.problems import InputError
from bws.design import make_tuples
from bws.records import Judgments, Tuples
from bws.scoring import score
from bws.simulation import simulate

STUDIES = 200
DRAWS = 400
MAX_SECONDS = 60
K = 5
SD = 3.0
"""Standard deviation of utilities within dialogues, in logits."""
TASTES = 0.7
Numbers = dict[str, float]
Goal = tuple[str, float, float]
"""Measure, and the bounds of its mean over studies."""
PRECISE = (("bias", -0.005, 0.005), ("ceiling coverage", 0.93, 0.97))
COVERED = (("item coverage", 0.93, 0.97), ("mean coverage", 0.93, 0.97))
ORDER = (("ρ gain", -0.003, 1.0),)
IPSATIVE = (("ipsative bias", -0.01, 0.01),)
ALL: tuple[Goal, ...] = (*PRECISE, *COVERED, *ORDER, *IPSATIVE)


@dataclass(frozen=True)
class Cell:
    """A kind of study with its goals."""

    name: str
    goals: tuple[Goal, ...]
    design: str = "rating:2"
    offsets: float = 0.7
    dialogues: int = 60
    people: int = 5
    pool: int = 0
    """Annotators of whom `people` judge each dialogue; 0: all judge all."""
    careless_people: int = 0
    lapses: float = 0.0
    threshold: float = 1.0
    wobble: float = 0.7
    shift: float = 0.0
    """SD of a shift of everybody's threshold by dialogue."""
    tails: str = "normal"
    noise: str = "gumbel"
    constant: int = -1
    """The rating that one person gives to all items."""


def at_least(r: float) -> tuple[Goal, ...]:
    """Return the goal of a correlation."""
    return (("r", r, 1.0),)


RATING, MARK = Cell("rating:2", ()), Cell("mark", (), design="mark")
LIMITS = {"rating:2": (0.955, 0.960, 0.975), "mark": (0.950, 0.955, 0.955)}
RANDOM = (*at_least(0.945), ("bias", -0.01, 0.01))
CELLS: dict[str, Cell] = {
    cell.name: cell
    for cell in (
        *(
            Cell(f"{design}, offsets {offsets}", (*at_least(r), *ALL), design, offsets)
            for design, limits in LIMITS.items()
            for offsets, r in zip((0.3, 0.7, 1.5), limits, strict=True)
        ),
        replace(RATING, name="rating:2, 200 dialogues", goals=(*at_least(0.95), *ALL), dialogues=200),
        replace(MARK, name="mark, 200 dialogues", goals=(*at_least(0.945), *ALL), dialogues=200),
        replace(RATING, name="rating:2, pool of 25", goals=(*at_least(0.95), *ALL), pool=25),
        replace(MARK, name="mark, pool of 25", goals=(*at_least(0.945), *ALL), pool=25),
        replace(RATING, name="rating:2, three people", goals=(*at_least(0.94), *ALL), people=3),
        replace(RATING, name="rating:2, no offsets", goals=(("median ratio", 0.0, 0.25), *ALL), offsets=0.0),
        replace(RATING, name="rating:2, one careless of five", goals=RANDOM, careless_people=1),
        replace(MARK, name="mark, one careless of five", goals=RANDOM, careless_people=1),
        replace(
            RATING, name="rating:2, 10 % random answers",
            goals=(*RANDOM, ("item coverage", 0.9, 1.0)), lapses=0.1,
        ),
        replace(
            RATING, name="rating:2, thresholds SD 3, wobble 1.5",
            goals=(*at_least(0.95), ("bias", -0.01, 0.01)), threshold=3.0, wobble=1.5,
        ),
        *(
            replace(
                cell, name=f"{cell.name}, normal noise", goals=(("item coverage", 0.9, 0.97),),
                noise="thurstone",
            )
            for cell in (RATING, MARK)
        ),
        replace(RATING, name="rating:2, heavy tails", goals=(), tails="t3"),
        replace(RATING, name="rating:2, skewed similarity", goals=(), tails="exponential"),
        replace(RATING, name="rating:2, thresholds by length, SD 1", goals=(), shift=1.0),
        replace(RATING, name="rating:2, one rates everything 50", goals=(), constant=50),
        replace(RATING, name="rating:2, one rates everything 100", goals=(), constant=100),
    )
}  # fmt: skip


def utilities(cell: Cell, n: int, random: np.random.Generator) -> np.ndarray:
    """Return (n,) utilities within dialogues, with the standard deviation SD."""
    if cell.tails == "t3":
        return SD / np.sqrt(3) * random.standard_t(3, n)
    if cell.tails == "exponential":
        return SD * (random.exponential(size=n) - 1)
    return SD * random.standard_normal(n)


def simulated(cell: Cell, seed: int) -> tuple[Judgments, SimulatedAnchors, Anchors, np.ndarray]:
    """Return judgments, anchors with their truth, and (A,) weights of the annotators who answer them."""
    random = np.random.default_rng([seed, 49])
    tuples = design_of(cell.dialogues)
    n, a = len(tuples.items), cell.pool or cell.people
    truth = utilities(cell, n, random)
    noise = (
        np.pi / np.sqrt(6) if cell.noise == "thurstone" else 1.0
    )  # the standard deviation of a Gumbel error
    settings: dict[str, Any] = {
        "noise": noise,
        "model": cell.noise,
        "disagreement": TASTES,
        "seed": seed,
    }
    judgments = simulate(tuples, truth, a, careless=cell.lapses, **settings)
    careless = np.full(a, cell.lapses)
    if cell.careless_people:
        careless[: cell.careless_people] = 1
        at_random = simulate(tuples, truth, a, careless=1.0, **settings)
        chosen = judgments.annotator_of < cell.careless_people
        judgments = replace(
            judgments,
            best=np.where(chosen, at_random.best, judgments.best),
            worst=np.where(chosen, at_random.worst, judgments.worst),
        )
    if cell.pool:
        judges = np.array([random.permutation(a) < cell.people for _ in tuples.groups])
        judgments = judgments.select(
            judges[tuples.group_of_tuple[judgments.tuple_of], judgments.annotator_of]
        )
    anchors = simulate_anchors(
        judgments, truth, plan_anchors(tuples, cell.design, seed=seed), noise=1.0, disagreement=TASTES,
        offset_sd=cell.offsets, careless=careless, threshold_sd=cell.threshold, wobble_sd=cell.wobble,
        shift=cell.shift * random.standard_normal(len(tuples.groups)), seed=seed,
    )  # fmt: skip
    weights = np.where(careless < 1, 1.0, 0.0)
    rows = anchors.rows
    if cell.constant >= 0:
        weights[0] = 0
        first = judgments.annotators[0]
        rows = tuple(
            replace(row, answer=cell.constant) if row.annotator == first else row for row in rows
        )
    return judgments, anchors, Anchors(rows), weights


def design_of(dialogues: int) -> Tuples:
    """Return ten 3-tuples of five candidates for each dialogue."""
    groups = [f"d{number:03}" for number in range(dialogues) for _ in range(K)]
    return make_tuples([*"abcde"] * dialogues, 3, count=10, groups=groups)


def study(name: str, seed: int) -> Numbers:
    """Return the measures of a simulated study; empty if its anchors are refused."""
    cell = CELLS[name]
    judgments, anchors, read, weights = simulated(cell, seed)
    start = time.process_time()
    published = score(judgments)
    try:
        scale = absolute_scale(judgments, read, published, draws=DRAWS, seed=seed)
    except InputError:
        return {}
    took = time.process_time() - start
    truth_of = dict(
        zip(
            judgments.tuples.item_keys,
            anchors.true_scores(cell.design != "mark", weights),
            strict=True,
        )
    )
    truth = np.array([truth_of[key] for key in scale.keys])
    counted = dict(zip(published.item_keys, published.score, strict=True))
    counting = np.array([counted[key] for key in scale.keys])
    by_group = truth.reshape(-1, K)
    r, actual = (float(np.corrcoef(truth, each)[0, 1]) for each in (scale.score, counting))
    means, lows, highs = (
        np.array([getattr(value, part) for value in scale.groups.values()])
        for part in ("value", "low", "high")
    )
    true_means = by_group.mean(axis=1)
    return {
        "r": r,
        "bias": scale.ceiling.value - r,
        "ceiling coverage": float(scale.ceiling.low <= r <= scale.ceiling.high),
        "item coverage": float(((scale.low <= truth) & (truth <= scale.high)).mean()),
        "mean coverage": float(((lows <= true_means) & (true_means <= highs)).mean()),
        "ρ gain": within(scale.score.reshape(-1, K), by_group)
        - within(counting.reshape(-1, K), by_group),
        "ipsative bias": scale.ipsative_limit.value - actual,
        "ipsative error": abs(scale.ipsative_limit.value - actual),
        "ratio": scale.ratio.value,
        "r of means": float(np.corrcoef(means, true_means)[0, 1]),
        "counting r": actual,
        "seconds": took,
    }


def within(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean Spearman correlation within dialogues."""
    pairs = zip(scores, truth, strict=True)
    return float(np.mean([spearmanr(*pair).statistic for pair in pairs if np.ptp(pair[0]) > 0]))


@dataclass
class Summary:
    """Means of the measures of a cell with their Monte-Carlo errors."""

    cell: Cell
    studies: Sequence[Numbers]

    def mean(self, measure: str) -> tuple[float, float]:
        """Return the mean over studies, or the median ratio, and its standard error."""
        if measure == "median ratio":
            values = np.array([each["ratio"] for each in self.studies])
            return float(np.median(values)), 1.2533 * _error(values)
        values = np.array([each[measure] for each in self.studies])
        error = _error(values)
        if measure == "ceiling coverage":  # few studies may all be covered
            error = max(error, float(np.sqrt(0.95 * 0.05 / len(values))))
        return float(values.mean()), error

    def row(self) -> list[str]:
        """Return the row of the table."""
        shown = (
            "r",
            "bias",
            "ceiling coverage",
            "item coverage",
            "mean coverage",
            "ρ gain",
            "ipsative bias",
        )
        cells = [_text(*self.mean(measure)) for measure in shown]
        largest = max(each["ipsative error"] for each in self.studies)
        ratio = float(np.median([each["ratio"] for each in self.studies]))
        return [self.cell.name, *cells, f"{largest:.3f}", f"{ratio:.2f}", self.verdict()]

    def verdict(self) -> str:
        """Return which goals are missed; those within two standard errors of the bound are marked."""
        if not self.cell.goals:
            return "no goal"
        missed = [*self._missed()]
        return "MISSED: " + "; ".join(missed) if missed else "reached"

    def _missed(self) -> Iterator[str]:
        for measure, low, high in self.cell.goals:
            value, error = self.mean(measure)
            if low <= value <= high:
                continue
            distance = low - value if value < low else value - high
            yield measure + (" (within error)" if distance <= 2 * error else "")
        largest = max(each["ipsative error"] for each in self.studies)
        if IPSATIVE[0] in self.cell.goals and largest > 0.03:
            yield f"ipsative limit of a study by {largest:.3f}"


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _text(value: float, error: float) -> str:
    return f"{value:.3f} ± {error:.3f}"


HEADER = (
    "cell", "r", "bias of ceiling", "its coverage", "items covered", "means covered", "ρ − counting’s",
    "bias of ipsative limit", "largest error", "σ_m/σ_v", "goals",
)  # fmt: skip
Runner = Callable[..., list[Numbers]]


def table(run: Runner, names: Sequence[str], studies: int) -> str:
    """Return the Markdown table of cells."""
    arguments = [(name, seed) for seed in range(studies) for name in names]
    found = dict(zip(arguments, run(study, arguments), strict=True))
    rows = []
    for name in names:
        kept = [each for seed in range(studies) if (each := found[name, seed])]
        row = Summary(CELLS[name], kept).row()
        refused = f" ({studies - len(kept)} refused)" if len(kept) < studies else ""
        rows.append([row[0] + refused, *row[1:]])
    return str(tabulate(rows, HEADER, "github", disable_numparse=True))


def seconds() -> float:
    """Return the CPU seconds of one study of 200 dialogues, with the default number of draws."""
    judgments, _, anchors, _ = simulated(CELLS["rating:2, 200 dialogues"], 0)
    start = time.process_time()
    absolute_scale(judgments, anchors)
    return time.process_time() - start


def speed(run: Callable[..., list[float]]) -> str:
    """Return a sentence on the time of a study."""
    (taken,) = run(seconds, [()])
    verdict = "reached" if taken < MAX_SECONDS else "MISSED"
    return (
        f"200 dialogues of five candidates, five people, 1,000 draws: {taken:.0f} s of one core (goal "
        f"{MAX_SECONDS} s: {verdict})."
    )


def main(arguments: list[str] | None = None) -> None:
    """Simulate the requested cells, and print or write their table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.absolute_scale")
    parser.add_argument("--only", nargs="+", choices=CELLS, default=[*CELLS], metavar="CELL")
    parser.add_argument("--studies", type=int, default=STUDIES, metavar="N")
    parser.add_argument("--journal", type=Path, metavar="FILE")
    parser.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    run = Journal(options.journal).run
    found = table(run, options.only, options.studies)
    origin = provenance("make absolute-scale")
    journal = ", with a journal" if options.journal else ""
    note = f"{origin} {options.studies} studies per cell, {DRAWS} draws each{journal}."
    text = f"{found}\n\n{speed(run)}\n\n{note}"
    print(text, flush=True)
    if options.output:
        replace_block(options.output, "absolute-scale", text)


if __name__ == "__main__":
    main()
