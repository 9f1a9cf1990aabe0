"""The data of the page "Annotation": progress from a file or a ledger, annotators, times, comments."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.model_annotators import is_simulated
from giccs.measures.comparison import wilson
from giccs_app.explorer.study import under_pseudonyms

if TYPE_CHECKING:
    from bws.annotators import AnnotatorReport
    from bws.records import Judgments, Tuples
    from mturk.study.ledger import Assignment, Ledger
    from mturk.study.status import Pace

MAX_POINTS = 400
"""Maximum number of points of a line over time."""
MAX_SIMULATED_WORKERS = 1000
"""Number of worker ids of ``giccs annotate simulate`` whose pseudonyms are recognised."""


@dataclass(frozen=True, eq=False)
class AnnotationFigures:
    """Tables on annotators, times, positions and comments."""

    annotators: pl.DataFrame | None
    """None if no judgment names its annotator."""
    too_few: int
    """Number of annotators with too few judgments to find random answers, see `bws.annotators`."""
    unnamed: int
    """Number of judgments without an annotator."""
    seconds: pl.DataFrame
    untimed: int
    """Number of judgments without a time."""
    positions: pl.DataFrame | None
    """None if the order of the items on the screen is unknown."""
    comments: pl.DataFrame


def compute_figures(judgments: Judgments) -> AnnotationFigures:
    """Compute all tables."""
    from bws.annotators import annotator_report

    is_named, seconds = judgments.annotator_of >= 0, seconds_of(judgments)
    report = None
    with suppress(ValueError):  # all tuples were chosen to be hard
        report = annotator_report(judgments) if is_named.any() else None
    return AnnotationFigures(
        annotator_frame(judgments, report) if report else None,
        report.too_few if report else 0,
        int(np.count_nonzero(~is_named)),
        seconds_frame(seconds),
        seconds.null_count(),
        position_frame(judgments),
        comment_frame(judgments),
    )


def tuple_counts(n_by_tuple: Mapping[str, int]) -> pl.DataFrame:
    """Return the number of tuples per number of judgments: judgments, tuples, share.

    >>> tuple_counts({"t1": 2, "t2": 0, "t3": 2, "t4": 2}).rows()
    [(0, 1, 0.25), (2, 3, 0.75)]
    """
    frame = pl.DataFrame({"judgments": list(n_by_tuple.values())}, schema={"judgments": pl.Int64})
    counts = frame.group_by("judgments").agg(pl.len().cast(pl.Int64).alias("tuples"))
    return counts.sort("judgments").with_columns(share=pl.col("tuples") / pl.sum("tuples"))


def incomplete_tuples(n_by_tuple: Mapping[str, int], requested: int) -> pl.DataFrame:
    """Return the tuples with fewer judgments than requested, those with most missing judgments first.

    >>> incomplete_tuples({"t1": 5, "t2": 3, "t3": 0}, 5).rows()
    [('t3', 0, 5), ('t2', 3, 2)]
    """
    return (
        pl.DataFrame(
            {"tuple": list(n_by_tuple), "judgments": list(n_by_tuple.values())},
            schema={"tuple": pl.String, "judgments": pl.Int64},
        )
        .with_columns(missing=requested - pl.col("judgments"))
        .filter(pl.col("missing") > 0)
        .sort("missing", "tuple", descending=[True, False])
    )


def cumulative_judgments(submitted: NDArray[np.float64]) -> pl.DataFrame:
    """Return the cumulative number of judgments over time: time (UTC), judgments.

    submitted: Unix times in seconds; NaN (unknown) is ignored. At most 400 points, including the first and
    the last.

    >>> cumulative_judgments(np.array([60.0, 0.0, 60.0, np.nan])).rows(named=True)[-1]["judgments"]
    3
    """
    times = np.sort(submitted[~np.isnan(submitted)])
    unique_times, last = np.unique(times[::-1], return_index=True)
    counts = len(times) - last
    indices = (
        np.linspace(0, max(len(unique_times) - 1, 0), min(MAX_POINTS, len(unique_times)))
        .round()
        .astype(int)
    )
    return pl.DataFrame(
        {
            "time": (unique_times[indices] * 1000).astype(np.int64),
            "judgments": counts[indices].astype(np.int64),
        }
    ).with_columns(pl.from_epoch("time", time_unit="ms").dt.replace_time_zone("UTC"))


def annotator_frame(judgments: Judgments, report: AnnotatorReport) -> pl.DataFrame:
    """Return one row per annotator, flagged annotators first.

    Columns: annotator, judgments, compliance (share of the implied pairs that agree with the scores from the
    other annotators), majority (share of the best and worst answers that agree with the majority of the
    others), scale with the limits of its interval, scale_first and scale_second (of both halves), seconds and
    shortest (median and minimum time), place_p, same_answer, flags (`bws.annotators.Flag`), reasons (texts),
    and ``best at N`` for each position on the
    screen. Unknown values are null.
    """
    k = judgments.tuples.k
    extra = _shortest(judgments).join(_majority(judgments), on="annotator", how="left")
    rows = [
        {
            "annotator": annotator.annotator,
            "judgments": annotator.judgments,
            "compliance": annotator.compliance,
            "scale": annotator.scale,
            "scale_low": annotator.scale_low,
            "scale_high": annotator.scale_high,
            "scale_first": annotator.scale_first,
            "scale_second": annotator.scale_second,
            "seconds": annotator.seconds,
            "place_p": annotator.place_p,
            "same_answer": annotator.same_answer,
            "flags": list(annotator.flags),
            "reasons": "; ".join(annotator.reasons),
        }
        | {
            f"best at {position}": share
            for position, share in enumerate(annotator.best_at, start=1)
        }
        for annotator in report.annotators
    ]
    lists = {"flags": pl.List(pl.String)}
    frame = pl.DataFrame(rows, schema_overrides=lists, infer_schema_length=None).fill_nan(None)
    columns = ["annotator", "judgments", "flags", "compliance", "majority"]
    columns += ["scale", "scale_low", "scale_high", "scale_first", "scale_second"]
    columns += ["seconds", "shortest", "place_p"]
    columns += ["same_answer", *(f"best at {n}" for n in range(1, k + 1)), "reasons"]
    frame = frame.join(extra, on="annotator", how="left")
    order = pl.col("flags").list.len()
    return frame.select(columns).sort(
        order, "compliance", "annotator", descending=[True, False, False], nulls_last=True
    )


def _shortest(judgments: Judgments) -> pl.DataFrame:
    names = _annotator_names(judgments)
    timed = pl.DataFrame({"annotator": names, "shortest": seconds_of(judgments)})
    return timed.drop_nulls("annotator").group_by("annotator").agg(pl.col("shortest").min())


def _majority(judgments: Judgments) -> pl.DataFrame:
    """Return the share of answers of each annotator that agree with the majority of the others.

    Tied majority answers count equal fractions of one; questions without other answers are ignored.
    """
    answers = pl.concat(
        pl.DataFrame(
            {
                "question": judgments.tuple_of.astype(np.int64) * 2 + question,
                "answer": positions.astype(np.int64),
                "annotator": _annotator_names(judgments),
            }
        )
        for question, positions in enumerate((judgments.best, judgments.worst))
    )
    votes = _count_votes(answers, judgments.tuples.k)
    answer_index = answers["answer"].to_numpy()
    other_votes = votes[answers["question"].to_numpy()]
    other_votes[np.arange(len(answer_index)), answer_index] -= 1
    max_votes = other_votes.max(axis=1)
    is_top = other_votes == max_votes[:, None]
    credit = is_top[np.arange(len(answer_index)), answer_index] / is_top.sum(axis=1)
    majority = pl.Series("majority", np.where(max_votes > 0, credit, np.nan)).fill_nan(None)
    scored = answers.with_columns(majority).drop_nulls("annotator")
    return scored.group_by("annotator").agg(pl.col("majority").mean())


def _count_votes(answers: pl.DataFrame, k: int) -> NDArray[np.int64]:
    """Return (questions, K) the counts of the answers."""
    question, answer = answers["question"].to_numpy(), answers["answer"].to_numpy()
    size = int(question.max(initial=-1)) + 1
    return np.bincount(question * k + answer, minlength=size * k).reshape(size, k)


def _annotator_names(judgments: Judgments) -> pl.Series:
    """Return (J,) the annotator of each judgment; null if unknown."""
    names = pl.Series(judgments.annotators.tolist(), dtype=pl.String)
    indices = pl.Series(judgments.annotator_of.astype(np.int64))
    return names.gather(indices.set(indices < 0, None))


def seconds_of(judgments: Judgments) -> pl.Series:
    """Return (J,) times in seconds; null if missing or not a non-negative number."""
    column = judgments.columns.get("seconds")
    if column is None:
        return pl.Series([None] * len(judgments), dtype=pl.Float64)
    texts = pl.Series(column.tolist(), dtype=pl.String).str.strip_chars()
    seconds = texts.cast(pl.Float64, strict=False)
    return seconds.set(~(seconds.is_finite() & (seconds >= 0)), None)


def seconds_frame(seconds: pl.Series, bins: int = 30) -> pl.DataFrame:
    """Return a histogram of the times with bins of equal width on a log scale: low, high, judgments.

    Times below 0.1 s count as 0.1 s; unknown times are ignored.

    >>> seconds_frame(pl.Series([1.0, 2.0, 100.0, None]), bins=2).rows()
    [(1.0, 10.0, 2), (10.0, 100.0, 1)]
    """
    known_seconds = np.maximum(seconds.drop_nulls().to_numpy(), 0.1)
    if not len(known_seconds):
        return pl.DataFrame(schema={"low": pl.Float64, "high": pl.Float64, "judgments": pl.Int64})
    low, high = float(known_seconds.min()), float(known_seconds.max())
    edges = np.geomspace(low, high if high > low else low * 1.1, bins + 1)
    counts, _ = np.histogram(known_seconds, np.array([0.0, *edges[1:-1], np.inf]))
    return pl.DataFrame({"low": edges[:-1], "high": edges[1:], "judgments": counts})


def position_frame(judgments: Judgments) -> pl.DataFrame | None:
    """Return how often the item at each position was chosen; None without order or judgments.

    Columns: answer (best or worst), place (from 1), count, share, low and high (95 %, Wilson 1927, for
    independent judgments), expected (1 / K).
    """
    n, k = len(judgments), judgments.tuples.k
    if judgments.shown is None or not n:
        return None
    rows = []
    for answer, positions in (("best", judgments.best), ("worst", judgments.worst)):
        counts = np.bincount(np.argmax(judgments.shown == positions[:, None], axis=1), minlength=k)
        for position, count in enumerate(counts.tolist(), start=1):
            rows.append((answer, position, count, count / n, *wilson(count, n), 1 / k))
    names = ["answer", "place", "count", "share", "low", "high", "expected"]
    return pl.DataFrame(rows, schema=names, orient="row")


def comment_frame(judgments: Judgments) -> pl.DataFrame:
    """Return the comments, longest first, one row per assignment: comment, annotator, tuple."""
    column = judgments.columns.get("comment")
    texts = [""] * len(judgments) if column is None else column.tolist()
    assignment = judgments.columns.get("assignment_id")
    assignment_ids = range(len(judgments)) if assignment is None else assignment.tolist()
    frame = pl.DataFrame(
        {
            "comment": pl.Series(texts, dtype=pl.String).str.strip_chars(),
            "annotator": _annotator_names(judgments),
            "tuple": pl.Series(judgments.tuples.ids[judgments.tuple_of].tolist(), dtype=pl.String),
            "assignment": pl.Series(list(map(str, assignment_ids)), dtype=pl.String),
        }
    ).filter(pl.col("comment") != "")
    distinct = frame.unique(["comment", "assignment"], keep="first", maintain_order=True)
    length = pl.col("comment").str.len_chars()
    return distinct.sort(length, descending=True, maintain_order=True).drop("assignment")


def judgment_frame(
    judgments: Judgments, items: pl.DataFrame, index_in_judgments: NDArray[np.int64]
) -> pl.DataFrame:
    """Return one row per judgment: tuple, annotator, dialogue, best, worst, and seconds and comment if any.

    items: of the benchmark; index_in_judgments: (N,) index of each item in `judgments.tuples.items`, -1 if
    missing. best and worst are utterances; for items that are not in the benchmark, dialogue is null and they
    are ids.
    """
    tuples = judgments.tuples
    known = np.flatnonzero(index_in_judgments >= 0)
    row_of = np.full(len(tuples.items), -1, dtype=np.int64)
    row_of[index_in_judgments[known]] = known

    def texts(column: str, item: NDArray[np.int32]) -> pl.Series:
        rows = pl.Series(row_of[item])
        return items[column].gather(rows.set(rows < 0, None))

    ids = pl.Series(list(map(str, tuples.items)), dtype=pl.String)
    columns = {
        "tuple": pl.Series(tuples.ids[judgments.tuple_of].tolist(), dtype=pl.String),
        "annotator": _annotator_names(judgments),
        "dialogue": texts("dialogue_id", judgments.best_item),
        **{
            answer: texts("utterance", item).fill_null(ids.gather(item))
            for answer, item in (("best", judgments.best_item), ("worst", judgments.worst_item))
        },
        "seconds": seconds_of(judgments),
    }
    if (comments := judgments.columns.get("comment")) is not None:
        columns["comment"] = pl.Series(comments.tolist(), dtype=pl.String).str.strip_chars()
    return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class AnnotationProgress:
    """The judgments collected so far, with pseudonymous annotators, and the state of the study."""

    judgments: Judgments | None
    """None if there are none yet."""
    n_by_tuple: Mapping[str, int]
    """Tuple id -> number of judgments."""
    requested: int | None
    """Requested judgments per tuple; None if unknown."""
    submitted: NDArray[np.float64] | None
    """(J,) Unix time of the submission of each judgment, in seconds; None if unknown."""
    simulated: bool
    """Whether the annotators are simulated."""
    replaced: int = 0
    """Number of annotators whose names were replaced by numbers."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """Number of HITs by state: meant, sent, created or closed; empty without a ledger."""
    assignments: Mapping[str, int] = field(default_factory=dict)
    """Number of assignments by state: Submitted, Approved, Rejected."""
    pace: Pace | None = None
    collected: float | None = None
    """Unix time of the last collection, in seconds."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Skipped assignments (``rejected``, ``unreadable``), answers (``invalid``, ``again``: repeated)
    and ``rows`` of a file; and ``order``: judgments whose order on the screen is unknown."""
    tuples: Tuples | None = None
    """Tuples of all rounds of a study in rounds, also those without judgments; None if unknown."""
    items: frozenset[tuple[str, str]] = frozenset()
    """Group and item of all tuples of a ledger, control items included; empty without a ledger."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Displayed name -> name in the file of judgments, of annotators whose names differ."""
    key: str = ""
    """Cache key; changes with the annotation."""

    @cached_property
    def judgments_per_tuple(self) -> int:
        """Requested judgments per tuple, by default the most frequent number of judgments."""
        counts = Counter(self.n_by_tuple.values())
        most_frequent = max(counts, key=lambda n: (counts[n], n), default=1)
        return self.requested or max(most_frequent, 1)


def from_judgments(judgments: Judgments) -> AnnotationProgress:
    """Return the progress of a judgments file.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> records = [Judgment(("a", "b", "c"), "a", "c", annotator="AB12", tuple_id="t1")]
    >>> progress = from_judgments(judgments_from_records(records))
    >>> progress.n_by_tuple, progress.judgments_per_tuple, progress.judgments.annotators.tolist()
    ({'t1': 1}, 1, ['#1'])
    """
    pseudonymous, n_replaced = under_pseudonyms(judgments)
    counts = np.bincount(judgments.tuple_of, minlength=len(judgments.tuples))
    return AnnotationProgress(
        pseudonymous,
        dict(zip(judgments.tuples.ids.tolist(), counts.tolist(), strict=True)),
        None,
        None,
        any(map(is_simulated, judgments.annotators)),
        n_replaced,
        left_out={"rows": judgments.n_left_out},
    )


def ledger_version(path: str) -> tuple[int, ...]:
    """Return a value that changes with each write to a ledger: modification times and sizes of its files."""
    version = []
    for name in (path, f"{path}-wal"):
        with suppress(OSError):
            status = os.stat(name)
            version += [status.st_mtime_ns, status.st_size]
    return tuple(version)


def from_ledger(path: str) -> AnnotationProgress:
    """Return the progress of a study from its ledger, which is opened read-only.

    Only assignments collected by ``giccs annotate collect`` or ``status`` are included. Raises InputError if
    there is no ledger or the ledger has no study.
    """
    from mturk.study.rounds import study_tuples
    from mturk.study.valid_answers import read_valid_answers

    with _read_only(path) as ledger:
        study = ledger.study()
        collected = read_valid_answers(ledger)
        assignments = ledger.assignments()
        hits = ledger.hits()
        tuples = study_tuples(ledger) if ledger.rounds() else None
        items = {(part.group, item) for part in ledger.parts() for item in part.items}
        simulated = not _simulated_workers(ledger).isdisjoint(
            assignment.worker for assignment in assignments
        )
    states = Counter(assignment.status for assignment in assignments)
    pseudonymous, n_replaced = (
        under_pseudonyms(collected.judgments) if collected.judgments else (None, 0)
    )
    return AnnotationProgress(
        judgments=pseudonymous,
        n_by_tuple=collected.answers_per_tuple,
        requested=study.settings.assignments,
        submitted=_submission_times(collected.judgments, assignments),
        simulated=simulated,
        replaced=n_replaced,
        hits=Counter(hit.state for hit in hits),
        assignments=states,
        pace=_pace(assignments, sum(hit.max_assignments for hit in hits if hit.hit_id)),
        collected=max((assignment.collected_at for assignment in assignments), default=None),
        left_out={**dict(collected.counts.items()), "order": collected.n_without_order},
        tuples=tuples,
        items=frozenset(items),
    )


@contextmanager
def _read_only(path: str) -> Iterator[Ledger]:
    """Open a ledger read-only, with one consistent snapshot."""
    from mturk.study.ledger import APPLICATION_ID, VERSION, Ledger

    if not os.path.isfile(path):
        raise _input_error(
            path, "no such ledger; expected a file created by giccs annotate publish"
        )
    connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    connection.isolation_level = None
    try:
        connection.execute("BEGIN")
        versions = [connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")]  # fmt: skip
        if versions != [APPLICATION_ID, VERSION]:
            raise _input_error(path, f"not a ledger of version {VERSION}")
        yield Ledger(connection, path)
    except sqlite3.DatabaseError as error:
        raise _input_error(path, f"cannot read the ledger: {error}") from None
    finally:
        connection.close()


def _simulated_workers(ledger: Ledger) -> set[str]:
    """Return the ids or pseudonyms of simulated workers in this ledger; empty if its key is missing."""
    from mturk.study.privacy import key_path, pseudonym_namer
    from mturk.study.simulated_workers import simulated_worker_ids

    ids = simulated_worker_ids(MAX_SIMULATED_WORKERS)
    if not ledger.study().settings.pseudonyms:
        return set(ids)
    with suppress(InputError, OSError):
        if key_path(ledger).exists():
            return set(map(pseudonym_namer(ledger), ids))
    return set()


def _submission_times(
    judgments: Judgments | None, assignments: Sequence[Assignment]
) -> NDArray[np.float64] | None:
    if judgments is None:
        return None
    times = {assignment.assignment_id: assignment.submit_time for assignment in assignments}
    return np.array(
        [times.get(assignment_id) for assignment_id in judgments.columns["assignment_id"]],
        dtype=float,
    )


def _pace(assignments: Sequence[Assignment], max_assignments: int) -> Pace:
    """Return the pace at the time of the last submission; the ledger has no accepted assignments."""
    from mturk.study.status import AssignmentCounts, estimate_pace

    n_by_status = Counter(assignment.status for assignment in assignments)
    counts = AssignmentCounts(
        wanted=max_assignments,
        open=max(max_assignments - len(assignments), 0),
        closed=0,
        accepted=0,
        submitted=n_by_status["Submitted"],
        approved=n_by_status["Approved"],
        rejected=n_by_status["Rejected"],
    )
    times = [
        assignment.submit_time for assignment in assignments if assignment.submit_time is not None
    ]
    return estimate_pace(times, counts, max(times, default=0.0))


def _input_error(path: str, message: str) -> InputError:
    return InputError(Problem(path, None, message))
