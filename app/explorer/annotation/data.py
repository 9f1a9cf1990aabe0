"""The data of the page "Annotation": progress by a file or a ledger, annotators, times, comments."""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.explorer.study import under_pseudonyms
from bws.problems import InputError, Problem
from bws.simulate import is_simulated

if TYPE_CHECKING:
    from bws.annotators import AnnotatorReport
    from bws.records import Judgments
    from bws.tables import ResultTable
    from mturk.study.ledger import Assignment, Ledger
    from mturk.study.status import Pace

__all__ = [
    "Figures",
    "Progress",
    "annotator_frame",
    "behind",
    "comment_frame",
    "consistency",
    "figures",
    "from_judgments",
    "from_ledger",
    "ledger_version",
    "over_time",
    "place_frame",
    "seconds_frame",
    "seconds_of",
    "tuple_counts",
    "wilson",
]

POINTS = 400
"""A line over time has at most so many points."""
SIMULATED = 1000
"""So many of the ids that mturk-hits rehearse gives its workers are known by their pseudonyms."""
Z = 1.959963984540054
"""Of a 95 % interval."""
FLAGS = {
    "compliance ": "compliance",
    "best answers by place": "places",
    "the same two places": "same",
}
"""How bws.annotators begins its reasons -> what they are about; every other one is about time."""


@dataclass(frozen=True, eq=False)
class Figures:
    """What judgments tell about annotators and answers."""

    annotators: pl.DataFrame | None
    """None: no judgment names its annotator."""
    unnamed: int
    """Judgments that name no annotator."""
    seconds: pl.DataFrame
    untimed: int
    """Judgments whose time is not known."""
    places: pl.DataFrame | None
    """None: the order shown is not known."""
    comments: pl.DataFrame


def figures(judgments: Judgments) -> Figures:
    """Compute all of them."""
    from bws.annotators import annotator_report

    named, seconds = judgments.annotator_of >= 0, seconds_of(judgments)
    return Figures(
        annotator_frame(judgments, annotator_report(judgments)) if named.any() else None,
        int(np.count_nonzero(~named)),
        seconds_frame(seconds),
        seconds.null_count(),
        place_frame(judgments),
        comment_frame(judgments),
    )


def consistency(judgments: Judgments) -> dict[str, ResultTable]:
    """Return ``reliability``, over 100 random halves, and ``agreement`` with its intervals."""
    from bws.agreement import agreement
    from bws.split_half import reliability

    return {
        "reliability": reliability(judgments, split="annotation").result_table(),
        "agreement": agreement(judgments, intervals=True).result_table(),
    }


def tuple_counts(of_tuple: Mapping[str, int]) -> pl.DataFrame:
    """Return how many tuples have how many judgments: judgments, tuples, share.

    >>> tuple_counts({"t1": 2, "t2": 0, "t3": 2, "t4": 2}).rows()
    [(0, 1, 0.25), (2, 3, 0.75)]
    """
    judged = pl.DataFrame({"judgments": list(of_tuple.values())}, schema={"judgments": pl.Int64})
    counts = judged.group_by("judgments").agg(pl.len().cast(pl.Int64).alias("tuples"))
    return counts.sort("judgments").with_columns(share=pl.col("tuples") / pl.sum("tuples"))


def behind(of_tuple: Mapping[str, int], wanted: int) -> pl.DataFrame:
    """Return the tuples that have fewer judgments than wanted, those that lack most first.

    >>> behind({"t1": 5, "t2": 3, "t3": 0}, 5).rows()
    [('t3', 0, 5), ('t2', 3, 2)]
    """
    return (
        pl.DataFrame(
            {"tuple": list(of_tuple), "judgments": list(of_tuple.values())},
            schema={"tuple": pl.String, "judgments": pl.Int64},
        )
        .with_columns(missing=wanted - pl.col("judgments"))
        .filter(pl.col("missing") > 0)
        .sort("missing", "tuple", descending=[True, False])
    )


def over_time(submitted: NDArray[np.float64]) -> pl.DataFrame:
    """Return how many judgments were in by when: time (UTC), judgments.

    submitted: seconds since 1970; NaN where the time is not known, which does not count. At most 400
    points, the first and the last among them.

    >>> over_time(np.array([60.0, 0.0, 60.0, np.nan])).rows(named=True)[-1]["judgments"]
    3
    """
    times = np.sort(submitted[~np.isnan(submitted)])
    at, last = np.unique(times[::-1], return_index=True)
    counts = len(times) - last
    kept = np.linspace(0, max(len(at) - 1, 0), min(POINTS, len(at))).round().astype(int)
    return pl.DataFrame(
        {"time": (at[kept] * 1000).astype(np.int64), "judgments": counts[kept].astype(np.int64)}
    ).with_columns(pl.from_epoch("time", time_unit="ms").dt.replace_time_zone("UTC"))


def annotator_frame(judgments: Judgments, report: AnnotatorReport) -> pl.DataFrame:
    """Return a row an annotator, those to look at first.

    annotator, judgments, compliance (share of the implied pairs in the order of the others' scores),
    majority (share of the best and worst answers that most of the others gave to the same tuple),
    seconds and shortest (median and least time), place_p, same_answer, flags (what to look at: see
    `FLAGS`), reasons (in words), and a column ``best at PLACE`` for each place on the screen. Null
    where it is not known.
    """
    k = judgments.tuples.k
    extra = _shortest(judgments).join(_majority(judgments), on="annotator", how="left")
    rows = [
        {
            "annotator": one.annotator,
            "judgments": one.judgments,
            "compliance": one.compliance,
            "seconds": one.seconds,
            "place_p": one.place_p,
            "same_answer": one.same_answer,
            "flags": [_flag(reason) for reason in one.reasons],
            "reasons": "; ".join(one.reasons),
        }
        | {f"best at {place}": share for place, share in enumerate(one.best_at, start=1)}
        for one in report.annotators
    ]
    lists = {"flags": pl.List(pl.String)}
    frame = pl.DataFrame(rows, schema_overrides=lists, infer_schema_length=None).fill_nan(None)
    first = ["annotator", "judgments", "flags", "compliance", "majority", "seconds", "shortest"]
    first += ["place_p", "same_answer", *(f"best at {n}" for n in range(1, k + 1)), "reasons"]
    frame = frame.join(extra, on="annotator", how="left")
    order = pl.col("flags").list.len()
    return frame.select(first).sort(
        order, "compliance", "annotator", descending=[True, False, False], nulls_last=True
    )


def _flag(reason: str) -> str:
    return next((flag for begin, flag in FLAGS.items() if reason.startswith(begin)), "seconds")


def _shortest(judgments: Judgments) -> pl.DataFrame:
    names = _annotator_names(judgments)
    timed = pl.DataFrame({"annotator": names, "shortest": seconds_of(judgments)})
    return timed.drop_nulls("annotator").group_by("annotator").agg(pl.col("shortest").min())


def _majority(judgments: Judgments) -> pl.DataFrame:
    """Return for each annotator the share of answers that most of the others gave to the same question.

    Of equally frequent answers each counts its part of one; a question that nobody else answered does not
    count.
    """
    answers = pl.concat(
        pl.DataFrame(
            {
                "question": judgments.tuple_of.astype(np.int64) * 2 + which,
                "answer": place.astype(np.int64),
                "annotator": _annotator_names(judgments),
            }
        )
        for which, place in enumerate((judgments.best, judgments.worst))
    )
    table = _votes(answers, judgments.tuples.k)
    own = answers["answer"].to_numpy()
    others = table[answers["question"].to_numpy()]
    others[np.arange(len(own)), own] -= 1
    most = others.max(axis=1)
    tops = others == most[:, None]
    agreed = tops[np.arange(len(own)), own] / tops.sum(axis=1)
    majority = pl.Series("majority", np.where(most > 0, agreed, np.nan)).fill_nan(None)
    scored = answers.with_columns(majority).drop_nulls("annotator")
    return scored.group_by("annotator").agg(pl.col("majority").mean())


def _votes(answers: pl.DataFrame, k: int) -> NDArray[np.int64]:
    """Return (questions, K) counts of answers."""
    question, answer = answers["question"].to_numpy(), answers["answer"].to_numpy()
    size = int(question.max(initial=-1)) + 1
    return np.bincount(question * k + answer, minlength=size * k).reshape(size, k)


def _annotator_names(judgments: Judgments) -> pl.Series:
    """Return (J,) names; null where none is named."""
    names = pl.Series(judgments.annotators.tolist(), dtype=pl.String)
    at = pl.Series(judgments.annotator_of.astype(np.int64))
    return names.gather(at.set(at < 0, None))


def seconds_of(judgments: Judgments) -> pl.Series:
    """Return (J,) times in seconds; null where none is known, or the text is no number of at least 0."""
    column = judgments.columns.get("seconds")
    if column is None:
        return pl.Series([None] * len(judgments), dtype=pl.Float64)
    found = pl.Series(column.tolist(), dtype=pl.String).str.strip_chars()
    seconds = found.cast(pl.Float64, strict=False)
    return seconds.set(~(seconds.is_finite() & (seconds >= 0)), None)


def seconds_frame(seconds: pl.Series, bins: int = 30) -> pl.DataFrame:
    """Return how the times are distributed: low, high, judgments; bins of equal width on a log scale.

    Times under a tenth of a second are in the first bin; unknown ones do not count.

    >>> seconds_frame(pl.Series([1.0, 2.0, 100.0, None]), bins=2).rows()
    [(1.0, 10.0, 2), (10.0, 100.0, 1)]
    """
    known = np.maximum(seconds.drop_nulls().to_numpy(), 0.1)
    if not len(known):
        return pl.DataFrame(schema={"low": pl.Float64, "high": pl.Float64, "judgments": pl.Int64})
    low, high = float(known.min()), float(known.max())
    edges = np.geomspace(low, high if high > low else low * 1.1, bins + 1)
    counts, _ = np.histogram(known, np.array([0.0, *edges[1:-1], np.inf]))
    return pl.DataFrame({"low": edges[:-1], "high": edges[1:], "judgments": counts})


def place_frame(judgments: Judgments) -> pl.DataFrame | None:
    """Return how often what was shown at each place was chosen; None where the order shown is not known.

    answer (best or worst), place (from 1), count, share, low and high (95 %, Wilson 1927, as if all
    judgments were independent), expected (1 / K).
    """
    if judgments.shown is None:
        return None
    n, k = len(judgments), judgments.tuples.k
    rows = []
    for answer, chosen in (("best", judgments.best), ("worst", judgments.worst)):
        counts = np.bincount(np.argmax(judgments.shown == chosen[:, None], axis=1), minlength=k)
        for place, count in enumerate(counts.tolist(), start=1):
            low, high = wilson(count, n)
            share = count / n if n else math.nan
            rows.append((answer, place, count, share, low, high, 1 / k))
    names = ["answer", "place", "count", "share", "low", "high", "expected"]
    return pl.DataFrame(rows, schema=names, orient="row")


def wilson(count: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927); from 0 to 1 where n is 0.

    >>> low, high = wilson(5, 10)
    >>> round(low, 4), round(high, 4)
    (0.2366, 0.7634)
    """
    if not n:
        return 0.0, 1.0
    share, extra = count / n, Z**2 / n
    middle = (share + extra / 2) / (1 + extra)
    half = Z / (1 + extra) * math.sqrt(share * (1 - share) / n + extra / (4 * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def comment_frame(judgments: Judgments) -> pl.DataFrame:
    """Return the comments, longest first: comment, annotator, tuple; one row an assignment."""
    column = judgments.columns.get("comment")
    texts = [""] * len(judgments) if column is None else column.tolist()
    assignment = judgments.columns.get("assignment_id")
    own = range(len(judgments)) if assignment is None else assignment.tolist()
    frame = pl.DataFrame(
        {
            "comment": pl.Series(texts, dtype=pl.String).str.strip_chars(),
            "annotator": _annotator_names(judgments),
            "tuple": pl.Series(judgments.tuples.ids[judgments.tuple_of].tolist(), dtype=pl.String),
            "assignment": pl.Series(list(map(str, own)), dtype=pl.String),
        }
    ).filter(pl.col("comment") != "")
    once = frame.unique(["comment", "assignment"], keep="first", maintain_order=True)
    longest = pl.col("comment").str.len_chars()
    return once.sort(longest, descending=True, maintain_order=True).drop("assignment")


@dataclass(frozen=True, eq=False)
class Progress:
    """What annotators have said so far, under pseudonyms."""

    judgments: Judgments | None
    """None: there are none yet."""
    of_tuple: Mapping[str, int]
    """Tuple id -> judgments."""
    wanted: int | None
    """Judgments that each tuple is to have; None where the source does not tell."""
    submitted: NDArray[np.float64] | None
    """(J,) when each judgment was submitted, seconds since 1970; None where the source does not tell."""
    simulated: bool
    """Whether the annotators are simulated."""
    replaced: int = 0
    """Annotators whose names are no pseudonyms, and who are numbered here instead."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """HITs by state: meant, sent, created or closed; empty where there is no ledger."""
    assignments: Mapping[str, int] = field(default_factory=dict)
    """Assignments by state: Submitted, Approved, Rejected."""
    pace: Pace | None = None
    collected: float | None = None
    """When the last answer was collected, seconds since 1970."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What is no judgment: assignments ``rejected`` or ``unreadable``, answers ``invalid`` or given ``again``
    by the same person, ``rows`` of a file; and ``order``: judgments that do not tell the order shown."""
    key: str = ""
    """Changes when the annotation does; what is computed from it is cached by this key."""

    @property
    def usual(self) -> int:
        """How many judgments a tuple is to have: what is wanted, or else what most tuples have."""
        counts = Counter(self.of_tuple.values())
        most = max(counts, key=lambda n: (counts[n], n), default=1)
        return self.wanted or max(most, 1)


def from_judgments(judgments: Judgments) -> Progress:
    """Return what a judgments file tells.

    >>> from bws.records import Judgment, Judgments
    >>> said = [Judgment(("a", "b", "c"), "a", "c", annotator="AB12", tuple_id="t1")]
    >>> found = from_judgments(Judgments.from_records(said))
    >>> found.of_tuple, found.usual, found.judgments.annotators.tolist()
    ({'t1': 1}, 1, ['annotator 1'])
    """
    shown, replaced = under_pseudonyms(judgments)
    counts = np.bincount(judgments.tuple_of, minlength=len(judgments.tuples))
    return Progress(
        shown,
        dict(zip(judgments.tuples.ids.tolist(), counts.tolist(), strict=True)),
        None,
        None,
        any(map(is_simulated, judgments.annotators)),
        replaced,
        left_out={"rows": judgments.n_left_out},
    )


def ledger_version(path: str) -> tuple[int, ...]:
    """Return what changes whenever something is written to a ledger: times and sizes of its files."""
    found = []
    for name in (path, f"{path}-wal"):
        with suppress(OSError):
            at = os.stat(name)
            found += [at.st_mtime_ns, at.st_size]
    return tuple(found)


def from_ledger(path: str) -> Progress:
    """Return what a ledger tells; nothing is written to it, and it is open only meanwhile.

    It knows what ``mturk-hits collect`` and ``status`` have collected, not what the service has besides.
    Raises InputError where there is no ledger, or no study in it.
    """
    from mturk.study.valid_answers import judged

    with _read_only(path) as book:
        study = book.study()
        found = judged(book)
        assignments = book.assignments()
        hits = book.hits()
        simulated = not _simulated(book).isdisjoint(one.worker for one in assignments)
    states = Counter(one.status for one in assignments)
    shown, replaced = under_pseudonyms(found.judgments) if found.judgments else (None, 0)
    return Progress(
        judgments=shown,
        of_tuple=found.of_tuple,
        wanted=study.settings.assignments,
        submitted=_submitted(found.judgments, assignments),
        simulated=simulated,
        replaced=replaced,
        hits=Counter(hit.state for hit in hits),
        assignments=states,
        pace=_pace(assignments, sum(hit.max_assignments for hit in hits if hit.hit_id)),
        collected=max((one.collected_at for one in assignments), default=None),
        left_out={**dict(found.counts.items()), "order": found.order_unknown},
    )


@contextmanager
def _read_only(path: str) -> Iterator[Ledger]:
    """Open a ledger so that SQLite refuses every write, and see one state of it throughout."""
    from mturk.study.ledger import APPLICATION, VERSION, Ledger

    if not os.path.isfile(path):
        raise _refused(path, "no such ledger; mturk-hits publish makes it")
    connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    connection.isolation_level = None
    try:
        connection.execute("BEGIN")
        said = [connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")]  # fmt: skip
        if said != [APPLICATION, VERSION]:
            raise _refused(path, f"is no ledger of a study of version {VERSION}")
        yield Ledger(connection, path)
    except sqlite3.DatabaseError as error:
        raise _refused(path, f"cannot be read as a ledger ({error})") from None
    finally:
        connection.close()


def _simulated(book: Ledger) -> set[str]:
    """Return what the workers of a rehearsal are called in this ledger, as far as its key is there."""
    from mturk.study.privacy import key_path, pseudonyms_of
    from mturk.study.simulated_workers import worker_ids

    ids = worker_ids(SIMULATED)
    if not book.study().settings.pseudonyms:
        return set(ids)
    with suppress(InputError, OSError):
        if key_path(book).exists():
            return set(map(pseudonyms_of(book), ids))
    return set()


def _submitted(
    judgments: Judgments | None, assignments: Sequence[Assignment]
) -> NDArray[np.float64] | None:
    if judgments is None:
        return None
    times = {one.assignment_id: one.submit_time for one in assignments}
    return np.array([times.get(one) for one in judgments.columns["assignment_id"]], dtype=float)


def _pace(assignments: Sequence[Assignment], places: int) -> Pace:
    """Return the pace as of the last answer collected: the ledger does not know who works just now."""
    from mturk.study.status import Counts, pace

    back = Counter(one.status for one in assignments)
    counts = Counts(
        wanted=places,
        open=max(places - len(assignments), 0),
        closed=0,
        accepted=0,
        submitted=back["Submitted"],
        approved=back["Approved"],
        rejected=back["Rejected"],
    )
    times = [one.submit_time for one in assignments if one.submit_time is not None]
    return pace(times, counts, max(times, default=0.0))


def _refused(path: str, message: str) -> InputError:
    return InputError(Problem(path, None, message))
