"""Money: examples of the service, minimum fee, rounding, and hourly wage."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mturk.money import bonus_fee, cost, fee, hourly_wage, parse_amount, round_to_cents

rewards = st.integers(0, 100_000).map(lambda value: Decimal(value) / 100)


@pytest.mark.parametrize(
    ("reward", "assignments", "total"),
    [
        ("0.25", 5, "1.50"),  # 5 × (0.25 + 0.05)
        ("0.25", 9, "2.70"),  # 9 × (0.25 + 0.05)
        ("0.25", 10, "3.50"),  # 10 × (0.25 + 0.05 + 0.05)
        ("0.01", 1, "0.02"),  # the fee is a cent at least
        ("0.03", 5, "0.20"),  # 20 % is 0.006, a cent: 5 × 0.04
        ("1.00", 300, "420.00"),
    ],
)
def test_cost(reward, assignments, total):
    assert str(cost(Decimal(reward), assignments)) == total


def test_rounding_is_half_up():
    assert fee(Decimal("0.125"), 1) == Decimal("0.03")  # 0.025
    assert str(round_to_cents(Decimal("0.005"))) == "0.01"
    assert fee(Decimal("0.50"), 1, masters=True) == Decimal("0.13")  # 25 % is 0.125


@given(rewards, st.integers(1, 10_000))
def test_fee_rounding(reward, assignments):
    rate = Decimal("0.4") if assignments >= 10 else Decimal("0.2")
    due = fee(reward, assignments)
    assert due == due.quantize(Decimal("0.01"))
    assert due == Decimal("0.01") or abs(due - reward * rate) <= Decimal("0.005")
    assert cost(reward, assignments) == (reward + due) * assignments


@given(rewards)
def test_bonus_fee_equals_fee_of_single_assignment(bonus):
    assert bonus_fee(bonus) == fee(bonus, 1)


def test_amounts_have_two_decimals():
    assert [str(parse_amount(text)) for text in ("1", "1.", "1.5", "0.25")] == [
        "1.00",
        "1.00",
        "1.50",
        "0.25",
    ]
    with pytest.raises(ValueError, match="bonus is 'viel'"):
        parse_amount("viel", "bonus")


def test_hourly_wage():
    assert hourly_wage(Decimal("0.25"), 60) == 15
    assert hourly_wage(Decimal("0.10"), 0.5) == 720
    with pytest.raises(ValueError, match="seconds is 0"):
        hourly_wage(Decimal("0.25"), 0)
