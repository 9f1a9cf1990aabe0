"""Context of an API call, pagination and request tokens."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Row, Select, insert, select

from mturk import limits
from mturk.service.errors import ApiError, validation_error
from mturk.service.rules.retention import delete_expired_tokens
from mturk.service.store.schema import token

Parameters = Mapping[str, Any]
Answer = dict[str, Any]
DEFAULT_PAGE_SIZE = 10


@dataclass(frozen=True, slots=True)
class Call:
    """A request within its transaction."""

    operation: str
    connection: Connection
    now: float
    """Seconds since the epoch."""


def check(*problems: str | None) -> None:
    """Raise ParameterValidationError if there are problems."""
    if messages := [problem for problem in problems if problem]:
        raise validation_error("; ".join(messages))


def page(
    call: Call, parameters: Parameters, query: Select[Any], number: Column[int], name: str,
    to_document: Callable[[Row[Any]], Mapping[str, Any]], *, newest_first: bool = False,
) -> Answer:  # fmt: skip
    """Return a page of a list: NumResults, the list under `name`, and NextToken unless it is empty.

    As on Mechanical Turk a list ends with an empty page: clients read until a page has no NextToken. Rows
    are ordered by the column `number`. A page starts after the last number of the previous page, so that
    rows added meanwhile cause neither gaps nor duplicates.
    """
    size = parameters.get("MaxResults", DEFAULT_PAGE_SIZE)
    check(limits.PAGE_SIZE.problem(size))
    if "NextToken" in parameters:
        last = _last_number(call.operation, parameters["NextToken"])
        query = query.where(number < last if newest_first else number > last)
    order = number.desc() if newest_first else number.asc()
    rows: Sequence[Row[Any]] = call.connection.execute(query.order_by(order).limit(size)).all()
    answer: Answer = {name: [to_document(row) for row in rows], "NumResults": len(rows)}
    if rows:
        answer["NextToken"] = _next_token(call.operation, rows[-1]._mapping[number])
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
    raise validation_error("NextToken is invalid for this operation")


def check_token(call: Call, parameters: Parameters, error: Callable[[str], ApiError]) -> str | None:
    """Return the request token if it is new; else raise `error` for the id of the resource it created."""
    text: str | None = parameters.get("UniqueRequestToken")
    if text is None:
        return None
    check(limits.TOKEN.problem(text))
    delete_expired_tokens(call.connection, call.now)
    created_id = call.connection.scalar(
        select(token.c.made).where(token.c.operation == call.operation, token.c.token == text)
    )
    if created_id is not None:
        raise error(created_id)
    return text


def record_token(call: Call, text: str | None, created_id: str) -> None:
    """Record a request token with the id of the created resource."""
    if text is not None:
        row = {"operation": call.operation, "token": text, "made": created_id, "at": call.now}
        call.connection.execute(insert(token).values(**row))
