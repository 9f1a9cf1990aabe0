"""Adaptive studies: each round of tuples is chosen from the judgments so far, until scores are good enough.

A study begins with a balanced round (`warmup`). Each later round contains tuples of items that are hard to
order (`adaptive`) and random tuples (`audit`), and every tuple is judged by one annotator. Scores are those
of the best–worst logit with an estimated prior. Methods based on counts are wrong here: items meet opponents
of about equal merit, so that all win and lose equally often.

`next_round` chooses the tuples of a round (`rounds`), and `stopping` decides whether the study can end
(`stop`). Groups with few possible tuples, such as five candidates per dialogue, gain nothing from a choice.
"""

from __future__ import annotations

from bws.adaptive.model import Fit, fit
from bws.adaptive.rounds import join_rounds, next_round, round_of_new_items
from bws.adaptive.stop import Stopping, stopping, watched_items

__all__ = [
    "Fit", "Stopping", "fit", "join_rounds", "next_round", "round_of_new_items", "stopping", "watched_items",
]  # fmt: skip
