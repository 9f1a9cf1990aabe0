"""The style sheets and scripts of the site, with their headers."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from mturk.service.site.headers import static_headers

__all__ = ["static_files"]


class _Headed(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Answer with a file and the headers for all of them."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(static_headers())
        return response


def static_files() -> StaticFiles:
    """Return the application that serves them."""
    return _Headed(packages=[("mturk.service.site", "static")])
