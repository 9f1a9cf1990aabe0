"""Prompts with their options as token ids, and as a tree of tokens whose shared prefixes are computed once.

As in lm-evaluation-harness, a prompt and its option are encoded together, and white space at the end of the
prompt belongs to the option. If the tokenizer merges the last letters of the prompt with the first ones of
the option, the harness keeps the tokens of the prompt and drops an equal number of the joint tokens. Here,
the joint tokens are used, and all options of a prompt are scored from the first position at which one of them
differs from the prompt, so that they are comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.abilities import Prompt

MIN_SHARED = 0.5
"""Share of the tokens of a question in the prefix of questions that are computed together."""
MAX_TOGETHER = 1024
"""Maximum number of tokens of questions that are computed together."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenQuestion:
    """The options of a prompt as token ids, each preceded by the prompt."""

    ids: tuple[tuple[int, ...], ...]
    start: int
    """Index of the first scored token, at least 1; all options share the preceding tokens."""

    @property
    def length(self) -> int:
        """Number of tokens read for the longest option; its last token is only predicted."""
        return max(map(len, self.ids)) - 1


class Boundary:
    """Encodes prompts with one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._chats: set[str] = set()
        self._ahead: dict[str, list[int]] = {}

    def chat(self, text: str) -> str:
        """Return `text` as a user message followed by the generation prompt.

        The special tokens of the result are those of the chat template: none is added by `encode` and
        `prompt`, as by ``apply_chat_template(tokenize=True)`` of transformers.
        """
        rendered: str = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
        )
        self._chats.add(rendered.rstrip())
        return rendered

    def read_ahead(self, prompts: Sequence[Prompt]) -> None:
        """Tokenise prompts with their options in one call, which uses all CPUs, for `readings`."""
        texts = [text for prompt in prompts for text in _texts(prompt.text, prompt.options)]
        texts = list(dict.fromkeys(texts))
        self._ahead = {}
        self._ahead = dict(zip(texts, self._ids(texts), strict=True))

    def readings(self, prompt: Prompt) -> Iterator[tuple[str, TokenQuestion]]:
        """Yield the encoded prompt, then its encoded shorter forms; encoding is lazy."""
        for text in (prompt.text, *prompt.shorter):
            yield text, self.encode(text, prompt.options)

    def encode(self, text: str, options: Sequence[str]) -> TokenQuestion:
        """Return the token ids of `text` with each option, and the index of the first scored token.

        Raises ValueError if nothing precedes the option and the tokenizer has no beginning-of-sequence token.
        """
        prompt_ids, *wholes = self._ids(_texts(text, options))
        start = min(shared(prompt_ids, full_ids) for full_ids in wholes)
        first = self._first_ids(text.rstrip(), prompt_ids, needed=start == 0)
        ids = tuple((*first, *full_ids) for full_ids in wholes)
        if any(len(option_ids) <= len(first) + start for option_ids in ids):
            raise ValueError("an option has no tokens of its own")
        return TokenQuestion(ids, len(first) + start)

    def prompt(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a text for generation; empty if there are none and no token can replace
        them."""
        (ids,) = self._ids([text])
        try:
            return (*self._first_ids(text, ids, needed=not ids), *ids)
        except ValueError:
            return ()

    def _ids(self, texts: list[str]) -> list[list[int]]:
        if all(text in self._ahead for text in texts):
            return [self._ahead[text] for text in texts]
        token_ids: list[list[int]] = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        return token_ids

    def _first_ids(self, text: str, ids: Sequence[int], *, needed: bool) -> list[int]:
        """Return the special tokens before a text with these ids that does not begin with them itself."""
        is_chat = text.rstrip() in self._chats
        if self._special and not is_chat and not shared(self._special, ids):
            return self._special
        if not needed:
            return []
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return [token]
        raise ValueError(
            "the prompt is empty, and the tokenizer has no beginning-of-sequence token"
        )

    @cached_property
    def _special(self) -> list[int]:
        """Return the special tokens before a text; those added after it are removed."""
        plain = self._tokenizer("a", add_special_tokens=False)["input_ids"]
        with_special = self._tokenizer("a")["input_ids"]
        before = (n for n in range(len(with_special)) if with_special[n : n + len(plain)] == plain)
        return list(with_special[: next(before, 0)])


def _texts(text: str, options: Sequence[str]) -> list[str]:
    """Return a prompt without white space at its end, and the prompt with each option."""
    return [text.rstrip(), *(text + option for option in options)]


def shared(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return the length of the common prefix of two lists, or of two tuples.

    >>> shared([1, 2, 3], [1, 2, 4, 5])
    2
    """
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True)
class TokenTree:
    """N tokens, each after its parent.

    The prompt is the stem; options branch off where their tokens differ. A token attends to its ancestors and
    itself, and its position is its depth, so that each path from the root is a separate text for the model.
    """

    question: TokenQuestion
    tokens: Ints
    """(N,) ids."""
    parents: Ints
    """(N,) indices; -1 for a root."""
    paths: tuple[tuple[int, ...], ...]
    """For each option the indices of its tokens except the last, which is predicted and never read."""

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def depths(self) -> Ints:
        """(N,) distances from the root."""
        node_depths = np.zeros(len(self), dtype=np.int64)
        for path in self.paths:
            node_depths[list(path)] = np.arange(len(path))
        return node_depths

    def visible(self) -> NDArray[np.bool_]:
        """Return (N, N) whether token i attends to token j."""
        mask = np.zeros((len(self), len(self)), dtype=np.bool_)
        branches = np.flatnonzero(self.parents != np.arange(-1, len(self) - 1)).tolist()
        for start, end in pairwise([0, *branches, len(self)]):  # each token after the previous one
            if start and self.parents[start] >= 0:
                mask[start:end] = mask[self.parents[start]]
            mask[start:end, start:end] = np.tri(end - start, dtype=np.bool_)
        return mask

    @cached_property
    def predictions(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each option and scored token: (index of the preceding token, token id)."""
        start = self.question.start
        return tuple(
            tuple(zip(path[start - 1 :], ids[start:], strict=True))
            for path, ids in zip(self.paths, self.question.ids, strict=True)
        )


def grow(question: TokenQuestion) -> TokenTree:
    """Return the tree of a question.

    >>> tree = grow(TokenQuestion(((5, 6, 7, 1), (5, 6, 8, 9, 1)), start=2))
    >>> tree.tokens.tolist(), tree.parents.tolist(), tree.depths.tolist()
    ([5, 6, 7, 8, 9], [-1, 0, 1, 1, 3], [0, 1, 2, 2, 3])
    >>> tree.predictions
    (((1, 7), (2, 1)), ((1, 8), (3, 9), (4, 1)))
    """
    read = [ids[:-1] for ids in question.ids]
    stem = shared(min(read), max(read))
    tokens, parents = list(read[0][:stem]), list(range(-1, stem - 1))
    node_of: dict[tuple[int, int], int] = {}
    paths = []
    for ids in read:
        path, at = list(range(stem)), stem - 1
        for token in ids[stem:]:
            parent, at = at, node_of.setdefault((at, token), len(tokens))
            if at == len(tokens):
                tokens.append(token)
                parents.append(parent)
            path.append(at)
        paths.append(tuple(path))
    return TokenTree(question, np.array(tokens), np.array(parents), tuple(paths))


def groups_with_prefix(questions: Sequence[TokenQuestion]) -> Iterator[list[TokenQuestion]]:
    """Yield the questions in groups of adjacent ones that share a long prefix, such as the same dialogue.

    >>> ids = (1, 2, 3, 4), (1, 2, 5, 4), (6, 7, 8, 9)
    >>> [len(group) for group in groups_with_prefix([TokenQuestion((each,), 3) for each in ids])]
    [2, 1]
    """
    group: list[TokenQuestion] = []
    prefix = size = 0
    for question in questions:
        common = min(prefix, shared(group[0].ids[0], question.ids[0])) if group else 0
        new = sum(len(ids) - question.start for ids in question.ids) + question.start - common
        if group and common >= MIN_SHARED * question.length and size + new <= MAX_TOGETHER:
            group.append(question)
            prefix, size = common, size + new
        else:
            if group:
                yield group
            group, prefix, size = [question], question.start, new
    if group:
        yield group


def grow_together(group: Sequence[TokenQuestion]) -> TokenTree:
    """Return the tree of all options of several questions; the tokens after their prefix are scored."""
    first, *others = group
    prefix = min([first.start, *(min(q.start, shared(first.ids[0], q.ids[0])) for q in others)])
    return grow(TokenQuestion(tuple(ids for q in group for ids in q.ids), max(1, prefix)))
