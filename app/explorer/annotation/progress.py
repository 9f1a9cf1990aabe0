"""The progress of an annotation study, read from a judgments file or from the ledger of a running study."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.explorer.study import under_pseudonyms
from bws.problems import InputError, Problem
from bws.simulate import is_simulated

if TYPE_CHECKING:
    from bws.records import Judgments
    from mturk.study.ledger import Assignment, Ledger
    from mturk.study.status import Pace

__all__ = ["Progress", "from_judgments", "from_ledger", "ledger_version"]

SIMULATED = 1000
"""So many of the ids that mturk-hits rehearse gives its workers are known by their pseudonyms."""


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
