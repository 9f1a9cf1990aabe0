"""Provenance of measurements, and replacement of their tables in documents."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bws.base.text import write_atomic


def machine() -> str:
    """Describe the machine: processor, CPUs, memory, system."""
    cpus = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = f"Python {platform.python_version()}"
    return f"{_processor()}, {cpus} CPUs, {memory:.0f} GiB, {platform.system()}, {python}"


def _processor() -> str:
    """Return the model name of the processor, or its architecture if unknown."""
    try:
        match = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        match = None
    return match[1] if match else platform.machine()


def provenance(command: str) -> str:
    """Return the line above a table: command, version, date, machine."""
    day = datetime.now(UTC).date()
    return f"Output of `{command}`, giccs {version('giccs')}, {day}, {machine()}."


def replace_block(document: Path, name: str, text: str) -> None:
    """Replace the text of a document between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, marker, remainder = document.read_text(encoding="utf-8").partition(begin)
    _, closed, after = remainder.partition(end)
    if not (marker and closed):
        raise ValueError(f"{document} has no marks {begin.strip()} and {end}")
    write_atomic(document, f"{before}{begin}\n{text.strip()}\n\n{end}{after}")
