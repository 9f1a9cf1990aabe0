"""Digests of models that are already loaded: equal digests mean equal predictions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

MODEL_SETTINGS = (
    "default_prompt_name", "max_active_dims", "max_length", "max_seq_length", "similarity_fn_name",
    "truncate_dim",
)  # fmt: skip
"""Settings of models of sentence-transformers that are in no module."""
TOKENIZER_SETTINGS = ("model_max_length", "padding_side", "truncation_side", "chat_template")
CONFIG_ORIGINS = ("_name_or_path", "transformers_version")
"""Entries of configurations of transformers that change no prediction."""


def model_digest(model: Any, tokenizer: Any = None) -> str:
    """Return the first digits of the SHA-256 of the weights, the structure and the settings of a model.

    tokenizer: that of a model of transformers; models of sentence-transformers have their own.
    """
    import torch

    tokenizer = getattr(model, "tokenizer", None) if tokenizer is None else tokenizer
    parts = [repr(model), *_settings(model), *_tokenizer_settings(tokenizer)]
    content = hashlib.sha256("\n".join(parts).encode())
    for name, tensor in sorted(model.state_dict().items()):
        content.update(f"{name} {tuple(tensor.shape)}".encode())
        content.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return content.hexdigest()[:16]


def _settings(model: Any) -> Iterator[str]:
    """Yield the settings of a model that its representation and weights do not contain."""
    for part in model.modules():
        if hasattr(part, "get_config_dict"):
            yield _text(part.get_config_dict())
    for name in MODEL_SETTINGS:
        yield f"{name}={getattr(model, name, None)!r}"
    config: Any = getattr(getattr(model, "auto_model", model), "config", None)
    if hasattr(config, "to_dict"):
        values = config.to_dict()
        yield _text({name: values[name] for name in values.keys() - {*CONFIG_ORIGINS}})


def _tokenizer_settings(tokenizer: Any) -> Iterator[str]:
    """Yield the settings of a tokenizer, except padding and truncation, which are those of its last call."""
    if hasattr(tokenizer, "model_max_length"):
        yield repr(tokenizer)
    for name in TOKENIZER_SETTINGS:
        yield f"{name}={getattr(tokenizer, name, None)!r}"
    rules = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(rules, "to_str"):
        yield _text(json.loads(rules.to_str()) | {"padding": None, "truncation": None})
    elif hasattr(rules, "get_vocab"):
        yield _text(rules.get_vocab())


def _text(settings: Any) -> str:
    """Return settings as text that does not depend on the order of keys and sets."""
    if isinstance(settings, Mapping):
        return (
            f"{{{', '.join(sorted(f'{key}: {_text(value)}' for key, value in settings.items()))}}}"
        )
    if isinstance(settings, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, settings)))}}}"
    if isinstance(settings, list | tuple):
        return f"[{', '.join(map(_text, settings))}]"
    return repr(settings)
