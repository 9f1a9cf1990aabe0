from decimal import Decimal

from mturk.study.cost import estimate_cost, format_estimate
from mturk.study.settings import Settings


def test_fee_depends_on_number_of_assignments():
    # 5 x (0.25 + 0.05) + 10 x (0.25 + 0.10): from ten assignments on the fee doubles
    price = estimate_cost([5, 10], Settings(reward=Decimal("0.25")))
    assert (price.hits, price.assignments) == (2, 15)
    assert (price.rewards, price.fees, price.total) == (
        Decimal("3.75"), Decimal("1.25"), Decimal("5.00"),
    )  # fmt: skip


def test_minimum_fee_is_one_cent():
    assert estimate_cost([3], Settings(reward=Decimal("0.01"))).fees == Decimal("0.03")


def test_wage_uses_expected_seconds():
    # 60 HITs of 90 s are 1.5 hours: 60 x 0.30 / 1.5 = 12 dollars, x 0.5 = 6 of the currency
    settings = Settings(
        reward=Decimal("0.30"), expected_seconds=90, exchange_rate=Decimal("0.5"),
        minimum_wage=Decimal("13.90"),
    )  # fmt: skip
    price = estimate_cost([5], settings)
    assert (price.hourly_usd, price.hourly) == (12, 6)
    assert price.below_minimum
    # 13.90 / 0.5 x 90 / 3600 = 0.695
    assert price.reward_for_minimum == Decimal("0.70")


def test_suggested_reward_is_smallest_for_minimum_wage():
    for seconds in (7, 31, 60, 61, 599):
        settings = Settings(reward=Decimal("0.01"), expected_seconds=seconds)
        advised = estimate_cost([5], settings).reward_for_minimum
        enough = estimate_cost([5], Settings(reward=advised, expected_seconds=seconds))
        less = Settings(reward=advised - Decimal("0.01"), expected_seconds=seconds)
        assert not enough.below_minimum
        assert estimate_cost([5], less).below_minimum


def test_no_hits_cost_nothing():
    price = estimate_cost([], Settings())
    assert (price.total, price.assignments) == (0, 0)


def test_only_own_service_is_labelled_simulated():
    price = estimate_cost([5], Settings())
    assert format_estimate(price, imaginary=True).count("simulated") == 2
    assert "simulated" not in format_estimate(price, imaginary=False)
