"""Tables of comparisons between models: terminal, Markdown, LaTeX, CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bws.tables import Cell, Column, ResultTable, TableStyle, limits_text, remarks, rendered
from bws.textio import csv_text
from giccs.measures.all_pairs import PairDifference
from giccs.measures.detectable import ALPHA, POWER
from giccs.report.model_comparison import Leaderboard, ModelComparison, RankedModel

__all__ = [
    "COLUMNS",
    "TIE_MARK",
    "comparison_csv",
    "comparison_rows",
    "comparison_tables",
    "p_value",
]

TIE_MARK = "†"
"""Mark of models that do not differ significantly from the first, the best one, which has no mark."""
TITLES = {
    "spearman": "Spearman ρ",
    "rank_spearman": "ρ within dialogues",
    "accuracy": "accuracy",
}
COLUMNS = [
    "kind", "task", "data", "content", "metric", "model", "history", "second_model", "second_history",
    "value", "low", "high", "n", "stderr", "p", "p_holm", "p_bh", "significant", "detectable",
    "target", "needed", "needed_all_pairs", "power", "alpha", "rank_low", "rank_high", "ties_first", "reason",
]  # fmt: skip


def comparison_tables(comparison: ModelComparison, style: TableStyle | str = "table") -> str:
    """Return two tables per leaderboard, its models and its pairs, and notes; ``csv`` is one long table.

    style: a `TableStyle`, or a format of `bws.tables.FORMATS`.
    """
    style = TableStyle(style) if isinstance(style, str) else style
    if style.form == "csv":
        return comparison_csv(comparison)
    tables = [
        table
        for board in comparison.leaderboards
        for notes in (board.notes(),)
        for table in (_model_table(board, notes), _pair_table(board, notes))
    ]
    skipped = remarks([str(result) for result in comparison.skipped], style.form)
    return "\n\n".join(filter(None, [rendered(tables, style), "\n".join(skipped)]))


def _model_table(board: Leaderboard, notes: Sequence[str]) -> ResultTable:
    size = f"{board.items} items of {board.dialogues} dialogues"
    size = f"{board.items} questions" if board.metric == "accuracy" else size
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
        Column(board.metric, f"{TITLES[board.metric]} [95 %]", ".3f", best="max"),
        Column("ranks", "ranks"),
    ]
    title = f"{board.task} on {board.data}: {TITLES[board.metric]} ({size})"
    return ResultTable(columns, rows, notes, title)


def _ranks(model: RankedModel) -> str:
    low, high = model.rank_low, model.rank_high
    return str(low) if low == high else f"{low}–{high}"


def _pair_table(board: Leaderboard, notes: Sequence[str]) -> ResultTable:
    titles = {
        "pair": "pair",
        "difference": "difference [95 %]",
        "p": "p",
        "p_holm": "Holm",
        "p_bh": "BH",
    }
    titles |= {"detectable": "detectable", "verdict": "verdict"}
    columns = [Column(key, title) for key, title in titles.items()]
    return ResultTable(columns, [_pair_cells(pair) for pair in board.pairs], notes)


def _pair_cells(pair: PairDifference) -> list[str]:
    limits = limits_text(pair, "+.3f")
    difference = "undefined" if math.isnan(pair.value) else f"{pair.value:+.3f} {limits}"
    numbers = [p_value(p) for p in (pair.p, pair.p_holm, pair.p_bh)]
    detectable = "–" if math.isnan(pair.detectable) else f"{pair.detectable:.3f}"
    verdict = "not tested" if math.isnan(pair.p) else "not significant"
    return [
        f"{pair.first + 1}–{pair.second + 1}", difference, *numbers, detectable,
        "differ" if pair.is_significant else verdict,
    ]  # fmt: skip


def p_value(p: float) -> str:
    """Return a p-value with three decimals; a dash for NaN.

    >>> p_value(0.0123), p_value(1e-9), p_value(math.nan)
    ('0.012', '<0.001', '–')
    """
    if math.isnan(p):
        return "–"
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def comparison_csv(comparison: ModelComparison) -> str:
    """Return one row per model, pair and skipped result (`kind`) as CSV."""
    rows = comparison_rows(comparison)
    return csv_text(
        ({key: "" if cell != cell else cell for key, cell in row.items()} for row in rows), COLUMNS
    )


def comparison_rows(comparison: ModelComparison) -> list[dict[str, object]]:
    """Return the values of `COLUMNS` of each model, pair and skipped result (`kind`)."""
    rows: list[dict[str, object]] = []
    for board in comparison.leaderboards:
        board_columns = {
            name: getattr(board, name) for name in ("task", "data", "content", "metric")
        }
        rows += [{**board_columns, **row} for row in _csv_rows(board)]
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
        yield _csv_pair(board.models[pair.first], board.models[pair.second], pair, board.target)


def _csv_pair(
    first: RankedModel, second: RankedModel, pair: PairDifference, target: float
) -> dict[str, object]:
    names = (
        "value", "low", "high", "stderr", "p", "p_holm", "p_bh",
        "detectable", "needed", "needed_all_pairs",
    )  # fmt: skip
    return {
        "kind": "pair",
        "model": first.model,
        "history": first.history,
        "second_model": second.model,
        "second_history": second.history,
        **{name: getattr(pair, name) for name in names},
        "n": pair.n,
        "significant": pair.is_significant,
        "target": target,
        "power": POWER,
        "alpha": ALPHA,
        "reason": pair.reason,
    }
