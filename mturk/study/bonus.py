"""Bonuses: reading, cost, and payment exactly once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bws.base.file_kinds import first_of
from bws.base.problems import InputError, Problem
from bws.files.table import Table, read_table
from mturk.limits import BONUS_REASON, PAGE_SIZE
from mturk.money import bonus_fee, parse_amount
from mturk.study.actions import RefusedError, make_action
from mturk.study.client import error_code, translate_errors
from mturk.study.ledger import Action, Ledger


@dataclass(frozen=True, slots=True)
class BonusPrice:
    """Cost of bonuses in US dollars."""

    bonuses: Decimal
    fees: Decimal

    @property
    def total(self) -> Decimal:
        """Bonuses and fees."""
        return self.bonuses + self.fees


def bonus_price(actions: Iterable[Action]) -> BonusPrice:
    """Return the cost of the bonuses.

    >>> bonus_price([make_action("bonus", "3A", "1.00"), make_action("bonus", "3B", "0.02")]).total
    Decimal('1.23')
    """
    amounts = [Decimal(action.amount) for action in actions]
    zero = Decimal("0.00")
    return BonusPrice(sum(amounts, zero), sum(map(bonus_fee, amounts), zero))


def read_bonuses(
    path: str | os.PathLike[str], ledger: Ledger, *, id_column: str = "assignment_id"
) -> list[Action]:
    """Read the columns assignment_id (or `id_column`), amount (in the study's currency) and reason.

    Raises InputError with all problems: an assignment that is not in the ledger, an invalid amount, a missing
    reason, a repeated bonus.
    """
    names = (id_column, "amount", "reason")
    table = read_table(path, names).with_decimal_points(["amount"])
    columns = [_column(table, name, names) for name in names]
    known_ids = {assignment.assignment_id for assignment in ledger.assignments()}
    problems = list(table.problems)
    actions: dict[str, Action] = {}
    lines: dict[str, int] = {}
    for line, *cells in zip(table.lines.tolist(), *columns, strict=True):
        action, row_problems = _parse_bonus(
            *(cell.strip() for cell in cells), known_ids=known_ids, path=ledger.path
        )
        if action and action.token in actions:
            row_problems.append(
                f"repeats the bonus of line {lines[action.token]}; "
                "expected different reasons if both are intended"
            )
        elif action:
            actions[action.token], lines[action.token] = action, line
        problems += [Problem(table.file, line, message) for message in row_problems]
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return list(actions.values())


def _column(table: Table, name: str, names: Sequence[str]) -> list[str]:
    column = first_of(table.frame.columns, [name.replace("_", "")])
    if column is None:
        header = ", ".join(table.frame.columns[:20])
        message = f"has the columns {header}; expected {', '.join(names)}"
        raise InputError(Problem(table.file, None, message))
    return list(table.frame[column])


def _parse_bonus(
    assignment_id: str, dollars: str, reason: str, *, known_ids: set[str], path: str
) -> tuple[Action | None, list[str]]:
    problems = []
    if assignment_id not in known_ids:
        problems.append(f"unknown assignment {assignment_id!r}; expected one in {path}")
    if problem := BONUS_REASON.problem(reason):
        problems.append(f"reason: {problem}")
    try:
        value = parse_amount(dollars.removeprefix("$"), "amount")
        if not value:
            problems.append("amount is 0; expected at least 0.01")
    except ValueError as error:
        problems.append(str(error))
    return (
        (None, problems)
        if problems
        else (make_action("bonus", assignment_id, str(value), reason), [])
    )


def pay_bonus(client: Any, action: Action) -> bool:
    """Pay a bonus; return False if it was paid before. For `actions.execute_actions`.

    The service's list of payments is checked first: the service remembers tokens for 24 hours only, and the
    ledger may have been restored from a backup.
    """
    with translate_errors():
        try:
            if _is_paid(client, action):
                return False
            worker_id = client.get_assignment(AssignmentId=action.target)["Assignment"]["WorkerId"]
            client.send_bonus(
                WorkerId=worker_id,
                BonusAmount=action.amount,
                AssignmentId=action.target,
                Reason=action.text,
                UniqueRequestToken=action.token,
            )
        except client.exceptions.RequestError as error:
            if error_code(error).endswith("DuplicateRequest"):
                return False  # paid by an earlier call whose response was lost
            raise RefusedError(f"{error} ({error_code(error)})") from None
    return True


def _is_paid(client: Any, action: Action) -> bool:
    pages = client.get_paginator("list_bonus_payments").paginate(
        AssignmentId=action.target, PaginationConfig={"PageSize": PAGE_SIZE.maximum}
    )
    payments = (payment for page in pages for payment in page["BonusPayments"])
    return any(
        Decimal(payment["BonusAmount"]) == Decimal(action.amount)
        and payment["Reason"] == action.text
        for payment in payments
    )
