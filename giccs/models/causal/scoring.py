"""Questions to forward passes: the fastest that gives the model's own numbers, as many at once as fit.

Architectures differ in what they do with a mask, with positions and with a cache, and some ignore in
silence what they do not know. So a way is taken only where it gives, on the largest questions that there
are, what the model gives for an option by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from giccs.models.causal.forward import Answer, Floats, OneByOne, TreePass, Way, ways
from giccs.models.causal.tokens import TokenTree
from giccs.models.devices import input_device
from giccs.models.encoding import out_of_memory
from giccs.models.generation import TOLERANCE

__all__ = ["Scorer"]

TOKENS = {"cpu": 1024, "cuda": 16384}
"""Tokens a pass from which on the arithmetic, and no longer the reading of the weights, takes the time."""


def _last(tree: TokenTree) -> tuple[int, int]:
    """Return the option that stands last in the tree, and the size of the tree."""
    option = max(range(len(tree.paths)), key=lambda option: tree.paths[option][-1])
    return option, len(tree)


def _apart(tree: TokenTree) -> tuple[int, int]:
    """Return the option that stands last, and how many tokens stand between it and its beginning."""
    option, size = _last(tree)
    return option, size - len(tree.paths[option])


def _longest(tree: TokenTree) -> tuple[int, int]:
    """Return the last of the longest options, and its length."""
    option = max(range(len(tree.paths)), key=lambda option: (len(tree.paths[option]), option))
    return option, len(tree.paths[option])


MEASURES = (_last, _apart, _longest)


class Trial:
    """The way that is open to a model, tried anew whenever there is a larger question than those before.

    Up to three options are tried: the last one of the largest tree, the one with most tokens between
    itself and its prompt, and the longest. A mask or positions that are ignored show in the first two, a
    window or chunks of attention in the last two, and where these are counted in places, in all.
    """

    def __init__(self, model: Any, dtype: str) -> None:
        self._alone = OneByOne(model)
        self._tolerance = TOLERANCE[dtype]
        self._ways = list(ways(model))
        self._tried = [-1] * len(MEASURES)
        self.deviation = 0.0
        """Largest difference of a token's ln p that was found on the way that is taken, in nats."""

    @property
    def way(self) -> Way:
        """The fastest way that has not failed."""
        return self._ways[0]

    def run(self, trees: Sequence[TokenTree]) -> dict[int, Answer]:
        """Find the way for these questions; return the answers to those that it was tried on."""
        checks = self._checks(trees)
        wanted = [self._alone.option(*_option(trees[place], option)) for place, option in checks]
        answers: dict[int, Answer] = {}
        while checks and not isinstance(self.way, OneByOne):
            answers = {place: self._answer(trees[place]) for place in dict(checks)}
            pairs = zip(checks, wanted, strict=True)
            if all(self._agree(answers[place], option, ln) for (place, option), ln in pairs):
                break
            self._ways.pop(0)
            answers = {}
            self.deviation = 0.0
        if checks and isinstance(self.way, OneByOne):
            self._must_not_look_ahead(trees[checks[0][0]])
        return answers

    def _checks(self, trees: Sequence[TokenTree]) -> list[tuple[int, int]]:
        """Return (question, option) pairs to try; none where all is smaller than what was tried before."""
        found = []
        for n, measure in enumerate(MEASURES):
            place, option, size = max(
                ((place, *measure(tree)) for place, tree in enumerate(trees)),
                key=lambda one: one[2],
            )
            if size > self._tried[n]:
                self._tried[n] = size
                found.append((place, option))
        return list(dict.fromkeys(found))

    def _answer(self, tree: TokenTree) -> Answer:
        """Return what the way gives; no numbers where it ends in an error."""
        try:
            (answer,) = self.way([tree])
        except Exception:  # an architecture that cannot go this way says so in a manner of its own
            return [np.full(len(option), np.nan) for option in tree.predictions]
        return answer

    def _agree(self, answer: Answer, option: int, expected: Floats) -> bool:
        difference = np.abs(answer[option] - expected)
        self.deviation = max(self.deviation, float(np.max(difference)))
        return bool(np.mean(difference) <= self._tolerance)

    def _must_not_look_ahead(self, tree: TokenTree) -> None:
        """ValueError where a token that follows changes the likelihood of one before it."""
        ids = max(tree.question.ids, key=len)
        start = max(1, len(ids) - 8)
        other = (*ids[:-2], ids[0] if ids[0] != ids[-2] else ids[0] + 1, ids[-1])
        before, after = (self._alone.option(one, start)[:-2] for one in (ids, other))
        if np.mean(np.abs(before - after)) > self._tolerance:
            raise ValueError(
                "sees the tokens that it is to predict; a causal language model is needed"
            )


def _option(tree: TokenTree, option: int) -> tuple[tuple[int, ...], int]:
    return tree.question.ids[option], tree.question.start


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
