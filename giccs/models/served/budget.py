"""Limit of the cost of requests, shared by all models of one call.

Before an attempt is sent, its highest possible price is reserved: that of one input token per byte of the
prompt and of all permitted output tokens. Afterwards the reservation is replaced by the price of the tokens
that the server reports. Attempts with an error status are free. An attempt without a complete answer
(connection lost, timeout), or whose tokens are not reported, counts with its highest price.
"""

from __future__ import annotations

from decimal import Decimal
from threading import Condition, local

from giccs.models.served.server import format_cost


class BudgetError(Exception):
    """The budget permits no further attempt."""


class Spending:
    """US dollars spent and reserved, updated by several threads."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._running = 0
        self.spent = self.reserved = Decimal(0)

    def __reduce__(self) -> tuple[type[Spending], tuple[()]]:
        """Return a new object for another process; a budget cannot be shared with it."""
        return Spending, ()

    def reserve(self, price: Decimal, budget: Decimal) -> None:
        """Reserve a price within the budget, waiting for running attempts if it does not fit otherwise.

        Raises BudgetError if it does not fit although nothing else is running.

        >>> spending = Spending()
        >>> spending.reserve(Decimal(3), budget=Decimal(4))
        >>> spending.settle(Decimal(3), Decimal(2))
        >>> spending.reserve(Decimal(3), budget=Decimal(4))  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        BudgetError: the next request may cost 3.00 USD, and 2.00 of 4.00 USD are spent
        """
        with self._changed:
            while self.spent + self.reserved + price > budget:
                if not self._running:
                    raise BudgetError(
                        f"the next request may cost {format_cost(price)} USD, and "
                        f"{format_cost(self.spent)} of {format_cost(budget)} USD are spent"
                    )
                self._changed.wait()
            self.reserved += price
            self._running += 1

    def settle(self, reserved: Decimal, spent: Decimal) -> None:
        """Replace a reservation by the amount spent."""
        with self._changed:
            self.reserved -= reserved
            self.spent += spent
            self._running -= 1
            self._changed.notify_all()


class Account(local):
    """The attempts of each thread, charged to a shared `Spending`; one attempt at a time."""

    def __init__(self, spending: Spending, budget: Decimal) -> None:
        self._spending, self._budget = spending, budget
        self._is_open = False
        self.highest_price = Decimal(0)
        """Highest possible price of an attempt of the current request."""

    def begin(self) -> None:
        """Reserve the price of an attempt; an open one counts with its highest price."""
        self.end()
        self._spending.reserve(self.highest_price, self._budget)
        self._is_open = True

    def end(self, price: Decimal | None = None) -> None:
        """End the open attempt, if any, with its price, by default the highest."""
        if self._is_open:
            self._is_open = False
            self._spending.settle(
                self.highest_price, self.highest_price if price is None else price
            )
