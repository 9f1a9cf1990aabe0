"""Conversion of a GiCCS benchmark to ranking data."""

from __future__ import annotations

import numpy as np

from bws.base.problems import Problem
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item
from giccs.evalrank.records import RankingData


def ranking_data_of(benchmark: Benchmark) -> RankingData:
    """Return ranking data with one pair per dialogue: its last turn and its candidate with the highest score.

    The background contains the distinct last turns and candidates of all dialogues. If several candidates of
    a dialogue share the highest score, each is a positive, and a warning reports the number of such
    dialogues. Identical pairs of different dialogues are merged.
    """
    items: dict[str, list[Item]] = {}
    for item in benchmark.items:
        items.setdefault(item.dialogue_id, []).append(item)
    index: dict[str, int] = {}
    for dialogue_items in items.values():
        for text in (dialogue_items[0].last_turn, *(item.utterance for item in dialogue_items)):
            index.setdefault(text, len(index))
    best_texts = [
        (dialogue_items[0].last_turn, _highest_scored_texts(dialogue_items))
        for dialogue_items in items.values()
    ]
    pairs = dict.fromkeys((index[last], index[text]) for last, best in best_texts for text in best)
    n_tied = sum(len(best) > 1 for _, best in best_texts)
    message = (
        f"in {n_tied} dialogues several candidates share the highest score; each is a positive"
    )
    warnings = [Problem(benchmark.name, None, message)] if n_tied else []
    return RankingData(
        benchmark.name,
        "sentence",
        tuple(index),
        np.array([*pairs], dtype=np.intp).reshape(-1, 2),
        (*benchmark.warnings, *warnings),
    )


def _highest_scored_texts(items: list[Item]) -> list[str]:
    best = max(item.score for item in items)
    return [item.utterance for item in items if item.score == best]
