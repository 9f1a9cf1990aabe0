"""Ways through a causal model, from the fastest to the one that every model can go.

Each takes questions and returns, for each option, (n,) ln p of its n tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from giccs.models.causal.likelihood import Halves
from giccs.models.causal.masks import full_mask, layered_mask, text_config, window_mask
from giccs.models.causal.tree import TokenTree
from giccs.models.placing import input_device

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Answer", "Floats", "OneByOne", "SharedCache", "TreePass", "Way", "ways"]

Floats = NDArray[np.float64]
Answer = list[Floats]
"""For each option of a question, ln p of its tokens."""


class Way(Protocol):
    """A way through a model."""

    @property
    def name(self) -> str:
        """As it stands in results."""
        ...

    def __call__(self, trees: Sequence[TokenTree]) -> list[Answer]:
        """Return for each question, for each option, ln p of its tokens."""
        ...


class TreePass:
    """All options of several questions in one pass: a row a question, a mask that follows the tree."""

    def __init__(self, model: Any, name: str, mask: Callable[[Any, Tensor, Tensor], Any]) -> None:
        self.name = name
        self._model, self._mask = model, mask
        self._halves = Halves(model)

    def __call__(self, trees: Sequence[TokenTree]) -> list[Answer]:
        """Return ln p of the options' tokens."""
        import torch

        tokens, depths, visible = (self._on_device(array) for array in _padded(trees))
        states = self._halves.read(
            input_ids=tokens,
            position_ids=depths,
            attention_mask=self._mask(self._model, visible, depths),
            use_cache=False,
        ).last_hidden_state
        rows: dict[tuple[int, int], int] = {}
        wanted = [
            (rows.setdefault((row, place), len(rows)), token)
            for row, tree in enumerate(trees)
            for option in tree.predictions
            for place, token in option
        ]
        at = torch.tensor(list(rows), device=states.device)
        found = self._halves.logprobs(states[at[:, 0], at[:, 1]], wanted)
        return _divided(found, trees)

    def _on_device(self, array: NDArray[Any]) -> Tensor:
        import torch

        return torch.from_numpy(array).to(input_device(self._model))


def _padded(trees: Sequence[TokenTree]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return tokens (B, N), depths (B, N) and who sees whom (B, N, N); padding sees itself."""
    size = len(trees), max(map(len, trees))
    tokens, depths = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    visible = np.broadcast_to(np.eye(size[1], dtype=np.bool_), (*size, size[1])).copy()
    for row, tree in enumerate(trees):
        n = len(tree)
        tokens[row, :n], depths[row, :n] = tree.tokens, tree.depths
        visible[row, :n, :n] = tree.visible()
    return tokens, depths, visible


def _divided(found: Floats, trees: Sequence[TokenTree]) -> list[Answer]:
    """Return the numbers of all options' tokens, which come one after the other, option by option."""
    parts = iter(np.split(found, np.cumsum([len(o) for t in trees for o in t.predictions])[:-1]))
    return [[next(parts) for _ in tree.predictions] for tree in trees]


class SharedCache:
    """A question at a time: the prompt once, then its options in a batch on copies of the prompt's cache."""

    name = "shared cache"

    def __init__(self, model: Any) -> None:
        self._model = model
        self._halves = Halves(model)

    def __call__(self, trees: Sequence[TokenTree]) -> list[Answer]:
        """Return ln p of the options' tokens."""
        return [self._question(tree) for tree in trees]

    def _question(self, tree: TokenTree) -> Answer:
        import torch

        question = tree.question
        distinct = list(dict.fromkeys(question.ids))
        stem, read = question.start - 1, max(map(len, distinct)) - 1
        device = input_device(self._model)
        rest = torch.zeros((len(distinct), read - stem), dtype=torch.long, device=device)
        for row, ids in enumerate(distinct):  # padding comes last, where nothing sees it
            rest[row, : len(ids) - 1 - stem] = torch.tensor(ids[stem:-1])
        states = self._states(distinct[0][:stem], rest)
        wanted = [
            (row * rest.shape[1] + place, token)
            for row, ids in enumerate(distinct)
            for place, token in enumerate(ids[question.start :])
        ]
        found = self._scored(states, wanted)
        lengths = [len(ids) - question.start for ids in distinct]
        by_ids = dict(zip(distinct, np.split(found, np.cumsum(lengths)[:-1]), strict=True))
        return [by_ids[ids] for ids in question.ids]

    def _states(self, stem: Sequence[int], rest: Tensor) -> Tensor:
        import torch

        cache = None
        if stem:
            prompt = torch.tensor([stem], device=rest.device)
            cache = self._halves.read(input_ids=prompt, use_cache=True).past_key_values
            cache.batch_repeat_interleave(len(rest))
        states: Tensor = self._halves.read(
            input_ids=rest, past_key_values=cache, use_cache=cache is not None
        ).last_hidden_state
        return states.reshape(-1, states.shape[-1])

    def _scored(self, states: Tensor, wanted: Sequence[tuple[int, int]]) -> Floats:
        """Leave out the states of padding, then score."""
        import torch

        rows = torch.tensor([row for row, _ in wanted], device=states.device)
        return self._halves.logprobs(
            states[rows], [(n, token) for n, (_, token) in enumerate(wanted)]
        )


class OneByOne:
    """Each option by itself with its whole prompt: what all other ways must agree with."""

    name = "one by one"

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tail = "logits_to_keep" in inspect.signature(model.forward).parameters

    def __call__(self, trees: Sequence[TokenTree]) -> list[Answer]:
        """Return ln p of the options' tokens."""
        return [list(self._question(tree)) for tree in trees]

    def _question(self, tree: TokenTree) -> Iterator[Floats]:
        known: dict[tuple[int, ...], Floats] = {}
        for ids in tree.question.ids:
            if ids not in known:
                known[ids] = self.option(ids, tree.question.start)
            yield known[ids]

    def option(self, ids: Sequence[int], start: int) -> Floats:
        """Return ln p of the tokens from `start` on."""
        import torch

        device = input_device(self._model)
        read, target = torch.tensor([ids[:-1]], device=device), torch.tensor(ids[start:])
        keep = {"logits_to_keep": len(target)} if self._tail else {}
        logits = self._model(input_ids=read, use_cache=False, **keep).logits[0, -len(target) :]
        found = torch.log_softmax(logits.float(), dim=-1).cpu()
        picked: Floats = found[torch.arange(len(target)), target].numpy().astype(np.float64)
        return picked


def ways(model: Any) -> Iterator[Way]:
    """Yield the ways that may be open to a model, the fastest first."""
    config = text_config(model)
    window = getattr(config, "sliding_window", None)
    if model.get_decoder() is not model:
        if window and set(getattr(config, "layer_types", None) or ()) > {"sliding_attention"}:
            yield TreePass(model, "token tree, windowed in some layers", layered_mask)
        if window:
            yield TreePass(model, "token tree, windowed", window_mask)
        yield TreePass(model, "token tree", full_mask)
        yield SharedCache(model)
    yield OneByOne(model)
