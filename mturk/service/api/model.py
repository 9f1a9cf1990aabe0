"""Validation of request parameters against botocore's service model."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from mturk.limits import WORKER_ID
from mturk.service.errors import validation_error

API_VERSION = "2017-01-17"
MAX_TIMESTAMP = 253_402_300_799
"""The last second of the year 9999."""
WIDER_PATTERNS = {"CustomerId": f"^{WORKER_ID.pattern}$"}
"""Shape -> pattern that replaces that of botocore's model."""
MAX_QUOTED_CHARACTERS = 100
"""Maximum number of request characters quoted in an error message."""


@functools.cache
def service_model() -> Any:
    """Return botocore's ServiceModel; raise RuntimeError if botocore no longer includes the service."""
    from botocore.exceptions import DataNotFoundError, UnknownServiceError
    from botocore.loaders import create_loader
    from botocore.model import ServiceModel

    try:
        document = create_loader().load_service_model("mturk", "service-2", API_VERSION)
    except (DataNotFoundError, UnknownServiceError):
        raise RuntimeError(
            "this version of botocore does not include Mechanical Turk; install boto3 1.44 or older"
        ) from None
    return ServiceModel(document, "mturk")


def validate(operation: str, parameters: Any) -> dict[str, Any]:
    """Return validated parameters, times as datetimes; raise ParameterValidationError with all problems."""
    shape = service_model().operation_model(operation).input_shape
    problems: list[str] = []
    values = _validate_value(shape, parameters, operation, problems)
    if problems:
        raise validation_error("; ".join(problems[:20]))
    result: dict[str, Any] = values
    return result


def _validate_value(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    check: Callable[..., Any] = VALIDATORS[shape.type_name]
    return check(shape, value, path, problems)


def _structure(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(value, Mapping):
        return _add_type_problem(value, "an object", path, problems)
    value = {name: inner for name, inner in value.items() if inner is not None}
    problems += [
        f"{path}.{name} is missing" for name in shape.required_members if name not in value
    ]
    problems += [
        f"{path}.{name[:MAX_QUOTED_CHARACTERS]} is not a parameter"
        for name in value
        if name not in shape.members
    ]
    return {
        name: _validate_value(shape.members[name], inner, f"{path}.{name}", problems)
        for name, inner in value.items()
        if name in shape.members
    }


def _list(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(value, list):
        return _add_type_problem(value, "a list", path, problems)
    return [
        _validate_value(shape.member, inner, f"{path}[{number}]", problems)
        for number, inner in enumerate(value)
    ]


def _string(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(value, str):
        return _add_type_problem(value, "a string", path, problems)
    min_length, max_length = shape.metadata.get("min", 0), shape.metadata.get("max", len(value))
    if not min_length <= len(value) <= max_length:
        problems.append(
            f"{path} has {len(value)} characters; expected {min_length} to {max_length}"
        )
    pattern = WIDER_PATTERNS.get(shape.name, shape.metadata.get("pattern", ""))
    if pattern and not re.fullmatch(
        pattern.removesuffix("$"), value
    ):  # "$" also matches before a final line feed
        problems.append(f"{path} does not match {pattern}")
    if shape.enum and value not in shape.enum:
        problems.append(
            f"{path} is {value[:MAX_QUOTED_CHARACTERS]!r}; expected one of {', '.join(shape.enum)}"
        )
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
        problems.append(f"{path} contains an invalid character (U+0000 or a lone surrogate)")
    return value


def _integer(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return _add_type_problem(value, "an integer", path, problems)
    bits = 31 if shape.type_name == "integer" else 63
    if not -(2**bits) <= value < 2**bits:
        problems.append(f"{path} must be from -2**{bits} to 2**{bits} - 1")
    return value


def _boolean(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    return (
        value
        if isinstance(value, bool)
        else _add_type_problem(value, "true or false", path, problems)
    )


def _timestamp(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= MAX_TIMESTAMP:  # nor NaN
        return _add_type_problem(value, "seconds since 1970", path, problems)
    return datetime.fromtimestamp(value, UTC)


def _add_type_problem(value: Any, expected: str, path: str, problems: list[str]) -> None:
    problems.append(f"{path} is {type(value).__name__}; expected {expected}")


VALIDATORS: Mapping[str, Callable[..., Any]] = {
    "structure": _structure,
    "list": _list,
    "string": _string,
    "integer": _integer,
    "long": _integer,
    "boolean": _boolean,
    "timestamp": _timestamp,
}
