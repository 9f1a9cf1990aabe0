"""The ids that the service gives: thirty characters that nobody guesses, like Mechanical Turk's."""

from __future__ import annotations

import secrets
import string

__all__ = ["new_id"]

ALPHABET = string.ascii_uppercase + string.digits


def new_id() -> str:
    """Return an id of a HIT, a HIT type, an assignment, a qualification type or a request.

    >>> len(new_id()), new_id()[0]
    (30, '3')
    """
    return "3" + "".join(secrets.choice(ALPHABET) for _ in range(29))
