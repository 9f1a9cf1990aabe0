"""Cost of a study and a sweep, computed from assumptions and measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from mturk.money import cost, hourly_wage, round_to_cents
from robustness.scale.assumptions import (
    Assumptions,
    HardwareAssumptions,
    ModelClass,
    StudyAssumptions,
)
from robustness.scale.measurements import Growth, Measurements
from robustness.scale.sample import CANDIDATES
from robustness.scale.study import SUBMISSIONS_PER_HIT

__all__ = ["GB", "Load", "Projection", "StudyCost", "Sweep", "hours", "load", "study_cost", "sweep"]

MEMORY_FACTOR = 1.2
"""Memory of a model relative to that of its weights."""


@dataclass(frozen=True, slots=True)
class StudyCost:
    """Size and cost of a study."""

    tuples: int
    judgments: int
    hits: int
    assignments: int
    rewards: Decimal
    fees: Decimal
    hours: float
    """Working hours of all workers."""
    hours_each: float
    weeks: float
    wage: Decimal
    """US dollars per hour."""

    @property
    def total(self) -> Decimal:
        """Total in US dollars."""
        return self.rewards + self.fees


def study_cost(study: StudyAssumptions) -> StudyCost:
    """Compute the cost of a study if all assignments are approved; the fee is Mechanical Turk's.

    >>> found = study_cost(StudyAssumptions(items=5, workers=1))
    >>> found.tuples, found.hits, found.assignments, found.judgments, found.total
    (10, 5, 25, 50, Decimal('9.00'))
    """
    dialogues = math.ceil(study.items / CANDIDATES)
    tuples = dialogues * int(0.5 + study.tuples_an_item * CANDIDATES)  # as bws.design rounds
    hits = math.ceil(tuples / study.tuples_a_hit)
    assignments = hits * study.annotations
    rewards = assignments * study.reward
    hours = assignments * study.seconds / 3600
    return StudyCost(
        tuples=tuples,
        judgments=tuples * study.annotations,
        hits=hits,
        assignments=assignments,
        rewards=rewards,
        fees=hits * cost(study.reward, study.annotations) - rewards,
        hours=hours,
        hours_each=hours / study.workers,
        weeks=hours / study.workers / study.hours_a_week,
        wage=round_to_cents(hourly_wage(study.reward, study.seconds)),
    )


@dataclass(frozen=True, slots=True)
class Load:
    """Load of the service with all workers active at the same time."""

    submissions: float
    """Per second."""
    requests: float
    """Per second."""
    capacity: float
    """Maximum submissions per second of one process with a fully used CPU."""

    @property
    def processes(self) -> int:
        """Number of processes at half of their capacity."""
        return math.ceil(2 * self.submissions / self.capacity)


def load(study: StudyAssumptions, pages: float, cpu_seconds: float) -> Load:
    """Return the load of a study with `pages` requests and `cpu_seconds` of the service per submission.

    >>> found = load(StudyAssumptions(workers=600, seconds=60), 4.0, 0.02)
    >>> found.submissions, found.requests, found.capacity, found.processes
    (10.0, 40.0, 50.0, 1)
    """
    submissions = study.workers / study.seconds
    return Load(submissions, submissions * pages, 1 / cpu_seconds)


@dataclass(frozen=True, slots=True)
class Sweep:
    """GPU hours of models of one size on one data set."""

    compute: float
    loading: float
    """GPU hours to start and to read weights, on all GPUs of the model."""
    gpus: int
    """GPUs per model."""

    @property
    def hours(self) -> float:
        """Total GPU hours."""
        return self.compute + self.loading


def sweep(models: ModelClass, tokens: float, hardware: HardwareAssumptions) -> Sweep:
    """Return the GPU hours of models that each read `tokens` tokens.

    A forward pass costs 2 operations per parameter and token (attention, a few percent at these lengths, is
    neglected).

    >>> one = HardwareAssumptions(peak_tflops=1000, utilisation=0.5, disk_gb_a_second=2, start_seconds=28)
    >>> sweep(ModelClass("causal", 2.0, 900), 1e6, one)  # 4e15 operations at 5e14: 8 s; 28 + 2 s to start
    Sweep(compute=2.0, loading=7.5, gpus=1)
    """
    parameters = models.parameters * 1e9
    size = parameters * hardware.bytes_a_parameter
    gpus = math.ceil(size * MEMORY_FACTOR / (hardware.memory_gb * 1e9))
    seconds = 2 * parameters * tokens / (hardware.peak_tflops * 1e12 * hardware.utilisation)
    start = hardware.start_seconds + size / (hardware.disk_gb_a_second * 1e9)
    return Sweep(models.count * seconds / 3600, models.count * gpus * start / 3600, gpus)


def hours(sweeps: Sequence[Sweep]) -> float:
    """Return the total GPU hours."""
    return sum(sweep_cost.hours for sweep_cost in sweeps)


GB = 1e9
SHARED_TOKENS = {"causal": "shared", "encoder": "distinct"}
SEPARATE_TOKENS = {"causal": "apart", "encoder": "columns"}
"""Kind of model -> name of its token count."""


@dataclass(frozen=True)
class Projection:
    """Assumptions, measurements, and quantities derived from both."""

    assumptions: Assumptions
    measurements: Measurements

    @property
    def study(self) -> StudyAssumptions:
        """Assumptions about the study."""
        return self.assumptions.study

    @property
    def bill(self) -> StudyCost:
        """Cost of the study."""
        return study_cost(self.study)

    @property
    def load(self) -> Load:
        """Load of the service by the workers."""
        last = max(self.measurements.studied)
        return load(self.study, self.measurements.studied[last]["requests"] / last, self.work.rate)

    @property
    def work(self) -> Growth:
        """CPU seconds of the service as a function of submissions."""
        return self.measurements.growth("studied", "work service s")

    def cost_per_hit(self, *names: str) -> float:
        """Return the increase per HIT of the sum of some costs."""
        return self.measurements.growth("studied", *names).rate * SUBMISSIONS_PER_HIT

    @property
    def hit_bytes(self) -> float:
        """Bytes per HIT in the service's database."""
        return self.cost_per_hit("publish B")

    @property
    def storage(self) -> dict[str, float]:
        """Bytes by kind of data, for the whole study."""
        job, measurements = self.bill, self.measurements
        tuples, judgments = (
            measurements.growth("files", f"{name} B") for name in ("tuples", "judgments")
        )
        return {
            "service: HITs": job.hits * self.hit_bytes,
            "service: assignments": job.assignments * measurements.growth("studied", "work B").rate,
            "ledger: HITs": job.hits * measurements.growth("plan", "ledger B").rate,
            "ledger: assignments": job.assignments
            * measurements.growth("judged", "assignment B").rate,
            "tuples file": tuples.at(self.study.items),
            "judgments file": judgments.at(self.study.items),
        }

    def sweeps(self, items: int, *, shared: bool = True) -> list[Sweep]:
        """Return the cost of each class of models on `items` items."""
        read = self.measurements.tokens
        columns, times = SHARED_TOKENS if shared else SEPARATE_TOKENS, items / read["items"]
        return [
            sweep(m, read[columns[m.kind]] * times, self.assumptions.hardware)
            for m in self.assumptions.models
        ]

    def reliability(self, study: StudyAssumptions) -> str:
        """Return the simulated reliability of a design; "?" if not simulated."""
        value = self.measurements.reliability.get((study.tuples_an_item, study.annotations))
        return "?" if value is None else f"{value:.2f}"
