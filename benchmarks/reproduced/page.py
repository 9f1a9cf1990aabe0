"""The page of published values: its text from outcomes, and its rows read again for comparison."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.reproduced.values import Outcome, Row, State
from bws.base.tables import Column, ResultTable

Rows = Mapping[tuple[str, str], tuple[str, str, str, str]]
"""(data set, statistic) -> published, giccs, difference, state."""
COLUMNS = [
    Column("statistic", "statistic"),
    *(Column(name, name, align="right") for name in ("published", "giccs", "difference")),
    Column("state", "state"),
]
FILE_OF_VALUES = "all values of the file"
"""Statistic of the row of a missing file of published values."""
UNKNOWN_REASON = "reason unknown"


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the result as a sentence."""
    states = Counter(row.state for outcome in outcomes for row in outcome.rows)
    computed = [o for o in outcomes if any(row.state is not State.MISSING for row in o.rows)]
    n = states.total() - states[State.MISSING]
    sentence = (
        f"Of {n} published values in {len(computed)} tables, {states[State.EQUAL]} are equal to those of "
        f"giccs to the last published digit, {states[State.INSIDE]} differ but are inside its 95 % "
        f"interval, and {states[State.DIFFERS]} differ; the reasons are stated below the tables."
    )
    differing = [
        f"{outcome.recipe.data_set} ({n})"
        for outcome in outcomes
        if (n := sum(row.state is State.DIFFERS for row in outcome.rows))
    ]
    if differing:
        sentence += f" Those that differ are in: {'; '.join(differing)}."
    if absent := [o.recipe.data_set for o in outcomes if o.missing]:
        sentence += (
            f" {states[State.MISSING]} further values need data that were not here "
            f"({'; '.join(dict.fromkeys(absent))})."
        )
    return sentence


def tables(outcomes: Sequence[Outcome]) -> str:
    """Return one section per data set, as Markdown."""
    return "\n\n".join(_section(outcome) for outcome in outcomes)


def _section(outcome: Outcome) -> str:
    recipe = outcome.recipe
    lines = [f"## {recipe.data_set}", f"Published: {recipe.source}. Data: {recipe.address}."]
    if outcome.missing:
        expected = ", ".join(f"`{file}`" for file in outcome.missing)
        lines[-1] += f" Expected as {expected} in the folder of the data."
    lines.append("\n".join(f"    {line}" for line in recipe.command.splitlines()))
    rows = [row.cells() for row in outcome.rows] or [(FILE_OF_VALUES, "", "", "", State.MISSING)]
    lines.append(ResultTable(COLUMNS, rows).text("markdown"))
    if notes := [*_notes(outcome.rows), *(f"- {remark}" for remark in recipe.remarks)]:
        lines.append("\n".join(notes))
    return "\n\n".join(lines)


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the reasons for differences, each with its statistics."""
    different = [row for row in rows if row.state in (State.INSIDE, State.DIFFERS)]
    for reason in dict.fromkeys(row.reason for row in different):
        names = [row.statistic for row in different if row.reason == reason]
        which = "" if len(names) == len(rows) else f"{'; '.join(names)}: "
        yield f"- {which}{reason or UNKNOWN_REASON}."


def parsed(text: str) -> Rows:
    """Return the rows of a page.

    Raises ValueError for a page without rows.
    """
    rows, data_set = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            data_set = line.removeprefix("## ")
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == len(COLUMNS) and cells[-1] in [*State]:
            statistic, *others = cells
            rows[data_set, statistic] = (others[0], others[1], others[2], others[3])
    if not rows:
        raise ValueError("the page has no rows")
    return rows


def changes(committed: Rows, outcomes: Sequence[Outcome]) -> list[str]:
    """Return how the values of outcomes differ from those of a page.

    Values whose data are missing now are not compared. Of recipes that are not exact, only states are.
    """
    found = []
    for outcome in outcomes:
        name = outcome.recipe.data_set
        if outcome.missing:
            continue
        expected = {key[1]: cells for key, cells in committed.items() if key[0] == name}
        found += [f"{name}: {key}: not on the page" for key in _without(outcome.rows, expected)]
        names = [row.statistic for row in outcome.rows]
        found += [f"{name}: {key}: only on the page" for key in expected if key not in names]
        for row in outcome.rows:
            cells = row.cells()[1:]
            old = expected.get(row.statistic, cells)
            if _compared(old, outcome) != _compared(cells, outcome):
                found.append(
                    f"{name}: {row.statistic}: {_text(old)} on the page, now {_text(cells)}"
                )
    return found


def _without(rows: Sequence[Row], expected: Mapping[str, object]) -> list[str]:
    return [row.statistic for row in rows if row.statistic not in expected]


def _compared(cells: tuple[str, str, str, str], outcome: Outcome) -> tuple[str, ...]:
    return cells if outcome.recipe.is_exact else (cells[0], cells[3])


def _text(cells: tuple[str, str, str, str]) -> str:
    published, value, _, state = cells
    return f"published {published}, giccs {value}, {state}"
