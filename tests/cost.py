"""Plugin of pytest: CPU and wall seconds of the tests by package and layer, and the most expensive ones.

    python -m pytest -p tests.cost -n 2

CPU seconds contain those of ended child processes, and of commands of the fork server if this process
started it. A fixture is counted with the test that first needs it.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections import defaultdict

import psutil
import pytest
from click.testing import CliRunner
from tabulate import tabulate

from tests import fork_server

N_TESTS = 20
LAYERS = ("browser", "process", "command", "unit")
"""A test counts in the first layer of which it uses something; `command` is a command in the same process."""
_used: set[str] = set()


def _cpu() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return own + sum(sum(psutil.Process(server).cpu_times()[:4]) for server in fork_server.STARTED)


def pytest_configure(config):
    """Note when tests start a process or run a command."""
    _note_calls(subprocess.Popen, "__init__", "process")
    _note_calls(CliRunner, "invoke", "command")
    config.stash[_COSTS] = []
    config.stash[_START] = (time.perf_counter(), _cpu())


def _note_calls(owner, name, layer):
    function = getattr(owner, name)

    def noted(*args, **kwargs):
        _used.add(layer)
        return function(*args, **kwargs)

    setattr(owner, name, noted)


_COSTS = pytest.StashKey[list]()
_START = pytest.StashKey[tuple]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Measure a test with its fixtures."""
    _used.clear()
    if "chromium" in item.fixturenames:
        _used.add("browser")
    item.stash[_START] = (time.perf_counter(), _cpu())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Attach the cost to the last report of a test."""
    report = yield
    if call.when == "teardown":
        start, cpu = item.stash[_START]
        layer = next((name for name in LAYERS if name in _used), "unit")
        cost = (layer, time.perf_counter() - start, _cpu() - cpu)
        report.user_properties = [*report.user_properties, ("cost", cost)]
    return report


def pytest_report_teststatus(report, config):
    """Collect the costs, also those of other workers."""
    if report.when == "teardown":
        properties = dict(report.user_properties)
        if "cost" in properties:
            config.stash[_COSTS].append((report.nodeid, *properties["cost"]))


def pytest_terminal_summary(terminalreporter, config):
    """Print the tables."""
    costs = config.stash[_COSTS]
    if not costs:
        return
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for nodeid, layer, wall, cpu in costs:
        parts = nodeid.partition("::")[0].removeprefix("tests/").split("/")
        package = "/".join(parts[:2] if len(parts) > 2 else parts[:1])
        for key in ((package, layer), ("all", layer), ("all", "all")):
            for number, value in enumerate((1, wall, cpu)):
                sums[key][number] += value
    rows = [[*key, *values] for key, values in sorted(sums.items(), key=lambda one: -one[1][2])]
    start, _ = config.stash[_START]
    write = terminalreporter.write_line
    write(f"cost of {len(costs)} tests; wall time of the run: {time.perf_counter() - start:.0f} s")
    write(tabulate(rows, ["package", "layer", "tests", "wall s", "CPU s"], floatfmt=".1f"))
    dearest = sorted(costs, key=lambda cost: -cost[3])[:N_TESTS]
    write(tabulate([[cpu, wall, layer, nodeid] for nodeid, layer, wall, cpu in dearest],
                   ["CPU s", "wall s", "layer", "test"], floatfmt=".1f"))  # fmt: skip
