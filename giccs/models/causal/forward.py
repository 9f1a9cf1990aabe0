"""Forward passes through a causal model, from the fastest to the one that every model supports.

Each takes questions and returns, for each option, (n,) ln p of its n tokens. The head is applied to the
states that are scored, a part of the vocabulary at a time. In masks, `visible` is (B, N, N): who sees
whom; `depths` are the distances from the root, (B, N).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from giccs.models.causal.tokens import TokenTree
from giccs.models.devices import input_device

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Answer", "Floats", "OneByOne", "SharedCache", "TreePass", "Way", "ways"]

CELLS = {"cpu": 2**19, "cuda": 2**27}
"""Logits held at a time: 2 MiB in float32 stay in a CPU's cache, 512 MiB keep a GPU busy."""
WHOLE_ROWS = 2**24
"""The same where only whole rows can be had."""

Blocks = Iterator[tuple[int, "Tensor"]]
Floats = NDArray[np.float64]
Answer = list[Floats]
"""For each option of a question, ln p of its tokens."""


def full_mask(model: Any, visible: Tensor, depths: Tensor) -> Tensor:
    """Return the mask (B, 1, N, N) that is added to the attention's scores."""
    import torch

    mask = torch.zeros(visible.shape, dtype=model.dtype, device=visible.device)
    return mask.masked_fill_(~visible, torch.finfo(model.dtype).min)[:, None]


def window_mask(model: Any, visible: Tensor, depths: Tensor) -> Tensor:
    """Return the mask of a model whose tokens see only so many before them."""
    distance = depths[:, :, None] - depths[:, None, :]
    return full_mask(model, visible & (distance < text_config(model).sliding_window), depths)


def layered_mask(model: Any, visible: Tensor, depths: Tensor) -> dict[str, Tensor]:
    """Return a mask for each kind of layer, of those models that mix whole and windowed attention."""
    return {
        "full_attention": full_mask(model, visible, depths),
        "sliding_attention": window_mask(model, visible, depths),
    }


def text_config(model: Any) -> Any:
    """Return the configuration of the part that reads text, of a model that may read more."""
    return model.config.get_text_config()


class Halves:
    """A model in two halves: the decoder, and what the model does behind it, down to ln p.

    Where the second half is a matrix alone, that is applied a part of the vocabulary at a time. Where an
    architecture does more to its logits (soft-capping, scaling), its own code runs, with the decoder
    giving back states that are there already.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._decoder = model.get_decoder()
        self._kind: Any = None
        self._linear: bool | None = None

    def read(self, **inputs: Any) -> Any:
        """Return the decoder's output; ``last_hidden_state`` is (batch, tokens, width)."""
        output = self._decoder(**inputs)
        self._kind = type(output)
        return output

    def logprobs(self, states: Tensor, wanted: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
        """Return (n,) ln p(token) for n pairs (row of `states` (rows, width), token)."""
        import torch

        if self._linear is None:
            self._linear = self._is_linear(states[:1])
        rows, tokens = torch.tensor(wanted, device=states.device).T
        if self._linear:
            return _logprobs(self._parts(states), len(states), rows, tokens)
        step = max(1, WHOLE_ROWS // self._head.weight.shape[0])
        found = np.empty(len(wanted))
        for low in range(0, len(states), step):
            part = states[low : low + step]
            here = ((rows >= low) & (rows < low + step)).nonzero()[:, 0]
            whole = iter([(0, self._logits(part))])
            found[here.cpu().numpy()] = _logprobs(whole, len(part), rows[here] - low, tokens[here])
        return found

    @property
    def _head(self) -> Any:
        return self._model.get_output_embeddings()

    def _is_linear(self, state: Tensor) -> bool:
        """Tell whether the output matrix gives the logits that the model gives for a state (1, width)."""
        import torch

        if self._head.weight.device != state.device:  # on another device, or not in memory
            return False
        (_, logits), *others = self._parts(state)
        whole = torch.cat([logits, *(other for _, other in others)], dim=1)
        expected = self._logits(state)
        return whole.shape == expected.shape and torch.allclose(
            whole, expected, rtol=1e-5, atol=1e-5
        )

    def _parts(self, states: Tensor) -> Blocks:
        """Yield (first token, its and the next tokens' logits (rows, part of the vocabulary))."""
        from torch.nn.functional import linear

        weight, bias = self._head.weight, getattr(self._head, "bias", None)
        step = max(1024, CELLS.get(states.device.type, CELLS["cpu"]) // len(states))
        for low in range(0, len(weight), step):
            part = slice(low, low + step)
            yield low, linear(states, weight[part], None if bias is None else bias[part]).float()

    def _logits(self, states: Tensor) -> Tensor:
        """Return the model's logits (rows, vocabulary)."""
        import torch

        ids = torch.zeros((1, len(states)), dtype=torch.long, device=states.device)
        with _returning(self._decoder, self._kind(last_hidden_state=states[None])):
            logits: Tensor = self._model(input_ids=ids, use_cache=False).logits[0]
        return logits.float().to(states.device)


def _logprobs(blocks: Blocks, count: int, rows: Tensor, tokens: Tensor) -> NDArray[np.float64]:
    """Return (n,) ln p of `tokens` at `rows`, from blocks of the logits of `count` rows.

    ln p = logit - ln Σ exp logit; the sum is kept relative to the largest logit so far. A block is used
    up, so that no second copy of it is held.
    """
    import torch

    largest = torch.full((count, 1), -torch.inf, device=rows.device)
    total = torch.zeros((count, 1), device=rows.device)
    chosen = torch.zeros(len(rows), device=rows.device)
    for low, logits in blocks:
        here = ((tokens >= low) & (tokens < low + logits.shape[1])).nonzero()[:, 0]
        chosen[here] = logits[rows[here], tokens[here] - low]
        larger = torch.maximum(largest, logits.amax(dim=1, keepdim=True))
        total.mul_((largest - larger).exp_())
        total.add_(logits.sub_(larger).exp_().sum(dim=1, keepdim=True))
        largest = larger
    found = chosen - (total.log_() + largest)[rows, 0]
    return found.cpu().numpy().astype(np.float64)


@contextmanager
def _returning(decoder: Any, output: Any) -> Iterator[None]:
    """Let the decoder return `output` whatever it is asked."""
    before = decoder.__dict__.get("forward")  # set where accelerate has hooked into the module
    decoder.forward = lambda *args, **kwargs: output
    try:
        yield
    finally:
        del decoder.forward
        if before is not None:
            decoder.forward = before


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
