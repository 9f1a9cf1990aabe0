"""Pseudonyms of workers."""

from __future__ import annotations

import hmac

DIGITS = 16


def pseudonym(key: bytes, worker_id: str) -> str:
    """Return the pseudonym of a worker: 64 bits of HMAC-SHA256.

    >>> pseudonym(bytes(32), "A1")
    'w-ba82317d276eb88c'
    """
    return f"w-{hmac.digest(key, worker_id.encode(), 'sha256').hex()[:DIGITS]}"
