"""Hidden states to log-probabilities: the head at the scored places alone, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Halves"]

CELLS = {"cpu": 2**25, "cuda": 2**28}
"""Logits held at a time: 64 MiB in float32 on a CPU, 1 GiB on a GPU."""

Floats = NDArray[np.float64]


class Halves:
    """A model in two halves: the decoder, and what the model does behind it, down to the logits.

    The second half is the model's own code, with the decoder giving back states that are there already;
    so whatever an architecture does to its logits, scaling or soft-capping, is done.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._decoder = model.get_decoder()
        self._kind: Any = None

    def read(self, **inputs: Any) -> Any:
        """Return the decoder's output; ``last_hidden_state`` is (batch, tokens, width)."""
        output = self._decoder(**inputs)
        self._kind = type(output)
        return output

    def logprobs(self, states: Tensor, wanted: Sequence[tuple[int, int]]) -> Floats:
        """Return (n,) ln p(token) for n pairs (row of `states` (rows, width), token)."""
        import torch

        rows, tokens = torch.tensor(wanted, device=states.device).T
        found = torch.empty(len(wanted), dtype=torch.float32)
        for low, high in self._chunks(states):
            here = ((rows >= low) & (rows < high)).nonzero()[:, 0]
            logits = self._logits(states[low:high])
            place, token = rows[here].to(logits.device) - low, tokens[here].to(logits.device)
            chosen = logits[place, token]
            found[here.cpu()] = (chosen - _log_sum_exp(logits)[place]).cpu()
        return found.numpy().astype(np.float64)

    def _logits(self, states: Tensor) -> Tensor:
        """Return (rows, vocabulary) in float32."""
        import torch

        ids = torch.zeros((1, len(states)), dtype=torch.long, device=states.device)
        with _returning(self._decoder, self._kind(last_hidden_state=states[None])):
            logits: Tensor = self._model(input_ids=ids, use_cache=False).logits[0]
        return logits.float()

    def _chunks(self, states: Tensor) -> Iterator[tuple[int, int]]:
        """Yield the bounds of as few chunks as `CELLS` allows, all about equally large."""
        vocabulary = self._model.get_output_embeddings().weight.shape[0]
        most = max(1, CELLS.get(states.device.type, CELLS["cpu"]) // vocabulary)
        bounds = np.linspace(0, len(states), -(-len(states) // most) + 1).astype(int)
        yield from zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)


def _log_sum_exp(logits: Tensor) -> Tensor:
    """Return ln Σ exp over the last axis; `logits` is used up, so that no second copy is held."""
    largest = logits.amax(dim=-1, keepdim=True)
    return logits.sub_(largest).exp_().sum(dim=-1).log_() + largest[..., 0]


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
