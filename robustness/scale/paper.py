"""What is assumed and what was measured, put together."""

from __future__ import annotations

from dataclasses import dataclass

from robustness.scale.arithmetic import Bill, Load, Sweep, bill, load, sweep
from robustness.scale.assumptions import Assumptions, Study
from robustness.scale.growth import Growth
from robustness.scale.measuring import Measured
from robustness.scale.requesting import A_HIT

__all__ = ["GB", "Paper"]

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
