"""Tuples, dialogues and HITs of any number, made from giccs-sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib import resources

from bws.design import make_tuples
from bws.records import Tuples
from giccs.benchmark.assemble import read_dialogues
from giccs.benchmark.items import Dialogue
from mturk.kinds.tuples.plan import plan
from mturk.study.plan import HitPlan
from mturk.study.settings import Settings

__all__ = ["CANDIDATES", "CHEAP", "design", "dialogues", "plans"]

CHEAP = replace(Settings(), reward=Decimal("0.01"), approval_rate_above=-1)
"""Settings with a minimal reward, so that the simulated balance suffices."""
CANDIDATES, K = 5, 3
"""Candidates per dialogue, and items per tuple (paper, section 3.2)."""


def design(items: int, tuples_an_item: float = 2.0) -> Tuples:
    """Return the paper's design for `items` items, a multiple of five: ten 3-tuples per dialogue."""
    names = [f"d{n // CANDIDATES}-{n % CANDIDATES}" for n in range(items)]
    groups = [f"d{n // CANDIDATES}" for n in range(items)]
    return make_tuples(names, K, factor=tuples_an_item, groups=groups)


@cache
def _sample() -> tuple[Dialogue, ...]:
    with resources.as_file(resources.files("giccs.data") / "dialogues.jsonl") as path:
        return tuple(read_dialogues(path))


def dialogues(count: int) -> list[Dialogue]:
    """Return `count` dialogues: repeated copies of the sample with new ids."""
    sample_dialogues = _sample()
    return [_renamed(sample_dialogues[n % len(sample_dialogues)], f"d{n}") for n in range(count)]


def _renamed(dialogue: Dialogue, name: str) -> Dialogue:
    candidates = [
        replace(c, utterance_id=f"{name}-{index}") for index, c in enumerate(dialogue.candidates)
    ]
    return replace(dialogue, dialogue_id=name, candidates=tuple(candidates))


def plans(hits: int) -> Sequence[HitPlan]:
    """Return `hits` HITs of two tuples each; `hits` is a multiple of five."""
    count = hits // CANDIDATES
    return plan(design(count * CANDIDATES), dialogues(count), CHEAP)
