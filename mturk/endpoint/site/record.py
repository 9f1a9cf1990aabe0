"""What a worker has: history, progress, messages."""

from __future__ import annotations

from starlette.responses import Response

from mturk.endpoint.site.visit import Visit

__all__ = ["history", "messages"]


def history(visit: Visit) -> Response:
    """Show what the worker has submitted, what came of it, and what was earned."""
    work = visit.site.work
    return visit.page(
        "history.html", done=work.history(visit.worker), progress=work.progress(visit.worker)
    )


def messages(visit: Visit) -> Response:
    """Show what requesters have written to the worker."""
    return visit.page("messages.html", messages=visit.site.work.messages(visit.worker))
