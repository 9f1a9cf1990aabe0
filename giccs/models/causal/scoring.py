"""Questions to passes through the model: as many at once as pays and fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from giccs.models.batching import out_of_memory
from giccs.models.causal.forward import Answer, TreePass, Way
from giccs.models.causal.tree import TokenTree
from giccs.models.causal.trial import Trial
from giccs.models.placing import input_device

__all__ = ["Scorer"]

TOKENS = {"cpu": 1024, "cuda": 16384}
"""Tokens a pass from which on the arithmetic, and no longer the reading of the weights, takes the time."""


class Scorer:
    """Runs questions through a model.

    In half precision the neighbours in a batch show in the third digit. So there a question has its pass
    for itself, unless the user says how many are to share one; in float32 they do not show.
    """

    def __init__(self, model: Any, dtype: str, batch_size: int | None) -> None:
        self.trial = Trial(model, dtype)
        self._tokens = TOKENS.get(input_device(model).type, TOKENS["cpu"])
        self._questions = batch_size or (None if dtype == "float32" else 1)
        self.largest = 1
        """Most questions that went through the model at once."""

    def run(self, trees: Sequence[TokenTree]) -> Iterator[tuple[int, Answer]]:
        """Yield (place of a question, ln p of each option's tokens), the largest questions first."""
        import torch

        order = sorted(range(len(trees)), key=lambda place: -len(trees[place]))
        with torch.inference_mode():
            known = self.trial.run(trees)
            yield from known.items()
            order = [place for place in order if place not in known]
            way = self.trial.way
            while order:
                places = self._next(order, trees, way)
                try:
                    answers = way([trees[place] for place in places])
                except (MemoryError, RuntimeError) as error:
                    self._less(error, len(places))
                    continue
                self.largest = max(self.largest, len(places))
                order = order[len(places) :]
                yield from zip(places, answers, strict=True)

    def _next(self, order: Sequence[int], trees: Sequence[TokenTree], way: Way) -> list[int]:
        """Return the questions of the next pass; the first is the largest and sets the width."""
        if not isinstance(way, TreePass):
            return [order[0]]
        most = self._questions or max(1, self._tokens // len(trees[order[0]]))
        return list(order[:most])

    def _less(self, error: BaseException, questions: int) -> None:
        """Halve after a pass that did not fit into memory; a question alone that does not is an error."""
        if not out_of_memory(error):
            raise error
        if questions == 1:
            raise MemoryError("one question alone does not fit into memory") from error
        self._questions = questions // 2
