"""giccs eval over a Ray cluster whose workers, nodes and driver are killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from robustness.chaos.cases import Case, PromiseBrokenError
from robustness.chaos.processes import (
    CommandResult,
    check_failed_with_message,
    descendants,
    kill_after_start,
    launch,
    run_command,
)
from robustness.chaos.results import check_same_results, result_stamps, word_vectors

WORKING = b"ray::Worker.evaluate"
"""Process name of a worker that runs a model."""
MAX_ATTEMPTS = 4
WORDS = ("--task", "pairwise-sts", "--limit", 20, "--batch-size", 8)
RAY = ("--engine", "ray", "-o", "results")
ONE_AT_A_TIME = {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
"""A worker claims as many CPUs as it has threads."""
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
SEEN_AT_ONCE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 2,
}


def _models(folder: Path) -> tuple[str, ...]:
    return ("baseline:chance", "baseline:char-ngram", word_vectors(folder))


def _descendants_named(pid: int, *names: bytes) -> set[int]:
    """Return the descendants of a process whose command contains one of the names."""
    pids = set()
    for child in descendants(pid):
        with suppress(OSError):
            command = Path(f"/proc/{child}/cmdline").read_bytes().partition(b"\0")[0]
            if any(name in command for name in names):
                pids.add(child)
    return pids


def _run_with_strikes(
    folder: Path,
    words: tuple[object, ...],
    strike: Callable[[int], object],
    times: int,
    after: int = 0,
    **more: Any,
) -> tuple[CommandResult, int]:
    """Run an evaluation and `strike` `times` busy workers once `after` results are stored."""
    struck: set[int] = set()
    with launch(folder, "giccs", "eval", *words, **more) as process:
        while process.poll() is None and len(struck) < times:
            time.sleep(0.002)  # polling must not occupy a core
            if len(result_stamps(folder / "results")) < after:
                continue
            for pid in [*(_descendants_named(os.getpid(), WORKING) - struck)][
                : times - len(struck)
            ]:
                strike(pid)
                struck.add(pid)
        out, err = process.communicate()
    return CommandResult(process.returncode, out, err), len(struck)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_worker(folder: Path) -> str:
    models = _models(folder)
    run_command(folder, "giccs", "eval", *models, *WORDS, "-o", "expected")
    done, killed = _run_with_strikes(folder, (*models, *WORDS, *RAY), _kill, 2)
    if done.code or not killed:
        raise PromiseBrokenError(f"{killed} workers killed, exit code {done.code}: {done.err}")
    number = check_same_results(folder / "results", folder / "expected")
    return f"{killed} workers killed while they worked; {number} of {number} results, bit-identical"


def _kill_every_worker(folder: Path) -> str:
    models = _models(folder)[:2]
    words = (*models, *WORDS, *RAY)
    done, killed = _run_with_strikes(
        folder, words, _kill, MAX_ATTEMPTS, after=1, environment=ONE_AT_A_TIME
    )
    check_failed_with_message(done, f"its worker was lost {MAX_ATTEMPTS} times")
    if (n_kept := len(result_stamps(folder / "results"))) != 1:
        raise PromiseBrokenError(f"{n_kept} results were kept, not that of the other model")
    message = next(line for line in done.err.splitlines() if "was lost" in line)
    return (
        f"killed {killed} times: “{message.partition(' (')[0]}”, exit code 1; the other result kept"
    )


@contextmanager
def _cluster() -> Iterator[str]:
    """Run a cluster of a head without CPUs and two nodes with one CPU each; yield its address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    head = NODE | {"num_cpus": 0, "include_dashboard": False, "_system_config": SEEN_AT_ONCE}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            cluster.add_node(**NODE)
        yield cluster.address
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]


def _kill_node(folder: Path) -> str:
    models = _models(folder)
    run_command(folder, "giccs", "eval", *models, *WORDS, "-o", "expected")
    with _cluster() as address:
        words = (*models, *WORDS, *RAY, "--address", address)
        done, killed = _run_with_strikes(folder, words, lambda worker: _kill(_parent(worker)), 1)
    if done.code or not killed:
        raise PromiseBrokenError(f"{killed} nodes killed, exit code {done.code}: {done.err}")
    number = check_same_results(folder / "results", folder / "expected")
    return f"one raylet of two killed while it worked; {number} of {number} results, bit-identical"


def _parent(pid: int) -> int:
    """Return the parent of a process; the parent of a worker is its raylet."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _kill_driver(folder: Path) -> str:
    models = _models(folder)
    run_command(folder, "giccs", "eval", *models, *WORDS, "-o", "expected")
    process = launch(folder, "giccs", "eval", *models, *WORDS, *RAY, environment=ONE_AT_A_TIME)
    if not kill_after_start(process, lambda: result_stamps(folder / "results"), 0):
        raise PromiseBrokenError("the command ended before it was killed")
    _wait_for_cluster_end(20)
    before = result_stamps(folder / "results")
    done = run_command(folder, "giccs", "eval", *models, *WORDS, *RAY)
    if done.code or not before.items() <= result_stamps(folder / "results").items():
        raise PromiseBrokenError(
            f"after the restart it ended with exit code {done.code}: {done.err}"
        )
    number = check_same_results(folder / "results", folder / "expected")
    return f"killed with {len(before)} of {number} results kept; then {number}, none computed twice"


def _wait_for_cluster_end(seconds: float) -> None:
    """Wait until the cluster of a killed driver has stopped; Ray's idle agents end a minute later."""
    end = time.monotonic() + seconds
    while going := _descendants_named(os.getpid(), b"raylet/raylet", b"gcs_server", WORKING):
        if time.monotonic() > end:
            raise PromiseBrokenError(f"{len(going)} processes of its cluster are still running")
        time.sleep(0.05)


def _needs_ray() -> str:
    return "" if find_spec("ray") else "ray is not installed (the extra giccs[ray])"


SAME = "the task is rerun on another worker; results are bit-identical to --engine local"

CASES = (
    Case("SIGKILL", "a worker of the Ray engine", SAME, _kill_worker, _needs_ray),
    Case(
        "SIGKILL of every worker", "a model of the Ray engine",
        "after four attempts a message and exit code 1; the other models' results kept",
        _kill_every_worker, _needs_ray,
    ),
    Case("SIGKILL", "one of two raylets", SAME, _kill_node, _needs_ray),
    Case(
        "SIGKILL", "giccs eval --engine ray",
        "its cluster ends with it, Ray's idle agents after a minute; after a restart it continues",
        _kill_driver, _needs_ray,
    ),
)  # fmt: skip
