"""mturk-hits simulate: a rehearsal of a study with workers that are none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import arguments, option, seed_option
from bws.command import Console, command
from bws.options import Number

if TYPE_CHECKING:
    from mturk.study.simulated_workers import SimulationLog

__all__ = ["simulate"]

share_type = Number(0, 1)
non_negative_type = Number(0, 1e6)


@command(
    "mturk-hits simulate",
    example="""
    mturk-hits simulate --truth dialogues.jsonl --workers 20
    mturk-hits simulate --truth scores.csv --workers 20 --return-rate 0.02 --abandon-rate 0.01
    mturk-hits simulate --truth scores.csv --links links.csv --endpoint https://work.example.org
    """,
    interrupt_message="the service has every submitted assignment; repeat the command to continue",
)
@option(
    "--truth",
    "True scores of the items: scores, or dialogues with intended levels; for conditions of sentence pairs "
    "a table with label or intended. Only the writing of conditions can do without.",
    metavar="SCORES",
)
@option(
    "--workers", "How many; with --links the first N.", type=click.IntRange(1, 500), metavar="N"
)
@option("--endpoint", "The service: local or its address.", default="local", metavar="URL")
@option("--links", "Personal links to enter by, where open entry is off.", metavar="FILE")
@option("--noise", "How far judgments stray from the truth.", type=non_negative_type, default=0.25)
@option(
    "--disagreement",
    "How far workers differ for good: the SD of their tastes.",
    type=non_negative_type,
    default=0.0,
    metavar="SD",
)
@option("--careless", "Share of tuples answered without looking.", type=share_type, default=0.0)
@option(
    "--return-rate returns",
    "Share of HITs that are returned.",
    type=share_type,
    default=0.0,
    former_names="--returns",
)
@option(
    "--abandon-rate abandons",
    "Share of HITs left lying; the worker goes.",
    type=share_type,
    default=0.0,
    former_names="--abandons",
)
@option(
    "--seconds-per-hit pace",
    "Mean seconds spent on a HIT.",
    type=non_negative_type,
    default=0.0,
    metavar="SECONDS",
    former_names="--pace",
)
@option("--country", "Where the workers say they are.", default="DE", metavar="CODE")
@seed_option
def simulate(
    console: Console, truth: str | None, workers: int | None, endpoint: str, links: str | None,
    **behaviour: Any,
) -> None:  # fmt: skip
    """Let simulated workers do all work there is, through the worker site.

    They enter, accept, answer by the true scores with noise, submit and go on until nothing is left.
    What they say is marked: their ids are ASIMULATED1, ASIMULATED2, ... unless they come by links, and
    the comment of every answer is "simulated".
    """
    from mturk.kinds import Behaviour
    from mturk.study.client import resolve
    from mturk.study.simulated_workers import read_truth, simulate_workers

    with arguments():
        service = resolve(endpoint)
        settings = Behaviour(**behaviour)
    if service.amazon:
        raise click.UsageError("simulated workers work on a service of one's own only")
    entry_links, true = _entry_links(workers, links), read_truth(truth) if truth else {}
    rehearsal = _run_with_progress(
        console,
        lambda told: simulate_workers(service.url, entry_links, true, settings, on_submission=told),
    )
    console.answer(_text(rehearsal, service.url), _document(rehearsal, service.url))


def _entry_links(workers: int | None, links: str | None) -> list[str]:
    from mturk.study.simulated_workers import read_links, simulated_worker_ids

    if links is None:
        if workers is None:
            raise click.UsageError("--workers or --links is needed")
        return simulated_worker_ids(workers)
    all_links = read_links(links)
    if workers is not None and workers > len(all_links):
        raise click.UsageError(f"--workers is {workers}, but {links} holds {len(all_links)} links")
    return all_links[:workers]


def _run_with_progress(
    console: Console, work: Callable[[Callable[[Any], Any]], SimulationLog]
) -> SimulationLog:
    """Do the work while a bar counts; it has no total, so it ends with this function."""
    bar = console.progress(count(), "simulated submissions")
    return work(lambda _: next(bar))


def _text(rehearsal: SimulationLog, site: str) -> str:
    counts = {name: n for name, n in sorted(rehearsal.counts.items()) if n}
    lines = [
        f"simulated at {site}: {', '.join(f'{n} {name}' for name, n in counts.items()) or 'nothing'}"
    ]
    if rehearsal.by_worker:
        numbers = sorted(rehearsal.by_worker.values())
        lines.append(
            f"{len(numbers)} simulated workers: {numbers[0]} to {numbers[-1]} submissions each"
        )
    lines += [f"refused: {reason} ({n} times)" for reason, n in rehearsal.refusals.most_common()]
    lines.append(f"{'page':<12}{'n':>8}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}")
    for kind, row in rehearsal.quantiles().items():
        times = "".join(f"{row[q] * 1000:>9.1f}" for q in ("p50", "p95", "p99"))
        lines.append(f"{kind:<12}{row['n']:>8.0f}{times}")
    return "\n".join(lines)


def _document(rehearsal: SimulationLog, site: str) -> dict[str, Any]:
    return {
        "simulated": True,
        "endpoint": site,
        "counts": dict(rehearsal.counts),
        "by_worker": dict(rehearsal.by_worker),
        "refusals": dict(rehearsal.refusals),
        "seconds": rehearsal.quantiles(),
    }
