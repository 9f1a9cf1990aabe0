"""Bonuses: read from a file, priced, and each paid exactly once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bws.file_kinds import first_of
from bws.files.table import Table, read_table
from bws.problems import InputError, Problem
from mturk.limits import BONUS_REASON, PAGE
from mturk.money import amount, bonus_fee
from mturk.study.actions import RefusedError, action
from mturk.study.client import error_code, explained
from mturk.study.ledger import Action, Ledger

__all__ = ["BonusPrice", "pay", "price", "read_bonuses"]

COLUMNS = {"assignment_id": "assignmentid", "amount": "amount", "reason": "reason"}


@dataclass(frozen=True, slots=True)
class BonusPrice:
    """What bonuses cost, in US dollars."""

    bonuses: Decimal
    fees: Decimal

    @property
    def total(self) -> Decimal:
        """Bonuses and fees."""
        return self.bonuses + self.fees


def price(actions: Iterable[Action]) -> BonusPrice:
    """Return what the bonuses cost.

    >>> price([action("bonus", "3A", "1.00"), action("bonus", "3B", "0.02")]).total
    Decimal('1.23')
    """
    amounts = [Decimal(one.amount) for one in actions]
    zero = Decimal("0.00")
    return BonusPrice(sum(amounts, zero), sum(map(bonus_fee, amounts), zero))


def read_bonuses(path: str | os.PathLike[str], ledger: Ledger) -> list[Action]:
    """Read the columns assignment_id, amount (US dollars) and reason.

    Raises InputError with everything that is wrong: an assignment that is not in the ledger, an amount
    that is none, no reason, the same bonus twice.
    """
    table = read_table(path)
    columns = [_column(table, name) for name in COLUMNS]
    known = {one.assignment_id for one in ledger.assignments()}
    problems = list(table.problems)
    found: dict[str, Action] = {}
    lines: dict[str, int] = {}
    for line, *cells in zip(table.lines.tolist(), *columns, strict=True):
        one, wrong = _bonus(*(cell.strip() for cell in cells), known=known, path=ledger.path)
        if one and one.token in found:
            wrong.append(
                f"repeats the bonus of line {lines[one.token]}; where both are meant, give other reasons"
            )
        elif one:
            found[one.token], lines[one.token] = one, line
        problems += [Problem(table.file, line, said) for said in wrong]
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return list(found.values())


def _column(table: Table, name: str) -> list[str]:
    found = first_of(table.frame.columns, [COLUMNS[name]])
    if found is None:
        header = ", ".join(table.frame.columns[:20])
        message = f"has the columns {header}; {', '.join(COLUMNS)} are expected"
        raise InputError(Problem(table.file, None, message))
    return list(table.frame[found])


def _bonus(
    assignment_id: str, dollars: str, reason: str, *, known: set[str], path: str
) -> tuple[Action | None, list[str]]:
    wrong = []
    if assignment_id not in known:
        wrong.append(f"there is no assignment {assignment_id!r} in {path}")
    if problem := BONUS_REASON.problem(reason):
        wrong.append(f"reason: {problem}")
    try:
        value = amount(dollars.removeprefix("$"), "amount")
        if not value:
            wrong.append("amount is 0; at least 0.01 is allowed")
    except ValueError as error:
        wrong.append(str(error))
    return (None, wrong) if wrong else (action("bonus", assignment_id, str(value), reason), [])


def pay(client: Any, one: Action) -> bool:
    """Pay a bonus at the service; False where the same was paid already. For `actions.carry_out`.

    The service's list is asked first: its tokens are forgotten after 24 hours, and the ledger may have
    been put back from a backup.
    """
    with explained():
        try:
            if _is_paid(client, one):
                return False
            worker_id = client.get_assignment(AssignmentId=one.target)["Assignment"]["WorkerId"]
            client.send_bonus(
                WorkerId=worker_id,
                BonusAmount=one.amount,
                AssignmentId=one.target,
                Reason=one.text,
                UniqueRequestToken=one.token,
            )
        except client.exceptions.RequestError as error:
            if error_code(error).endswith("DuplicateRequest"):
                return False  # an earlier call paid it although its answer was lost
            raise RefusedError(f"{error} ({error_code(error)})") from None
    return True


def _is_paid(client: Any, one: Action) -> bool:
    pages = client.get_paginator("list_bonus_payments").paginate(
        AssignmentId=one.target, PaginationConfig={"PageSize": PAGE.high}
    )
    paid = (payment for page in pages for payment in page["BonusPayments"])
    return any(
        Decimal(payment["BonusAmount"]) == Decimal(one.amount) and payment["Reason"] == one.text
        for payment in paid
    )
