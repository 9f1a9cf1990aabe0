"""Forward passes through a causal model, from the fastest to the one supported by every model.

Each takes questions and returns, for each option, (n,) ln p of its n tokens. The head is applied to blocks of
the vocabulary for the scored states only. In masks, `visible` is (B, N, N), whether a token attends to
another; `depths` are the distances from the root, (B, N).
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

CELLS = {"cpu": 2**19, "cuda": 2**27}
"""Number of logits in memory: 2 MiB in float32 fit into a CPU's cache, 512 MiB keep a GPU busy."""
WHOLE_ROWS = 2**24
"""The same for models with whole rows only."""

MIN_STEP = 64
"""Smallest distance of the widths of buckets."""

Blocks = Iterator[tuple[int, "Tensor"]]
Floats = NDArray[np.float64]
Answer = list[Floats]
"""For each option of a question, ln p of its tokens."""


def bucket_width(size: int) -> int:
    """Return the width of the bucket of a size, at most a quarter larger from 256 tokens on.

    A GPU plans the computation of each new shape, which takes longer than the computation itself.

    >>> [bucket_width(size) for size in (1, 64, 65, 321, 700, 1088)]
    [64, 64, 128, 384, 768, 1280]
    """
    step = max(MIN_STEP, (1 << size.bit_length()) // 8)
    return -(-size // step) * step


WIDTHS: dict[str, Callable[[int], int]] = {"cpu": lambda size: size, "cuda": bucket_width}
"""Type of device -> width of a pass for a number of tokens."""


def full_mask(model: Any, visible: Tensor, depths: Tensor) -> Tensor:
    """Return the mask (B, 1, N, N) that is added to the attention scores."""
    import torch

    mask = torch.zeros(visible.shape, dtype=model.dtype, device=visible.device)
    return mask.masked_fill_(~visible, torch.finfo(model.dtype).min)[:, None]


def window_mask(model: Any, visible: Tensor, depths: Tensor) -> Tensor:
    """Return the mask of a model with sliding-window attention."""
    distance = depths[:, :, None] - depths[:, None, :]
    return full_mask(model, visible & (distance < text_config(model).sliding_window), depths)


def layered_mask(model: Any, visible: Tensor, depths: Tensor) -> dict[str, Tensor]:
    """Return one mask per kind of layer, for models with both full and sliding-window attention."""
    return {
        "full_attention": full_mask(model, visible, depths),
        "sliding_attention": window_mask(model, visible, depths),
    }


def text_config(model: Any) -> Any:
    """Return the configuration of the text part of a model, which may be multimodal."""
    return model.config.get_text_config()


class Halves:
    """A model split into the decoder and the computation of ln p from its states.

    If the second part is a single matrix, it is applied to blocks of the vocabulary. If an architecture also
    modifies its logits (soft-capping, scaling), the model's own code runs, with a decoder that returns
    precomputed states.
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

    def logprobs(self, states: Tensor, positions: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
        """Return (n,) ln p(token) for n pairs (row of `states` (rows, width), token)."""
        import torch

        if self._linear is None:
            self._linear = self._is_linear(states[:1])
        rows, tokens = torch.tensor(positions, device=states.device).T
        if self._linear:
            return _logprobs(self._parts(states), len(states), rows, tokens)
        step = max(1, WHOLE_ROWS // self._head.weight.shape[0])
        result = np.empty(len(positions))
        for low in range(0, len(states), step):
            part = states[low : low + step]
            in_block = ((rows >= low) & (rows < low + step)).nonzero()[:, 0]
            blocks = iter([(0, self._logits(part))])
            result[in_block.cpu().numpy()] = _logprobs(
                blocks, len(part), rows[in_block] - low, tokens[in_block]
            )
        return result

    @property
    def _head(self) -> Any:
        return self._model.get_output_embeddings()

    def _is_linear(self, state: Tensor) -> bool:
        """Return whether the output matrix gives the same logits as the model for a state (1, width)."""
        import torch

        if self._head.weight.device != state.device:  # On another device, or not in memory.
            return False
        (_, logits), *more_parts = self._parts(state)
        all_logits = torch.cat([logits, *(part_logits for _, part_logits in more_parts)], dim=1)
        expected = self._logits(state)
        return all_logits.shape == expected.shape and torch.allclose(
            all_logits, expected, rtol=1e-5, atol=1e-5
        )

    def _parts(self, states: Tensor) -> Blocks:
        """Yield (first token, logits (rows, block of the vocabulary) from this token on)."""
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

    ln p = logit - ln Σ exp logit; the sum is relative to the largest logit so far. Blocks are modified in
    place to avoid a second copy.
    """
    import torch

    largest = torch.full((count, 1), -torch.inf, device=rows.device)
    total = torch.zeros((count, 1), device=rows.device)
    target_logits = torch.zeros(len(rows), device=rows.device)
    for low, logits in blocks:
        column, last = tokens - low, logits.shape[1] - 1
        picked = logits[rows, column.clamp(0, last)]
        target_logits = torch.where((column >= 0) & (column <= last), picked, target_logits)
        larger = torch.maximum(largest, logits.amax(dim=1, keepdim=True))
        total.mul_((largest - larger).exp_())
        total.add_(logits.sub_(larger).exp_().sum(dim=1, keepdim=True))
        largest = larger
    logprobs = target_logits - (total.log_() + largest)[rows, 0]
    return logprobs.cpu().numpy().astype(np.float64)


@contextmanager
def _returning(decoder: Any, output: Any) -> Iterator[None]:
    """Make the decoder return `output` for any input."""
    before = decoder.__dict__.get("forward")  # Set if accelerate has hooked into the module.
    decoder.forward = lambda *args, **kwargs: output
    try:
        yield
    finally:
        del decoder.forward
        if before is not None:
            decoder.forward = before


class ForwardPass(Protocol):
    """A type of forward pass."""

    @property
    def name(self) -> str:
        """Its name in results."""
        ...

    def __call__(self, trees: Sequence[TokenTree]) -> list[Answer]:
        """Return, for each option of each question, ln p of its tokens."""
        ...


class TreePass:
    """All options of several questions in one pass: one row per question, with a mask for the tree."""

    def __init__(self, model: Any, name: str, mask: Callable[[Any, Tensor, Tensor], Any]) -> None:
        self.name = name
        self._model, self._mask = model, mask
        self._halves = Halves(model)

    def __call__(self, trees: Sequence[TokenTree]) -> list[Answer]:
        """Return ln p of the options' tokens."""
        import torch

        arrays = _padded(trees, self.width(max(map(len, trees))))
        tokens, depths, visible = map(self._on_device, arrays)
        states = self._halves.read(
            input_ids=tokens,
            position_ids=depths,
            attention_mask=self._mask(self._model, visible, depths),
            use_cache=False,
        ).last_hidden_state
        rows: dict[tuple[int, int], int] = {}
        positions = [
            (rows.setdefault((row, index), len(rows)), token)
            for row, tree in enumerate(trees)
            for option in tree.predictions
            for index, token in option
        ]
        at = torch.tensor(list(rows), device=states.device)
        logprobs = self._halves.logprobs(states[at[:, 0], at[:, 1]], positions)
        return _divided(logprobs, trees)

    def width(self, size: int) -> int:
        """Return the width of a pass with trees of at most `size` tokens."""
        kind = input_device(self._model).type
        return WIDTHS.get(kind, WIDTHS["cpu"])(size)

    def _on_device(self, array: NDArray[Any]) -> Tensor:
        import torch

        return torch.from_numpy(array).to(input_device(self._model))


def _padded(
    trees: Sequence[TokenTree], width: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return tokens (B, N), depths (B, N), visibility (B, N, N) for N = width; padding attends to itself."""
    size = len(trees), width
    tokens, depths = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    visible = np.broadcast_to(np.eye(size[1], dtype=np.bool_), (*size, size[1])).copy()
    for row, tree in enumerate(trees):
        n = len(tree)
        tokens[row, :n], depths[row, :n] = tree.tokens, tree.depths
        visible[row, :n, :n] = tree.visible()
    return tokens, depths, visible


def _divided(logprobs: Floats, trees: Sequence[TokenTree]) -> list[Answer]:
    """Split the values of all options' tokens, which are concatenated option by option."""
    parts = iter(np.split(logprobs, np.cumsum([len(o) for t in trees for o in t.predictions])[:-1]))
    return [[next(parts) for _ in tree.predictions] for tree in trees]


class SharedCache:
    """One question at a time: the prompt once, then all options as a batch on copies of the prompt's
    cache."""

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
        suffix_ids = torch.zeros((len(distinct), read - stem), dtype=torch.long, device=device)
        for row, ids in enumerate(distinct):  # Padding is last, so no token attends to it.
            suffix_ids[row, : len(ids) - 1 - stem] = torch.tensor(ids[stem:-1])
        states = self._states(distinct[0][:stem], suffix_ids)
        positions = [
            (row * suffix_ids.shape[1] + index, token)
            for row, ids in enumerate(distinct)
            for index, token in enumerate(ids[question.start :])
        ]
        logprobs = self._scored(states, positions)
        lengths = [len(ids) - question.start for ids in distinct]
        by_ids = dict(zip(distinct, np.split(logprobs, np.cumsum(lengths)[:-1]), strict=True))
        return [by_ids[ids] for ids in question.ids]

    def _states(self, stem: Sequence[int], suffix_ids: Tensor) -> Tensor:
        import torch

        cache = None
        if stem:
            prompt = torch.tensor([stem], device=suffix_ids.device)
            cache = self._halves.read(input_ids=prompt, use_cache=True).past_key_values
            cache.batch_repeat_interleave(len(suffix_ids))
        states: Tensor = self._halves.read(
            input_ids=suffix_ids, past_key_values=cache, use_cache=cache is not None
        ).last_hidden_state
        return states.reshape(-1, states.shape[-1])

    def _scored(self, states: Tensor, positions: Sequence[tuple[int, int]]) -> Floats:
        """Remove the states of padding, then compute ln p."""
        import torch

        rows = torch.tensor([row for row, _ in positions], device=states.device)
        return self._halves.logprobs(
            states[rows], [(n, token) for n, (_, token) in enumerate(positions)]
        )


class OneByOne:
    """Each option separately with its whole prompt: the reference for all other passes."""

    name = "one by one"

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tail = "logits_to_keep" in inspect.signature(model.forward).parameters

    def __call__(self, trees: Sequence[TokenTree]) -> list[Answer]:
        """Return ln p of the options' tokens."""
        return [list(self._question(tree)) for tree in trees]

    def _question(self, tree: TokenTree) -> Iterator[Floats]:
        logprobs_by_prefix: dict[tuple[int, ...], Floats] = {}
        for ids in tree.question.ids:
            if ids not in logprobs_by_prefix:
                logprobs_by_prefix[ids] = self.option(ids, tree.question.start)
            yield logprobs_by_prefix[ids]

    def option(self, ids: Sequence[int], start: int) -> Floats:
        """Return ln p of the tokens from `start` on."""
        import torch

        device = input_device(self._model)
        read, target = torch.tensor([ids[:-1]], device=device), torch.tensor(ids[start:])
        keep = {"logits_to_keep": len(target)} if self._tail else {}
        logits = self._model(input_ids=read, use_cache=False, **keep).logits[0, -len(target) :]
        logprobs = torch.log_softmax(logits.float(), dim=-1).cpu()
        picked: Floats = logprobs[torch.arange(len(target)), target].numpy().astype(np.float64)
        return picked


def ways(model: Any) -> Iterator[ForwardPass]:
    """Yield the candidate forward passes of a model, the fastest first."""
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
