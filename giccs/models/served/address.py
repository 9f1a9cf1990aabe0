"""Which server is asked, and may the key be sent there?"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bws.problems import InputError, Problem

__all__ = ["NO_KEY", "OFFICIAL", "Server", "find_server"]

OFFICIAL = "https://api.openai.com/v1"
NO_KEY = "none"
"""What is sent for a key where there is none: the protocol wants something."""
SECRET = 16
"""Letters that a key has at least."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go."""

    base_url: str
    """Without credentials, query and last slash."""
    key: str = field(repr=False)

    @property
    def official(self) -> bool:
        """Is it OpenAI's own?"""
        return self.base_url == OFFICIAL

    @property
    def loopback(self) -> bool:
        """Is it this machine?"""
        return _loopback(urlsplit(self.base_url).hostname or "")

    def without_key(self, text: str) -> str:
        """Return `text` with the key blotted out, should a server send it back.

        What is short ("EMPTY", for a server that wants anything) is no secret, and may be a word.
        """
        return text.replace(self.key, "[key]") if len(self.key) >= SECRET else text


def find_server(name: str, base_url: str | None) -> Server:
    """Return the server at `base_url`, else at ``OPENAI_BASE_URL``, else OpenAI's, with ``OPENAI_API_KEY``.

    InputError where the address is none, or where the key would be read by others on the way.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    address = _address(name, base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise refused("OPENAI_API_KEY has characters that no key has; set it anew")
    server = Server(address, key or NO_KEY)
    if not key and server.official:
        message = (
            "needs a key for OpenAI's server; set OPENAI_API_KEY, or --base-url to another server"
        )
        raise refused(message)
    if key and address.startswith("http://") and not server.loopback:
        raise refused(
            f"the key would go to {address} unencrypted; use https, or unset OPENAI_API_KEY, "
            "in which case no key is sent"
        )
    return server


def _address(name: str, text: str) -> str:
    """Return an address in one form; InputError, which does not repeat the address, where it is none."""
    try:
        parts = urlsplit(text.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise InputError(Problem(name, None, "the address of the server cannot be read")) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = "the address of the server must begin with http:// or https:// and a host"
        raise InputError(Problem(name, None, message))
    if parts.username is not None or parts.query or parts.fragment:
        message = (
            "the address of the server must have no user, password, query or fragment; "
            "a key belongs into OPENAI_API_KEY"
        )
        raise InputError(Problem(name, None, message))
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _loopback(host: str) -> bool:
    """Tell whether a host is this machine.

    >>> [_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "localhost.example.org")]
    [True, True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
