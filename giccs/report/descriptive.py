"""How are descriptions of dialogues and the spread of scores written: terminal, Markdown, LaTeX, CSV?"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from giccs.description.distribution import Bin
from giccs.description.statistics import Description
from giccs.measures.formatting import number
from giccs.report.cells import FORMATS, heading, remarks, tabulated

__all__ = ["FORMATS", "description_csv", "description_table", "distribution_table"]

PARTS = {
    "n_turns": "Dialogue turns",
    "domain": "Domain",
    "original_domain": "Original domain",
    "source": "Source",
}
NUMBERS = {
    "dialogues": "Dialogues",
    "rttr": "RTTR",
    "mtld": "MTLD",
    "tokens": "Tokens",
    "lemmas": "Lemma",
    "mean_turn_length": "Average turn length",
}
"""What Table 2 calls the numbers, in its order; the number of dialogues is our addition."""
CSV_NUMBERS = ("dialogues", "turns", "tokens", "rttr", "mtld", "lemmas", "mean_turn_length")
BAR = 40
"""Letters of the longest bar."""


def description_table(
    groups: Sequence[Description], by: Sequence[str], form: str = "table", said: Sequence[str] = ()
) -> str:
    """Return Table 2 in a format of `FORMATS`; below it the reasons, then what else is `said`.

    by: what `groups` were grouped by, the first columns; not empty.
    """
    headers = [*(PARTS[name] for name in by), *NUMBERS.values()]
    rows = [
        [*_named(group, by), *(_shown(getattr(group, name)) for name in NUMBERS)]
        for group in groups
    ]
    reasons = [
        f"{NUMBERS[name]} of {' '.join(filter(None, _named(group, by)))}: {reason}."
        for group in groups
        for name, reason in group.reasons.items()
    ]
    return "\n".join(
        [tabulated(rows, headers, form), "", *remarks([*reasons, *said], form)]
    ).rstrip()


def description_csv(groups: Sequence[Description], by: Sequence[str]) -> str:
    """Return a row a group, numbers with all digits; what is NaN is empty and has its reason."""
    rows = [[*by, *CSV_NUMBERS, "reasons"]]
    for group in groups:
        parts = [str(group.by.get(name, "")) for name in by]
        numbers = [number(getattr(group, name)) for name in CSV_NUMBERS]
        reasons = [f"{name}: {reason}" for name, reason in group.reasons.items()]
        rows.append([*parts, *numbers, "; ".join(reasons)])
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def distribution_table(bins: Sequence[Bin], form: str = "table") -> str:
    """Return Figure 1 in a format of `FORMATS`: in the terminal with a bar for each bin."""
    headers = ["Score", "Items"]
    rows = [[one.label, str(one.items)] for one in bins]
    if form == "table":
        most = max(one.items for one in bins) or 1
        headers.append("")
        for row, one in zip(rows, bins, strict=True):
            row.append("█" * round(BAR * one.items / most))
    title = heading("Score distribution (Figure 1)", form)
    return f"{title}\n\n{tabulated(rows, headers, form)}"


def _named(group: Description, by: Sequence[str]) -> list[str]:
    """Return the cells that say which group it is; the first one says so of the whole."""
    if not group.by:
        return ["all", *("" for _ in by[1:])]
    cells = {name: str(group.by[name]) or "(none)" for name in by}
    if "n_turns" in cells:
        cells["n_turns"] += "-turn"
    return list(cells.values())


def _shown(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "not defined" if math.isnan(value) else f"{value:.2f}"
