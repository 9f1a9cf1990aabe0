"""The switch between the code and its mutants in the copies of robustness.mutants, and a plugin of pytest.

While no mutant is active, each file of tests that reaches the place of a mutant is recorded.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ACTIVE = int(os.environ.get("GICCS_MUTANT", "-1"))
REACHED = Path(__file__).with_name("reached.txt")
RESULT = Path(__file__).with_name("result.json")
_recorded: set[tuple[int, str]] = set()
_failed: list[str] = []
_seconds: dict[str, float] = defaultdict(float)


def is_active(number: int) -> bool:
    """Return whether the code shall be replaced by its mutant."""
    if ACTIVE < 0:
        _record(number, os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0])
    return number == ACTIVE


def _record(number: int, file: str) -> None:
    if (number, file) not in _recorded:
        _recorded.add((number, file))
        with REACHED.open("a", encoding="utf-8") as lines:
            lines.write(f"{number}\t{file}\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note failures, and the time of each file of tests."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration
    if report.failed:
        _failed.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note files that cannot be imported."""
    if report.failed:
        _failed.append(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write them."""
    RESULT.write_text(json.dumps({"failed": _failed, "seconds": _seconds}), "utf-8")
