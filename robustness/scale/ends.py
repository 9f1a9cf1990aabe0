"""Where does each part of the work end, and what comes after it?"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import NamedTuple

from robustness.scale.arithmetic import hours
from robustness.scale.paper import GB, Paper

__all__ = ["End", "ends"]

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
"""MiB of this machine."""
RESULTS = 2
"""Of a model in a sweep: on the paper's items and on the study's."""
NOT_FOUND = "no end found"


class End(NamedTuple):
    """A row of the table."""

    part: str
    measured: str
    needs: str
    ends: str
    then: str


def ends(paper: Paper) -> Iterator[End]:
    """Yield the parts in the order of the work."""
    yield from _people(paper)
    yield from _before(paper)
    yield from _service(paper)
    yield from _after(paper)
    yield from _models(paper)


def _people(paper: Paper) -> Iterator[End]:
    job = paper.bill
    yield End(
        "money", "not measured", f"${job.total:,.0f}", "the grant",
        "fewer tuples and annotations; a pilot says what reliability is left",
    )  # fmt: skip
    yield End(
        "people", "not measured", f"{job.hours_each:,.0f} hours each", "what people will do",
        "more workers: only requests a second grow with their number",
    )  # fmt: skip
    yield End(
        "Mechanical Turk", "not measured: closed on 30 September 2026", f"{job.hits:,} HITs",
        "it is said to have throttled bursts of about 100 HITs", "a service of your own",
    )  # fmt: skip


def _before(paper: Paper) -> Iterator[End]:
    yield _of_memory(
        paper, "design", "files", "design MiB", paper.study.items, "items",
        "a design for each part: dialogues are independent",
    )  # fmt: skip
    yield _of_memory(
        paper, "plan and ledger", "plan", "ledger MiB", paper.bill.hits, "HITs",
        "several studies, a ledger each: all pages are rendered and held before the first call",
    )  # fmt: skip
    each = paper.a_hit("publish s", "publish service s")
    yield End(
        "publish", f"{each * 1000:.1f} CPU ms a HIT, both sides",
        f"{each * paper.bill.hits / 3600:,.1f} CPU hours", NOT_FOUND,
        "several ledgers at once; the database still writes one HIT at a time",
    )  # fmt: skip


def _service(paper: Paper) -> Iterator[End]:
    at_work = paper.load
    yield End(
        "requests of workers", f"{paper.work.rate * 1000:.1f} CPU ms a submission",
        f"{at_work.submissions:,.1f} submissions a second: processes, half busy: {at_work.processes}",
        f"{at_work.capacity:,.0f} a second, one process",
        "PostgreSQL and more processes (docs/study.md, section 8)",
    )  # fmt: skip
    kept = sum(size for what, size in paper.storage.items() if what.startswith("service"))
    written = paper.found.growth("studied", "work B").rate
    yield End(
        "the service's database", f"{paper.hit_bytes:,.0f} bytes a HIT, {written:,.0f} an assignment",
        f"{kept / GB:,.0f} GB", "the disk, and the time of a backup",
        "PostgreSQL; several studies, one after the other",
    )  # fmt: skip


def _after(paper: Paper) -> Iterator[End]:
    job, items = paper.bill, paper.study.items
    again = paper.a_hit("nothing new s", "nothing new service s")
    yield End(
        "collect where nothing is new", f"{again * 1000:.2f} CPU ms a HIT, both sides",
        f"{again * job.hits / 60:,.1f} CPU minutes", "how often you look",
        "collect once a day: each round lists every HIT with its page",
    )  # fmt: skip
    yield _of_memory(
        paper, "ledger to judgments", "judged", "judge MiB", job.assignments, "assignments",
        "several ledgers; their judgments files can be joined",
    )  # fmt: skip
    yield _of_memory(
        paper, "scores and reliability", "files", "reliability MiB", items, "items",
        "parts by dialogue: scores do not reach across dialogues",
    )  # fmt: skip
    halves = paper.found.growth("files", "reliability s")
    yield End(
        "reliability, time", f"{halves.cost:,.1f} CPU s for {halves.size:,} items, 10 trials",
        f"{halves.at(items):,.1f} CPU s", NOT_FOUND, "fewer trials: among many items they differ little",
    )  # fmt: skip


def _models(paper: Paper) -> Iterator[End]:
    found, items = paper.found, paper.study.items
    encode = found.growth("encoding", "encode s").rate
    texts = items * found.tokens["texts"] / found.tokens["items"]
    yield End(
        "encoding on a CPU", f"{1 / encode:,.0f} texts a second, package:minilm, one thread",
        f"{texts * encode / 3600:,.1f} CPU hours a model", "a few small models",
        "a GPU; several machines by Ray (giccs-eval --engine)",
    )  # fmt: skip
    size = found.store[max(found.store)]["result B"]
    results = RESULTS * sum(m.count for m in paper.assumed.models)
    add = found.growth("store", "add ms")
    look, read = found.growth("store", "find ms"), found.growth("report", "read s", "table s")
    yield End(
        "store of results",
        f"{look.cost:.2f} CPU ms to find one among {look.size:,}, exponent {look.exponent:.2f}",
        f"{results:,} results, {size:,.0f} bytes and more each", NOT_FOUND,
        "object storage, mounted as a folder (not tried)",
    )  # fmt: skip
    yield End(
        "writing results", f"{add.cost:,.1f} CPU ms to add one to {add.size:,}, exponent {add.exponent:.2f}",
        f"{add.at(results):,.1f} CPU ms for the last", NOT_FOUND, "a folder for each sweep",
    )  # fmt: skip
    yield End(
        "giccs-report", f"{read.cost:,.2f} CPU s for {read.size:,} results",
        f"{read.at(results):,.2f} CPU s", "a table that nobody reads", "a folder for each question",
    )  # fmt: skip
    large = hours(paper.sweeps(items))
    yield End(
        "GPUs", "not measured; the tokens are", f"{large:,.0f} GPU hours for {items:,} items",
        f"one GPU: {large / 24:,.0f} days", "several GPUs, a model each; fewer items",
    )  # fmt: skip


def _of_memory(
    paper: Paper, what: str, part: str, name: str, need: float, unit: str, then: str
) -> End:
    """Return a row of something that ends where the memory does."""
    one = paper.found.growth(part, name)
    return End(
        what, f"{one.cost:,.0f} MiB at {one.size:,} {unit}", f"{one.at(need) / 1024:,.1f} GiB",
        f"{_two_figures(one.reaches(MEMORY))} {unit} in {MEMORY / 1024:.0f} GiB of memory", then,
    )  # fmt: skip


def _two_figures(value: float) -> str:
    """Return a large number as nearly as it is known.

    >>> _two_figures(1_234_567), _two_figures(math.inf)
    ('1,200,000', 'no number of')
    """
    if math.isinf(value):
        return "no number of"
    return f"{round(value, 1 - math.floor(math.log10(value))):,.0f}"
