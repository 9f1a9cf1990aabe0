"""What a study costs, and what its workers earn an hour, before anything is published."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from mturk.money import cost, hourly_wage, round_to_cents
from mturk.study.settings import Settings

__all__ = ["CostEstimate", "estimate_cost", "format_estimate"]


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The price of HITs when all their assignments are approved; US dollars unless a field says else."""

    hits: int
    assignments: int
    reward: Decimal
    """Of one assignment."""
    rewards: Decimal
    """Of all."""
    fees: Decimal
    hourly_usd: Decimal
    hourly: Decimal
    """In `currency`."""
    minimum: Decimal
    """The minimum wage in `currency`."""
    currency: str
    exchange_rate: Decimal
    """How much of `currency` a dollar is."""
    expected_seconds: int

    @property
    def total(self) -> Decimal:
        """Rewards and fees."""
        return self.rewards + self.fees

    @property
    def below_minimum(self) -> bool:
        """Whether workers of the expected speed earn less than the minimum wage."""
        return self.hourly < self.minimum

    @property
    def reward_for_minimum(self) -> Decimal:
        """The smallest reward in whole cents with which they would not."""
        seconds = Decimal(self.expected_seconds)
        exact = self.minimum / self.exchange_rate * seconds / 3600
        rounded = round_to_cents(exact)
        return rounded if rounded >= exact else rounded + Decimal("0.01")


def estimate_cost(assignments: Iterable[int], settings: Settings) -> CostEstimate:
    """Return the price of HITs with so many assignments each.

    >>> price = estimate_cost([5, 5], Settings())
    >>> price.rewards, price.fees, price.total
    (Decimal('3.00'), Decimal('0.60'), Decimal('3.60'))
    """
    counts = list(assignments)
    total = sum((cost(settings.reward, count) for count in counts), Decimal("0.00"))
    rewards = settings.reward * sum(counts)
    return CostEstimate(
        hits=len(counts),
        assignments=sum(counts),
        reward=settings.reward,
        rewards=rewards,
        fees=total - rewards,
        hourly_usd=hourly_wage(settings.reward, settings.expected_seconds),
        hourly=settings.hourly_wage(),
        minimum=settings.minimum_wage,
        currency=settings.currency,
        exchange_rate=settings.exchange_rate,
        expected_seconds=settings.expected_seconds,
    )


def format_estimate(price: CostEstimate, *, imaginary: bool) -> str:
    """Return the estimate for people to read.

    imaginary: no marketplace is asked, so nobody takes money or a fee.

    >>> print(format_estimate(estimate_cost([5, 5], Settings()), imaginary=True))
    HITs          2
    assignments   10
    rewards       $3.00  ($0.30 each)
    fees          $0.60  (imaginary: a service of your own takes none)
    total         $3.60  (imaginary: a service of your own moves no money)
    hourly wage   $18.00 = 15.48 EUR at 0.86 EUR a dollar and 60 s an assignment
    minimum wage  13.90 EUR
    """
    no_fee = "  (imaginary: a service of your own takes none)" if imaginary else ""
    no_money = "  (imaginary: a service of your own moves no money)" if imaginary else ""
    unit = price.currency
    return "\n".join(
        [
            f"HITs          {price.hits}",
            f"assignments   {price.assignments}",
            f"rewards       ${price.rewards}  (${price.reward} each)",
            f"fees          ${price.fees}{no_fee}",
            f"total         ${price.total}{no_money}",
            f"hourly wage   ${round_to_cents(price.hourly_usd)} = {round_to_cents(price.hourly)} {unit} at "
            f"{price.exchange_rate} {unit} a dollar and {price.expected_seconds} s an assignment",
            f"minimum wage  {price.minimum} {unit}",
        ]
    )
