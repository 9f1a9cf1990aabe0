"""The service's model as botocore has it: which operations there are, and whether parameters fit them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from mturk.service.errors import invalid

__all__ = ["checked", "service_model"]

API_VERSION = "2017-01-17"
LATEST = 253_402_300_799
"""The last second of the year 9999."""
SHOWN = 100
"""Characters of what a request holds that an error repeats."""


@functools.cache
def service_model() -> Any:
    """Return botocore's ServiceModel; RuntimeError where this botocore no longer has the service."""
    from botocore.exceptions import DataNotFoundError, UnknownServiceError
    from botocore.loaders import create_loader
    from botocore.model import ServiceModel

    try:
        found = create_loader().load_service_model("mturk", "service-2", API_VERSION)
    except (DataNotFoundError, UnknownServiceError):
        raise RuntimeError(
            "this version of botocore no longer knows Mechanical Turk; install boto3 1.44 or older"
        ) from None
    return ServiceModel(found, "mturk")


def checked(operation: str, parameters: Any) -> dict[str, Any]:
    """Return the parameters, times as datetimes; ParameterValidationError names all that does not fit."""
    shape = service_model().operation_model(operation).input_shape
    problems: list[str] = []
    values = _checked(shape, parameters, operation, problems)
    if problems:
        raise invalid("; ".join(problems[:20]))
    found: dict[str, Any] = values
    return found


def _checked(shape: Any, value: Any, place: str, problems: list[str]) -> Any:
    check: Callable[..., Any] = CHECKS[shape.type_name]
    return check(shape, value, place, problems)


def _structure(shape: Any, value: Any, place: str, problems: list[str]) -> Any:
    if not isinstance(value, Mapping):
        return _wrong(value, "an object", place, problems)
    value = {name: inner for name, inner in value.items() if inner is not None}
    problems += [
        f"{place}.{name} is missing" for name in shape.required_members if name not in value
    ]
    problems += [
        f"{place}.{name[:SHOWN]} is no parameter" for name in value if name not in shape.members
    ]
    return {
        name: _checked(shape.members[name], inner, f"{place}.{name}", problems)
        for name, inner in value.items()
        if name in shape.members
    }


def _list(shape: Any, value: Any, place: str, problems: list[str]) -> Any:
    if not isinstance(value, list):
        return _wrong(value, "a list", place, problems)
    return [
        _checked(shape.member, inner, f"{place}[{number}]", problems)
        for number, inner in enumerate(value)
    ]


def _string(shape: Any, value: Any, place: str, problems: list[str]) -> Any:
    if not isinstance(value, str):
        return _wrong(value, "a string", place, problems)
    least, most = shape.metadata.get("min", 0), shape.metadata.get("max", len(value))
    if not least <= len(value) <= most:
        problems.append(f"{place} has {len(value)} characters; {least} to {most} are allowed")
    pattern = shape.metadata.get("pattern", "")
    if pattern and not re.fullmatch(pattern.removesuffix("$"), value):  # "$" lets a line feed pass
        problems.append(f"{place} does not match {pattern}")
    if shape.enum and value not in shape.enum:
        problems.append(f"{place} is {value[:SHOWN]!r}; allowed: {', '.join(shape.enum)}")
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
        problems.append(
            f"{place} has a character that is no text (U+0000 or half a surrogate pair)"
        )
    return value


def _integer(shape: Any, value: Any, place: str, problems: list[str]) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return _wrong(value, "a whole number", place, problems)
    bits = 31 if shape.type_name == "integer" else 63
    if not -(2**bits) <= value < 2**bits:
        problems.append(f"{place} is not from -2**{bits} to 2**{bits} - 1, as is allowed")
    return value


def _boolean(shape: Any, value: Any, place: str, problems: list[str]) -> Any:
    return value if isinstance(value, bool) else _wrong(value, "true or false", place, problems)


def _timestamp(shape: Any, value: Any, place: str, problems: list[str]) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= LATEST:  # nor NaN
        return _wrong(value, "seconds since 1970", place, problems)
    return datetime.fromtimestamp(value, UTC)


def _wrong(value: Any, allowed: str, place: str, problems: list[str]) -> None:
    problems.append(f"{place} is {type(value).__name__}; {allowed} is allowed")


CHECKS: Mapping[str, Callable[..., Any]] = {
    "structure": _structure,
    "list": _list,
    "string": _string,
    "integer": _integer,
    "long": _integer,
    "boolean": _boolean,
    "timestamp": _timestamp,
}
