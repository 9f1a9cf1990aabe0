"""A browser without a screen: cookies, redirects, forms, and how long each answer took."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from threading import Event
from urllib.parse import urlencode, urljoin, urlsplit

__all__ = ["Form", "Page", "UnreachableError", "Visitor"]

REDIRECTS = 10
TRIES = 6
TIMEOUT = 60.0
FORM = "application/x-www-form-urlencoded"
Timed = Callable[[str, float], None]


class UnreachableError(OSError):
    """The site did not answer, although it was asked several times."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form as it would be sent untouched."""

    action: str
    fields: dict[str, str]


@dataclass(frozen=True)
class Page:
    """What the last of a chain of redirects answered."""

    url: str
    status: int
    text: str

    @property
    def path(self) -> str:
        """The path of the address."""
        return urlsplit(self.url).path

    @cached_property
    def _read(self) -> _Reader:
        reader = _Reader()
        reader.feed(self.text)
        return reader

    def form(self, action: str) -> Form | None:
        """Return the first form with this action."""
        return next((form for form in self.forms(action)), None)

    def forms(self, action: str) -> list[Form]:
        """Return all forms with this action."""
        return [form for form in self._read.forms if form.action == action]

    @property
    def frame(self) -> str | None:
        """The address of the first frame."""
        return self._read.frame


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.frame: str | None = None
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "iframe" and self.frame is None:
            self.frame = given.get("src")
        elif tag == "form":
            self.forms.append(Form(given.get("action", ""), {}))
            self.inside = True
        elif tag == "input" and self.inside and "name" in given:
            box = given.get("type") in ("checkbox", "radio")
            if not box or "checked" in given:
                self.forms[-1].fields[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False


class Visitor:
    """One person's browser; not for several threads.

    timed: called with the path and the seconds of every answer, redirects among them.
    stopped: when it is set, waiting ends and UnreachableError is raised.
    """

    def __init__(self, site: str, *, timed: Timed, stopped: Event) -> None:
        self.site, self.timed, self.stopped = site.rstrip("/"), timed, stopped
        self.cookies: dict[str, str] = {}
        self.connections: dict[tuple[str, str], http.client.HTTPConnection] = {}
        self.repeated = 0
        """How many requests were not answered even by a fresh connection, or were told to wait."""

    def get(self, address: str) -> Page:
        """Open an address, absolute or of the site."""
        return self._follow("GET", urljoin(f"{self.site}/", address), None)

    def post(self, address: str, fields: Mapping[str, str] | Sequence[tuple[str, str]]) -> Page:
        """Send a form."""
        body = urlencode(fields if isinstance(fields, Mapping) else list(fields)).encode()
        return self._follow("POST", urljoin(f"{self.site}/", address), body)

    def close(self) -> None:
        """Close the connections."""
        for connection in self.connections.values():
            connection.close()

    def _follow(self, method: str, url: str, body: bytes | None) -> Page:
        for _ in range(REDIRECTS):
            status, headers, text = self._patiently(method, url, body)
            if status not in (301, 302, 303, 307, 308):
                return Page(url, status, text)
            url = urljoin(url, headers["Location"])
            if status <= 303:
                method, body = "GET", None
        raise UnreachableError(f"{url} redirects without end")

    def _patiently(
        self, method: str, url: str, body: bytes | None
    ) -> tuple[int, http.client.HTTPMessage, str]:
        """Ask again where the site is away or says to wait: every request here may come twice."""
        reason = ""
        for attempt in range(TRIES):
            pause = 0.25 * 2**attempt if attempt else 0.0  # an idle connection may just be closed
            try:
                status, headers, text = self._ask(method, url, body)
            except (OSError, http.client.HTTPException) as error:
                self._forget(url)
                reason = str(error) or type(error).__name__
            else:
                if status not in (429, 503):
                    return status, headers, text
                reason = f"status {status}"
                pause = float(headers.get("Retry-After", pause))
            self.repeated += pause > 0
            if self.stopped.wait(pause):
                break
        raise UnreachableError(f"{url} does not answer ({reason})")

    def _ask(
        self, method: str, url: str, body: bytes | None
    ) -> tuple[int, http.client.HTTPMessage, str]:
        parts = urlsplit(url)
        headers = {} if body is None else {"Content-Type": FORM}
        if url.startswith(f"{self.site}/"):
            headers["Cookie"] = "; ".join(f"{key}={value}" for key, value in self.cookies.items())
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        began = time.perf_counter()
        connection = self._connection(parts.scheme, parts.netloc)
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        self.timed(parts.path, time.perf_counter() - began)
        self._keep_cookies(answer.headers.get_all("Set-Cookie") or [])
        return answer.status, answer.headers, data.decode("utf-8", "replace")

    def _connection(self, scheme: str, netloc: str) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        if (scheme, netloc) not in self.connections:
            self.connections[scheme, netloc] = kind(netloc, timeout=TIMEOUT)
        return self.connections[scheme, netloc]

    def _forget(self, url: str) -> None:
        parts = urlsplit(url)
        connection = self.connections.pop((parts.scheme, parts.netloc), None)
        if connection:
            connection.close()

    def _keep_cookies(self, lines: Sequence[str]) -> None:
        for line in lines:
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name.strip()] = value.strip()
