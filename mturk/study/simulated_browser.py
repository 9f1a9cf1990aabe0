"""Minimal browser with cookies, redirects, forms and response times."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html.parser import HTMLParser
from threading import Event
from urllib.parse import urlencode, urlsplit

import httpx2

__all__ = ["Form", "Page", "UnreachableError", "WebClient"]

MAX_REDIRECTS = 10
MAX_ATTEMPTS = 6
TIMEOUT_SECONDS = 60.0
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
        self._http = httpx2.Client(
            base_url=self.site, timeout=TIMEOUT_SECONDS, verify=_ssl_context(), trust_env=False
        )
        self.cookies = self._http.cookies

    def get(self, address: str) -> Page:
        """Request an address, absolute or relative to the site."""
        return self._follow(self._http.build_request("GET", address))

    def post(self, address: str, fields: Mapping[str, str] | Sequence[tuple[str, str]]) -> Page:
        """Submit form fields."""
        body = urlencode(fields if isinstance(fields, Mapping) else list(fields)).encode()
        return self._follow(self._http.build_request("POST", address, content=body, headers=FORM))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _follow(self, request: httpx2.Request) -> Page:
        for _ in range(MAX_REDIRECTS):
            response = self._send(request)
            if response.next_request is None:
                return Page(str(response.url), response.status_code, response.text)
            request = response.next_request
        raise UnreachableError(f"{request.url} redirects more than {MAX_REDIRECTS} times")

    def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; retry if the site is unreachable or demands a wait. All requests are repeatable."""
        reason = ""
        for attempt in range(MAX_ATTEMPTS):
            pause = 0.25 * 2**attempt if attempt else 0.0  # an idle connection may have been closed
            try:
                response = self._http.send(request)
            except httpx2.RequestError as error:
                reason = str(error) or type(error).__name__
            else:
                self.timed(response.url.path, response.elapsed.total_seconds())
                if response.status_code not in (429, 503):
                    return response
                reason = f"status {response.status_code}"
                pause = float(response.headers.get("Retry-After", pause))
            self.n_retries += pause > 0
            if self.stopped.wait(pause):
                break
        raise UnreachableError(f"{request.url} does not respond ({reason})")
