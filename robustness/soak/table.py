"""Results of a soak test as tables and JSON: quarters, promises, memory over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from tabulate import tabulate

from robustness.soak.flatness import MAX_MIB_PER_HOUR, MINUTE, Trend, count_verdict, trend, verdict
from robustness.soak.samples import BackendMonitor, Sample, percentiles
from robustness.soak.study import FinalState, SoakPlan

BARS = "▁▂▃▄▅▆▇█"
MAX_BARS = 60
"""Maximum number of bars of a sparkline."""


def document(
    watched: Sequence[BackendMonitor], states: Mapping[str, FinalState | str], notes: Sequence[str],
    source: str, work: SoakPlan,
) -> dict[str, Any]:  # fmt: skip
    """Return all results except the single samples.

    found: of each backend what is there, or why that cannot be told. said: where it comes from.
    """
    return {
        "simulated": True,
        "provenance": source,
        "minutes": round(max((monitor.samples[-1].seconds for monitor in watched if monitor.samples),
                             default=0.0) / 60, 1),
        "work": _work(work),
        "notes": list(notes),
        "rows": [row for monitor in watched for row in quarters(monitor)],
        "promises": [row for monitor in watched for row in promises(monitor, states[monitor.name])],
        "memory": [row for monitor in watched for row in _memory(monitor)],
        "found": {name: state if isinstance(state, str) else asdict(state) for name, state in states.items()},
    }  # fmt: skip


def _work(work: SoakPlan) -> str:
    """Describe the simulated work."""
    who = work.who.behaviour
    return (
        f"On each backend, {work.who.people} concurrent workers spend {who.pace:g} s per HIT on average, "
        f"return {who.returns:.1%} of the HITs and abandon {who.abandons:.1%}; batches of {work.hits} HITs "
        f"with {work.assignments} assignments each, of which {work.rejected:.0%} are rejected and "
        f"{work.bonused:.0%} get a bonus."
    )


def quarters(monitor: BackendMonitor) -> list[dict[str, Any]]:
    """Return a row per quarter of the time, with medians of memory, files and threads."""
    if len(monitor.samples) < 2:
        return []
    edges = np.linspace(0, monitor.samples[-1].seconds, 5)
    return [
        _quarter(monitor, number, edges[number - 1], edges[number]) for number in range(1, 5)
    ]  # fmt: skip


def _quarter(monitor: BackendMonitor, number: int, start: float, end: float) -> dict[str, Any]:
    inside = [sample for sample in monitor.samples if start < sample.seconds <= end]
    before = [sample for sample in monitor.samples if sample.seconds <= start]
    pages = [duration for at, duration in monitor.pages if start < at <= end]
    p50, p95 = percentiles(pages)
    return {
        "backend": monitor.name, "quarter": number,
        "submissions": _increase(before, inside, "submissions"),
        "errors": _increase(before, inside, "errors"),
        "pages": len(pages), "p50 ms": p50, "p95 ms": p95,
        "RSS MiB": _medians(inside, "rss"), "open files": _medians(inside, "files"),
        "threads": _medians(inside, "threads"),
        "CPU s": [
            round(_increase(_of_process(before, p), _of_process(inside, p), "cpu"))
            for p in _processes(inside)
        ],
        "database MiB": inside[-1].database if inside else float("nan"),
    }  # fmt: skip


def _increase(before: Sequence[Sample], inside: Sequence[Sample], name: str) -> Any:
    first = getattr(before[-1], name) if before else 0
    return getattr(inside[-1], name) - first if inside else 0


def _processes(samples: Iterable[Sample]) -> list[int]:
    return sorted({sample.process for sample in samples})


def _of_process(samples: Iterable[Sample], process: int) -> list[Sample]:
    return [sample for sample in samples if sample.process == process]


def _medians(samples: Sequence[Sample], name: str) -> list[float]:
    """Return the median per process."""
    return [
        round(
            float(np.median([getattr(sample, name) for sample in _of_process(samples, process)])), 1
        )
        for process in _processes(samples)
    ]


def promises(monitor: BackendMonitor, state: FinalState | str) -> list[dict[str, str]]:
    """Return each promise with its outcome (kept, BROKEN or not decided) and figures."""
    rows = _completeness_rows(state) if isinstance(state, FinalState) else [_failure_row(state)]
    return [
        {"backend": monitor.name, "promise": promise, "outcome": outcome}
        for promise, outcome in (*rows, *_stability_rows(monitor))
    ]


def _failure_row(reason: str) -> tuple[str, str]:
    return "the study ends", f"BROKEN: {reason.strip().splitlines()[-1]}"


def _completeness_rows(state: FinalState) -> list[tuple[str, str]]:
    return [
        (
            "every acknowledged submission is stored once",
            _outcome(
                state.submissions > 0 and not state.lost and not state.doubled,
                f"{state.acknowledged} acknowledged, {state.submissions} stored, of {state.accounts} "
                f"accounts; {state.lost} lost, {state.doubled} duplicated, {state.unacknowledged} whose "
                "response was lost",
            ),
        ),
        (
            "no HIT exceeds its maximum assignments",
            _outcome(not state.over, f"{state.over} too many in {state.hits} HITs"),
        ),
        (
            "every answer not rejected is in the judgments",
            _outcome(
                state.judgments == state.judgments_wanted,
                f"{state.judgments} judgments of {state.judgments_wanted}",
            ),
        ),
        (
            "the balance is exact",
            _outcome(
                (state.available, state.held) == (state.available_wanted, "0.00"),
                f"${state.available} of ${state.available_wanted}, ${state.held} on hold, after "
                f"{state.approved} approvals, {state.rejected} rejections, {state.bonuses} bonuses",
            ),
        ),
        (
            "completed HITs can be deleted",
            _outcome(
                not state.left, f"{state.left} HITs left of {state.hits} in {state.batches} batches"
            ),
        ),
    ]


def _stability_rows(monitor: BackendMonitor) -> list[tuple[str, str]]:
    """Return the promises on memory, open files and threads of every process."""
    if not monitor.samples:
        return [("memory is flat", "not decided: no samples")]
    last, several = monitor.samples[-1], len(monitor.pids) > 1
    rows = [
        (
            "no request is refused, no error logged",
            _outcome(not last.errors, f"{last.errors} errors; {last.repeated} requests repeated"),
        )
    ]
    for process in _processes(monitor.samples):
        mine = _of_process(monitor.samples, process)
        suffix = f" (process {process + 1})" if several else ""
        rows.append((f"memory is flat{suffix}", _memory_outcome(mine)))
        for name, word in (("files", "open files"), ("threads", "threads")):
            rows.append((f"{word} do not grow{suffix}", _count_outcome(mine, name)))
    return rows


OUTCOMES = {"flat": "kept", "growing": "BROKEN", "not decided": "not decided"}


def _count_outcome(samples: Sequence[Sample], name: str) -> str:
    values = np.array([getattr(sample, name) for sample in samples])
    medians = [f"{np.median(part):g}" for part in np.array_split(values, 4) if len(part)]
    return f"{OUTCOMES[count_verdict(values)]}: medians of the quarters {', '.join(medians)}"


def _memory_outcome(samples: Sequence[Sample]) -> str:
    seconds, values = (np.array([getattr(s, name) for s in samples]) for name in ("seconds", "rss"))
    fit = trend(seconds, values)
    if fit.reason:
        return f"not decided: {fit.reason}"
    return (
        f"{OUTCOMES[verdict(fit)]}: {fit.slope:+.2f} MiB/h (95 %: {fit.low:+.2f} to {fit.high:+.2f}), "
        f"{_per_thousand(fit, samples):+.3f} MiB per 1,000 submissions; last quarter minus second "
        f"{fit.step:+.2f} MiB"
    )


def _per_thousand(fit: Trend, samples: Sequence[Sample]) -> float:
    """Return the memory growth in MiB per 1,000 submissions, in the second half."""
    late = samples[len(samples) // 2 :]
    hours = (late[-1].seconds - late[0].seconds) / 3600
    submissions = late[-1].submissions - late[0].submissions
    return fit.slope * hours / submissions * 1000 if submissions else float("nan")


def _outcome(so: bool, figures: str) -> str:
    return f"{'kept' if so else 'BROKEN'}: {figures}"


def has_broken_promise(report: Mapping[str, Any]) -> bool:
    """Return whether a promise was broken."""
    return any(row["outcome"].startswith("BROKEN") for row in report["promises"])


def _memory(monitor: BackendMonitor) -> list[dict[str, Any]]:
    """Return the mean resident memory per process and minute."""
    rows = []
    for process in _processes(monitor.samples):
        mine = _of_process(monitor.samples, process)
        minutes: dict[int, list[float]] = {}
        for sample in mine:
            minutes.setdefault(int(sample.seconds // MINUTE), []).append(sample.rss)
        means = [round(float(np.mean(values)), 2) for values in minutes.values()]
        rows.append(
            {"backend": monitor.name, "process": process + 1, "minutes": [*minutes], "MiB": means}
        )
    return rows


def block(report: Mapping[str, Any]) -> str:
    """Format the results for the document."""
    parts = [
        report["provenance"],
        f"{report['minutes']} minutes of a simulated study: workers, requester and payments are simulated. "
        + report["work"],
        "SQLite is served by one process; PostgreSQL by two behind nginx, with figures separated by a slash.",
        *report["notes"],
        tabulate(map(_join_cells, report["rows"]), headers="keys", tablefmt="github"),
        tabulate(report["promises"], headers="keys", tablefmt="github"),
        f"Memory is flat if the upper end of the slope's 95 % interval, over the second half of the "
        f"time, is below {MAX_MIB_PER_HOUR:g} MiB per hour.",
        "Resident memory per minute, from the minimum to the maximum:",
        "```text\n" + "\n".join(map(_sparkline, report["memory"])) + "\n```",
    ]
    return "\n\n".join(parts)


def _join_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Join the figures of several processes by slashes."""
    return {
        name: " / ".join(f"{value:g}" for value in cell) if isinstance(cell, list) else cell
        for name, cell in row.items()
    }


def _sparkline(row: Mapping[str, Any]) -> str:
    """Return a sparkline.

    >>> _sparkline({"backend": "SQLite", "process": 1, "minutes": [0, 1, 2], "MiB": [90.0, 97.0, 95.0]})
    'SQLite 1       90.0 ▁█▆ 97.0 MiB'
    """
    means = [
        float(np.mean(part)) for part in np.array_split(row["MiB"], min(MAX_BARS, len(row["MiB"])))
    ]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    bars = "".join(BARS[round((mean - low) * scale)] for mean in means)
    return f"{row['backend'] + ' ' + str(row['process']):<12} {low:>6.1f} {bars} {high:.1f} MiB"
