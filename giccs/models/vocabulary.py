"""Counts of known and unknown tokens; a model cannot distinguish between unknown tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

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
        """Return the warnings of `unknown_warning` and `length_warning`, or an empty string."""
        return "; ".join(filter(None, [self.unknown_warning(), self.length_warning()]))

    def unknown_warning(self) -> str:
        """Return a warning of more unknown tokens than `MAX_UNKNOWN`, or an empty string.

        >>> TokenCounts(200, 25).unknown_warning()
        '12.5 % of the tokens (25 of 200) are unknown to the model; does it support this language?'
        >>> TokenCounts(200, 10).unknown_warning()
        ''
        """
        if self.unknown <= MAX_UNKNOWN * self.tokens:
            return ""
        share = f"{100 * self.unknown / self.tokens:.1f} % of the tokens"
        return (
            f"{share} ({self.unknown} of {self.tokens}) are unknown to the model; does it support this "
            "language?"
        )

    def length_warning(self) -> str:
        """Return a warning of inputs that are too long, or an empty string.

        >>> TokenCounts(200, too_long=1, shortened=5).length_warning()
        'inputs too long for the model: 1 without a prediction, 5 with a history shortened from its beginning'
        """
        notes = {
            "with the maximum number of tokens, whose end may be removed": self.full,
            "whose end is removed": self.cut,
            "without a prediction": self.too_long,
            "with a history shortened from its beginning": self.shortened,
            "different texts with equal vectors, whose end may be removed": self.equal,
        }
        counted = ", ".join(f"{count} {note}" for note, count in notes.items() if count)
        return f"inputs too long for the model: {counted}" if counted else ""


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
