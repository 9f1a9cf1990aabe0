"""giccs annotate simulate: a dry run of a study with simulated workers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, Number
from bws.cli.options import arguments, option, seed_option

if TYPE_CHECKING:
    from mturk.study.simulated_workers import SimulationLog

share_type = Number(0, 1)
non_negative_type = Number(0, 1e6)


@command(
    "giccs annotate simulate",
    example="""
    giccs annotate simulate --truth dialogues.jsonl --workers 20
    giccs annotate simulate --truth scores.csv --workers 20 --return-rate 0.02 --abandon-rate 0.01
    giccs annotate simulate --truth scores.csv --links links.csv --endpoint https://work.example.org
    """,
    interrupt_message="all submitted assignments are stored at the service; run the same command to continue",
)
@option(
    "--truth",
    "True scores: a scores file, or dialogues with intended levels; for sentence pairs, a table with the "
    "column label (-1: the condition does not apply) or intended. Not required for writing conditions.",
    type=INPUT,
    metavar="SCORES",
)
@option(
    "--workers",
    "Number of workers; with --links, the first N.",
    type=click.IntRange(1, 500),
    metavar="N",
)
@option("--endpoint", "Service: local or a URL.", default="local", metavar="URL")
@option(
    "--links", "Personal links of the workers, if open entry is off.", type=INPUT, metavar="FILE"
)
@option("--noise", "SD of the noise of each judgment.", type=non_negative_type, default=0.25)
@option(
    "--disagreement",
    "SD of systematic differences between workers.",
    type=non_negative_type,
    default=0.0,
    metavar="SD",
)
@option(
    "--careless", "Share of tuples and anchors answered at random.", type=share_type, default=0.0
)
@option(
    "--middle",
    "Share of anchors answered with 50, or without a mark.",
    type=share_type,
    default=0.0,
)
@option(
    "--return-rate returns",
    "Share of returned HITs.",
    type=share_type,
    default=0.0,
    former_names="--returns",
)
@option(
    "--abandon-rate abandons",
    "Share of abandoned HITs, after which the worker stops.",
    type=share_type,
    default=0.0,
    former_names="--abandons",
)
@option(
    "--seconds-per-hit pace",
    "Mean seconds per HIT.",
    type=non_negative_type,
    default=0.0,
    metavar="SECONDS",
    former_names="--pace",
)
@option("--country", "Declared country of the workers.", default="DE", metavar="CODE")
@seed_option
def simulate(
    console: Console, truth: str | None, workers: int | None, endpoint: str, links: str | None,
    **behaviour: Any,
) -> None:  # fmt: skip
    """Let simulated workers do all available HITs through the worker site.

    They sign in, accept, answer by the true scores with noise, and submit until no HITs are available. Their
    ids are ASIMULATED1, ASIMULATED2, ... unless --links is given; the comment of every answer is "simulated".
    """
    from mturk.kinds import Behaviour
    from mturk.study.client import resolve
    from mturk.study.simulated_workers import read_truth, simulate_workers

    with arguments():
        service = resolve(endpoint)
        entry_links, true = _entry_links(workers, links), read_truth(truth) if truth else {}
        is_unit_truth = all(0 <= score <= 1 for score in true.values())
        settings = Behaviour(**behaviour, is_unit_truth=is_unit_truth)
    if service.amazon:
        raise click.UsageError("simulated workers are not allowed at Amazon's endpoints")
    rehearsal = _run_with_progress(
        console,
        lambda told: simulate_workers(service.url, entry_links, true, settings, on_submission=told),
    )
    console.answer(_text(rehearsal, service.url), _document(rehearsal, service.url))


def _entry_links(workers: int | None, links: str | None) -> list[str]:
    from mturk.study.simulated_workers import read_links, simulated_worker_ids

    if links is None:
        if workers is None:
            raise click.UsageError("--workers or --links is required")
        return simulated_worker_ids(workers)
    all_links = read_links(links)
    if workers is not None and workers > len(all_links):
        raise click.UsageError(
            f"--workers is {workers}, but {links} contains {len(all_links)} links"
        )
    return all_links[:workers]


def _run_with_progress(
    console: Console, work: Callable[[Callable[[Any], Any]], SimulationLog]
) -> SimulationLog:
    """Run the work with a progress bar without a total."""
    bar = console.progress(count(), "simulated submissions")
    return work(lambda _: next(bar))


def _text(rehearsal: SimulationLog, site: str) -> str:
    counts = {name: n for name, n in sorted(rehearsal.counts.items()) if n and name != "taken"}
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
