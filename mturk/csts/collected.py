"""How answers about sentence pairs are written: CSV, a row each."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence

from bws.textio import write_atomic
from mturk import answers
from mturk.judged import Answered

__all__ = ["context", "write_rows"]

CONTEXT = ("annotator", "assignment_id", "seconds", "comment")


def context(row: Answered) -> list[str]:
    """Return who gave an answer, where, in how many seconds, and the comment of the whole form."""
    seconds = dict(row.fields).get(answers.seconds_field(row.asked.tuple_id), "")
    said = row.assignment.assignment_id, seconds, answers.comment(row.fields)
    return [row.annotator, *said]


def write_rows(
    header: Sequence[str], rows: Iterable[Sequence[str]], path: str | os.PathLike[str]
) -> None:
    """Write the columns of a kind of study and those of `context`, whole or not at all."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*header, *CONTEXT])
    writer.writerows(rows)
    write_atomic(path, out.getvalue())
