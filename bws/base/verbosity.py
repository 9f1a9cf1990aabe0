"""Logging of a command with --verbose, line by line on standard error."""

from __future__ import annotations

import logging
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import click

from bws.base.problems import InputError
from bws.base.terminal import printable, say

LOGGERS = ("bws", "giccs", "mturk", "giccs_app")
"""The loggers of giccs. Others are never shown, because their requests contain keys and signatures."""
REPORTED_ERRORS = (
    InputError, OSError, MemoryError, click.ClickException, click.Abort, KeyboardInterrupt,
)  # fmt: skip
"""Exceptions that end a command with a message; for others, Python prints the traceback."""
MAX_TRACEBACK_LINES = 200
"""Maximum number of lines of a traceback; an input error may have very many."""

log = logging.getLogger("bws.base.commands")


@contextmanager
def show_logs(*, handled: bool = False) -> Iterator[None]:
    """Log messages of giccs, the origin of errors, and resource usage at the end.

    handled: the command installs its own root handler and then calls `begin`; only levels are set here.
    """
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.level, logger.propagate) for logger in loggers]
    handler = _Lines()
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        if not handled:
            logger.addHandler(handler)
            logger.propagate = False  # Avoid duplicates from a root handler installed by a library.
    try:
        if not handled:
            begin()
        with _account():
            yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate


def begin() -> None:
    """Log program and environment."""
    log.debug(
        "giccs %s, Python %s, %s", version("giccs"), platform.python_version(), platform.platform()
    )


@contextmanager
def _account() -> Iterator[None]:
    began, used = time.perf_counter(), sum(os.times()[:4])
    try:
        yield
    except REPORTED_ERRORS as error:
        log.debug("ended by %s", type(error).__name__, exc_info=True)
        raise
    finally:
        seconds, busy = time.perf_counter() - began, sum(os.times()[:4]) - used
        log.debug("%.3f s, %.2f s of processor time%s", seconds, busy, _memory())


def _memory() -> str:
    """Return the peak memory of this process, if the system provides it."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return f", at most {most * unit / 2**20:.0f} MiB of memory"


class _Lines(logging.Handler):
    """Writes to standard error, above an active progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_Format())

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            say(self.format(record))
        except Exception:
            self.handleError(record)


class _Format(logging.Formatter):
    """``12:00:00.000 DEBUG logger: message``, with control characters escaped."""

    def __init__(self) -> None:
        form = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
        super().__init__(form, "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line; line breaks in names are escaped."""
        return super().formatMessage(record).replace("\n", "\\u000a")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - likewise
        """Return the traceback, shortened if it has too many lines."""
        lines = super().formatException(ei).splitlines()
        return "\n".join(lines[:MAX_TRACEBACK_LINES] + ["..."] * (len(lines) > MAX_TRACEBACK_LINES))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by the traceback of the record."""
        return printable(super().format(record))
