"""How many tokens a model can read, and which inputs a model of sentence-transformers reads completely.

Positions. A model with a table of positions fails beyond its end, and the maximum that a configuration or a
tokenizer states may be larger than the table, or missing. With models that number positions from the padding
token on (RoBERTa and its relatives) or reserve the first rows (OPT, BART), fewer tokens than rows are usable.
Relative positions, as in T5, have no end.

Truncation. The library truncates inputs without notice: at the maximum of the tokenizer or the positions of
the model, at a maximum for documents, or as the processor of the model states, after a prompt and within a
chat template. Inputs are therefore tokenised as by the library, with and without truncation, and compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.encoder_prompts import after_prompt
from giccs.models.encoding import EncoderInput, input_length
from giccs.models.vocabulary import count_tokens

LIMITS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "max_seq_len")
"""Names of the maximum number of tokens in configurations."""
POSITION_TABLES = (
    "position_embeddings",
    "position_embedding",
    "embed_positions",
    "positions_embed",
    "wpe",
)
"""Names of the embeddings of positions in transformers."""
OTHER_INPUTS = re.compile("vision|visual|image|audio|patch")
"""Parts of models for other inputs than text, which have positions of their own."""

BATCH_INPUTS = 64
"""Number of inputs that are tokenised together; they are padded to the longest."""
NO_LIMIT = 2**31 - 1
"""Maximum number of tokens that truncates nothing, and of which tokenizers do not warn."""

Bools = NDArray[np.bool_]


def position_limit(model: Any, limits: Sequence[str] = LIMITS) -> int | None:
    """Return the maximum number of tokens of a model of transformers; None if unlimited.

    It is the smaller of the maximum that the configuration states and the usable rows of tables of positions.
    model: a model, or its encoder or decoder. limits: names of the maximum in its configuration.
    """
    config, rows = model.config.get_text_config(), _usable_rows(model)
    if rows is None and hasattr(config, "relative_attention_num_buckets"):
        return None  # The n_positions of T5 is that of its training; positions are relative.
    values = (getattr(config, name, None) for name in limits)
    # XLNet states -1.
    stated = next((limit for limit in values if isinstance(limit, int) and limit > 0), None)
    return min((limit for limit in (stated, rows) if limit is not None), default=None)


def _usable_rows(model: Any) -> int | None:
    """Return the number of positions in the smallest table for text tokens; None without a table.

    The first rows are never used if positions begin after the padding token, or at an offset.
    """
    n_rows = []
    for path, table in model.named_modules():
        is_table = path.rpartition(".")[2] in POSITION_TABLES and hasattr(table, "weight")
        if is_table and not OTHER_INPUTS.search(path):
            padding = getattr(table, "padding_idx", None)
            n_unused = max(getattr(table, "offset", 0), 0 if padding is None else padding + 1)
            n_rows.append(int(table.weight.shape[0]) - n_unused)
    return min(n_rows, default=None)


def input_modules(model: Any) -> list[Any]:
    """Return the modules that read texts: the first one, or the first of each route of a Router."""
    routes = getattr(model[0], "sub_modules", None)
    return [model[0]] if routes is None else [modules[0] for modules in routes.values()]


def limit_to_positions(model: Any) -> None:
    """Reduce the maximum number of tokens of a model of sentence-transformers to that of its positions.

    A stated maximum beyond that of the configuration is kept if there is no table, as with rotary positions.
    """
    for module in model.modules():
        if not hasattr(module, "auto_model") or not hasattr(module, "max_seq_length"):
            continue
        transformer = module.auto_model
        is_stated = (module.max_seq_length or math.inf) <= NO_LIMIT
        limit = _usable_rows(transformer) if is_stated else position_limit(transformer)
        if limit is not None:
            module.max_seq_length = min(module.max_seq_length or limit, limit)
            if getattr(module, "document_length", None):
                module.document_length = min(module.document_length, limit)


def reads_completely(
    model: Any, inputs: Sequence[EncoderInput], prompt: str | None = None, task: str | None = None
) -> Bools:
    """Return (N,) whether a model of sentence-transformers reads each input completely.

    prompt: text before each input. task: ``document`` for the limit and the marks of documents, or another
    one that chooses a route. True for models without a tokenizer of transformers and without a maximum of
    words, such as static embeddings.
    """
    modules = input_modules(model)
    if any(_max_words(module) for module in modules):
        return np.array([_reads_words(modules, text, prompt) for text in inputs], dtype=np.bool_)
    tokenizers = [getattr(module, "tokenizer", None) for module in modules]
    if not any(hasattr(tokenizer, "model_max_length") for tokenizer in tokenizers):
        return np.ones(len(inputs), dtype=np.bool_)
    distinct = sorted(dict.fromkeys(inputs), key=input_length)
    is_complete: dict[EncoderInput, bool] = {}
    for start in range(0, len(distinct), BATCH_INPUTS):
        batch = distinct[start : start + BATCH_INPUTS]
        read, whole = (_lengths(model, batch, prompt, task, limit) for limit in (None, NO_LIMIT))
        is_complete |= zip(batch, (read == whole).tolist(), strict=True)
    return np.array([is_complete[text] for text in inputs], dtype=np.bool_)


def _max_words(module: Any) -> int | None:
    """Return the maximum number of words of a WordEmbeddings; None for other modules."""
    is_words = hasattr(module, "emb_layer") and hasattr(module.tokenizer, "tokenize")
    return module.max_seq_length if is_words else None


def _reads_words(modules: Sequence[Any], text: EncoderInput, prompt: str | None) -> bool:
    """Return whether all WordEmbeddings among modules read a text completely."""
    return all(
        len(module.tokenizer.tokenize(after_prompt(prompt or "", text))) <= limit
        for module in modules
        if (limit := _max_words(module)) is not None
    )


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
