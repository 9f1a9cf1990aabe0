"""Errors of the requester API: their two shapes, codes and messages."""

from __future__ import annotations

from collections.abc import Sequence

PREFIX = "AWS.MechanicalTurk."


class ApiError(Exception):
    """An error of the service itself: botocore's ServiceFault."""

    shape = "ServiceFault"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestError(ApiError):
    """An invalid request: botocore's RequestError. ``code`` is the TurkErrorCode."""

    shape = "RequestError"


class AccessDeniedError(ApiError):
    """An operation that is not allowed for the role of the key."""

    shape = "AccessDeniedException"

    def __init__(self, message: str) -> None:
        super().__init__(self.shape, message)


def validation_error(reason: str) -> RequestError:
    """Return the error for a missing, malformed or out-of-range parameter."""
    message = f"There were parameter validation errors, reason: {reason}"
    return RequestError("ParameterValidationError", message)


def xml_error(parameter: str, reason: object) -> RequestError:
    """Return the error for XML that is not well-formed or violates its schema."""
    message = (
        "There was an error parsing the XML question or answer data in your request.  Please make sure "
        "the data is well-formed and validates against the appropriate schema. Details: "
        f"{parameter}: {reason}"
    )
    return RequestError(f"{PREFIX}XMLParseError", message)


def does_not_exist(resource: str, resource_id: str) -> RequestError:
    """Return the error for an unknown id; `resource` is HIT, HITType, Assignment and so on.

    >>> does_not_exist("HIT", "3ABC").message
    'HIT 3ABC does not exist.'
    """
    return RequestError(
        f"{PREFIX}{resource}DoesNotExist", f"{resource} {resource_id} does not exist."
    )


def already_exists(resource: str, resource_id: str) -> RequestError:
    """Return the error for a request token that has already created a resource."""
    message = f"The {resource} {resource_id} already exists: it was created with the same UniqueRequestToken."
    return RequestError(f"{PREFIX}{resource}AlreadyExists", message)


def already_processed(token: str | None, created_id: str) -> RequestError:
    """Return the DuplicateRequest error for a request token that has been used."""
    message = f'The idempotency token "{token}" has already been processed: {created_id}.'
    return RequestError(f"{PREFIX}DuplicateRequest", message)


def wrong_state(resource: str, state: str, allowed: Sequence[str]) -> RequestError:
    """Return the error for an operation that is invalid in the current state of the resource."""
    message = (
        f"This {resource} is currently in the state '{state}'.  This operation can be called with a "
        f"status of: {', '.join(allowed)}"
    )
    return RequestError(f"{PREFIX}Invalid{resource}State", message)


def request_error(code: str, message: str) -> RequestError:
    """Return an error with a code of the AWS.MechanicalTurk namespace."""
    return RequestError(PREFIX + code, message)
