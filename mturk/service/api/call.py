"""What every operation gets, and how lists come in pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Row, Select, delete, insert, select

from mturk import limits
from mturk.service.errors import ServiceError, invalid
from mturk.service.store.schema import token

__all__ = [
    "Answer",
    "Call",
    "Parameters",
    "check",
    "page",
    "remember",
    "remembered",
]

Parameters = Mapping[str, Any]
Answer = dict[str, Any]
PAGE_DEFAULT = 10


@dataclass(frozen=True, slots=True)
class Call:
    """A request within its transaction."""

    operation: str
    connection: Connection
    now: float
    """Seconds since the epoch."""


def check(*problems: str | None) -> None:
    """Refuse the request where there are problems."""
    if found := [problem for problem in problems if problem]:
        raise invalid("; ".join(found))


def page(
    call: Call, parameters: Parameters, query: Select[Any], number: Column[int], name: str,
    write: Callable[[Row[Any]], Mapping[str, Any]], *, newest_first: bool = False,
) -> Answer:  # fmt: skip
    """Return a page of a list: NumResults, the list under `name`, and NextToken where there is more.

    `number` is the column by which rows are ordered; a page begins after the last number of the one
    before, so that nothing is left out or doubled while rows are added.
    """
    size = parameters.get("MaxResults", PAGE_DEFAULT)
    check(limits.PAGE.problem(size))
    if "NextToken" in parameters:
        last = _last_number(call.operation, parameters["NextToken"])
        query = query.where(number < last if newest_first else number > last)
    order = number.desc() if newest_first else number.asc()
    rows: Sequence[Row[Any]] = call.connection.execute(query.order_by(order).limit(size + 1)).all()
    answer: Answer = {name: [write(row) for row in rows[:size]], "NumResults": len(rows[:size])}
    if len(rows) > size:
        answer["NextToken"] = _next_token(call.operation, rows[size - 1]._mapping[number])
    return answer


def _next_token(operation: str, last: int) -> str:
    return base64.urlsafe_b64encode(f"{operation}:{last}".encode()).decode()


def _last_number(operation: str, text: str) -> int:
    try:
        last = base64.urlsafe_b64decode(text.encode()).decode().partition(":")[2]
        if last.isdecimal() and len(last) < 19 and text == _next_token(operation, int(last)):
            return int(last)
    except (binascii.Error, UnicodeError, ValueError):
        pass
    raise invalid("NextToken is none that this operation has given")


def remembered(
    call: Call, parameters: Parameters, error: Callable[[str], ServiceError]
) -> str | None:
    """Return the request's token, which must be new: `error` gets the id of what it made before."""
    text: str | None = parameters.get("UniqueRequestToken")
    if text is None:
        return None
    check(limits.TOKEN.problem(text))
    forget_tokens(call)
    made = call.connection.scalar(
        select(token.c.made).where(token.c.operation == call.operation, token.c.token == text)
    )
    if made is not None:
        raise error(made)
    return text


def remember(call: Call, text: str | None, made: str) -> None:
    """Keep a token with the id of what it made."""
    if text is not None:
        row = {"operation": call.operation, "token": text, "made": made, "at": call.now}
        call.connection.execute(insert(token).values(**row))


def forget_tokens(call: Call) -> None:
    """Forget tokens after a day, as Mechanical Turk does."""
    call.connection.execute(delete(token).where(token.c.at <= call.now - limits.TOKEN_REMEMBERED))
