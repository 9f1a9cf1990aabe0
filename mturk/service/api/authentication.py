"""Access keys of requesters, and whether a request is signed with one: AWS Signature Version 4."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bws.problems import InputError, Problem
from bws.textio import parse_toml, read_text

__all__ = ["SignatureError", "read_keys", "verify"]

VARIABLE = "GICCS_KEYS"
"""Holds a JSON object of access keys and secrets."""
SECRET_CHARACTERS = 16
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


def read_keys(path: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return access key -> secret, from a TOML file (``access_key = "secret"``) or GICCS_KEYS.

    Empty where neither is given. InputError where the file can be read by others, or a secret is short.
    """
    if path is not None:
        _check_private(path)
        return _checked(path, _from_toml(path))
    if VARIABLE in environment:
        return _checked(VARIABLE, _from_json(environment[VARIABLE]))
    return {}


def _check_private(path: str) -> None:
    file = Path(path)
    if (
        os.name == "posix"
        and file.is_file()
        and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ):
        raise InputError(Problem(path, None, f"others can read the keys; chmod 600 {path}"))


def _from_toml(path: str) -> Any:
    text = read_text(path)
    try:
        return parse_toml(text, path)
    except InputError as error:  # its message may quote a secret
        message = 'is not TOML; access_key = "secret" is allowed'
        raise InputError(Problem(path, error.problems[0].line, message)) from None


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        message = 'is not JSON; {"access_key": "secret"} is allowed'
        raise InputError(Problem(VARIABLE, None, message)) from None


def _checked(place: str, values: Any) -> dict[str, str]:
    if not isinstance(values, dict) or not values:
        raise InputError(
            Problem(place, None, "holds no keys; one access key and its secret are needed")
        )
    problems = [
        Problem(
            place,
            None,
            f"the secret of {key} is not a text of {SECRET_CHARACTERS} characters or more",
        )
        for key, secret in values.items()
        if not isinstance(secret, str) or len(secret) < SECRET_CHARACTERS
    ]
    if problems:
        raise InputError(problems)
    return {str(key): secret for key, secret in values.items()}


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
