"""Client of Prolific's REST API (https://docs.prolific.com/api-reference, version 1, read in November 2026).

A call whose result is unknown, because the response was lost, is repeated only if a repetition has no effect.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2

from mturk.study.actions import RefusedError
from mturk.study.client import Endpoint, ServiceError, resolve

log = logging.getLogger(__name__)

ADDRESS = "https://api.prolific.com"
TOKEN_VARIABLE = "PROLIFIC_TOKEN"  # noqa: S105, a name
KEYRING_ENTRY = ("giccs", "prolific")
TIMEOUT_SECONDS = 60.0
ATTEMPTS = 6
MAX_WAIT_SECONDS = 120.0
PAGE_SIZE = 100
TOO_MANY_REQUESTS = 429
NOT_EXECUTED = frozenset([400, 401, 403, 404, 405, 422, TOO_MANY_REQUESTS])
"""Statuses that say that a call had no effect."""
ID = re.compile(r"[0-9a-f]{24}")


class UnknownResultError(ServiceError):
    """The response to a call was lost, and the call may have been executed."""


def resolve_prolific(address: str) -> Endpoint:
    """Return the endpoint; ValueError for an address to which the token would travel unencrypted."""
    endpoint = resolve(address)
    if not endpoint.loopback and not endpoint.url.startswith("https:"):
        raise ValueError(f"the endpoint is {address!r}; expected an address with https")
    return endpoint


def read_token() -> str:
    """Return the token in PROLIFIC_TOKEN, or else in the keyring; ServiceError if there is none."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip() or _keyring_token()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ServiceError("the token for Prolific has characters that a token cannot have")
    if not token:
        raise ServiceError(
            "no token for Prolific; expected the environment variable PROLIFIC_TOKEN, or a token stored by "
            f"`keyring set {' '.join(KEYRING_ENTRY)}` (pip install 'giccs[prolific]')"
        )
    return token


def _keyring_token() -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return (keyring.get_password(*KEYRING_ENTRY) or "").strip()
    except KeyringError as error:
        log.debug("no keyring: %s", type(error).__name__)
        return ""


class Prolific:
    """Connection to the API, until `close`."""

    def __init__(
        self, endpoint: Endpoint, token: str, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._token, self._sleep = token, sleep
        self._http = httpx2.Client(
            base_url=f"{endpoint.url}/api/v1/",
            headers={"Authorization": f"Token {token}"},
            timeout=TIMEOUT_SECONDS,
            trust_env=not endpoint.loopback,  # no proxy for connections to this machine
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """Return a resource."""
        return self.call("GET", path, query=query)

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the entries of a list; ServiceError if it is shorter than it says."""
        seen: set[str] = set()
        while True:
            page = self.get(path, limit=PAGE_SIZE, offset=len(seen))
            entries = [entry for entry in page["results"] if entry["id"] not in seen]
            yield from entries
            seen |= {entry["id"] for entry in entries}
            if not entries:
                break
        total = (page.get("meta") or {}).get("count", 0)
        if total > len(seen):
            raise ServiceError(
                f"Prolific listed {len(seen)} of {total} entries of {path}; run the command again"
            )

    def call(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        query: dict[str, Any] | None = None,
        repeatable: bool = True,
    ) -> Any:
        """Make a call and return its response.

        repeatable: whether a second execution has no effect. Calls that were not executed for certain are
            always repeated, after the time that the service asks for.

        Raises RefusedError with the reason if the call is refused, UnknownResultError if it is not repeatable
        and may have been executed, and ServiceError if the service does not respond.
        """
        for attempt in range(1, ATTEMPTS + 1):
            executed, problem, wait = True, "", 2.0 ** (attempt - 1)
            start = time.perf_counter()
            try:
                response = self._http.request(method, path, json=document, params=query)
                if response.is_success:
                    log.debug("%s %s: done", method, ID.sub("ID", path))
                    return response.json() if response.content else None
                problem = self._reason(response)
                executed = response.status_code not in NOT_EXECUTED
                if response.status_code in (401, 403):
                    raise ServiceError(f"Prolific rejected the token ({problem})")
                if response.status_code == TOO_MANY_REQUESTS:
                    wait = _requested_wait(response) or wait
                elif response.status_code < 500 and not executed:
                    raise RefusedError(problem)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                executed, problem = False, f"no connection ({type(error).__name__})"
            except (httpx2.RequestError, ValueError, RecursionError) as error:
                problem = f"no complete response ({type(error).__name__})"
            seconds = time.perf_counter() - start
            log.debug("%s %s: %s after %.3f s", method, ID.sub("ID", path), problem, seconds)
            if executed and not repeatable:
                raise UnknownResultError(f"the result of a call is unknown: {problem}")
            if attempt < ATTEMPTS:
                self._sleep(min(wait, MAX_WAIT_SECONDS))
        raise ServiceError(f"Prolific does not respond after {ATTEMPTS} attempts: {problem}")

    def _reason(self, response: httpx2.Response) -> str:
        """Return the status and the reason in the response, without the token."""
        try:
            document = response.json()
            error = document.get("error", document)
            reason = str(error.get("detail") or error.get("title") or error)
        except (ValueError, AttributeError):
            reason = response.reason_phrase
        return f"{response.status_code}: {reason[:500]}".replace(self._token, "[token]")


def _requested_wait(response: httpx2.Response) -> float:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() and len(text) < 7 else 0.0
