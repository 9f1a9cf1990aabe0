"""Format of the log lines: text, or one JSON object per line."""

from __future__ import annotations

import logging
import textwrap

import structlog
from structlog.typing import EventDict, Processor

from bws.base.terminal import ESCAPES, printable

LOG_FIELDS = ("operation", "page", "frame", "method", "status", "milliseconds", "outcome")
"""Extra fields of a log line: fixed names and numbers. Extras of libraries are dropped."""
SINGLE_LINE_ESCAPES = str.maketrans(ESCAPES | {"\n": "\\n", "\t": "\\t"})


def configure(form: str, level: int) -> None:
    """Log to standard error: libraries from WARNING, this package from `level`."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(form))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("mturk").setLevel(level)


def formatter(form: str) -> logging.Formatter:
    """Return the formatter of log records. Times are UTC; tracebacks contain no local variables."""
    renderer = structlog.processors.JSONRenderer() if form == "json" else _text
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_fields(),
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )


def _fields() -> list[Processor]:
    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=LOG_FIELDS),
        structlog.contextvars.merge_contextvars,
        structlog.processors.format_exc_info,
    ]


def _text(_: object, __: str, event: EventDict) -> str:
    """Format a record as text.

    Example: ``2026-03-01T08:00:00.000000Z INFO mturk.requests: answered status=200``. Control characters are
    escaped and tracebacks indented, so that only records start at the margin.
    """
    stack = event.pop("exception", "")
    timestamp, level, logger, message = map(event.pop, ("timestamp", "level", "logger", "event"))
    fields = "".join(f" {name}={value}" for name, value in event.items())
    line = f"{timestamp} {level.upper()} {logger}: {message}{fields}"
    traceback_text = textwrap.indent(f"\n{printable(stack)}", "    ") if stack else ""
    return (line if line.isprintable() else line.translate(SINGLE_LINE_ESCAPES)) + traceback_text
