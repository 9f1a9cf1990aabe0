"""A server's answer to the tokens of the text that was sent, and how likely each is.

What servers answer to ``echo``, ``logprobs`` and ``max_tokens: 1`` (as their sources have it, 2026):

- vLLM: all tokens of the prompt with what stands before it (a BOS), then the one that was written;
  the first one's log-probability is null, and -9999 stands for minus infinity.
- SGLang: the same. llama-cpp-python (with ``logits_all``): the same without the BOS, and nothing behind
  the prompt where the model ends the text there; where a model has no BOS, each token gets what belongs to
  the next one, and the last is lost.
- llama.cpp's own server, text-generation-inference, Ollama: the tokens that were written alone;
  ``transformers serve``: none. LiteLLM passes on what the server behind it answers.

``text_offset`` is not used: vLLM adds up the lengths of its tokens, a BOS and the marks that stand for
parts of a letter among them, and SGLang always says -1. Nor need the tokens put together be the text: part
of a letter is U+FFFD, <0xC3> or nothing, and a space before a word may be missing (SentencePiece) or be
U+2581. So what is compared with the text that was sent are the letters, digits and signs of ASCII, in
their order.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["FILE", "NEEDED", "Tokens", "read_kept", "read_tokens"]

FILE = "completions-tokens.sqlite"
"""Name of the file, among the caches, that keeps them."""
NEEDED = (
    "a server is needed that answers /v1/completions with echo and logprobs by the log-probability of "
    "each token of the prompt, as vLLM does"
)
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""A part of a letter, as SentencePiece writes it."""
BEFORE = 2
"""Most special tokens that models have before a text."""
ROUNDING = 1e-3
"""By how much ln p may be above 0. It is a logit less the logarithm of a sum: in single precision, numbers up
to a few hundred, each rounded by less than 1e-4."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text, and of what the model has before it."""

    texts: tuple[str, ...]
    """As the server writes them."""
    logprobs: tuple[float | None, ...]
    """ln p(token | all before it), at most 0; None is allowed at the first, before which there is nothing."""


def read_kept(text: str) -> Tokens:
    """Return the tokens that were written as JSON; ValueError where it is none of ours."""
    try:
        document = json.loads(text)
        texts, logprobs = document["texts"], document["logprobs"]
        found = Tokens(tuple(texts), tuple(_numbers(logprobs)))
        if len(found.texts) == len(found.logprobs):
            return found
    except (ValueError, RecursionError, TypeError, KeyError):
        pass
    raise ValueError(f"its kept answer is damaged; move {FILE} away and run again")


def read_tokens(text: str, choice: Mapping[str, Any], usage: Any) -> Tokens:
    """Return the tokens of `text` in a server's choice, without what was written behind it.

    ValueError with the reason, in words, where they are not all there with their numbers.
    """
    found = choice.get("logprobs")
    found = found if isinstance(found, dict) else {}
    texts, logprobs = found.get("tokens"), found.get("token_logprobs")
    if not isinstance(texts, list) or not isinstance(logprobs, list) or not texts:
        raise ValueError(f"the server gives no log-probabilities of tokens; {NEEDED}")
    if len(texts) != len(logprobs) or not all(isinstance(one, str) for one in texts):
        raise ValueError(f"the server's tokens and log-probabilities do not go together; {NEEDED}")
    echoed = choice.get("text")
    if not isinstance(echoed, str) or not echoed.startswith(text):
        raise ValueError(f"the server does not repeat the prompt; {NEEDED}")
    usage = usage if isinstance(usage, dict) else {}
    end = len(texts) - _count(usage, "completion_tokens", 1)
    behind = "".join(texts[end:]) == echoed[len(text) :] != ""
    if not _covers(texts[:end], text, _count(usage, "prompt_tokens", 0), ended=behind):
        raise ValueError(
            "the server's tokens are not those of the whole prompt: it was cut or changed, or they are "
            f"not given one by one; {NEEDED}"
        )
    return Tokens(tuple(texts[:end]), tuple(_numbers(logprobs[:end])))


def _count(usage: Mapping[str, Any], name: str, otherwise: int) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _covers(texts: Sequence[str], text: str, told: int, *, ended: bool) -> bool:
    """Tell whether tokens, but for special ones before it, make up the whole of a text.

    `told` is how many tokens the server counts, 0 where it does not. Where there is one less, a BOS may have
    been left out, or else the last token is missing: then it must be known that the text has `ended`, or it
    must end with the last token that is there.

    >>> _covers(["<s>", "Sch", "\\ufffd", "\\ufffd", "n", "."], "Schön.", 6, ended=False)
    True
    >>> _covers(["Ja", "."], "Ja.“", 3, ended=False)
    False
    """
    if not texts or (told and len(texts) not in (told, told - 1)):
        return False
    signs = _signs(text)
    if not any(_signs("".join(texts[first:])) == signs for first in range(BEFORE + 1)):
        return False
    last = texts[-1].strip()
    return len(texts) == told or ended or (bool(last) and text.endswith(last))


def _signs(text: str) -> str:
    """Return what of a text stands in tokens however they are written: ASCII without white space.

    >>> _signs("▁Sch<0xC3><0xB6>n: ja!")
    'Schn:ja!'
    """
    whole = BYTE.sub(lambda byte: chr(int(byte[1], 16)), text)
    return "".join(letter for letter in whole if letter.isascii() and not letter.isspace())


def _numbers(logprobs: Sequence[Any]) -> list[float | None]:
    """Return log-probabilities; ValueError where one is none. The first may be missing."""
    found: list[float | None] = []
    for n, one in enumerate(logprobs):
        if n == 0 and one is None:
            found.append(None)
            continue
        if not isinstance(one, int | float) or not math.isfinite(one) or one > ROUNDING:
            raise ValueError(
                f"token {n + 1} has {one!r} for its log-probability; a number up to 0 is expected"
            )
        found.append(min(float(one), 0.0))
    return found
