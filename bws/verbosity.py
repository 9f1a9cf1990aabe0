"""What does a command do while it runs? With --verbose it says so, line by line, on standard error."""

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

from bws.command import OBEYED, say
from bws.problems import InputError

__all__ = ["LOGGERS", "begin", "shown"]

LOGGERS = ("bws", "giccs", "mturk", "app")
"""Those of our packages. What others log is never shown: requests with keys and signatures are in it."""
TOLD = (
    InputError, OSError, MemoryError, click.ClickException, click.Abort, KeyboardInterrupt,
)  # fmt: skip
"""What ends a command with a line for people; of anything else Python itself shows where it arose."""
MOST = 200
"""Lines of a traceback; an error of input says everything that is wrong with a file."""

log = logging.getLogger("bws.command")


@contextmanager
def shown(*, handled: bool = False) -> Iterator[None]:
    """Show what our packages log, where an error arose, and at the end what was used.

    handled: the command puts a handler of its own at the root, and then calls `begin`; only the levels
        are set.
    """
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.level, logger.propagate) for logger in loggers]
    handler = _Lines()
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        if not handled:
            logger.addHandler(handler)
            logger.propagate = False  # a handler that a library put at the root would say it again
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
    """Log which program runs where."""
    log.debug(
        "giccs %s, Python %s, %s", version("giccs"), platform.python_version(), platform.platform()
    )


@contextmanager
def _account() -> Iterator[None]:
    began, used = time.perf_counter(), sum(os.times()[:4])
    try:
        yield
    except TOLD as error:
        log.debug("ended by %s", type(error).__name__, exc_info=True)
        raise
    finally:
        seconds, busy = time.perf_counter() - began, sum(os.times()[:4]) - used
        log.debug("%.3f s, %.2f s of processor time%s", seconds, busy, _memory())


def _memory() -> str:
    """Return how much memory this process had at most, where the system counts it."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return f", at most {most * unit / 2**20:.0f} MiB of memory"


class _Lines(logging.Handler):
    """Writes to standard error, above a progress bar where one is shown."""

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
    """``12:00:00.000 DEBUG logger: message``; nothing that a terminal would obey."""

    def __init__(self) -> None:
        form = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
        super().__init__(form, "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line: a line break in a name begins no line of its own."""
        return super().formatMessage(record).replace("\n", "\\u000a")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - likewise
        """Return the traceback, cut where it has too many lines."""
        lines = super().formatException(ei).splitlines()
        return "\n".join(lines[:MOST] + ["..."] * (len(lines) > MOST))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it the traceback that came with it."""
        return super().format(record).translate(OBEYED)
