"""Counts of known and unknown tokens; a model cannot distinguish between unknown tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

__all__ = [
    "MAX_UNKNOWN",
    "TokenCounter",
    "TokenCounts",
    "check_tokenizer",
    "count_tokens",
    "counted_tokens",
    "separates_pairs",
]

MAX_UNKNOWN = 0.05
"""Maximum share of unknown tokens without a warning."""
WORD_BOUNDARIES = "▁Ġ#"
FRAME = ("bos", "eos", "cls", "sep")
"""Special tokens around a text."""


@dataclass(slots=True)
class TokenCounts:
    """Numbers of tokens in the inputs of a model, without surrounding special tokens; words for word
    vectors."""

    tokens: int = 0
    unknown: int = 0
    full: int = 0
    """Number of inputs of an encoder with its maximum number of tokens; the end of longer ones is removed."""

    def document(self) -> dict[str, Any]:
        """Return the entry for a result's environment; ``full`` only if it is not 0."""
        counts = {name: count for name, count in asdict(self).items() if count or name != "full"}
        return {"tokens": counts} if self.tokens else {}

    def warning(self) -> str:
        """Return a warning of more unknown tokens than `MAX_UNKNOWN` or of full inputs, or an empty string.

        >>> TokenCounts(200, 25).warning()
        '12.5 % of the tokens (25 of 200) are unknown to the model; does it support this language?'
        >>> TokenCounts(200, 10).warning()
        ''
        >>> TokenCounts(200, 0, 3).warning()
        '3 inputs have the maximum number of tokens of the model, which removes the end of longer ones'
        """
        warnings = []
        if self.unknown > MAX_UNKNOWN * self.tokens:
            share = f"{100 * self.unknown / self.tokens:.1f} % of the tokens"
            warnings.append(
                f"{share} ({self.unknown} of {self.tokens}) are unknown to the model; does it support this "
                "language?"
            )
        if self.full:
            inputs = "1 input has" if self.full == 1 else f"{self.full} inputs have"
            warnings.append(
                f"{inputs} the maximum number of tokens of the model, which removes the end of longer ones"
            )
        return " ".join(warnings)


_current: ContextVar[TokenCounts | None] = ContextVar("_current", default=None)


@contextmanager
def counted_tokens() -> Iterator[TokenCounts]:
    """Count the tokens of model inputs in this block; outer blocks count them as well."""
    counts = TokenCounts()
    token = _current.set(counts)
    try:
        yield counts
    finally:
        _current.reset(token)
        count_tokens(counts.tokens, counts.unknown, counts.full)


def count_tokens(tokens: int, unknown: int, full: int = 0) -> None:
    """Add to the counts of the active blocks of `counted_tokens`, if any."""
    if (counts := _current.get()) is not None:
        counts.tokens += tokens
        counts.unknown += unknown
        counts.full += full


def check_tokenizer(tokenizer: Any) -> None:
    """Raise ValueError for a tokenizer of transformers that has only special tokens.

    transformers builds such a tokenizer from a folder without tokenizer files. It maps every word to the
    unknown token, or to no token.
    """
    if not hasattr(tokenizer, "all_special_tokens"):
        return
    special = {*tokenizer.all_special_tokens, *tokenizer.added_tokens_encoder}
    if {token for token in tokenizer.get_vocab() if token.strip(WORD_BOUNDARIES)} <= special:
        raise ValueError(
            "its tokenizer has no vocabulary; expected tokenizer.json, vocab.txt, spiece.model or a "
            "similar file in the folder"
        )


class TokenCounter:
    """Counts the tokens in the output of one tokenizer.

    Byte-level tokenizers have no unknown tokens and may use the end-of-text token as such, which is therefore
    counted as special.
    """

    def __init__(self, tokenizer: Any, limit: int | None = None) -> None:
        """Create a counter for a tokenizer of transformers, or of the library tokenizers, as in static
        embeddings.

        limit: number of tokens to which inputs are truncated.
        """
        self._limit = limit or math.inf
        special = set(getattr(tokenizer, "all_special_ids", ()))
        frame = {getattr(tokenizer, f"{name}_token_id", None) for name in FRAME}
        unknown = _unknown_id(tokenizer)
        self._unknown = -1 if unknown is None or unknown in frame else unknown
        self._special = special - {self._unknown}

    def ids(self, ids: Iterable[int]) -> None:
        """Count the tokens of a text."""
        known_tokens = [token for token in ids if token not in self._special]
        count_tokens(len(known_tokens), known_tokens.count(self._unknown))

    def batch(self, features: Mapping[str, Any]) -> None:
        """Count a batch of texts: tensors ``input_ids``, and ``attention_mask`` if they are padded."""
        import torch

        ids = features.get("input_ids")
        if _current.get() is None or ids is None:
            return
        special = torch.tensor(sorted(self._special), dtype=ids.dtype, device=ids.device)
        is_content = ~torch.isin(ids, special)
        full = 0
        if "attention_mask" in features:
            is_token = features["attention_mask"].bool()
            is_content &= is_token
            full = int((is_token.sum(dim=-1) >= self._limit).sum())
        count_tokens(int(is_content.sum()), int((is_content & (ids == self._unknown)).sum()), full)


def _unknown_id(tokenizer: Any) -> int | None:
    """Return the id of the unknown token, or None."""
    if hasattr(tokenizer, "token_to_id"):
        name = getattr(tokenizer.model, "unk_token", None)
        unknown_id = None if name is None else tokenizer.token_to_id(name)
    else:
        unknown_id = getattr(tokenizer, "unk_token_id", None)
    return unknown_id if isinstance(unknown_id, int) else None


def separates_pairs(tokenizer: Any) -> bool:
    """Return whether a tokenizer puts a separator between two texts, as those of BERT and RoBERTa do."""
    if not hasattr(tokenizer, "num_special_tokens_to_add"):
        return False
    n_single, n_pair = (tokenizer.num_special_tokens_to_add(pair) for pair in (False, True))
    return bool(n_pair > n_single)
