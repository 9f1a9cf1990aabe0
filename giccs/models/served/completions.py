"""Models behind a server's ``/v1/completions``: log-likelihoods of options after prompts.

Responses of servers to ``echo``, ``logprobs`` and ``max_tokens: 1`` (according to their sources, 2026):

- vLLM: all tokens of the prompt including a preceding BOS, then the generated one; the first log-probability
is null,
  and -9999 stands for minus infinity.
- SGLang: the same. llama-cpp-python (with ``logits_all``): the same without the BOS, and without a generated
token if
  the model ends the text there. If a model has no BOS, each token has the value of the next one, and the last
  value is missing.
- llama.cpp's own server, text-generation-inference, Ollama: only the generated tokens; ``transformers
serve``: none.
  LiteLLM returns the response of the server behind it.

``text_offset`` is not used: vLLM sums the lengths of its tokens, including a BOS and replacement characters
for parts of a letter, and SGLang always returns -1. The concatenated tokens need not equal the text either:
part of a letter is U+FFFD, <0xC3> or empty, and a space before a word may be missing (SentencePiece) or
U+2581. Only ASCII letters, digits and punctuation, in order, are compared with the text of the request.

The start of an option is found as for local models (see `giccs.models.causal.tokens`): the prompt is also
sent alone, and options are scored from the first position at which one of them differs from it. (Comparing
only the options would assign their common first words to the prompt.) The server's own token strings are
sufficient, so no local tokenizer is needed.
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

from bws.base.problems import InputError, Problem
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
from giccs.models.served.requests import Asker, largest_input, open_server
from giccs.models.served.server import Server
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.server import Limits

FILE = "completions-tokens.sqlite"
"""Name of the cache file of token log-probabilities."""
NEEDED = (
    "expected a server whose /v1/completions supports echo and logprobs with the log-probability of each "
    "token of the prompt, as vLLM does"
)
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""A part of a letter in the notation of SentencePiece."""
BEFORE = 2
"""Maximum number of special tokens before a text."""
ROUNDING = 1e-3
"""Tolerance for ln p above 0. It is a logit minus the logarithm of a sum: in single precision, numbers up
to a few hundred, each rounded by less than 1e-4.
"""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text and of a preceding prefix added by the model."""

    texts: tuple[str, ...]
    """In the notation of the server."""
    logprobs: tuple[float | None, ...]
    """ln p(token | preceding tokens), at most 0; may be None for the first token."""


def read_kept(text: str) -> Tokens:
    """Return the tokens stored as JSON; raise ValueError for other text."""
    try:
        document = json.loads(text)
        texts, logprobs = document["texts"], document["logprobs"]
        tokens = Tokens(tuple(texts), tuple(_numbers(logprobs)))
        if len(tokens.texts) == len(tokens.logprobs):
            return tokens
    except (ValueError, RecursionError, TypeError, KeyError):
        pass
    raise ValueError(f"its stored answer is damaged; move {FILE} away and run again")


def read_tokens(text: str, choice: Mapping[str, Any], usage: Any) -> Tokens:
    """Return the tokens of `text` in a choice of the server, without generated tokens.

    Raises ValueError with the reason if tokens or their log-probabilities are incomplete.
    """
    logprobs_document = choice.get("logprobs")
    logprobs_document = logprobs_document if isinstance(logprobs_document, dict) else {}
    texts, logprobs = logprobs_document.get("tokens"), logprobs_document.get("token_logprobs")
    if not isinstance(texts, list) or not isinstance(logprobs, list) or not texts:
        raise ValueError(f"the server returns no log-probabilities of tokens; {NEEDED}")
    if len(texts) != len(logprobs) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"the numbers of tokens and log-probabilities differ; {NEEDED}")
    echoed = choice.get("text")
    if not isinstance(echoed, str) or not echoed.startswith(text):
        raise ValueError(f"the server does not echo the prompt; {NEEDED}")
    usage = usage if isinstance(usage, dict) else {}
    end = len(texts) - _count(usage, "completion_tokens", 1)
    behind = "".join(texts[end:]) == echoed[len(text) :] != ""
    if not _covers(texts[:end], text, _count(usage, "prompt_tokens", 0), ended=behind):
        raise ValueError(
            "the tokens are not those of the whole prompt: it was truncated or changed, or tokens are "
            f"not listed individually; {NEEDED}"
        )
    return Tokens(tuple(texts[:end]), tuple(_numbers(logprobs[:end])))


def _count(usage: Mapping[str, Any], name: str, otherwise: int) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _covers(texts: Sequence[str], text: str, n_covered: int, *, ended: bool) -> bool:
    """Return whether tokens, after optional special ones, make up the whole of a text.

    `n_covered` is the server's number of tokens, 0 if unknown. If one is missing, it may be a BOS or the last
    token. In the latter case the text is complete only if it is known to have `ended`, or if it ends with the
    last listed token.

    >>> _covers(["<s>", "Sch", "\\ufffd", "\\ufffd", "n", "."], "Schön.", 6, ended=False)
    True
    >>> _covers(["Ja", "."], "Ja.“", 3, ended=False)
    False
    """
    if not texts or (n_covered and len(texts) not in (n_covered, n_covered - 1)):
        return False
    signs = _signs(text)
    if not any(_signs("".join(texts[first:])) == signs for first in range(BEFORE + 1)):
        return False
    last = texts[-1].strip()
    return len(texts) == n_covered or ended or (bool(last) and text.endswith(last))


def _signs(text: str) -> str:
    """Return the part of a text that is preserved in any notation of tokens: ASCII without white space.

    >>> _signs("▁Sch<0xC3><0xB6>n: ja!")
    'Schn:ja!'
    """
    full_text = BYTE.sub(lambda byte: chr(int(byte[1], 16)), text)
    return "".join(letter for letter in full_text if letter.isascii() and not letter.isspace())


def _numbers(logprobs: Sequence[Any]) -> list[float | None]:
    """Return log-probabilities; raise ValueError for invalid ones. The first may be missing."""
    numbers: list[float | None] = []
    for n, value in enumerate(logprobs):
        if n == 0 and value is None:
            numbers.append(None)
            continue
        if not isinstance(value, int | float) or not math.isfinite(value) or value > ROUNDING:
            raise ValueError(
                f"the log-probability of token {n + 1} is {value!r}; expected a number up to 0"
            )
        numbers.append(min(float(value), 0.0))
    return numbers


@dataclass(frozen=True, slots=True)
class CompletionsRequest:
    """A text for a model on a server: everything that the answer depends on, and nothing else."""

    base_url: str
    model: str
    text: str

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request, as in lm-evaluation-harness' ``local-completions``, but with text.

        One token is generated and ignored: for llama-cpp-python, 0 means as many as possible, and earlier
        versions of vLLM reject it.
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

    @property
    def largest_usage(self) -> tuple[int, int]:
        """Upper bounds of input and output tokens."""
        return largest_input(self.text), 1

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        return client.completions.with_raw_response.create(**self.body)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the tokens of the text as JSON, the problem of the answer).

        Raises ValueError if the server does not support log-probabilities.
        """
        choices = document.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return "", "without a choice"
        return json.dumps(asdict(read_tokens(self.text, choice, document.get("usage")))), ""


def option_scores(
    prompt_tokens: Tokens, wholes: Sequence[Tokens], options: Sequence[str]
) -> tuple[OptionScore, ...]:
    """Return the scores of options, from the tokens of the prompt alone and of the prompt with each option.

    Raises ValueError if an option cannot be separated from its prompt, or if the server returns inconsistent
    values for the tokens of the prompt.

    >>> prompt = Tokens(("A", ":"), (None, -1.0))
    >>> yes = Tokens(("A", ":", " Ja"), (None, -1.0, -2.0))
    >>> no = Tokens(("A", ":", " N", "ein"), (None, -1.0, -3.0, -1.0))
    >>> [score.logprob for score in option_scores(prompt, (yes, no), (" Ja", " Nein"))]
    [-2.0, -4.0]
    """
    start = min(shared(prompt_tokens.texts, full_tokens.texts) for full_tokens in wholes)
    return tuple(
        OptionScore(
            float(np.sum(_option_logprobs(prompt_tokens, full_tokens, start))),
            len(full_tokens.texts) - start,
            len(option.lstrip().encode()),
        )
        for full_tokens, option in zip(wholes, options, strict=True)
    )


def _option_logprobs(prompt_tokens: Tokens, full_tokens: Tokens, start: int) -> list[float]:
    """Return ln p of an option's tokens, from index `start` on."""
    option_logprobs = [logprob for logprob in full_tokens.logprobs[start:] if logprob is not None]
    if not option_logprobs or len(option_logprobs) < len(full_tokens.logprobs) - start:
        raise ValueError(
            "an option has no tokens of its own, or nothing before its first token; the prompt must end "
            "at the end of a word"
        )
    before = [
        abs(prompt_logprob - full_logprob)
        for prompt_logprob, full_logprob in zip(
            prompt_tokens.logprobs[:start], full_tokens.logprobs[:start], strict=True
        )
        if prompt_logprob is not None and full_logprob is not None
    ]
    if (
        before and np.mean(before) > TOLERANCE["bfloat16"]
    ):  # Larger than explained by half precision.
        raise ValueError(
            "the server returns different log-probabilities for the same tokens of the prompt, on "
            f"average {np.mean(before):.2f} nats apart; serve a single model under this name, and move "
            f"{FILE} away if it contains answers of another one"
        )
    return option_logprobs


def open_completions(name: str, location: str, options: ModelOptions) -> CompletionsModel:
    """Return the model with the given name on the server, without sending a request.

    Raises InputError with a remedy if the server settings are invalid.
    """
    return CompletionsModel(name, location, open_server(name, location, options), options)


Read = tuple[str, tuple[OptionScore, ...]]
"""The text used for a prompt, and the scores of its options."""


class CompletionsModel(LikelihoodModel, ServedModel):
    """A model behind a server's ``/v1/completions``, with stored answers, so that none is paid for twice."""

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
        """Return the settings that determine the likelihoods, as far as they are known."""
        return {
            "kind": "completions",
            "base_url": self._server.base_url,
            "served_model": self._model,
        }

    def score(self, prompts: Sequence[Prompt], progress: Progress = silent) -> Scored:
        """Return the log-likelihood of each option of each prompt.

        A prompt that is too long for the server is replaced by the first of its shorter prompts that fits
        with all its options. Equal texts are sent once, and those with stored answers are not sent. Raises
        InputError with prompts for which none fits, and for servers with unusable answers.
        """
        check_prompts(self.name, prompts)
        texts = [(prompt.text, *prompt.shorter) for prompt in prompts]
        blank = (n for n, several in enumerate(texts) if not all(map(str.strip, several)))
        self._refuse([(n, "is empty; expected text") for n in blank])
        self._asker.forget()
        scores_by_question: dict[int, Read] = {}
        for level in count():
            left = [n for n in range(len(prompts)) if n not in scores_by_question]
            if not left:
                break
            none_fits = (n for n in left if level == len(texts[n]))
            reason = "is too long for the server's model in its shortest form"
            self._refuse([(n, reason) for n in none_fits])
            scores_by_question |= self._round(
                {n: (texts[n][level], prompts[n].options) for n in left}, progress
            )
        read = [scores_by_question[n] for n in range(len(prompts))]
        cut = sum(text != prompt.text for (text, _), prompt in zip(read, prompts, strict=True))
        return Scored(tuple(text for text, _ in read), tuple(scores for _, scores in read), cut)

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and model and usage of the last call of `score`."""
        return self._asker.environment()

    def usage(self) -> str:
        """Return the usage of the last call of `score` as one line."""
        return str(self._asker.usage)

    def _round(
        self, questions: Mapping[int, tuple[str, tuple[str, ...]]], progress: Progress
    ) -> dict[int, Read]:
        """Return the scores for each (text, its options); texts that are too long are omitted."""
        requests = {
            n: [
                self._request(prompt_text)
                for prompt_text in (text.rstrip(), *(text + o for o in options))
            ]
            for n, (text, options) in questions.items()
        }
        too_long: set[str] = set()
        numbered = [(n + 1, request) for n, several in requests.items() for request in several]
        answers = self._asker.answers(numbered, progress, "scoring", too_long)
        scores_by_question: dict[int, Read] = {}
        problems: list[tuple[int, str]] = []
        for n, several in requests.items():
            if any(request.key in too_long for request in several):
                continue
            text, options = questions[n]
            try:
                scores_by_question[n] = (
                    text,
                    _scores([answers[request.key] for request in several], options),
                )
            except ValueError as error:
                problems.append((n, str(error)))
        self._refuse(problems)
        return scores_by_question

    def _request(self, text: str) -> CompletionsRequest:
        return CompletionsRequest(self._server.base_url, self._model, text)

    def _refuse(self, problems: Sequence[tuple[int, str]]) -> None:
        if problems:
            raise InputError(
                [Problem(self.name, None, f"prompt {n + 1}: {reason}") for n, reason in problems]
            )


def _scores(answers: Sequence[Answer], options: Sequence[str]) -> tuple[OptionScore, ...]:
    prompt_tokens, *wholes = (read_kept(answer.text) for answer in answers)
    return option_scores(prompt_tokens, wholes, options)
