"""How do the service's log lines look? As text for people, or as a JSON object a line."""

from __future__ import annotations

import logging
import textwrap

import structlog
from structlog.typing import EventDict, Processor

from bws.command import CONTROL_CHARACTERS

__all__ = ["configure", "formatter"]

FIELDS = ("operation", "page", "frame", "method", "status", "milliseconds", "outcome")
"""What may stand in a line beside its event: names of ours and numbers. Libraries' extras stay out."""
ONE_LINE = str.maketrans(CONTROL_CHARACTERS | {"\n": "\\n", "\t": "\\t"})
MANY_LINES = str.maketrans(CONTROL_CHARACTERS)


def configure(form: str, level: int) -> None:
    """Write the log to standard error; libraries are heard from WARNING, we from `level`."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(form))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("mturk").setLevel(level)


def formatter(form: str) -> logging.Formatter:
    """Return what makes a line of a record: the time is UTC, and a stack trace tells no local values."""
    written = structlog.processors.JSONRenderer() if form == "json" else _text
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_fields(),
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, written],
    )


def _fields() -> list[Processor]:
    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=FIELDS),
        structlog.contextvars.merge_contextvars,
        structlog.processors.format_exc_info,
    ]


def _text(_: object, __: str, event: EventDict) -> str:
    """Write a line such as ``2026-03-01T08:00:00.000000Z INFO mturk.requests: answered status=200``.

    Only a record begins at the margin, whatever its values are, and nothing commands a terminal.
    """
    stack = event.pop("exception", "")
    when, level, logger, said = map(event.pop, ("timestamp", "level", "logger", "event"))
    fields = "".join(f" {name}={value}" for name, value in event.items())
    line = f"{when} {level.upper()} {logger}: {said}{fields}"
    below = textwrap.indent(f"\n{stack.translate(MANY_LINES)}", "    ") if stack else ""
    return (line if line.isprintable() else line.translate(ONE_LINE)) + below
