"""Counts of known and unknown tokens; a model cannot distinguish between unknown tokens."""

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
    "counted_inputs",
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
    """Number of inputs with the maximum number of tokens, some of which may be cut; only in results of
    earlier versions."""
    cut: int = 0
    """Number of inputs whose end was removed because they were too long for the model."""
    too_long: int = 0
    """Number of pairs without a prediction because an utterance was too long for the model."""
    shortened: int = 0
    """Number of pairs or prompts whose history was shortened from its beginning."""
    equal: int = 0
    """Number of pairs of different texts with equal vectors, of a model whose limit is unknown."""

    def document(self) -> dict[str, Any]:
        """Return the entry for a result's environment; only tokens and unknown ones may be 0."""
        always = ("tokens", "unknown")
        counts = {name: count for name, count in asdict(self).items() if count or name in always}
        return {"tokens": counts} if any(counts.values()) else {}

    def warning(self) -> str:
        """Return a warning of more unknown tokens than `MAX_UNKNOWN` and of long inputs, or an empty string.

        >>> TokenCounts(200, 25).warning()
        '12.5 % of the tokens (25 of 200) are unknown to the model; does it support this language?'
        >>> TokenCounts(200, 10).warning()
        ''
        >>> print(TokenCounts(200, cut=3, shortened=5).warning())
        the model removes the end of 3 inputs, which are too long for it; 5 inputs with a history shortened\
 from its beginning to fit into the model
        """
        warnings = []
        if self.unknown > MAX_UNKNOWN * self.tokens:
            share = f"{100 * self.unknown / self.tokens:.1f} % of the tokens"
            warnings.append(
                f"{share} ({self.unknown} of {self.tokens}) are unknown to the model; does it support this "
                "language?"
            )
        notes = {
            f"{_counted(self.full, 'input')} with the maximum number of tokens of the model, which removes "
            "the end of longer ones": self.full,
            f"the model removes the end of {_counted(self.cut, 'input')}, which "
            f"{'is' if self.cut == 1 else 'are'} too long for it": self.cut,
            f"{_counted(self.too_long, 'pair')} without a prediction, because an utterance is too long for "
            "the model": self.too_long,
            f"{_counted(self.shortened, 'input')} with a history shortened from its beginning to fit into "
            "the model": self.shortened,
            f"{_counted(self.equal, 'pair')} of different texts with equal vectors; the model may remove the "
            "end of long texts": self.equal,
        }
        warnings += [note for note, count in notes.items() if count]
        return "; ".join(warnings)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


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
        count_tokens(**asdict(counts))


def count_tokens(tokens: int = 0, unknown: int = 0, **inputs: int) -> None:
    """Add to the `TokenCounts` of the active blocks of `counted_tokens`, if any."""
    if (counts := _current.get()) is not None:
        for name, count in {"tokens": tokens, "unknown": unknown, **inputs}.items():
            setattr(counts, name, getattr(counts, name) + count)


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

    def __init__(self, tokenizer: Any) -> None:
        """Create a counter for a tokenizer of transformers, or of the library tokenizers, as in static
        embeddings."""
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
        if "attention_mask" in features:
            is_content &= features["attention_mask"].bool()
        count_tokens(int(is_content.sum()), int((is_content & (ids == self._unknown)).sum()))


@contextmanager
def counted_inputs(model: Any) -> Iterator[None]:
    """Count the tokens of a model of sentence-transformers that is used in this block."""
    counter = TokenCounter(getattr(model, "tokenizer", None))
    hook = model[0].register_forward_pre_hook(lambda module, inputs: counter.batch(inputs[0]))
    try:
        yield
    finally:
        hook.remove()


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
