"""Security headers of each kind of page and file, above all Content-Security-Policy."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

COMMON_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
BASE_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
}


SANDBOX = "allow-scripts allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox"
"""Sandbox of a question: no origin and no navigation of the site, but links open in new windows."""


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address.

    >>> origin_of("https://example.org:8443/task?x=1")
    'https://example.org:8443'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@functools.lru_cache
def page_headers(*frames: str) -> Mapping[str, str]:
    """Return the headers of a page of the site; `frames` are the sources it may embed."""
    policy = BASE_POLICY | {"frame-ancestors": "'none'"}
    if frames:
        policy |= {
            "frame-src": " ".join(frames),
            "connect-src": "'self'",
        }  # the page sends the answer
    return COMMON_HEADERS | {
        "Content-Security-Policy": _policy(policy),
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "same-origin",
        "X-Frame-Options": "DENY",
    }


@functools.lru_cache
def answer_headers(site_url: str) -> Mapping[str, str]:
    """Return the headers of responses of the site inside the question frame.

    The page has no origin in the frame's sandbox, so the site's origin is given instead of 'self'.
    """
    policy = BASE_POLICY | dict.fromkeys(("script-src", "style-src", "frame-ancestors"), site_url)
    return COMMON_HEADERS | {
        "Content-Security-Policy": _policy(policy | {"form-action": "'none'"}),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
    }


def frame_headers(
    site_url: str, frame_url: str, *, allow_external: bool, image_origins: Sequence[str] = ()
) -> dict[str, str]:
    """Return the headers of a question: its own scripts run, but cannot open connections.

    image_origins: further origins of images. With `allow_external` it may load scripts, styles, fonts, images
    and sound over https. Not "no-store": a browser that goes back to the question must restore the answers.
    """
    external_source = " https:" if allow_external else ""
    policy = {
        "default-src": "'none'",
        "script-src": f"'unsafe-inline' 'unsafe-eval' {frame_url}{external_source}",
        "style-src": f"'unsafe-inline' {frame_url}{external_source}",
        "img-src": " ".join(["data: blob:", frame_url, *image_origins]) + external_source,
        "font-src": f"data:{external_source}",
        "media-src": f"data: blob:{external_source}",
        "connect-src": "'none'",
        "form-action": f"{site_url}/submit/",
        "base-uri": "'none'",
        "frame-ancestors": site_url,
        "sandbox": SANDBOX,
    }
    return COMMON_HEADERS | {
        "Content-Security-Policy": _policy(policy),
        "Cache-Control": "private, max-age=0",
        "Referrer-Policy": "no-referrer",
    }


def static_headers() -> dict[str, str]:
    """Return the headers of a style sheet or script, which pages without an origin must be able to load."""
    return COMMON_HEADERS | {
        "Cache-Control": "public, max-age=300",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }


def _policy(directives: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in directives.items())


class _StaticFilesWithHeaders(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file with the static headers."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(static_headers())
        return response


def static_files() -> StaticFiles:
    """Return the application that serves the static files."""
    return _StaticFilesWithHeaders(packages=[("mturk.service.site", "static")])
