"""Rewards, fees and hourly wages. Amounts are US dollars as Decimal, never float.

The fee is 20 % of the reward or bonus. HITs with ten or more assignments cost another 20 % of the reward,
and HITs that require Masters another 5 %. The fee is rounded half up to the cent and at least one cent.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from mturk.limits import MANY_ASSIGNMENTS, reward_problem

CENT = Decimal("0.01")
BASE_RATE = Decimal("0.20")
MANY_RATE = Decimal("0.20")
MASTERS_RATE = Decimal("0.05")
SECONDS_PER_HOUR = 3600
HOURLY_PAY_BOUNDS = (Decimal(5), Decimal(100))
"""Usual pay per hour in dollars, pounds or euros; amounts in cents or pence are far above it."""
MAX_BONUS_PER_REWARD = 10
"""Usual maximum of a bonus, as a multiple of the reward."""


def parse_amount(text: str, name: str = "Reward") -> Decimal:
    """Parse an amount as written in a request; ValueError if it is invalid.

    >>> parse_amount("0.5")
    Decimal('0.50')
    """
    problem = reward_problem(text, name)
    if problem:
        raise ValueError(problem)
    return round_to_cents(Decimal(text))


def round_to_cents(value: Decimal) -> Decimal:
    """Return the amount with two decimals, rounded half up; its ``str`` is the form used in requests.

    >>> str(round_to_cents(Decimal("0.125"))), str(round_to_cents(Decimal("3")))
    ('0.13', '3.00')
    """
    return value.quantize(CENT, ROUND_HALF_UP)


def fee(reward: Decimal, max_assignments: int, *, masters: bool = False) -> Decimal:
    """Return the fee per assignment of a HIT with `max_assignments`, rounded once after adding all rates.

    >>> fee(Decimal("0.25"), 5), fee(Decimal("0.25"), 10), fee(Decimal("0.01"), 1)
    (Decimal('0.05'), Decimal('0.10'), Decimal('0.01'))
    """
    rate = BASE_RATE
    rate += MANY_RATE if max_assignments >= MANY_ASSIGNMENTS else 0
    rate += MASTERS_RATE if masters else 0
    return max(CENT, round_to_cents(reward * rate))


def bonus_fee(bonus: Decimal) -> Decimal:
    """Return the fee for one bonus.

    >>> bonus_fee(Decimal("1.00"))
    Decimal('0.20')
    """
    return max(CENT, round_to_cents(bonus * BASE_RATE))


def cost(reward: Decimal, assignments: int, *, masters: bool = False) -> Decimal:
    """Return the cost of a HIT if all its assignments are approved: rewards and fees.

    >>> cost(Decimal("0.25"), 5), cost(Decimal("0.25"), 10)
    (Decimal('1.50'), Decimal('3.50'))
    """
    return assignments * (reward + fee(reward, assignments, masters=masters))


def hourly_wage(reward: Decimal, seconds: float) -> Decimal:
    """Return the hourly wage of `reward` for `seconds` of work, not rounded.

    >>> round_to_cents(hourly_wage(Decimal("0.25"), 90))
    Decimal('10.00')
    """
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}; expected a number above 0")
    return reward * SECONDS_PER_HOUR / Decimal(str(seconds))


def unusual_pay(reward: Decimal, seconds: float) -> str:
    """Return why the hourly pay of a reward is doubtful; empty for volunteers and usual pay.

    >>> unusual_pay(Decimal("150"), 540)
    'the pay is 1000.00 per hour; expected 5 to 100 (is the reward in cents or pence?)'
    >>> unusual_pay(Decimal("1.50"), 540), unusual_pay(Decimal("0.00"), 540)
    ('', '')
    """
    hourly, (low, high) = hourly_wage(reward, seconds), HOURLY_PAY_BOUNDS
    if not reward or low <= hourly <= high:
        return ""
    return (
        f"the pay is {round_to_cents(hourly)} per hour; expected {low} to {high} "
        "(is the reward in cents or pence?)"
    )


def unusual_bonus(bonus: Decimal, reward: Decimal) -> str:
    """Return why a bonus is doubtful; empty for volunteers and usual bonuses.

    >>> unusual_bonus(Decimal("50"), Decimal("1.50"))
    'a bonus is 50; expected at most 15.00, 10 times the reward (is it in cents or pence?)'
    """
    highest = reward * MAX_BONUS_PER_REWARD
    if not reward or bonus <= highest:
        return ""
    return (
        f"a bonus is {bonus}; expected at most {highest}, {MAX_BONUS_PER_REWARD} times the reward "
        "(is it in cents or pence?)"
    )
