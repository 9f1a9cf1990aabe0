"""Does an expert agree with the scores? Above or below the middle of the scale, item by item.

Paper section 4.3: a linguist read the items without their scores and said of each whether the similarity is
higher or lower than 0.5; Table 4 lists the items on which judgment and score do not match.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bws.clusters import too_few_clusters_note
from bws.problems import InputError, Problem
from bws.records import normal_id
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs.measures.metrics import Estimate

if TYPE_CHECKING:
    from bws.files.table import Table

__all__ = [
    "SIDE_LABELS",
    "ExpertCheck",
    "ExpertGroup",
    "Mismatch",
    "Side",
    "agreement_share",
    "compare_with_expert",
    "item_code",
    "make_expert_sheet",
    "read_expert",
    "score_side",
]

Side = Literal["higher", "lower"]

MIDPOINT = 0.5
CODE_DIGITS = 12
SHEET_COLUMNS = ("code", "dialogue", "last_turn", "utterance", "judgment")
SIDE_LABELS: Mapping[Side, str] = {"higher": "> 0.5", "lower": "< 0.5"}
"""How Table 4 writes an expert's judgment."""
MIDPOINT_PATTERN = r"(?:\s*(?:than|als)?\s*0?[.,]50*)?"
SIDE_PATTERNS: Mapping[Side, re.Pattern[str]] = {
    "higher": re.compile(rf"(?:higher|höher|hoeher|>){MIDPOINT_PATTERN}"),
    "lower": re.compile(rf"(?:lower|niedriger|<){MIDPOINT_PATTERN}"),
}
EXPECTED_JUDGMENT = 'higher, > 0.5 or höher; lower, < 0.5 or niedriger; empty for "not judged yet"'
MAX_LISTED_ITEMS = 5


def score_side(score: float) -> Side | None:
    """Return on which side of 0.5 a score lies; None exactly there.

    >>> score_side(0.65), score_side(0.35), score_side(0.5)
    ('higher', 'lower', None)
    """
    if math.isclose(
        score, MIDPOINT, abs_tol=1e-9
    ):  # 15 best and 15 worst of 30 need not be 0.5 exactly
        return None
    return "higher" if score > MIDPOINT else "lower"


def make_expert_sheet(benchmark: Benchmark, seed: int = 0) -> str:
    """Return the CSV that an expert fills in: every item once, no score, the column ``judgment`` empty.

    The order is random and goes round the dialogues: two items of one dialogue are not neighbours (unless
    there is hardly another dialogue), so that neither order nor comparison tells a score. Items go by a
    code, since ids may tell the writer's level (``…-a`` to ``…-e``).
    """
    import polars as pl

    rows = [
        (item_code(item), _format_turns(item.turns), item.last_turn, item.utterance, "")
        for item in _shuffle_items(benchmark.items, seed)
    ]
    return pl.DataFrame(rows, schema=list(SHEET_COLUMNS), orient="row").write_csv()


def item_code(item: Item) -> str:
    """Return what the sheet calls an item: the beginning of its id's SHA-256, never a number."""
    return f"x{hashlib.sha256(item.item_id.encode()).hexdigest()[:CODE_DIGITS]}"


def _format_turns(turns: Sequence[Turn]) -> str:
    return "\n".join(
        f"{turn.speaker or number}: {turn.text}" for number, turn in enumerate(turns, start=1)
    )


def _shuffle_items(items: Sequence[Item], seed: int) -> list[Item]:
    """Return the items in rounds, each with one item of every dialogue that has any left."""
    rng = np.random.default_rng(seed)
    dialogues: dict[str, list[Item]] = {}
    for index in rng.permutation(len(items)):
        dialogues.setdefault(items[index].dialogue_id, []).append(items[index])
    ordered: list[Item] = []
    for dialogue_round in zip_longest(*dialogues.values()):
        round_items = [item for item in dialogue_round if item is not None]
        shuffled = [round_items[index] for index in rng.permutation(len(round_items))]
        if ordered and shuffled[0].dialogue_id == ordered[-1].dialogue_id:
            shuffled.append(shuffled.pop(0))
        ordered += shuffled
    return ordered


def read_expert(path: str | os.PathLike[str], benchmark: Benchmark) -> dict[str, Side | None]:
    """Return what the expert judged of each item id; None where the sheet is still empty.

    The file is a filled-in sheet, or any CSV or TSV with the columns item_id and judgment. InputError with
    every problem: columns that are missing, items that are unknown, repeated or have no row, judgments
    that cannot be read, a sheet without any judgment.
    """
    from bws.files.schema import LocatedRecord, Unique, table_rows
    from bws.files.table import read_table

    table = read_table(path)
    key = _key_column(table)
    names = {
        normal_id(item.item_id if key == "item_id" else item_code(item)): item.item_id
        for item in benchmark.items
    }
    problems = list(table.problems)
    judgments: dict[str, Side | None] = {}
    rows: list[LocatedRecord[str]] = []
    for row in table_rows(table, (key, "judgment")):
        name, judgment = normal_id(row.values[key]), _parse_judgment(row.values["judgment"])
        if name not in names:
            problems.append(row.location.problem(f"{key} {name!r} is none of {benchmark.name}"))
            continue
        rows.append(LocatedRecord(name, row.location))
        if judgment == "unreadable":
            message = f"judgment is {row.values['judgment']!r}; allowed are {EXPECTED_JUDGMENT}"
            problems.append(row.location.problem(message))
        else:
            judgments[names[name]] = judgment
    problems += Unique[str](key, str).problems(rows)
    listed = {row.record for row in rows}
    missing_names = [name for name in names if name not in listed]
    problems += [
        Problem(table.file, None, fault)
        for fault in _completeness_faults(key, missing_names, judgments)
    ]
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or math.inf))
    return judgments


def _key_column(table: Table) -> str:
    columns = table.frame.columns
    key = next((name for name in ("item_id", "code") if name in columns), None)
    if key and "judgment" in columns:
        return key
    message = f"has the columns {', '.join(columns)}; judgment and code or item_id are needed"
    raise InputError(Problem(table.file, None, message))


def _parse_judgment(cell: str) -> Side | Literal["unreadable"] | None:
    text = normal_id(cell).casefold()
    if not text:
        return None
    return next(
        (side for side, words in SIDE_PATTERNS.items() if words.fullmatch(text)), "unreadable"
    )


def _completeness_faults(
    key: str, missing_names: Sequence[str], judgments: Mapping[str, Side | None]
) -> Iterator[str]:
    if missing_names:
        listed_names = ", ".join(missing_names[:MAX_LISTED_ITEMS]) + (
            ", ..." if len(missing_names) > MAX_LISTED_ITEMS else ""
        )
        rows = f"{len(missing_names)} items have no row ({key} {listed_names})"
        yield f"{rows}; leave judgment empty where it is open"
    if judgments and not any(judgments.values()):
        yield "no judgment is filled in"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An item that the expert puts on the other side of 0.5 than its score does."""

    item: Item
    expert: Side

    def row(self) -> dict[str, Any]:
        """Return the row of Table 4."""
        return {
            "item_id": self.item.item_id,
            "last_turn": self.item.last_turn,
            "utterance": self.item.utterance,
            "score": self.item.score,
            "expert": SIDE_LABELS[self.expert],
        }


@dataclass(frozen=True, slots=True)
class ExpertGroup:
    """How often expert and scores agree on some of the items."""

    by: Mapping[str, Any]
    """What the items have in common: ``{"n_turns": 3}``; empty for the whole."""
    items: int
    open: int
    """Items not judged yet."""
    middle: int
    """Items judged whose score is exactly 0.5: it has no side to agree with."""
    agree: int
    """Items judged on the side of their score."""
    share: Estimate
    """`agree` of the judged items with a side, which are its `n`."""

    def document(self) -> dict[str, Any]:
        """Return the group as JSON has it."""
        counts = {name: getattr(self, name) for name in ("items", "open", "middle", "agree")}
        return {"by": dict(self.by), **counts, "share": self.share.document()}


@dataclass(frozen=True, slots=True)
class ExpertCheck:
    """An expert's judgments beside the scores."""

    groups: tuple[ExpertGroup, ...]
    """The whole first, then by n_turns and by source."""
    mismatches: tuple[Mismatch, ...]
    """In the order of the benchmark."""

    def document(self) -> dict[str, Any]:
        """Return the check as JSON has it."""
        return {
            "groups": [group.document() for group in self.groups],
            "mismatches": [mismatch.row() for mismatch in self.mismatches],
        }


def compare_with_expert(benchmark: Benchmark, judgments: Mapping[str, Side | None]) -> ExpertCheck:
    """Compare judgments, by item id, with the scores: paper section 4.3 and Table 4.

    An item whose score is exactly 0.5 is never a mismatch; it is counted apart. An item without a judgment is
    open. For the interval see `agreement_share`.
    """
    items_by_value: dict[tuple[str, Any], list[Item]] = {}
    for name in ("n_turns", "source"):
        for value in sorted({getattr(item, name) for item in benchmark.items}):
            items_by_value[name, value] = [
                item for item in benchmark.items if getattr(item, name) == value
            ]
    groups = [_compare_group({}, benchmark.items, judgments)]
    groups += [
        _compare_group({name: value}, items, judgments)
        for (name, value), items in items_by_value.items()
    ]
    mismatches = [
        Mismatch(item, side)
        for item in benchmark.items
        if (side := judgments.get(item.item_id)) and score_side(item.score) not in (None, side)
    ]
    return ExpertCheck(tuple(groups), tuple(mismatches))


def _compare_group(
    by: Mapping[str, Any], items: Sequence[Item], judgments: Mapping[str, Side | None]
) -> ExpertGroup:
    judged_items = [item for item in items if judgments.get(item.item_id)]
    compared_items = [item for item in judged_items if score_side(item.score)]
    agree = sum(judgments[item.item_id] == score_side(item.score) for item in compared_items)
    dialogues = len({item.dialogue_id for item in compared_items})
    return ExpertGroup(
        by,
        items=len(items),
        open=len(items) - len(judged_items),
        middle=len(judged_items) - len(compared_items),
        agree=agree,
        share=agreement_share(agree, len(compared_items), dialogues),
    )


def agreement_share(agree: int, n: int, dialogues: int) -> Estimate:
    """Return agree / n in [0, 1] with a 95 % interval that counts each dialogue as one judgment.

    Items of a dialogue share its last turn. How alike that makes an expert's judgments cannot be estimated
    from the handful of mismatches there are, and not at all where there is none; so the effective number of
    judgments is taken to be the number of dialogues, the least it can be with equally many items in each. The
    interval is Clopper and Pearson's with that number (Korn and Graubard 1998, Survey Methodology 24): wide
    rather than narrow, and with a width also where all agree; NaN for fewer dialogues than `MIN_CLUSTERS`.

    >>> share = agreement_share(298, 300, 60)
    >>> f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
    '0.993 [0.928, 1.000]'
    """
    from scipy.special import betaincinv

    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, "no judged item has a side")
    if few := too_few_clusters_note(dialogues, "dialogues"):
        return Estimate(agree / n, math.nan, math.nan, n, few)
    yes = agree / n * dialogues
    no = dialogues - yes
    low = float(betaincinv(yes, no + 1, 0.025)) if agree else 0.0
    high = float(betaincinv(yes + 1, no, 0.975)) if agree < n else 1.0
    return Estimate(agree / n, low, high, n)
