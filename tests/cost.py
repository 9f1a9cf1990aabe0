"""Plugin of pytest: CPU and wall seconds of the tests by package and layer, and the most expensive ones.

    python -m pytest -p tests.cost -n 1 [--cost-output DOCUMENT [--cost-block NAME]]

CPU seconds contain those of ended child processes, and of commands of the fork server if this process
started it. A fixture is counted with the test that first needs it. With --cost-output, the tables replace a
block of a document, by default `cost`.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from tabulate import tabulate

from benchmarks.machine import provenance, replace_block
from giccs.models.packaged import PACKAGES
from tests import fork_server

N_TESTS = 10
LAYERS = ("real model", "browser", "process", "command", "unit")
"""A test counts in the first layer of which it uses something; `command` is a command in the same process."""
MODEL_FOLDERS = tuple(f"/site-packages/{package}/" for package in PACKAGES.values())
MODEL_CALLS = ("package:", "giccs-demo")
"""What calls of real models contain."""
_used: set[str] = set()
_browsers: dict[int, float] = {}
"""Driver of browsers -> CPU seconds of it and its browsers, which are added to this process when it ends."""


def _cpu() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    servers = sum(map(_cpu_of_tree, fork_server.STARTED))
    if "browser" in _used:
        _browsers.update(
            {driver: _cpu_of_tree(driver) for driver in _browsers if psutil.pid_exists(driver)}
        )
    return (
        own + servers + sum(cpu for driver, cpu in _browsers.items() if psutil.pid_exists(driver))
    )


def _cpu_of_tree(process: int) -> float:
    root = psutil.Process(process)
    cpu = 0.0
    for one in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            cpu += sum(one.cpu_times()[:4])
    return cpu


def pytest_addoption(parser):
    """Add the options of the output."""
    parser.addoption("--cost-output", type=Path, help="document of which a block is replaced")
    parser.addoption("--cost-block", default="cost", help="name of the block")


def pytest_configure(config):
    """Note when tests start a process, run a command or open a real model."""
    _note_calls(subprocess.Popen, "__init__", "process")
    _note_calls(fork_server.ForkServer, "start", "process")
    _note_calls(CliRunner, "invoke", "command")
    sys.addaudithook(_note_models)
    config.stash[_COSTS] = []
    config.stash[_START] = (time.perf_counter(), _cpu())


def _note_calls(owner, name, layer):
    function = getattr(owner, name)

    def noted(*args, **kwargs):
        _used.add(layer)
        if any(text in str(args[1:]) for text in MODEL_CALLS):
            _used.add("real model")
        result = function(*args, **kwargs)
        if name == "__init__" and "playwright" in str(args[1:]):
            _browsers[args[0].pid] = 0.0
        return result

    setattr(owner, name, noted)


def _note_models(event, arguments):
    if event == "open" and any(folder in str(arguments[0]) for folder in MODEL_FOLDERS):
        _used.add("real model")


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
        cost = (layer, time.perf_counter() - start, max(0.0, _cpu() - cpu))
        report.user_properties = [*report.user_properties, ("cost", cost)]
    return report


def pytest_report_teststatus(report, config):
    """Collect the costs, also those of other workers."""
    if report.when == "teardown":
        properties = dict(report.user_properties)
        if "cost" in properties:
            config.stash[_COSTS].append((report.nodeid, *properties["cost"]))


def pytest_terminal_summary(terminalreporter, config):
    """Print or write the tables."""
    costs = config.stash[_COSTS]
    if not costs:
        return
    wall = time.perf_counter() - config.stash[_START][0]
    dearest = [
        [cpu, seconds, layer, nodeid]
        for nodeid, layer, seconds, cpu in sorted(costs, key=lambda cost: -cost[3])[:N_TESTS]
    ]
    tables = (
        f"{len(costs)} tests, {wall:.0f} s of wall time. CPU seconds by layer, with the number of tests:",
        _table(_rows(costs), ["package", "tests", "wall s", "CPU s", *reversed(LAYERS)]),
        "The most expensive tests:",
        _table(dearest, ["CPU s", "wall s", "layer", "test"]),
    )
    text = "\n\n".join(tables)
    terminalreporter.write_line(text)
    if document := config.option.cost_output:
        command = f"python -m pytest {' '.join(config.invocation_params.args)}"
        replace_block(document, config.option.cost_block, f"{provenance(command)}\n\n{text}")


def _table(rows, headers):
    return tabulate(rows, headers, "github", floatfmt=".1f")


def _rows(costs):
    """Return a row of sums for each package, the most expensive first, below that of all."""
    sums = defaultdict(lambda: defaultdict(lambda: [0, 0.0, 0.0]))
    for nodeid, layer, wall, cpu in costs:
        for package in ("all", _package(nodeid)):
            for key in ("all", layer):
                sums[package][key] = [
                    a + b for a, b in zip(sums[package][key], (1, wall, cpu), strict=True)
                ]
    for package, layers in sorted(sums.items(), key=lambda one: -one[1]["all"][2]):
        n_tests, wall, cpu = layers["all"]
        cells = [
            f"{layers[name][2]:.1f} ({layers[name][0]})" if name in layers else ""
            for name in reversed(LAYERS)
        ]
        yield [package, n_tests, wall, cpu, *cells]


def _package(nodeid):
    parts = nodeid.partition("::")[0].removeprefix("tests/").split("/")
    return "/".join(parts[:2] if len(parts) > 2 else parts[:1])
