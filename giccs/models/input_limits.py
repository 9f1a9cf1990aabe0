"""Which inputs a model of sentence-transformers reads completely.

The library truncates inputs without notice: at the maximum of the tokenizer or the positions of the model, at
a maximum for documents, or as the processor of the model states, after a prompt and within a chat template.
Inputs are therefore tokenised as by the library, with and without truncation, and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.encoder_prompts import after_prompt
from giccs.models.encoding import EncoderInput, input_length
from giccs.models.sentence_loading import input_modules
from giccs.models.vocabulary import count_tokens

__all__ = ["count_cut", "default_prompt", "reads_completely"]

BATCH_INPUTS = 64
"""Number of inputs that are tokenised together; they are padded to the longest."""
NO_LIMIT = 2**31 - 1
"""Maximum number of tokens that truncates nothing, and of which tokenizers do not warn."""

Bools = NDArray[np.bool_]


def reads_completely(
    model: Any, inputs: Sequence[EncoderInput], prompt: str | None = None, task: str | None = None
) -> Bools:
    """Return (N,) whether a model of sentence-transformers reads each input completely.

    prompt: text before each input. task: ``document`` for the limit and the marks of documents, or another
    one that chooses a route. True for models without a tokenizer of transformers, such as static embeddings,
    which have no limit.
    """
    tokenizers = [getattr(module, "tokenizer", None) for module in input_modules(model)]
    if not any(hasattr(tokenizer, "model_max_length") for tokenizer in tokenizers):
        return np.ones(len(inputs), dtype=np.bool_)
    distinct = sorted(dict.fromkeys(inputs), key=input_length)
    is_complete: dict[EncoderInput, bool] = {}
    for start in range(0, len(distinct), BATCH_INPUTS):
        batch = distinct[start : start + BATCH_INPUTS]
        read, whole = (_lengths(model, batch, prompt, task, limit) for limit in (None, NO_LIMIT))
        is_complete |= zip(batch, (read == whole).tolist(), strict=True)
    return np.array([is_complete[text] for text in inputs], dtype=np.bool_)


def _lengths(
    model: Any,
    inputs: Sequence[EncoderInput],
    prompt: str | None,
    task: str | None,
    limit: int | None,
) -> NDArray[np.int64]:
    """Return (N,) numbers of tokens of inputs, with special tokens; limit: None for that of the model."""
    if not hasattr(model, "preprocess"):  # Before version 6.
        ids = model.tokenizer(
            [after_prompt(prompt or "", text) for text in inputs],
            truncation=True,
            max_length=limit or model.max_seq_length,
        )["input_ids"]
        return np.array([len(row) for row in ids])
    settings = {"processing_kwargs": {"text": {"max_length": limit}}} if limit else {}
    features = model.preprocess(list(inputs), prompt=prompt, task=task, **settings)
    if "attention_mask" in features:
        lengths: NDArray[np.int64] = features["attention_mask"].sum(dim=-1).cpu().numpy()
        return lengths
    if len(inputs) == 1:
        return np.array([features["input_ids"].numel()])
    # Inputs of FlashAttention are joined into a single one.
    return np.concatenate([_lengths(model, [text], prompt, task, limit) for text in inputs])


def default_prompt(model: Any, names: Sequence[str] = ()) -> str | None:
    """Return the first existing prompt with one of the names, or the default prompt, as the library does."""
    prompts = getattr(model, "prompts", None) or {}
    name = next((name for name in names if name in prompts), model.default_prompt_name)
    return prompts.get(name)


def count_cut(is_complete: Bools) -> None:
    """Count the inputs that are not read completely, see `giccs.models.vocabulary.counted_tokens`."""
    count_tokens(cut=int(np.count_nonzero(~is_complete)))
