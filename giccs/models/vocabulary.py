"""Does a tokenizer know the texts? All words that it does not know are the same to a model."""

from __future__ import annotations

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
]

MAX_UNKNOWN = 0.05
"""Largest share of unknown tokens that calls for no warning."""
WORD_BOUNDARIES = "▁Ġ#"
FRAME = ("bos", "eos", "cls", "sep")
"""Special tokens around a text."""


@dataclass(slots=True)
class TokenCounts:
    """How many tokens of texts a model read, without special tokens around them; of word vectors, words."""

    tokens: int = 0
    unknown: int = 0

    def document(self) -> dict[str, Any]:
        """Return what is added to a result's environment."""
        return {"tokens": asdict(self)} if self.tokens else {}

    def warning(self) -> str:
        """Return what is wrong; empty where at most `MAX_UNKNOWN` of the tokens are unknown.

        >>> TokenCounts(200, 25).warning()
        '12.5 % of the tokens (25 of 200) are unknown to the model; is it made for this language?'
        >>> TokenCounts(200, 10).warning()
        ''
        """
        if self.unknown <= MAX_UNKNOWN * self.tokens:
            return ""
        return (
            f"{100 * self.unknown / self.tokens:.1f} % of the tokens ({self.unknown} of {self.tokens}) "
            "are unknown to the model; is it made for this language?"
        )


_current: ContextVar[TokenCounts | None] = ContextVar("_current", default=None)


@contextmanager
def counted_tokens() -> Iterator[TokenCounts]:
    """Count the tokens that models read in this block; an outer block counts them as well."""
    counts = TokenCounts()
    token = _current.set(counts)
    try:
        yield counts
    finally:
        _current.reset(token)
        count_tokens(counts.tokens, counts.unknown)


def count_tokens(tokens: int, unknown: int) -> None:
    """Add to the counts of the innermost block of `counted_tokens`, if there is one."""
    if (counts := _current.get()) is not None:
        counts.tokens += tokens
        counts.unknown += unknown


def check_tokenizer(tokenizer: Any) -> None:
    """Raise ValueError where a tokenizer of transformers has no tokens but special ones.

    transformers makes such a tokenizer from a folder without tokenizer files. It turns each word into the
    unknown token, or into none.
    """
    if not hasattr(tokenizer, "all_special_tokens"):
        return
    special = {*tokenizer.all_special_tokens, *tokenizer.added_tokens_encoder}
    if {token for token in tokenizer.get_vocab() if token.strip(WORD_BOUNDARIES)} <= special:
        raise ValueError(
            "its tokenizer has no vocabulary; tokenizer.json, vocab.txt, spiece.model or the like is "
            "expected in the folder"
        )


class TokenCounter:
    """Counts the tokens of texts that one tokenizer encoded.

    Byte-level tokenizers know everything, and may call the end of a text their unknown token, which
    therefore counts as special.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Take a tokenizer of transformers, or one of the library tokenizers, as static embeddings have."""
        special = set(getattr(tokenizer, "all_special_ids", ()))
        frame = {getattr(tokenizer, f"{name}_token_id", None) for name in FRAME}
        unknown = _unknown_id(tokenizer)
        self._unknown = -1 if unknown is None or unknown in frame else unknown
        self._special = special - {self._unknown}

    def ids(self, ids: Iterable[int]) -> None:
        """Count the tokens of a text."""
        own = [token for token in ids if token not in self._special]
        count_tokens(len(own), own.count(self._unknown))

    def batch(self, features: Mapping[str, Any]) -> None:
        """Count a batch of texts: tensors ``input_ids``, and ``attention_mask`` if they are padded."""
        import torch

        ids = features.get("input_ids")
        if _current.get() is None or ids is None:
            return
        special = torch.tensor(sorted(self._special), dtype=ids.dtype, device=ids.device)
        own = ~torch.isin(ids, special)
        if "attention_mask" in features:
            own &= features["attention_mask"].bool()
        count_tokens(int(own.sum()), int((own & (ids == self._unknown)).sum()))


def _unknown_id(tokenizer: Any) -> int | None:
    """Return the id of the token for all unknown words; None where there is none."""
    if hasattr(tokenizer, "token_to_id"):
        name = getattr(tokenizer.model, "unk_token", None)
        found = None if name is None else tokenizer.token_to_id(name)
    else:
        found = getattr(tokenizer, "unk_token_id", None)
    return found if isinstance(found, int) else None
