"""Files of anchors: answers to items on their own, and the plan of which person answers which."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bws.base.frames import Source
from bws.base.ids import normal_id
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.text import display_name, write_atomic
from bws.files.columns import quoted
from bws.files.schema import (
    ANY_TEXT,
    NAME,
    OPTIONAL_TEXT,
    Field,
    Row,
    Unique,
    choice,
    normal_ids,
    records,
    table_rows,
)
from bws.files.table import read_table
from bws.records import Judgments, Tuples

Kind = Literal["rating", "mark"]
KINDS: dict[str, Kind] = {"rating": "rating", "mark": "mark"}
COLUMNS = ("group", "item", "annotator", "kind", "answer", "position", "seconds", "assignment_id")
PLAN_COLUMNS = ("group", "anchor", "kind")


@dataclass(frozen=True, slots=True)
class Anchor:
    """One annotator's answer to one item on its own."""

    group: str
    item: str
    annotator: str
    kind: Kind
    answer: int
    """A rating from 0 to 100, or whether the item was marked, 1 or 0."""
    position: int = 0
    """Position among the anchors of the group on the page, from 1; 0 if unknown."""
    seconds: float | None = None
    """Time for the anchors of the group; None if unknown."""
    assignment_id: str = ""
    line: int | None = None
    """Line of the file."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """Anchors of one kind, in the order of the file."""

    rows: Sequence[Anchor]
    file: str = "anchors"

    @property
    def kind(self) -> Kind:
        """The kind of all anchors."""
        return self.rows[0].kind

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class PlannedAnchor:
    """Items that the person with a number in a group answers, in the order of the page."""

    group: str
    anchor: int
    """Number of the person in the group, from 1; further persons begin again at 1."""
    kind: Kind
    items: tuple[str, ...]


Plan = Sequence[PlannedAnchor]
WITHOUT_JUDGMENTS = "{n:d} anchors of {m:d} annotators without judgments are left out"


def _whole(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("it must be a whole number from 0")
    return int(text)


def _position(text: str) -> int:
    return _whole(text) if text.strip() else 0


def _seconds(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError("it must be a number of seconds from 0, or empty")
    return value


KIND: Field[Kind] = choice(KINDS, "rating", "rating or mark")
WHOLE = Field(_whole, 0)
POSITION = Field(_position, 0, required=False)
SECONDS: Field[float | None] = Field(_seconds, None, required=False)


def read_anchors(path: Source) -> Anchors:
    """Read anchors: ``group,item,annotator,kind,answer``, perhaps ``position,seconds,assignment_id``.

    Raises InputError with every fault: empty fields, kinds other than rating and mark, answers that are not
    whole numbers from 0 to 100 (ratings) or 0 and 1 (marks), several kinds, and repeated answers of an
    annotator to an item.
    """
    table = read_table(path, COLUMNS)
    table.need(COLUMNS[:5])
    unique = Unique[Anchor]("answer of an annotator to an item", _key, normal_ids)
    found = records(table.file, table_rows(table, COLUMNS), _anchor, [unique], table.problems)
    rows = found.checked("anchors")
    kinds = {row.kind: row.line for row in reversed(rows)}
    if len(kinds) > 1:
        line = max(line or 0 for line in kinds.values())
        message = (
            f"kind is {rows[0].kind} in earlier rows and another here; expected one kind of anchor"
        )
        raise InputError(Problem(table.file, line or None, message))
    return Anchors(rows, table.file)


def _anchor(row: Row) -> Anchor:
    kind, answer = row.get("kind", KIND), row.get("answer", WHOLE)
    if answer > (100 if kind == "rating" else 1):
        expected = "a whole number from 0 to 100" if kind == "rating" else "0 or 1"
        row.wrong(f"answer is {answer}; expected {expected} for kind {kind}")
    return Anchor(
        normal_id(row.get("group", ANY_TEXT)), normal_id(row.get("item", NAME)),
        normal_id(row.get("annotator", NAME)), kind, answer, row.get("position", POSITION),
        row.get("seconds", SECONDS), row.get("assignment_id", OPTIONAL_TEXT), row.location.line,
    )  # fmt: skip


def _key(row: Anchor) -> tuple[str, str, str]:
    return row.group, row.item, row.annotator


def write_anchors(rows: Sequence[Anchor], path: str | os.PathLike[str]) -> None:
    """Write anchors as CSV, atomically (``-`` is standard output)."""
    values = [
        [row.group, row.item, row.annotator, row.kind, row.answer, row.position or "", _text(row.seconds),
         row.assignment_id]
        for row in rows
    ]  # fmt: skip
    write_atomic(path, csv_text(values, COLUMNS))


def _text(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:g}"


def of_annotators(anchors: Anchors, judgments: Judgments) -> tuple[Anchors, list[str]]:
    """Return the anchors of people with judgments, and a note on those of others, such as excluded ones.

    Raises InputError if nobody has both.
    """
    known = set(judgments.canonical.annotators)
    rows = [row for row in anchors.rows if row.annotator in known]
    if not rows:
        example = quoted(next(iter(known), ""))
        message = (
            f"no annotator of the judgments, such as {example}, has anchors; expected the same names in both "
            "files"
        )
        raise InputError(Problem(anchors.file, None, message))
    others = {row.annotator for row in anchors.rows} - known
    if not others:
        return anchors, []
    n_left_out = len(anchors) - len(rows)
    return replace(anchors, rows=rows), [note(WITHOUT_JUDGMENTS, n=n_left_out, m=len(others))]


def check_anchors(anchors: Anchors, judgments: Judgments) -> None:
    """Raise InputError for anchors that do not belong to the judgments, with every fault.

    Faults are groups and items without judgments, annotators and groups that fall into separate sets, and
    ratings that repeat the scores of the judgments.
    """
    problems = list(_unknown(anchors, judgments))
    problems = problems or [*separate_sets(anchors), *_copied_scores(anchors, judgments)]
    if problems:
        raise InputError(problems)


def _unknown(anchors: Anchors, judgments: Judgments) -> Iterator[Problem]:
    keys = set(judgments.canonical.item_keys)
    groups = {group for group, _ in keys}
    for row in anchors.rows:
        group, item = quoted(row.group), quoted(row.item)
        message = ""
        if row.group not in groups:
            message = f"group {group} has no judgments; expected a group of the judgments"
        elif (row.group, row.item) not in keys:
            message = (
                f"item {item} of group {group} has no judgments; expected an item of the judgments"
            )
        if message:
            yield Problem(anchors.file, row.line, message)


def separate_sets(anchors: Anchors) -> Iterator[Problem]:
    """Yield a problem if no annotator links all groups: differences of people would look like differences
    of groups, as with people of one domain each.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes = {node: index for index, node in enumerate(dict.fromkeys(_nodes(anchors)))}
    edges = np.array([nodes[node] for node in _nodes(anchors)]).reshape(-1, 2).T
    graph = coo_array((np.ones(len(anchors)), tuple(edges)), shape=(len(nodes), len(nodes)))
    count, label = connected_components(graph, directed=False)
    if count > 1:
        groups = [name for kind, name in nodes if kind == "group"]
        other = next(name for name in groups if label[nodes["group", name]] != label[edges[1, 0]])
        message = (
            f"annotators and groups fall into {count} separate sets, such as those of groups "
            f"{quoted(groups[0])} and {quoted(other)}: thresholds of people and means of groups cannot be "
            "distinguished; expected annotators who answer anchors in several sets"
        )
        yield Problem(anchors.file, None, message)


def _nodes(anchors: Anchors) -> Iterator[tuple[str, str]]:
    """Yield the annotator and the group of each anchor."""
    for row in anchors.rows:
        yield "annotator", row.annotator
        yield "group", row.group


MIN_COPIED = 20
"""Number of answers from which they are compared with the scores."""
COPIED = 0.98
"""Correlation of single ratings with the scores, which people do not reach, from which they are a copy."""


def _copied_scores(anchors: Anchors, judgments: Judgments) -> Iterator[Problem]:
    from bws.scoring import score

    if len(anchors) < MIN_COPIED:
        return
    scores = score(judgments)
    by_key = dict(zip(scores.item_keys, scores.score.tolist(), strict=True))
    pairs = np.array([(row.answer, by_key[row.group, row.item]) for row in anchors.rows], float).T
    if np.ptp(pairs, axis=1).min() == 0:
        return
    answer, of_item = pairs
    if anchors.kind == "mark":  # A copy if one threshold of the scores separates all marks.
        marked, unmarked = of_item[answer > 0], of_item[answer == 0]
        is_copy = marked.min() > unmarked.max() or unmarked.min() > marked.max()
    else:
        is_copy = abs(np.corrcoef(pairs)[0, 1]) > COPIED
    if is_copy:
        message = "the answers repeat the scores of the judgments; expected answers of people to single items"
        yield Problem(anchors.file, None, message)


# --- plans --------------------------------------------------------------------------------------------------


def read_plan(path: Source, tuples: Tuples | None = None) -> tuple[PlannedAnchor, ...]:
    """Read a plan of anchors: ``group,anchor,kind,item1,item2``, ...

    tuples: the design whose groups and items are expected. Raises InputError with every fault.
    """
    table = read_table(path, PLAN_COLUMNS)
    table.need(PLAN_COLUMNS)
    items = [name for name in table.frame.columns if name.startswith("item")]
    known = None if tuples is None else set(tuples.item_keys)

    def planned(row: Row) -> PlannedAnchor:
        names = tuple(normal_id(row.values[name]) for name in items if row.values[name].strip())
        group, kind = normal_id(row.get("group", ANY_TEXT)), row.get("kind", KIND)
        if len(set(names)) < len(names) or not names:
            row.wrong(
                f"items are {', '.join(map(quoted, names)) or 'missing'}; expected different items"
            )
        for name in names:
            if known is not None and (group, name) not in known:
                row.wrong(
                    f"item {quoted(name)} of group {quoted(group)} is in no tuple; expected one"
                )
        return PlannedAnchor(group, row.get("anchor", WHOLE), kind, names)

    unique = Unique[PlannedAnchor]("anchor of a group", lambda row: (row.group, str(row.anchor)))
    rows = table_rows(table, (*PLAN_COLUMNS, *items))
    plan = records(display_name(path), rows, planned, [unique], table.problems).checked(
        "planned anchors"
    )
    if len({row.kind for row in plan}) > 1:
        raise InputError(
            Problem(table.file, None, "kinds rating and mark; expected one kind of anchor")
        )
    return plan


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan as CSV, atomically (``-`` is standard output)."""
    width = max(len(row.items) for row in plan)
    header = [*PLAN_COLUMNS, *(f"item{n}" for n in range(1, width + 1))]
    rows = [
        [row.group, row.anchor, row.kind, *row.items, *[""] * (width - len(row.items))]
        for row in plan
    ]
    write_atomic(path, csv_text(rows, header))


def anchors_of_group(plan: Plan) -> Mapping[str, list[PlannedAnchor]]:
    """Return the planned anchors of each group, by their numbers."""
    found: dict[str, list[PlannedAnchor]] = {}
    for row in sorted(plan, key=lambda row: row.anchor):
        found.setdefault(row.group, []).append(row)
    return found
