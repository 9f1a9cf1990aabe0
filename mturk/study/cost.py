"""Estimated cost and hourly wage of a study before publication."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from mturk.money import cost, hourly_wage, round_to_cents
from mturk.study.settings import Settings


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Cost of HITs if all assignments are approved, in US dollars unless stated otherwise."""

    hits: int
    assignments: int
    reward: Decimal
    """Per assignment."""
    rewards: Decimal
    """Total of all assignments."""
    fees: Decimal
    hourly_usd: Decimal
    hourly: Decimal
    """Hourly wage in `currency`."""
    minimum: Decimal
    """Minimum wage per hour in `currency`."""
    currency: str
    exchange_rate: Decimal
    """Units of `currency` per US dollar."""
    expected_seconds: int

    @property
    def total(self) -> Decimal:
        """Rewards and fees."""
        return self.rewards + self.fees

    @property
    def below_minimum(self) -> bool:
        """Whether paid workers with the expected time per HIT earn less than the minimum wage."""
        return bool(self.reward) and self.hourly < self.minimum

    @property
    def reward_for_minimum(self) -> Decimal:
        """Smallest reward, in whole cents, that pays the minimum wage."""
        seconds = Decimal(self.expected_seconds)
        exact = self.minimum / self.exchange_rate * seconds / 3600
        rounded = round_to_cents(exact)
        return rounded if rounded >= exact else rounded + Decimal("0.01")


def estimate_cost(assignments: Iterable[int], settings: Settings) -> CostEstimate:
    """Return the cost of HITs with the given numbers of assignments.

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
    """Return the estimate as a text table.

    imaginary: whether the service is not a marketplace, so that no money or fee is charged.

    >>> print(format_estimate(estimate_cost([5, 5], Settings()), imaginary=True))
    HITs          2
    assignments   10
    rewards       $3.00  ($0.30 each)
    fees          $0.60  (simulated: your own service charges none)
    total         $3.60  (simulated: your own service transfers no money)
    hourly wage   $18.00 = 15.48 EUR at 0.86 EUR per dollar and 60 s per assignment
    minimum wage  13.90 EUR

    Studies of volunteers on a service of one's own have no cost.
    """
    no_fee = "  (simulated: your own service charges none)" if imaginary else ""
    no_money = "  (simulated: your own service transfers no money)" if imaginary else ""
    unit = price.currency
    if not price.reward and imaginary:
        time = f"time          {price.expected_seconds} s per assignment"
        counts = [f"HITs          {price.hits}", f"assignments   {price.assignments}"]
        return "\n".join([*counts, "pay           none: volunteers", time])
    return "\n".join(
        [
            f"HITs          {price.hits}",
            f"assignments   {price.assignments}",
            f"rewards       ${price.rewards}  (${price.reward} each)",
            f"fees          ${price.fees}{no_fee}",
            f"total         ${price.total}{no_money}",
            f"hourly wage   ${round_to_cents(price.hourly_usd)} = {round_to_cents(price.hourly)} {unit} at "
            f"{price.exchange_rate} {unit} per dollar and {price.expected_seconds} s per assignment",
            f"minimum wage  {price.minimum} {unit}",
        ]
    )
