"""The arithmetic on paper: a study's work and money, and a sweep's GPU hours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from mturk.money import cents, cost, hourly_wage
from robustness.scale.assumptions import Hardware, Models, Study
from robustness.scale.sample import CANDIDATES

__all__ = ["Bill", "Load", "Sweep", "bill", "hours", "load", "sweep"]

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
        wage=cents(hourly_wage(study.reward, study.seconds)),
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
