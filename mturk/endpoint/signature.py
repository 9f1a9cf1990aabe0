"""Signature Version 4: whether a request was signed with one of the configured keys, and recently."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

__all__ = ["SignatureError", "verify"]

SERVICE = "mturk-requester"
ALGORITHM = "AWS4-HMAC-SHA256"
SKEW = 15 * 60
"""Seconds by which a request's time may differ from ours."""
AUTHORIZATION = re.compile(
    rf"{ALGORITHM} +Credential=(?P<key>[^/,\s]+)/(?P<date>\d{{8}})/(?P<region>[\w-]+)/(?P<service>[\w-]+)"
    r"/aws4_request, *SignedHeaders=(?P<signed>[\w;-]+), *Signature=(?P<signature>[0-9a-f]{64})"
)
MUST_BE_SIGNED = {"host", "x-amz-date", "x-amz-target"}


class SignatureError(Exception):
    """The request is not signed as it must be; ``code`` is what Amazon's services call it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def verify(
    keys: Mapping[str, str], method: str, path: str, headers: Mapping[str, str], body: bytes,
    now: float,
) -> str:  # fmt: skip
    """Return the access key that signed the request; SignatureError where none of `keys` did.

    `keys` maps access keys to secret keys, `headers` lower-case names to values. Comparison takes the
    same time wherever signatures differ. Source: "Signature Version 4 signing process", AWS General
    Reference.
    """
    found = AUTHORIZATION.fullmatch(headers.get("authorization", "").strip())
    if not found:
        raise SignatureError("MissingAuthenticationTokenException", "Missing Authentication Token")
    secret = keys.get(found["key"])
    if secret is None or found["service"] != SERVICE:
        message = "The security token included in the request is invalid."
        raise SignatureError("UnrecognizedClientException", message)
    signed = found["signed"].split(";")
    _check_time(headers.get("x-amz-date", ""), found["date"], now)
    if not MUST_BE_SIGNED.issubset(signed):
        raise SignatureError(
            "IncompleteSignatureException", "Host, date and target must be signed."
        )
    request = _canonical_request(method, path, headers, signed, body)
    scope = f"{found['date']}/{found['region']}/{found['service']}/aws4_request"
    text = f"{ALGORITHM}\n{headers['x-amz-date']}\n{scope}\n{_sha256(request.encode())}"
    expected = hmac.new(_signing_key(secret, scope), text.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, found["signature"]):
        message = "The request signature we calculated does not match the signature you provided."
        raise SignatureError("InvalidSignatureException", message)
    return found["key"]


def _check_time(text: str, date: str, now: float) -> None:
    try:
        at = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        at = float("-inf")
    if not text.startswith(date) or abs(at - now) > SKEW:
        message = f"Signature expired: {text or 'no date'} is more than 15 minutes from now."
        raise SignatureError("InvalidSignatureException", message)


def _canonical_request(
    method: str, path: str, headers: Mapping[str, str], signed: list[str], body: bytes
) -> str:
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed]
    return "\n".join(
        [method, quote(path or "/"), "", "".join(lines), ";".join(signed), _sha256(body)]
    )


def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
