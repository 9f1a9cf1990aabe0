"""How the service says no: its two error shapes, its codes and its words."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "RequestError",
    "ServiceError",
    "already_exists",
    "already_processed",
    "does_not_exist",
    "fault",
    "invalid",
    "wrong_state",
]

PREFIX = "AWS.MechanicalTurk."


class ServiceError(Exception):
    """The service failed: botocore's ServiceFault."""

    shape = "ServiceFault"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestError(ServiceError):
    """The request is at fault: botocore's RequestError. ``code`` is its TurkErrorCode."""

    shape = "RequestError"


def invalid(reason: str) -> RequestError:
    """Return the error for a parameter that is missing, of a wrong form or outside its limits."""
    message = f"There were parameter validation errors, reason: {reason}"
    return RequestError("ParameterValidationError", message)


def does_not_exist(what: str, its_id: str) -> RequestError:
    """Return the error for an id that nothing has; `what` is HIT, HITType, Assignment and so on.

    >>> does_not_exist("HIT", "3ABC").message
    'HIT 3ABC does not exist.'
    """
    return RequestError(f"{PREFIX}{what}DoesNotExist", f"{what} {its_id} does not exist.")


def already_exists(what: str, its_id: str) -> RequestError:
    """Return the error for a request token that was used; the message names what it made."""
    message = f"The {what} {its_id} already exists: it was made with the same UniqueRequestToken."
    return RequestError(f"{PREFIX}{what}AlreadyExists", message)


def already_processed(token: str | None, made: str) -> RequestError:
    """Return the error for a request token whose call made nothing that has a name of its own."""
    message = f'The idempotency token "{token}" has already been processed: {made}.'
    return RequestError(f"{PREFIX}DuplicateRequest", message)


def wrong_state(what: str, state: str, allowed: Sequence[str]) -> RequestError:
    """Return the error for an operation that the state of a HIT or an assignment does not allow."""
    message = (
        f"This {what} is currently in the state '{state}'.  This operation can be called with a "
        f"status of: {', '.join(allowed)}"
    )
    return RequestError(f"{PREFIX}Invalid{what}State", message)


def fault(code: str, message: str) -> RequestError:
    """Return an error of the service's own family."""
    return RequestError(PREFIX + code, message)
