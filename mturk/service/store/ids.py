"""The ids that the service gives: thirty characters that nobody guesses, like Mechanical Turk's."""

from __future__ import annotations

import base64
import secrets

__all__ = ["new_id"]

BYTES = 18
"""As many as make 29 characters of base 32."""


def new_id() -> str:
    """Return an id of a HIT, a HIT type, an assignment, a qualification type or a request.

    >>> len(new_id()), new_id()[0]
    (30, '3')
    """
    return "3" + base64.b32encode(secrets.token_bytes(BYTES)).decode().rstrip("=")
