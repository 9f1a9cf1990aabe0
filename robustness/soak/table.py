"""What came of a soak, in figures for people and for programs: quarters, promises, memory over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from tabulate import tabulate

from robustness.soak.flatness import LIMIT, MINUTE, Trend, count_verdict, trend, verdict
from robustness.soak.samples import Sample, Watched, percentiles
from robustness.soak.study import Found, Plan

__all__ = ["block", "broken", "document", "promises", "quarters"]

BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 60
"""Bars of a picture at most."""


def document(
    watched: Sequence[Watched], found: Mapping[str, Found | str], notes: Sequence[str], said: str,
    work: Plan,
) -> dict[str, Any]:  # fmt: skip
    """Return all that was measured but the single samples.

    found: of each backend what is there, or why that cannot be told. said: where it comes from.
    """
    return {
        "simulated": True,
        "provenance": said,
        "minutes": round(max((one.samples[-1].seconds for one in watched if one.samples),
                             default=0.0) / 60, 1),
        "work": _work(work),
        "notes": list(notes),
        "rows": [row for one in watched for row in quarters(one)],
        "promises": [row for one in watched for row in promises(one, found[one.name])],
        "memory": [row for one in watched for row in _memory(one)],
        "found": {name: one if isinstance(one, str) else asdict(one) for name, one in found.items()},
    }  # fmt: skip


def _work(work: Plan) -> str:
    """Say how much is done."""
    who = work.who.behaviour
    return (
        f"On each backend {work.who.people} people at a time, who spend {who.pace:g} s on a HIT on average, "
        f"return {who.returns:.1%} of them and leave {who.abandons:.1%} lying; batches of {work.hits} HITs "
        f"with {work.assignments} assignments, of which {work.rejected:.0%} are rejected and "
        f"{work.bonused:.0%} get a bonus."
    )


def quarters(one: Watched) -> list[dict[str, Any]]:
    """Return a row for each quarter of the time; memory, files and threads are medians of it."""
    if len(one.samples) < 2:
        return []
    edges = np.linspace(0, one.samples[-1].seconds, 5)
    return [
        _quarter(one, number, edges[number - 1], edges[number]) for number in range(1, 5)
    ]  # fmt: skip


def _quarter(one: Watched, number: int, start: float, end: float) -> dict[str, Any]:
    inside = [sample for sample in one.samples if start < sample.seconds <= end]
    before = [sample for sample in one.samples if sample.seconds <= start]
    pages = [taken for at, taken in one.pages if start < at <= end]
    p50, p95 = percentiles(pages)
    return {
        "backend": one.name, "quarter": number,
        "submissions": _risen(before, inside, "submissions"),
        "errors": _risen(before, inside, "errors"),
        "pages": len(pages), "p50 ms": p50, "p95 ms": p95,
        "RSS MiB": _medians(inside, "rss"), "open files": _medians(inside, "files"),
        "threads": _medians(inside, "threads"),
        "CPU s": [round(_risen(_of(before, p), _of(inside, p), "cpu")) for p in _processes(inside)],
        "database MiB": inside[-1].database if inside else float("nan"),
    }  # fmt: skip


def _risen(before: Sequence[Sample], inside: Sequence[Sample], name: str) -> Any:
    first = getattr(before[-1], name) if before else 0
    return getattr(inside[-1], name) - first if inside else 0


def _processes(samples: Iterable[Sample]) -> list[int]:
    return sorted({sample.process for sample in samples})


def _of(samples: Iterable[Sample], process: int) -> list[Sample]:
    return [sample for sample in samples if sample.process == process]


def _medians(samples: Sequence[Sample], name: str) -> list[float]:
    """Return the median of each process."""
    return [
        round(float(np.median([getattr(one, name) for one in _of(samples, process)])), 1)
        for process in _processes(samples)
    ]


def promises(one: Watched, found: Found | str) -> list[dict[str, str]]:
    """Return each promise with its outcome: kept, BROKEN or not decided, and by what figures."""
    kept = _nothing_lost(found) if isinstance(found, Found) else [_not_told(found)]
    return [
        {"backend": one.name, "promise": promise, "outcome": outcome}
        for promise, outcome in (*kept, *_stays(one))
    ]


def _not_told(why: str) -> tuple[str, str]:
    return "the study comes to its end", f"BROKEN: {why.strip().splitlines()[-1]}"


def _nothing_lost(found: Found) -> list[tuple[str, str]]:
    return [
        (
            "every acknowledged submission is there, once",
            _kept(
                found.submissions > 0 and not found.lost and not found.doubled,
                f"{found.acknowledged} acknowledged, {found.submissions} there, of {found.accounts} "
                f"accounts; {found.lost} lost, {found.doubled} double, {found.unacknowledged} whose "
                "answer was lost",
            ),
        ),
        (
            "no HIT has more assignments than places",
            _kept(not found.over, f"{found.over} too many in {found.hits} HITs"),
        ),
        (
            "every answer that was not rejected is in the judgments",
            _kept(
                found.judgments == found.judgments_wanted,
                f"{found.judgments} judgments of {found.judgments_wanted}",
            ),
        ),
        (
            "the balance is exact",
            _kept(
                (found.available, found.held) == (found.available_wanted, "0.00"),
                f"${found.available} of ${found.available_wanted}, ${found.held} on hold, after "
                f"{found.approved} approvals, {found.rejected} rejections, {found.bonuses} bonuses",
            ),
        ),
        (
            "what is done can be deleted",
            _kept(
                not found.left, f"{found.left} HITs left of {found.hits} in {found.batches} batches"
            ),
        ),
    ]


def _stays(one: Watched) -> list[tuple[str, str]]:
    """Return what is said of memory, open files and threads of every process."""
    if not one.samples:
        return [("memory is flat", "not decided: there are no samples")]
    last, several = one.samples[-1], len(one.pids) > 1
    rows = [
        (
            "no request is refused, no error logged",
            _kept(not last.errors, f"{last.errors} errors; {last.repeated} requests repeated"),
        )
    ]
    for process in _processes(one.samples):
        mine = _of(one.samples, process)
        which = f" (process {process + 1})" if several else ""
        rows.append((f"memory is flat{which}", _flat(mine)))
        for name, word in (("files", "open files"), ("threads", "threads")):
            rows.append((f"{word} do not grow{which}", _no_more(mine, name)))
    return rows


OUTCOME = {"flat": "kept", "growing": "BROKEN", "not decided": "not decided"}


def _no_more(samples: Sequence[Sample], name: str) -> str:
    values = np.array([getattr(one, name) for one in samples])
    medians = [f"{np.median(part):g}" for part in np.array_split(values, 4) if len(part)]
    return f"{OUTCOME[count_verdict(values)]}: medians of the quarters {', '.join(medians)}"


def _flat(samples: Sequence[Sample]) -> str:
    seconds, values = (np.array([getattr(s, name) for s in samples]) for name in ("seconds", "rss"))
    found = trend(seconds, values)
    if found.reason:
        return f"not decided: {found.reason}"
    return (
        f"{OUTCOME[verdict(found)]}: {found.slope:+.2f} MiB/h (95 %: {found.low:+.2f} to {found.high:+.2f}), "
        f"{_per_thousand(found, samples):+.3f} MiB per 1,000 submissions; last quarter less second "
        f"{found.step:+.2f} MiB"
    )


def _per_thousand(found: Trend, samples: Sequence[Sample]) -> float:
    """Return MiB per 1,000 submissions to the backend, in the second half."""
    late = samples[len(samples) // 2 :]
    hours = (late[-1].seconds - late[0].seconds) / 3600
    submissions = late[-1].submissions - late[0].submissions
    return found.slope * hours / submissions * 1000 if submissions else float("nan")


def _kept(so: bool, figures: str) -> str:
    return f"{'kept' if so else 'BROKEN'}: {figures}"


def broken(told: Mapping[str, Any]) -> bool:
    """Tell whether a promise was broken."""
    return any(row["outcome"].startswith("BROKEN") for row in told["promises"])


def _memory(one: Watched) -> list[dict[str, Any]]:
    """Return the mean resident memory of each process, minute by minute."""
    rows = []
    for process in _processes(one.samples):
        mine = _of(one.samples, process)
        minutes: dict[int, list[float]] = {}
        for sample in mine:
            minutes.setdefault(int(sample.seconds // MINUTE), []).append(sample.rss)
        means = [round(float(np.mean(values)), 2) for values in minutes.values()]
        rows.append(
            {"backend": one.name, "process": process + 1, "minutes": [*minutes], "MiB": means}
        )
    return rows


def block(told: Mapping[str, Any]) -> str:
    """Return what stands in the document."""
    parts = [
        told["provenance"],
        f"{told['minutes']} minutes of a simulated study: workers, requester and money are imaginary. "
        + told["work"],
        "SQLite is served by one process; PostgreSQL by two behind nginx, whose figures stand side by side.",
        *told["notes"],
        tabulate(map(_shown, told["rows"]), headers="keys", tablefmt="github"),
        tabulate(told["promises"], headers="keys", tablefmt="github"),
        f"Memory is called flat where the upper end of the slope's 95 % interval, over the second half "
        f"of the time, is below {LIMIT:g} MiB an hour.",
        "Resident memory, a bar for each minute, from the lowest to the highest:",
        "```text\n" + "\n".join(map(_picture, told["memory"])) + "\n```",
    ]
    return "\n\n".join(parts)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the figures of several processes side by side."""
    return {
        name: " / ".join(f"{one:g}" for one in cell) if isinstance(cell, list) else cell
        for name, cell in row.items()
    }


def _picture(row: Mapping[str, Any]) -> str:
    """Return a line with bars.

    >>> _picture({"backend": "SQLite", "process": 1, "minutes": [0, 1, 2], "MiB": [90.0, 97.0, 95.0]})
    'SQLite 1       90.0 ▁█▆ 97.0 MiB'
    """
    means = [
        float(np.mean(part)) for part in np.array_split(row["MiB"], min(COLUMNS, len(row["MiB"])))
    ]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    bars = "".join(BARS[round((one - low) * scale)] for one in means)
    return f"{row['backend'] + ' ' + str(row['process']):<12} {low:>6.1f} {bars} {high:.1f} MiB"
