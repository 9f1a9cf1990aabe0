"""Minimal browser with cookies, redirects, forms and response times."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from threading import Event
from urllib.parse import urlencode, urljoin, urlsplit

import urllib3

MAX_REDIRECTS = 10
MAX_ATTEMPTS = 6
TIMEOUT_SECONDS = 60.0
REDIRECTS = (301, 302, 303, 307, 308)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ResponseCallback = Callable[[str, float], None]


class UnreachableError(OSError):
    """The site did not respond, even after retries."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form with its initial field values."""

    action: str
    fields: dict[str, str]


@dataclass(frozen=True)
class Page:
    """Final response after redirects."""

    url: str
    status: int
    text: str

    @property
    def path(self) -> str:
        """The path of the address."""
        return urlsplit(self.url).path

    @cached_property
    def _parsed(self) -> _PageParser:
        reader = _PageParser()
        reader.feed(self.text)
        return reader

    def form(self, action: str) -> Form | None:
        """Return the first form with this action."""
        return next((form for form in self.forms(action)), None)

    def forms(self, action: str) -> list[Form]:
        """Return all forms with this action."""
        return [form for form in self._parsed.forms if form.action == action]

    @property
    def frame(self) -> str | None:
        """The address of the first frame."""
        return self._parsed.frame


class _PageParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.frame: str | None = None
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "iframe" and self.frame is None:
            self.frame = attributes.get("src")
        elif tag == "form":
            self.forms.append(Form(attributes.get("action", ""), {}))
            self.inside = True
        elif tag == "input" and self.inside and "name" in attributes:
            is_box = attributes.get("type") in ("checkbox", "radio")
            if not is_box or "checked" in attributes:
                self.forms[-1].fields[attributes["name"]] = attributes.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the SSL context shared by all browsers; loading it is slow."""
    return ssl.create_default_context()


class WebClient:
    """Browser of one simulated worker; not thread-safe.

    on_response: called with the path and the seconds of every response, including redirects.
    stop_event: when it is set, waiting ends and UnreachableError is raised.
    """

    def __init__(self, site: str, *, on_response: ResponseCallback, stop_event: Event) -> None:
        self.site, self.timed, self.stopped = site.rstrip("/"), on_response, stop_event
        self.n_retries = 0
        """Number of requests repeated after a failed second connection or a response that demanded a wait."""
        self.cookies: dict[str, str] = {}
        """Cookies of the site, which are sent to its host only."""
        self._host = urlsplit(self.site).hostname
        context = _ssl_context() if self.site.startswith("https:") else None
        self._http = urllib3.PoolManager(
            timeout=TIMEOUT_SECONDS, retries=False, ssl_context=context
        )

    def get(self, address: str) -> Page:
        """Request an address, absolute or relative to the site."""
        return self._follow("GET", urljoin(f"{self.site}/", address))

    def post(self, address: str, fields: Mapping[str, str] | Sequence[tuple[str, str]]) -> Page:
        """Submit form fields."""
        body = urlencode(fields if isinstance(fields, Mapping) else list(fields))
        return self._follow("POST", urljoin(f"{self.site}/", address), body)

    def close(self) -> None:
        """Close the connections."""
        self._http.clear()

    def _follow(self, method: str, url: str, body: str | None = None) -> Page:
        for _ in range(MAX_REDIRECTS):
            response = self._send(method, url, body)
            target = response.headers.get("Location")
            if target is None or response.status not in REDIRECTS:
                return Page(url, response.status, response.data.decode("utf-8", "replace"))
            url = urljoin(url, target)
            if response.status not in (307, 308):
                method, body = "GET", None
        raise UnreachableError(f"{url} redirects more than {MAX_REDIRECTS} times")

    def _send(self, method: str, url: str, body: str | None) -> urllib3.BaseHTTPResponse:
        """Send a request; retry if the site is unreachable or demands a wait. All requests are repeatable."""
        reason = ""
        for attempt in range(MAX_ATTEMPTS):
            pause = 0.25 * 2**attempt if attempt else 0.0  # an idle connection may have been closed
            start = time.perf_counter()
            try:
                response = self._http.request(
                    method, url, body=body, headers=self._headers(url, body), redirect=False
                )
            except urllib3.exceptions.HTTPError as error:
                reason = str(error) or type(error).__name__
            else:
                self.timed(urlsplit(url).path, time.perf_counter() - start)
                self._store_cookies(url, response.headers.getlist("Set-Cookie"))
                if response.status not in (429, 503):
                    return response
                reason = f"status {response.status}"
                pause = float(response.headers.get("Retry-After", pause))
            self.n_retries += pause > 0
            if self.stopped.wait(pause):
                break
        raise UnreachableError(f"{url} does not respond ({reason})")

    def _headers(self, url: str, body: str | None) -> dict[str, str]:
        headers = {} if body is None else dict(FORM)
        if self.cookies and urlsplit(url).hostname == self._host:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return headers

    def _store_cookies(self, url: str, lines: Sequence[str]) -> None:
        if urlsplit(url).hostname == self._host:
            for line in lines:
                for name, morsel in SimpleCookie(line).items():
                    self.cookies[name] = morsel.value
