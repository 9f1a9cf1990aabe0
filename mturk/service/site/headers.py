"""What a browser may do with each kind of page and file: the headers, Content-Security-Policy first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

__all__ = [
    "answer_headers",
    "frame_headers",
    "origin_of",
    "page_headers",
    "static_files",
]

EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
OURS = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
}


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address.

    >>> origin_of("https://example.org:8443/task?x=1")
    'https://example.org:8443'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def page_headers(*frames: str) -> dict[str, str]:
    """Return the headers of a page of the site; `frames` are the sources that it may embed."""
    policy = OURS | {"frame-ancestors": "'none'"}
    if frames:
        policy["frame-src"] = " ".join(frames)
    return EVERYWHERE | {
        "Content-Security-Policy": _policy(policy),
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "same-origin",
        "X-Frame-Options": "DENY",
    }


def answer_headers(site_url: str) -> dict[str, str]:
    """Return the headers of what the site answers inside the question frame.

    The frame's sandbox gives the page no origin, so that the site's is named, not 'self'.
    """
    policy = OURS | dict.fromkeys(("script-src", "style-src", "frame-ancestors"), site_url)
    return EVERYWHERE | {
        "Content-Security-Policy": _policy(policy | {"form-action": "'none'"}),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
    }


def frame_headers(site_url: str, frame_url: str, *, allow_external: bool) -> dict[str, str]:
    """Return the headers of a question: its own scripts run, but reach nothing and nobody.

    With `allow_external` it may load scripts, styles, fonts, images and sound over https. Not "no-store":
    a browser that goes back to the question must find the answers as they were.
    """
    others = " https:" if allow_external else ""
    policy = {
        "default-src": "'none'",
        "script-src": f"'unsafe-inline' 'unsafe-eval' {frame_url}{others}",
        "style-src": f"'unsafe-inline' {frame_url}{others}",
        "img-src": f"data: blob: {frame_url}{others}",
        "font-src": f"data:{others}",
        "media-src": f"data: blob:{others}",
        "connect-src": "'none'",
        "form-action": f"{site_url}/submit/",
        "base-uri": "'none'",
        "frame-ancestors": site_url,
        "sandbox": "allow-scripts allow-forms allow-modals",
    }
    return EVERYWHERE | {
        "Content-Security-Policy": _policy(policy),
        "Cache-Control": "private, max-age=0",
        "Referrer-Policy": "no-referrer",
    }


def static_headers() -> dict[str, str]:
    """Return the headers of a style sheet or script, which pages without an origin load as well."""
    return EVERYWHERE | {
        "Cache-Control": "public, max-age=300",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }


def _policy(directives: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in directives.items())


class _Headed(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Answer with a file and the headers for all of them."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(static_headers())
        return response


def static_files() -> StaticFiles:
    """Return the application that serves them."""
    return _Headed(packages=[("mturk.service.site", "static")])
