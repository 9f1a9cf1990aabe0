"""Comparison of an expert's judgments with the scores: above or below the midpoint of the scale, per item.

Paper section 4.3: a linguist read the items without their scores and judged for each item whether the
similarity is higher or lower than 0.5. Table 4 lists the items for which judgment and score do not match.
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

from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.stats.clusters import too_few_clusters_note
from bws.stats.estimates import Estimate
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn

if TYPE_CHECKING:
    from bws.files.table import Table

Side = Literal["higher", "lower"]

MIDPOINT = 0.5
CODE_DIGITS = 12
SHEET_COLUMNS = ("code", "dialogue", "last_turn", "utterance", "judgment")
SIDE_LABELS: Mapping[Side, str] = {"higher": "> 0.5", "lower": "< 0.5"}
"""Labels of judgments in Table 4."""
MIDPOINT_PATTERN = r"(?:\s*(?:than|als)?\s*0?[.,]50*)?"
SIDE_PATTERNS: Mapping[Side, re.Pattern[str]] = {
    "higher": re.compile(rf"(?:higher|höher|hoeher|>){MIDPOINT_PATTERN}"),
    "lower": re.compile(rf"(?:lower|niedriger|<){MIDPOINT_PATTERN}"),
}
EXPECTED_JUDGMENT = 'higher, > 0.5 or höher; lower, < 0.5 or niedriger; empty for "not judged yet"'
MAX_LISTED_ITEMS = 5


def score_side(score: float) -> Side | None:
    """Return the side of 0.5 of a score, or None if the score is 0.5.

    >>> score_side(0.65), score_side(0.35), score_side(0.5)
    ('higher', 'lower', None)
    """
    if math.isclose(
        score, MIDPOINT, abs_tol=1e-9
    ):  # 15 best and 15 worst of 30 need not be 0.5 exactly
        return None
    return "higher" if score > MIDPOINT else "lower"


def make_expert_sheet(benchmark: Benchmark, seed: int = 0) -> str:
    """Return the CSV sheet for an expert: each item once, without scores, with an empty column ``judgment``.

    The order is random and alternates between dialogues. Items of a dialogue are not adjacent if there are
    enough dialogues, so neither order nor comparison reveals a score. Items are identified by a code, because
    ids may reveal the intended level (``…-a`` to ``…-e``).
    """
    import polars as pl

    rows = [
        (item_code(item), _format_turns(item.turns), item.last_turn, item.utterance, "")
        for item in _shuffle_items(benchmark.items, seed)
    ]
    return pl.DataFrame(rows, schema=list(SHEET_COLUMNS), orient="row").write_csv()


def item_code(item: Item) -> str:
    """Return the code of an item in the sheet: ``x`` and the first digits of the SHA-256 of its id."""
    return f"x{hashlib.sha256(item.item_id.encode()).hexdigest()[:CODE_DIGITS]}"


def _format_turns(turns: Sequence[Turn]) -> str:
    return "\n".join(
        f"{turn.speaker or number}: {turn.text}" for number, turn in enumerate(turns, start=1)
    )


def _shuffle_items(items: Sequence[Item], seed: int) -> list[Item]:
    """Return the items in rounds, each with one random item of every dialogue with remaining items."""
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
    """Return the expert's judgment by item id; None if an item has not been judged.

    The file is a completed sheet, or a CSV or TSV file with the columns item_id and judgment. Raises
    InputError with all problems: missing columns; unknown, repeated or missing items; invalid judgments; no
    judgments.
    """
    from bws.files.schema import LocatedRecord, Unique, table_rows
    from bws.files.table import read_table

    table = read_table(path, ("item_id", "code", "judgment"))
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
            problems.append(row.location.problem(f"{key} {name!r} is not in {benchmark.name}"))
            continue
        rows.append(LocatedRecord(name, row.location))
        if judgment == "unreadable":
            message = f"judgment is {row.values['judgment']!r}; expected {EXPECTED_JUDGMENT}"
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
    message = f"columns {', '.join(columns)}; expected judgment, and code or item_id"
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
        yield f"{rows}; expected a row per item, with an empty judgment if it is open"
    if judgments and not any(judgments.values()):
        yield "no judgments; expected at least one"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An item whose score and expert judgment are on different sides of 0.5."""

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
    """Agreement of expert and scores for a group of items."""

    by: Mapping[str, Any]
    """Property that defines the group, such as ``{"n_turns": 3}``; empty for all items."""
    items: int
    open: int
    """Number of items without a judgment."""
    middle: int
    """Number of judged items with a score of exactly 0.5, which is on neither side."""
    agree: int
    """Number of items judged on the side of their score."""
    share: Estimate
    """`agree` divided by the number `n` of judged items with a score other than 0.5."""

    def document(self) -> dict[str, Any]:
        """Return the group as a JSON-serialisable dictionary."""
        counts = {name: getattr(self, name) for name in ("items", "open", "middle", "agree")}
        return {"by": dict(self.by), **counts, "share": self.share.document()}


@dataclass(frozen=True, slots=True)
class ExpertCheck:
    """Comparison of an expert's judgments with the scores."""

    groups: tuple[ExpertGroup, ...]
    """All items, followed by the groups by n_turns and by source."""
    mismatches: tuple[Mismatch, ...]
    """Mismatches in the order of the benchmark."""

    def document(self) -> dict[str, Any]:
        """Return the comparison as a JSON-serialisable dictionary."""
        return {
            "groups": [group.document() for group in self.groups],
            "mismatches": [mismatch.row() for mismatch in self.mismatches],
        }


def compare_with_expert(benchmark: Benchmark, judgments: Mapping[str, Side | None]) -> ExpertCheck:
    """Compare judgments by item id with the scores (paper section 4.3 and Table 4).

    Items with a score of exactly 0.5 are never mismatches and are counted separately. Items without a
    judgment are open. For the interval see `agreement_share`.
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

    Items of a dialogue share its last turn, so judgments of them are dependent. The dependence cannot be
    estimated from a few mismatches. Therefore the effective number of judgments is set to the number of
    dialogues, its minimum for dialogues of equal size. The interval is Clopper and Pearson's with this number
    (Korn and Graubard 1998, Survey Methodology 24). It is conservative and has a width even if all judgments
    agree. It is NaN for fewer dialogues than `MIN_CLUSTERS`.

    >>> share = agreement_share(298, 300, 60)
    >>> f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
    '0.993 [0.928, 1.000]'
    """
    from scipy.special import betaincinv

    if not n:
        return Estimate(
            math.nan, math.nan, math.nan, 0, "no judged item with a score other than 0.5"
        )
    if few := too_few_clusters_note(dialogues, "dialogues"):
        return Estimate(agree / n, math.nan, math.nan, n, few)
    yes = agree / n * dialogues
    no = dialogues - yes
    low = float(betaincinv(yes, no + 1, 0.025)) if agree else 0.0
    high = float(betaincinv(yes + 1, no, 0.975)) if agree < n else 1.0
    return Estimate(agree / n, low, high, n)
