"""Hidden states to log-probabilities: the head at the scored places alone, never all logits at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Halves"]

CELLS = {"cpu": 2**19, "cuda": 2**27}
"""Logits held at a time: 2 MiB in float32 stay in a CPU's cache, 512 MiB keep a GPU busy."""
WHOLE_ROWS = 2**24
"""The same where only whole rows can be had."""

Blocks = Iterator[tuple[int, "Tensor"]]


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
