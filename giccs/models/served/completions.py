"""Models behind a server's ``/v1/completions``: how likely is each option to follow its prompt?

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

Where an option begins is found as for a model on this machine (see `giccs.models.causal.tokens`): the
prompt is asked by itself, too, and the first place is taken at which one of the options parts from it. (By
the options alone, words with which they all begin would be taken for the prompt's.) What a server calls its
tokens is enough for that, and no tokenizer is needed here.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.problems import InputError, Problem
from giccs.models.abilities import (
    LikelihoodModel,
    OptionScore,
    Prompt,
    Scored,
    ServedModel,
    check_prompts,
)
from giccs.models.causal.tokens import shared
from giccs.models.generation import TOLERANCE
from giccs.models.served.cache import Answer
from giccs.models.served.requests import Asker, open_server
from giccs.models.served.server import Server
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.client import Limits

__all__ = ["CompletionsModel", "open_completions"]

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


@dataclass(frozen=True, slots=True)
class CompletionsRequest:
    """One text to one model of one server. All that the answer may depend on, and nothing else."""

    base_url: str
    model: str
    text: str

    @property
    def body(self) -> dict[str, Any]:
        """What is sent: as by lm-evaluation-harness' ``local-completions``, but text, not token ids.

        One token is written, and dropped: to llama-cpp-python 0 means as many as there is room for, and
        earlier versions of vLLM refuse it.
        """
        return {
            "model": self.model,
            "prompt": self.text,
            "echo": True,
            "logprobs": 1,
            "max_tokens": 1,
            "temperature": 0.0,
        }

    @property
    def key(self) -> str:
        """SHA-256 of the request."""
        parts = {"base_url": self.base_url, **self.body}
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        return client.completions.with_raw_response.create(**self.body)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the tokens of the text as JSON, what is wrong with the answer).

        ValueError where the server cannot say how likely they are.
        """
        choices = document.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return "", "without a choice"
        return json.dumps(asdict(read_tokens(self.text, choice, document.get("usage")))), ""


def option_scores(
    alone: Tokens, wholes: Sequence[Tokens], options: Sequence[str]
) -> tuple[OptionScore, ...]:
    """Return how likely the options are, from the tokens of the prompt alone, and with each of them.

    ValueError, in words, where an option cannot be told from its prompt, or where the server gives
    the prompt's own tokens other numbers each time.

    >>> alone = Tokens(("A", ":"), (None, -1.0))
    >>> yes = Tokens(("A", ":", " Ja"), (None, -1.0, -2.0))
    >>> no = Tokens(("A", ":", " N", "ein"), (None, -1.0, -3.0, -1.0))
    >>> [one.logprob for one in option_scores(alone, (yes, no), (" Ja", " Nein"))]
    [-2.0, -4.0]
    """
    start = min(shared(alone.texts, whole.texts) for whole in wholes)
    return tuple(
        OptionScore(
            float(np.sum(_own(alone, whole, start))),
            len(whole.texts) - start,
            len(option.lstrip().encode()),
        )
        for whole, option in zip(wholes, options, strict=True)
    )


def _own(alone: Tokens, whole: Tokens, start: int) -> list[float]:
    """Return ln p of an option's tokens, which stand from `start` on."""
    own = [one for one in whole.logprobs[start:] if one is not None]
    if not own or len(own) < len(whole.logprobs) - start:
        raise ValueError(
            "an option has no tokens of its own, or nothing before its first one; "
            "let the prompt end where a word does"
        )
    before = [
        abs(one - other)
        for one, other in zip(alone.logprobs[:start], whole.logprobs[:start], strict=True)
        if one is not None and other is not None
    ]
    if before and np.mean(before) > TOLERANCE["bfloat16"]:  # more than half precision explains
        raise ValueError(
            "the server gives the prompt's tokens other log-probabilities each time, on average "
            f"{np.mean(before):.2f} nats apart; let one model answer under this name, and move {FILE} away "
            "if it held another one's answers"
        )
    return own


def open_completions(name: str, rest: str, options: ModelOptions) -> CompletionsModel:
    """Return the model that its server calls `rest`; nothing is sent yet.

    InputError with one sentence on what to do where the server cannot be asked as it is set.
    """
    return CompletionsModel(name, rest, open_server(name, rest, options), options)


Read = tuple[str, tuple[OptionScore, ...]]
"""The text that was read for a prompt, and how likely its options are."""


class CompletionsModel(LikelihoodModel, ServedModel):
    """A model behind a server's ``/v1/completions``. Answers are kept, so that none is paid for twice."""

    name: str

    def __init__(
        self,
        name: str,
        model: str,
        server: Server,
        options: ModelOptions,
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self._model, self._server = model, server
        self._asker = Asker(name, model, server, options, FILE, limits)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return what the likelihoods depend on, as far as it can be known from here."""
        return {
            "kind": "completions",
            "base_url": self._server.base_url,
            "served_model": self._model,
        }

    def score(self, prompts: Sequence[Prompt], progress: Progress = silent) -> Scored:
        """Return how likely each option of each prompt is.

        A prompt for which the server has no room is replaced by the first of `shorter` that fits with all
        its options. Equal texts are sent once, and those that were answered before not at all. InputError
        names prompts for which none fits, and says what is wrong where the server's answers are no use.
        """
        check_prompts(self.name, prompts)
        texts = [(prompt.text, *prompt.shorter) for prompt in prompts]
        blank = (n for n, several in enumerate(texts) if not all(map(str.strip, several)))
        self._refuse([(n, "is empty, and a server wants a text") for n in blank])
        self._asker.forget()
        found: dict[int, Read] = {}
        for level in count():
            left = [n for n in range(len(prompts)) if n not in found]
            if not left:
                break
            none_fits = (n for n in left if level == len(texts[n]))
            why = "is too long for the server's model where it is shortest"
            self._refuse([(n, why) for n in none_fits])
            found |= self._round({n: (texts[n][level], prompts[n].options) for n in left}, progress)
        read = [found[n] for n in range(len(prompts))]
        cut = sum(text != prompt.text for (text, _), prompt in zip(read, prompts, strict=True))
        return Scored(tuple(text for text, _ in read), tuple(scores for _, scores in read), cut)

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and of the last call of `score` who answered and what it took."""
        return self._asker.environment()

    def usage(self) -> str:
        """Return in a line what the last call of `score` took."""
        return str(self._asker.usage)

    def _round(
        self, asked: Mapping[int, tuple[str, tuple[str, ...]]], progress: Progress
    ) -> dict[int, Read]:
        """Return what was found for each (text, its options); what is too long is left out."""
        requests = {
            n: [self._request(one) for one in (text.rstrip(), *(text + o for o in options))]
            for n, (text, options) in asked.items()
        }
        too_long: set[str] = set()
        numbered = [(n + 1, request) for n, several in requests.items() for request in several]
        answers = self._asker.answers(numbered, progress, "scoring", too_long)
        found: dict[int, Read] = {}
        problems: list[tuple[int, str]] = []
        for n, several in requests.items():
            if any(request.key in too_long for request in several):
                continue
            text, options = asked[n]
            try:
                found[n] = text, _scores([answers[one.key] for one in several], options)
            except ValueError as error:
                problems.append((n, str(error)))
        self._refuse(problems)
        return found

    def _request(self, text: str) -> CompletionsRequest:
        return CompletionsRequest(self._server.base_url, self._model, text)

    def _refuse(self, problems: Sequence[tuple[int, str]]) -> None:
        if problems:
            raise InputError(
                [Problem(self.name, None, f"prompt {n + 1}: {why}") for n, why in problems]
            )


def _scores(answers: Sequence[Answer], options: Sequence[str]) -> tuple[OptionScore, ...]:
    alone, *wholes = (read_kept(answer.text) for answer in answers)
    return option_scores(alone, wholes, options)
