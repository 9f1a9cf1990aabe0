"""The simulated balance: amounts on hold for HITs, and payments. Amounts are in cents."""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import Connection, select, true, update

from mturk.money import bonus_fee, fee
from mturk.service.errors import RequestError, request_error
from mturk.service.store.schema import account

MAX_BALANCE_CENTS = 10**17
"""Upper limit of an amount in cents; larger values would not fit the database column."""


def cents_of(dollars: Decimal) -> int:
    """Return an amount in cents.

    >>> cents_of(Decimal("0.25"))
    25
    """
    return int(dollars * 100)


def dollars(cents: int) -> str:
    """Return an amount in cents as a decimal string in dollars.

    >>> dollars(1000005)
    '10000.05'
    """
    return f"{Decimal(cents) / 100:.2f}"


def unit_cost(reward: int, max_assignments: int, *, masters: bool = False) -> int:
    """Return reward plus fee of one assignment.

    >>> unit_cost(25, 5), unit_cost(25, 10)
    (30, 35)
    """
    return reward + cents_of(fee(Decimal(reward) / 100, max_assignments, masters=masters))


def balance(connection: Connection) -> tuple[int, int]:
    """Return the available amount and the amount on hold."""
    row = connection.execute(select(account.c.available, account.c.on_hold)).one()
    return row.available, row.on_hold


def hold(connection: Connection, amount: int, *, overdraw: bool = False) -> None:
    """Put an amount on hold, or release it if negative.

    Raises InsufficientFunds if the balance is too low, unless `overdraw` is true.
    """
    if amount > MAX_BALANCE_CENTS:
        raise _insufficient_funds()
    if amount:
        _change_balance(connection, available=-amount, on_hold=amount, overdraw=overdraw)


def pay(connection: Connection, amount: int) -> None:
    """Pay an amount that is on hold."""
    _change_balance(connection, available=0, on_hold=-amount)


def pay_bonus(connection: Connection, amount: int) -> None:
    """Pay a bonus and its fee from the available balance."""
    total = amount + cents_of(bonus_fee(Decimal(amount) / 100))
    _change_balance(connection, available=-total, on_hold=0)


def _change_balance(
    connection: Connection, *, available: int, on_hold: int, overdraw: bool = False
) -> None:
    can_overdraw = overdraw or available >= 0
    is_covered = true() if can_overdraw else account.c.available + available >= 0
    result = connection.execute(
        update(account)
        .where(account.c.number == 1, is_covered)
        .values(available=account.c.available + available, on_hold=account.c.on_hold + on_hold)
    )
    if not result.rowcount:
        raise _insufficient_funds()


def _insufficient_funds() -> RequestError:
    message = "This Requester has insufficient funds in their account to complete this transaction."
    return request_error("InsufficientFunds", message)
