"""Tables of comparisons between models: terminal, Markdown, LaTeX, CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bws.base.notes import note, p_text
from bws.base.rows import csv_text
from bws.base.tables import Cell, Column, ResultTable, TableStyle, limits_text, remarks, rendered
from giccs.measures.all_pairs import PairDifference
from giccs.measures.detectable import ALPHA, POWER
from giccs.report.metric_titles import metric_title
from giccs.report.model_comparison import (
    Family,
    HistoryEffects,
    Leaderboard,
    ModelComparison,
    RankedModel,
    history_titles,
)

MAX_PAIRS = 28
"""Largest number of pairs, those of eight models, that are all listed without a request."""
TIE_MARK = "†"
"""Mark of models that do not differ significantly from the first, the best one, which has no mark."""
COLUMNS = [
    "kind", "task", "data", "content", "metric", "model", "history", "second_model", "second_history",
    "value", "low", "high", "n", "stderr", "p", "p_holm", "p_bh", "significant", "detectable",
    "target", "needed", "needed_all_pairs", "power", "alpha", "rank_low", "rank_high", "ties_first", "reason",
]  # fmt: skip


def comparison_tables(
    comparison: ModelComparison, style: TableStyle | str = "table", *, all_pairs: bool = False
) -> str:
    """Return two tables per leaderboard, its models and its pairs, one per family of history effects, and
    notes; ``csv`` is one long table.

    style: a `TableStyle`, or a format of `bws.base.tables.FORMATS`. all_pairs: list all pairs also of more
    than `MAX_PAIRS`, otherwise neighbours, and the best model with those that it does not differ from.
    """
    style = TableStyle(style) if isinstance(style, str) else style
    if style.form == "csv":
        return comparison_csv(comparison)
    boards = comparison.leaderboards
    tables = [
        table
        for board, history in zip(boards, history_titles(boards), strict=True)
        for notes in (board.notes(),)
        for table in (_model_table(board, notes, history), _pair_table(board, notes, all_pairs))
    ]
    tables += [_history_table(family) for family in comparison.history_effects]
    skipped = remarks([str(result) for result in comparison.skipped], style.form)
    return "\n\n".join(filter(None, [rendered(tables, style), "\n".join(skipped)]))


def _model_table(board: Leaderboard, notes: Sequence[str], history: str) -> ResultTable:
    tied = board.tied
    rows: list[Sequence[Cell]] = [
        [
            str(i + 1),
            f"{model.model} {TIE_MARK}" if i in tied else model.model,
            model.history,
            model.estimate,
            _ranks(model),
        ]
        for i, model in enumerate(board.models)
    ]
    columns = [
        Column("row"),
        Column("model", "model"),
        Column("history", "history"),
        Column(board.metric, f"{metric_title(board.metric)} [95 %]", ".3f", best="max"),
        Column("ranks", "ranks"),
    ]
    title = f"{board.task} on {board.data}{history}: {metric_title(board.metric)} ({_size(board)})"
    return ResultTable(columns, rows, notes, title)


def _size(family: Family) -> str:
    if family.metric == "accuracy":
        return f"{family.items} questions"
    return f"{family.items} items of {family.dialogues} dialogues"


def _ranks(model: RankedModel) -> str:
    low, high = model.rank_low, model.rank_high
    return str(low) if low == high else f"{low}–{high}"


def _pair_table(board: Leaderboard, notes: Sequence[str], all_pairs: bool) -> ResultTable:
    listed = {
        label: pair
        for label, pair in board.tests.items()
        if all_pairs
        or len(board.pairs) <= MAX_PAIRS
        or pair.second == pair.first + 1
        or (pair.first == 0 and pair.second in board.tied)
    }
    if len(listed) < len(board.pairs):
        remark = note(
            "pairs: {n:d} of {total:d}, neighbours and the best model with those that do not differ from it; "
            "--all-pairs, JSON and CSV have all",
            n=len(listed),
            total=len(board.pairs),
        )
        notes = [remark, *notes]
    rows = [[label, *_test_cells(pair)] for label, pair in listed.items()]
    return ResultTable([Column("pair", "pair"), *_test_columns()], rows, notes)


def _history_table(family: HistoryEffects) -> ResultTable:
    has_encodings = any(effect.history != "with" for effect in family.effects)
    rows: list[Sequence[Cell]] = [
        [
            label,
            effect.model,
            *([effect.history] if has_encodings else []),
            effect.without_history.value,
            effect.with_history.value,
            *_test_cells(effect.difference),
        ]
        for effect, label in zip(family.effects, family.tests, strict=True)
    ]
    columns = [
        Column("row"),
        Column("model", "model"),
        *([Column("history", "history")] if has_encodings else []),
        Column("without", "without", ".3f"),
        Column("with", "with", ".3f"),
        *_test_columns(),
    ]
    effect = f"effect of the history, {metric_title(family.metric)}"
    title = f"{family.task} on {family.data}: {effect} ({_size(family)})"
    return ResultTable(columns, rows, family.notes(), title)


def _test_columns() -> list[Column]:
    titles = {
        "difference": "difference [95 %]",
        "p": "p",
        "p_holm": "Holm",
        "p_bh": "BH",
        "detectable": "detectable",
        "verdict": "verdict",
    }
    return [Column(key, title) for key, title in titles.items()]


def _test_cells(pair: PairDifference) -> list[str]:
    limits = limits_text(pair, "+.3f")
    difference = "undefined" if math.isnan(pair.value) else f"{pair.value:+.3f} {limits}"
    numbers = [p_value(p) for p in (pair.p, pair.p_holm, pair.p_bh)]
    detectable = "–" if math.isnan(pair.detectable) else f"{pair.detectable:.3f}"
    verdict = "not tested" if math.isnan(pair.p) else "not significant"
    return [difference, *numbers, detectable, "differ" if pair.is_significant else verdict]


def p_value(p: float) -> str:
    """Return a p-value with three decimals; a dash for NaN.

    >>> p_value(0.0123), p_value(1e-9), p_value(math.nan)
    ('0.012', '<0.001', '–')
    """
    return p_text(p).removeprefix("= ").replace(" ", "")


def comparison_csv(comparison: ModelComparison) -> str:
    """Return one row per model, pair, effect of the history and skipped result (`kind`) as CSV."""
    rows = comparison_rows(comparison)
    return csv_text(
        ({key: "" if cell != cell else cell for key, cell in row.items()} for row in rows), COLUMNS
    )


def comparison_rows(comparison: ModelComparison) -> list[dict[str, object]]:
    """Return the values of `COLUMNS` of each model, pair, history effect and skipped result (`kind`)."""
    rows: list[dict[str, object]] = []
    families: list[tuple[Family, Iterator[dict[str, object]]]] = [
        *((board, _csv_rows(board)) for board in comparison.leaderboards),
        *((effects, _csv_effects(effects)) for effects in comparison.history_effects),
    ]
    for family, family_rows in families:
        common = {name: getattr(family, name) for name in ("task", "data", "content", "metric")}
        rows += [{**common, **row} for row in family_rows]
    for result in comparison.skipped:
        names = ("model", "history", "task", "data", "content", "metric", "reason")
        rows.append({"kind": "skipped", **{name: getattr(result, name) for name in names}})
    return rows


def _csv_rows(board: Leaderboard) -> Iterator[dict[str, object]]:
    for model in board.models:
        estimate = model.estimate
        yield {
            "kind": "model",
            "model": model.model,
            "history": model.history,
            **{name: getattr(estimate, name) for name in ("value", "low", "high")},
            **{name: getattr(model, name) for name in ("rank_low", "rank_high", "ties_first")},
            "n": estimate.n,
            "reason": estimate.reason,
        }
    for pair in board.pairs:
        first, second = (board.models[index] for index in (pair.first, pair.second))
        labels = (first.model, first.history, second.model, second.history)
        yield {"kind": "pair", **_csv_pair(labels, pair, board.target)}


def _csv_effects(family: HistoryEffects) -> Iterator[dict[str, object]]:
    for effect in family.effects:
        labels = (effect.model, effect.history, effect.model, "without")
        yield {"kind": "history", **_csv_pair(labels, effect.difference, family.target)}


def _csv_pair(labels: Sequence[str], pair: PairDifference, target: float) -> dict[str, object]:
    names = (
        "value", "low", "high", "stderr", "p", "p_holm", "p_bh",
        "detectable", "needed", "needed_all_pairs",
    )  # fmt: skip
    return {
        **dict(zip(("model", "history", "second_model", "second_history"), labels, strict=True)),
        **{name: getattr(pair, name) for name in names},
        "n": pair.n,
        "significant": pair.is_significant,
        "target": target,
        "power": POWER,
        "alpha": ALPHA,
        "reason": pair.reason,
    }
