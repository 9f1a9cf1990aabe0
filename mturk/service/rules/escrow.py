"""The imaginary balance: what a HIT holds of it, and what an approval takes. Amounts are cents."""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import Connection, select, true, update

from mturk.money import bonus_fee, fee
from mturk.service.errors import RequestError, fault
from mturk.service.store.schema import account

__all__ = ["balance", "cents_of", "dollars", "hold", "pay", "pay_bonus", "unit_cost"]

MOST = 10**17
"""Cents that no balance reaches; more would not fit the column."""


def cents_of(dollars: Decimal) -> int:
    """Return an amount in cents.

    >>> cents_of(Decimal("0.25"))
    25
    """
    return int(dollars * 100)


def dollars(cents: int) -> str:
    """Return cents as the service writes an amount.

    >>> dollars(1000005)
    '10000.05'
    """
    return f"{Decimal(cents) / 100:.2f}"


def unit_cost(reward: int, max_assignments: int, *, masters: bool = False) -> int:
    """Return reward and fee of one assignment.

    >>> unit_cost(25, 5), unit_cost(25, 10)
    (30, 35)
    """
    return reward + cents_of(fee(Decimal(reward) / 100, max_assignments, masters=masters))


def balance(connection: Connection) -> tuple[int, int]:
    """Return what is available and what is on hold."""
    row = connection.execute(select(account.c.available, account.c.on_hold)).one()
    return row.available, row.on_hold


def hold(connection: Connection, more: int, *, overdraw: bool = False) -> None:
    """Put so much of the balance on hold, or free it again where negative.

    InsufficientFunds where it is not there, unless the balance may become negative.
    """
    if more > MOST:
        raise _insufficient()
    if more:
        _move(connection, available=-more, on_hold=more, overdraw=overdraw)


def pay(connection: Connection, amount: int) -> None:
    """Pay something that is on hold."""
    _move(connection, available=0, on_hold=-amount)


def pay_bonus(connection: Connection, amount: int) -> None:
    """Pay a bonus and its fee from what is available."""
    whole = amount + cents_of(bonus_fee(Decimal(amount) / 100))
    _move(connection, available=-whole, on_hold=0)


def _move(connection: Connection, *, available: int, on_hold: int, overdraw: bool = False) -> None:
    free = overdraw or available >= 0
    enough = true() if free else account.c.available + available >= 0
    done = connection.execute(
        update(account)
        .where(account.c.number == 1, enough)
        .values(available=account.c.available + available, on_hold=account.c.on_hold + on_hold)
    )
    if not done.rowcount:
        raise _insufficient()


def _insufficient() -> RequestError:
    message = "This Requester has insufficient funds in their account to complete this transaction."
    return fault("InsufficientFunds", message)
