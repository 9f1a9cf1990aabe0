"""A GiCCS benchmark as a ranking task: is a last turn's best candidate found among all utterances?"""

from __future__ import annotations

import numpy as np

from bws.problems import Problem
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item
from giccs.evalrank.records import RankingData

__all__ = ["ranking_of"]


def ranking_of(benchmark: Benchmark) -> RankingData:
    """Return a pair a dialogue: its last turn, and its candidate with the highest score.

    The background is every last turn and every candidate of all dialogues, each text once. Where candidates
    share the highest score each is a positive of its own, and a warning tells how many dialogues that is.
    Two dialogues with the same two texts give one pair.
    """
    items: dict[str, list[Item]] = {}
    for item in benchmark.items:
        items.setdefault(item.dialogue_id, []).append(item)
    place: dict[str, int] = {}
    for own in items.values():
        for text in (own[0].last_turn, *(item.utterance for item in own)):
            place.setdefault(text, len(place))
    tops = [(own[0].last_turn, _highest(own)) for own in items.values()]
    pairs = dict.fromkeys((place[last], place[text]) for last, top in tops for text in top)
    shared = sum(len(top) > 1 for _, top in tops)
    message = f"in {shared} dialogues candidates share the highest score; each is a positive"
    warnings = [Problem(benchmark.name, None, message)] if shared else []
    return RankingData(
        benchmark.name,
        "sentence",
        tuple(place),
        np.array([*pairs], dtype=np.intp).reshape(-1, 2),
        (*benchmark.warnings, *warnings),
    )


def _highest(items: list[Item]) -> list[str]:
    best = max(item.score for item in items)
    return [item.utterance for item in items if item.score == best]
