"""Which way through a model gives its own numbers? Found out by going it.

Architectures differ in what they do with a mask, with positions and with a cache, and some ignore in
silence what they do not know. So a way is taken only where it gives, on the longest question that there
is, what the model gives for an option by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from giccs.models.causal.forward import Answer, OneByOne, Way, ways
from giccs.models.causal.tree import TokenTree

__all__ = ["Trial"]

TOLERANCE = {"float32": (2e-4, 1e-5), "float16": (0.05, 2e-3), "bfloat16": (0.3, 2e-2)}
"""Type of the weights -> by how much ln p of a token may differ: absolutely, and as a share of itself."""


class Trial:
    """The way that is open to a model, tried anew whenever a question is longer than those before."""

    def __init__(self, model: Any, dtype: str) -> None:
        self._alone = OneByOne(model)
        self._absolute, self._relative = TOLERANCE[dtype]
        self._ways = list(ways(model))
        self._tried = 0
        self.deviation = 0.0
        """Largest difference of a token's ln p that was found, in nats."""

    @property
    def way(self) -> Way:
        """The fastest way that has not failed."""
        return self._ways[0]

    def run(self, longest: TokenTree) -> Answer | None:
        """Find the way for questions up to this one; return its answer where it was computed for that."""
        answer = None
        while len(longest) > self._tried and not isinstance(self.way, OneByOne):
            answer = self._agreeing(longest)
            if answer:
                self._tried = len(longest)
            else:
                self._ways.pop(0)
        if isinstance(self.way, OneByOne) and not self._tried:
            self._tried = len(longest)
            self._must_not_look_ahead(longest)
        return answer

    def _agreeing(self, tree: TokenTree) -> Answer | None:
        """Return the way's answer where it is right for the option that stands last in the tree.

        A mask that is ignored, a window or a chunk that is counted in places instead of positions: what
        can go wrong goes wrong there.
        """
        last = max(range(len(tree.paths)), key=lambda option: max(tree.paths[option]))
        expected = self._alone.option(tree.question.ids[last], tree.question.start)
        try:
            (answer,) = self.way([tree])
        except Exception:  # an architecture that cannot go this way says so in a manner of its own
            return None
        self.deviation = float(np.max(np.abs(answer[last] - expected)))
        right = np.allclose(answer[last], expected, rtol=self._relative, atol=self._absolute)
        return answer if right else None

    def _must_not_look_ahead(self, tree: TokenTree) -> None:
        """ValueError where a token that follows changes the likelihood of one before it."""
        ids = max(tree.question.ids, key=len)
        start = max(1, len(ids) - 8)
        other = (*ids[:-2], ids[0] if ids[0] != ids[-2] else ids[0] + 1, ids[-1])
        before, after = (self._alone.option(one, start)[:-2] for one in (ids, other))
        if not np.allclose(before, after, rtol=self._relative, atol=self._absolute):
            raise ValueError(
                "sees the tokens that it is to predict; a causal language model is needed"
            )
