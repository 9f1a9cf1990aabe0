"""The blocks of docs/operations/scale.md: what was measured, what is computed from it, and where it ends."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tabulate import tabulate

from robustness.scale.assumptions import Assumptions
from robustness.scale.costs import GB, Projection, hours, study_cost, sweep
from robustness.scale.measurements import DESIGNS, Growth

__all__ = ["BLOCKS", "assumptions_table"]

PAPER_ITEMS = 300
"""Items of GiCCS."""
OTHER_BENCHMARKS = {
    "C-STS-2023, 18,908 instances of two sentences": 2 * 18_908,
    "EvalRank, background sentences": 24_957,
}
"""Sizes from the papers (C-STS, section 3; EvalRank, Table 2)."""


def assumptions_table(assumed: Assumptions) -> str:
    """Return a table of the assumptions, one row per value."""
    return _table(assumed.rows(), ["assumed", "value", "from"])


def answers(projection: Projection) -> str:
    """Return the two main results as text."""
    return f"{_wrapped(_of_study(projection))}\n\n{_wrapped(_of_sweep(projection))}"


def _of_study(projection: Projection) -> Iterator[str]:
    job, at_work, study = projection.bill, projection.load, projection.study
    people, total_gb = f"{study.workers:,}", sum(projection.storage.values()) / GB
    yield f"**A study of {study.items:,} items by {people} workers** is {job.judgments:,} judgments of"
    yield f"{job.tuples:,} tuples, on {job.assignments:,} answered HITs. It costs ${job.rewards:,.0f} in"
    yield f"rewards, and ${job.fees:,.0f} in fees where a marketplace takes what Mechanical Turk took."
    yield f"It is {job.hours:,.0f} hours of work, {job.hours_each:,.0f} of each worker,"
    yield f"{job.weeks:,.1f} weeks at {study.hours_a_week:g} hours a week. The split-half reliability of"
    yield f"its scores should be near {projection.reliability(study)} (simulated). If all {people} work at"
    yield f"the same time, they send {at_work.requests:,.0f} requests per second, {at_work.submissions:,.1f}"
    yield f"of them submissions; one process of the service handles {at_work.capacity:,.0f} submissions per"
    yield f"second at most. All stored data takes {total_gb:,.0f} GB. Money and people's hours are the limit,"
    yield "and next the memory in which a study is planned (last table)."


def _of_sweep(projection: Projection) -> Iterator[str]:
    items, price = projection.study.items, projection.assumptions.hardware.dollars_an_hour
    small, large = projection.sweeps(PAPER_ITEMS), projection.sweeps(items)
    separate = hours(projection.sweeps(items, shared=False))
    models = sum(m.count for m in projection.assumptions.models)
    loading = sum(cost.loading for cost in small) / hours(small)
    yield f"**A sweep of {models:,} models** over as many items as the paper's {PAPER_ITEMS} takes"
    yield f"{hours(small):,.1f} GPU hours, and {loading:.0%} of them are for starting and loading. Over"
    yield f"{items:,} items it takes {hours(large):,.0f} GPU hours (${hours(large) * price:,.0f}), and"
    yield f"{separate:,.0f} (${separate * price:,.0f}) if each option and each pair were read by itself."


def money(projection: Projection) -> str:
    """Return the cost of smaller and larger designs."""
    rows = []
    for tuples, people in DESIGNS:
        study = replace(projection.study, tuples_an_item=tuples, annotations=people)
        job = study_cost(study)
        rows.append([
            f"{tuples:g}", people, f"{job.judgments:,}", f"{job.assignments:,}",
            f"${job.rewards:,.0f}", f"${job.fees:,.0f}", f"${job.total:,.0f}", f"{job.hours:,.0f}",
            f"{job.hours_each:,.0f}", projection.reliability(study),
        ])  # fmt: skip
    heads = ["tuples per item", "annotations", "judgments", "assignments", "rewards", "fees", "total",
             "hours of work", "hours per worker", "reliability"]  # fmt: skip
    note = "Split-half reliability of the paper's scores, by source and length: 0.946 to 0.975 (Table 3)."
    return f"{_table(rows, heads)}\n\n{note}"


PARTS = {
    "files": ("items", {
        "design": "design s", "design, memory": "design MiB", "write tuples": "write tuples s",
        "tuples file": "tuples B", "write judgments": "write judgments s", "judgments file": "judgments B",
        "read judgments": "read judgments s", "count": "count s", "read and count, memory": "count MiB",
        "reliability, 10 trials": "reliability s", "all of these, memory": "reliability MiB",
    }),
    "plan": ("HITs", {
        "plan": "plan s", "plan, memory": "plan MiB", "write the ledger": "ledger s",
        "plan and ledger, memory": "ledger MiB", "ledger's HITs": "ledger B",
    }),
    "studied": ("submissions", {
        "publish, requester": "publish s", "publish, service": "publish service s",
        "database, HITs": "publish B", "work, service": "work service s", "database, assignments": "work B",
        "collect, requester": "collect s", "collect, service": "collect service s",
    }),
    "judged": ("assignments", {
        "answers into the ledger": "keep s", "ledger's assignments": "assignment B",
        "ledger to judgments": "judge s", "ledger to judgments, memory": "judge MiB",
    }),
    "encoding": ("texts", {"encode, package:minilm": "encode s"}),
    "store": ("results", {
        "signature of one result": "sign ms", "find one": "find ms",
        "look up a missing one": "miss ms", "add one": "add ms",
    }),
    "report": ("results", {"giccs-report, reading": "read s", "giccs-report, table": "table s"}),
}  # fmt: skip
"""Part -> unit of its size, and label of each table row -> name of its cost."""
UNITS = {"s": ("CPU s", 1), "ms": ("CPU ms", 1), "MiB": ("MiB", 1), "B": ("MB", 1e-6)}
"""Last word of a cost's name -> displayed unit and scale."""


def grown(projection: Projection) -> str:
    """Return a table of the growth of each part."""
    rows = [
        _grown(projection, part, of, label, name)
        for part, (of, names) in PARTS.items()
        for label, name in names.items()
    ]
    return _table(
        rows, ["part", "measured", "at the largest", "exponent", "per additional million"]
    )


def _grown(projection: Projection, part: str, of: str, label: str, name: str) -> list[str]:
    cost_growth, sizes = (
        projection.measurements.growth(part, name),
        getattr(projection.measurements, part),
    )
    unit, scale = UNITS[name.rpartition(" ")[2]]
    return [
        label, f"{min(sizes):,} to {max(sizes):,} {of}", f"{_short(cost_growth.cost * scale)} {unit}",
        _slope(cost_growth), f"{_short(cost_growth.rate * 1e6 * scale)} {unit}",
    ]  # fmt: skip


def _slope(cost_growth: Growth) -> str:
    return f"{cost_growth.exponent:.2f} ± {cost_growth.error:.2f}"


def _short(value: float) -> str:
    """Format with three significant digits, without exponent.

    >>> _short(0.01234), _short(12345.6), _short(-0.5)
    ('0.0123', '12,346', '-0.500')
    """
    digits = 0 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


STEPS = {
    "list": "list of work",
    "accept": "accept the next HIT",
    "show": "show the question",
    "submit": "submit",
    "count": "count own work",
}


def requested(projection: Projection) -> str:
    """Return tables of the cost of requests by number of stored assignments."""
    return "\n\n".join(_requested(projection))


def _requested(projection: Projection) -> Iterator[str]:
    measurements, last = projection.measurements, max(projection.measurements.requests)
    columns = [f"{n:,}" for n in measurements.requests]
    rows = [
        [STEPS[step], *(f"{costs[step]:.2f}" for costs in measurements.requests.values()),
         _slope(measurements.growth("requests", step)), f"{measurements.heavy[step]:.2f}"] for step in STEPS
    ]  # fmt: skip
    heads = ["SQLite, CPU ms (median)", *columns, "exponent", f"{last:,} by 20 workers"]
    yield _table(rows, heads)
    if not measurements.postgresql:
        yield "PostgreSQL: not measured, because no server is available."
        return
    rows = [
        [STEPS[step], *(f"{costs[step]:.2f}" for costs in measurements.postgresql.values()),
         _slope(measurements.growth("postgresql", step))] for step in STEPS
    ]  # fmt: skip
    columns = [f"{n:,}" for n in measurements.postgresql]
    yield _table(rows, ["PostgreSQL, CPU ms (median), its own included", *columns, "exponent"])


def swept(projection: Projection) -> str:
    """Return a table of the GPU hours of each class of models."""
    items = projection.study.items
    small, large = projection.sweeps(PAPER_ITEMS), projection.sweeps(items)
    separate = projection.sweeps(items, shared=False)
    rows = [
        [m.kind, f"{m.parameters:g}", m.count, small_cost.gpus, f"{small_cost.loading:,.1f}",
         f"{small_cost.compute:,.3f}", f"{large_cost.compute:,.1f}", f"{separate_cost.compute:,.1f}"]
        for m, small_cost, large_cost, separate_cost
        in zip(projection.assumptions.models, small, large, separate, strict=True)
    ]  # fmt: skip
    counts = [sum(m.count for m in projection.assumptions.models), ""]
    sums = [sum(getattr(sweep_cost, name) for sweep_cost in of) for of, name in (
        (small, "loading"), (small, "compute"), (large, "compute"), (separate, "compute"))]  # fmt: skip
    rows.append(["all", "", *counts, *(f"{total:,.1f}" for total in sums)])
    heads = ["kind", "billions", "models", "GPUs each", "start and load, h", f"{PAPER_ITEMS} items, h",
             f"{items:,} items, h", f"{items:,} items without sharing, h"]  # fmt: skip
    return f"{_wrapped(_tokens(projection))}\n\n{_table(rows, heads)}\n\n{_other_benchmarks(projection)}"


def _other_benchmarks(projection: Projection) -> str:
    """Return a table of the encoders' cost on other benchmarks."""
    encoders = [m for m in projection.assumptions.models if m.kind == "encoder"]
    each = projection.measurements.tokens["distinct"] / projection.measurements.tokens["texts"]
    rows = [
        [name, f"{texts:,}", f"{texts * each:,.0f}",
         f"{sum(sweep(m, texts * each, projection.assumptions.hardware).compute for m in encoders):,.3f}"]
        for name, texts in OTHER_BENCHMARKS.items()
    ]  # fmt: skip
    heads = [
        "texts of",
        "texts",
        "tokens, at the same rate per text",
        "all encoders, h, without loading",
    ]
    return _table(rows, heads)


def _tokens(projection: Projection) -> Iterator[str]:
    read = projection.measurements.tokens
    options, pairs = read["apart"] / read["shared"], read["columns"] / read["distinct"]
    yield f"Measured on giccs-sample ({read['dialogues']:.0f} dialogues, {read['items']:.0f} items): a"
    yield f"causal model reads {read['shared']:,.0f} tokens where options share their prompt and"
    yield f"{read['apart']:,.0f} where each is read by itself, {options:.2f} times as many (SmolLM2's"
    yield "tokenizer; with history, without, and the options alone). An encoder reads"
    yield f"{read['distinct']:,.0f} tokens of the {read['texts']:.0f} distinct texts and"
    yield f"{read['columns']:,.0f} of both columns, {pairs:.2f} times as many (MiniLM's tokenizer)."


def stored(projection: Projection) -> str:
    """Return a table of the storage of the study."""
    rows = [[label, f"{size / GB:,.1f}"] for label, size in projection.storage.items()]
    rows.append(["all", f"{sum(projection.storage.values()) / GB:,.1f}"])
    return _table(rows, ["storage, whole study", "GB"])


def saturation(projection: Projection) -> str:
    """Return a table of the limit of each part, and the remedy."""
    return _table(
        list(ends(projection)), ["part", "measured", "required by the study", "limit", "then"]
    )


def _wrapped(words: Iterator[str]) -> str:
    return textwrap.fill(" ".join(words), 200, break_long_words=False, break_on_hyphens=False)


def _table(
    rows: Iterator[Sequence[object]] | Sequence[Sequence[object]], heads: Sequence[str]
) -> str:
    return tabulate(list(rows), heads, tablefmt="pipe", disable_numparse=True)


BLOCKS = {
    "scale-answers": answers,
    "scale-assumptions": lambda projection: assumptions_table(projection.assumptions),
    "scale-money": money,
    "scale-storage": stored,
    "scale-growth": grown,
    "scale-requests": requested,
    "scale-sweep": swept,
    "scale-saturation": saturation,
}
"""Name of a block in the document -> function that formats it."""


MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
"""MiB of this machine."""
RESULTS = 2
"""Results per model in a sweep: on the paper's items and on the study's."""
NOT_FOUND = "no limit found"


class End(NamedTuple):
    """A row of the table of limits."""

    part: str
    measured: str
    needs: str
    ends: str
    then: str


def ends(projection: Projection) -> Iterator[End]:
    """Yield the parts in the order of a study."""
    yield from _people(projection)
    yield from _before(projection)
    yield from _service(projection)
    yield from _after(projection)
    yield from _models(projection)


def _people(projection: Projection) -> Iterator[End]:
    job = projection.bill
    yield End(
        "money", "not measured", f"${job.total:,.0f}", "the grant",
        "fewer tuples and annotations; a pilot shows the remaining reliability",
    )  # fmt: skip
    yield End(
        "people", "not measured", f"{job.hours_each:,.0f} hours each", "willingness of workers",
        "more workers: only the request rate grows with their number",
    )  # fmt: skip
    yield End(
        "Mechanical Turk", "not measured: closed on 30 September 2026", f"{job.hits:,} HITs",
        "reportedly throttled bursts of about 100 HITs", "a service of your own",
    )  # fmt: skip


def _before(projection: Projection) -> Iterator[End]:
    yield _of_memory(
        projection, "design", "files", "design MiB", projection.study.items, "items",
        "one design per part: dialogues are independent",
    )  # fmt: skip
    yield _of_memory(
        projection, "plan and ledger", "plan", "ledger MiB", projection.bill.hits, "HITs",
        "several studies with separate ledgers: all pages are rendered before the first call",
    )  # fmt: skip
    each = projection.cost_per_hit("publish s", "publish service s")
    yield End(
        "publish", f"{each * 1000:.1f} CPU ms per HIT, both sides",
        f"{each * projection.bill.hits / 3600:,.1f} CPU hours", NOT_FOUND,
        "several ledgers at once; the database still writes one HIT at a time",
    )  # fmt: skip


def _service(projection: Projection) -> Iterator[End]:
    at_work = projection.load
    yield End(
        "requests of workers", f"{projection.work.rate * 1000:.1f} CPU ms per submission",
        f"{at_work.submissions:,.1f} submissions per second; processes at half load: {at_work.processes}",
        f"{at_work.capacity:,.0f} per second, one process",
        "PostgreSQL and more processes (docs/operations/service.md)",
    )  # fmt: skip
    service_bytes = sum(
        size for label, size in projection.storage.items() if label.startswith("service")
    )
    assignment_bytes = projection.measurements.growth("studied", "work B").rate
    yield End(
        "the service's database",
        f"{projection.hit_bytes:,.0f} bytes per HIT, {assignment_bytes:,.0f} per assignment",
        f"{service_bytes / GB:,.0f} GB", "the disk, and the duration of a backup",
        "PostgreSQL; several studies, one after the other",
    )  # fmt: skip


def _after(projection: Projection) -> Iterator[End]:
    job, items = projection.bill, projection.study.items
    again = projection.cost_per_hit("nothing new s", "nothing new service s")
    yield End(
        "collect without new assignments", f"{again * 1000:.2f} CPU ms per HIT, both sides",
        f"{again * job.hits / 60:,.1f} CPU minutes", "the frequency of collecting",
        "collect once a day: each run lists every HIT with its page",
    )  # fmt: skip
    yield _of_memory(
        projection, "ledger to judgments", "judged", "judge MiB", job.assignments, "assignments",
        "several ledgers; their judgments files can be joined",
    )  # fmt: skip
    yield _of_memory(
        projection, "scores and reliability", "files", "reliability MiB", items, "items",
        "parts by dialogue: scores do not reach across dialogues",
    )  # fmt: skip
    halves = projection.measurements.growth("files", "reliability s")
    yield End(
        "reliability, time", f"{halves.cost:,.1f} CPU s for {halves.size:,} items, 10 trials",
        f"{halves.at(items):,.1f} CPU s", NOT_FOUND, "fewer trials: with many items they differ little",
    )  # fmt: skip


def _models(projection: Projection) -> Iterator[End]:
    measurements, items = projection.measurements, projection.study.items
    encode = measurements.growth("encoding", "encode s").rate
    texts = items * measurements.tokens["texts"] / measurements.tokens["items"]
    yield End(
        "encoding on a CPU", f"{1 / encode:,.0f} texts per second, package:minilm, one thread",
        f"{texts * encode / 3600:,.1f} CPU hours per model", "a few small models",
        "a GPU; several machines by Ray (giccs-eval --engine)",
    )  # fmt: skip
    size = measurements.store[max(measurements.store)]["result B"]
    results = RESULTS * sum(m.count for m in projection.assumptions.models)
    add = measurements.growth("store", "add ms")
    look, read = (
        measurements.growth("store", "find ms"),
        measurements.growth("report", "read s", "table s"),
    )
    yield End(
        "store of results",
        f"{look.cost:.2f} CPU ms to find one among {look.size:,}, exponent {look.exponent:.2f}",
        f"{results:,} results of at least {size:,.0f} bytes", NOT_FOUND,
        "object storage, mounted as a folder (not tried)",
    )  # fmt: skip
    yield End(
        "writing results", f"{add.cost:,.1f} CPU ms to add one to {add.size:,}, exponent {add.exponent:.2f}",
        f"{add.at(results):,.1f} CPU ms for the last", NOT_FOUND, "one folder per sweep",
    )  # fmt: skip
    yield End(
        "giccs-report", f"{read.cost:,.2f} CPU s for {read.size:,} results",
        f"{read.at(results):,.2f} CPU s", "the size of the table", "one folder per question",
    )  # fmt: skip
    large = hours(projection.sweeps(items))
    yield End(
        "GPUs", "not measured; the tokens are", f"{large:,.0f} GPU hours for {items:,} items",
        f"one GPU: {large / 24:,.0f} days", "several GPUs, one model each; fewer items",
    )  # fmt: skip


def _of_memory(
    projection: Projection, label: str, part: str, name: str, need: float, unit: str, then: str
) -> End:
    """Return a row of a part that is limited by memory."""
    cost_growth = projection.measurements.growth(part, name)
    return End(
        label, f"{cost_growth.cost:,.0f} MiB at {cost_growth.size:,} {unit}",
        f"{cost_growth.at(need) / 1024:,.1f} GiB",
        f"{_two_figures(cost_growth.reaches(MEMORY))} {unit} in {MEMORY / 1024:.0f} GiB of memory", then,
    )  # fmt: skip


def _two_figures(value: float) -> str:
    """Return a large number as nearly as it is known.

    >>> _two_figures(1_234_567), _two_figures(math.inf)
    ('1,200,000', 'no number of')
    """
    if math.isinf(value):
        return "no number of"
    return f"{round(value, 1 - math.floor(math.log10(value))):,.0f}"
