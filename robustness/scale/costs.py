"""What a study and a sweep cost: arithmetic on what is assumed and what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from mturk.money import cost, hourly_wage, round_to_cents
from robustness.scale.assumptions import Assumptions, Hardware, Models, Study
from robustness.scale.measurements import Growth, Measured
from robustness.scale.sample import CANDIDATES
from robustness.scale.study import A_HIT

__all__ = ["GB", "Bill", "Load", "Paper", "Sweep", "bill", "hours", "load", "sweep"]

ROOM = 1.2
"""Memory that a model takes, over that of its weights."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What a study is, and costs."""

    tuples: int
    judgments: int
    hits: int
    assignments: int
    rewards: Decimal
    fees: Decimal
    hours: float
    """Of all workers."""
    hours_each: float
    weeks: float
    wage: Decimal
    """US dollars an hour."""

    @property
    def total(self) -> Decimal:
        """US dollars."""
        return self.rewards + self.fees


def bill(study: Study) -> Bill:
    """Return what a study costs when all assignments are approved; the fee is Mechanical Turk's.

    >>> found = bill(Study(items=5, workers=1))
    >>> found.tuples, found.hits, found.assignments, found.judgments, found.total
    (10, 5, 25, 50, Decimal('9.00'))
    """
    dialogues = math.ceil(study.items / CANDIDATES)
    tuples = dialogues * int(0.5 + study.tuples_an_item * CANDIDATES)  # as bws.design rounds
    hits = math.ceil(tuples / study.tuples_a_hit)
    assignments = hits * study.annotations
    rewards = assignments * study.reward
    hours = assignments * study.seconds / 3600
    return Bill(
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
    """What workers ask of the service, all of them at work at the same time."""

    submissions: float
    """A second."""
    requests: float
    """A second."""
    capacity: float
    """Submissions a second that one process can take at most: its CPU does nothing else."""

    @property
    def processes(self) -> int:
        """How many processes that takes, each at half of what it could do at most."""
        return math.ceil(2 * self.submissions / self.capacity)


def load(study: Study, pages: float, cpu_seconds: float) -> Load:
    """Return the load of a study: `pages` requests and `cpu_seconds` of the service a submission.

    >>> found = load(Study(workers=600, seconds=60), 4.0, 0.02)
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
    """Starting and reading weights, on as many GPUs as the model takes."""
    gpus: int
    """That one model takes."""

    @property
    def hours(self) -> float:
        """Of all."""
        return self.compute + self.loading


def sweep(models: Models, tokens: float, hardware: Hardware) -> Sweep:
    """Return the GPU hours of models that each read so many tokens.

    A forward pass costs 2 operations a parameter and token (attention, some percent at these lengths, is
    left out).

    >>> one = Hardware(peak_tflops=1000, utilisation=0.5, disk_gb_a_second=2, start_seconds=28)
    >>> sweep(Models("causal", 2.0, 900), 1e6, one)  # 4e15 operations at 5e14: 8 s; 28 + 2 s to start
    Sweep(compute=2.0, loading=7.5, gpus=1)
    """
    parameters = models.parameters * 1e9
    size = parameters * hardware.bytes_a_parameter
    gpus = math.ceil(size * ROOM / (hardware.memory_gb * 1e9))
    seconds = 2 * parameters * tokens / (hardware.peak_tflops * 1e12 * hardware.utilisation)
    start = hardware.start_seconds + size / (hardware.disk_gb_a_second * 1e9)
    return Sweep(models.count * seconds / 3600, models.count * gpus * start / 3600, gpus)


def hours(found: Sequence[Sweep]) -> float:
    """Return the GPU hours of all."""
    return sum(one.hours for one in found)


GB = 1e9
SHARED = {"causal": "shared", "encoder": "distinct"}
APART = {"causal": "apart", "encoder": "columns"}
"""Kind of model -> which count of tokens it reads."""


@dataclass(frozen=True)
class Paper:
    """What is assumed, what was measured, and what follows from both."""

    assumed: Assumptions
    found: Measured

    @property
    def study(self) -> Study:
        """What the study is set to."""
        return self.assumed.study

    @property
    def bill(self) -> Bill:
        """What the study costs."""
        return bill(self.study)

    @property
    def load(self) -> Load:
        """What its workers ask of the service."""
        last = max(self.found.studied)
        return load(self.study, self.found.studied[last]["requests"] / last, self.work.rate)

    @property
    def work(self) -> Growth:
        """CPU seconds of the service by submissions."""
        return self.found.growth("studied", "work service s")

    def a_hit(self, *names: str) -> float:
        """Return what a HIT adds to the sum of some costs of the studies that were run."""
        return self.found.growth("studied", *names).rate * A_HIT

    @property
    def hit_bytes(self) -> float:
        """Of a HIT in the service's database."""
        return self.a_hit("publish B")

    @property
    def storage(self) -> dict[str, float]:
        """Return bytes by what takes them, for the whole study."""
        job, found = self.bill, self.found
        tuples, judgments = (found.growth("files", f"{name} B") for name in ("tuples", "judgments"))
        return {
            "service: HITs": job.hits * self.hit_bytes,
            "service: assignments": job.assignments * found.growth("studied", "work B").rate,
            "ledger: HITs": job.hits * found.growth("plan", "ledger B").rate,
            "ledger: assignments": job.assignments * found.growth("judged", "assignment B").rate,
            "tuples file": tuples.at(self.study.items),
            "judgments file": judgments.at(self.study.items),
        }

    def sweeps(self, items: int, *, shared: bool = True) -> list[Sweep]:
        """Return what each class of models costs on so many items."""
        read = self.found.tokens
        which, times = SHARED if shared else APART, items / read["items"]
        return [
            sweep(m, read[which[m.kind]] * times, self.assumed.hardware)
            for m in self.assumed.models
        ]

    def reliability(self, study: Study) -> str:
        """Return the simulated reliability of a design; "?" where it was not simulated."""
        known = self.found.reliability.get((study.tuples_an_item, study.annotations))
        return "?" if known is None else f"{known:.2f}"
