"""Encoders behind a server's ``/v1/embeddings``, with one stored vector per text.

Vectors are requested as base64 of little-endian 32-bit floats, the default of OpenAI's client, and also read
as lists of numbers, which servers without this encoding return. They are stored as base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import (
    LimitedModel,
    PairModel,
    PromptedModel,
    ResizableModel,
    ServedModel,
    SidedModel,
)
from giccs.models.encoder_prompts import Side, check_symmetric, resolve_prompt
from giccs.models.encoding import encoded, encoded_sides, row_cosines
from giccs.models.served.cache import Answer
from giccs.models.served.requests import Asker, largest_input, open_server
from giccs.models.served.server import Server
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.server import Limits

FILE = "embeddings.sqlite"
BATCH_TEXTS = 64
"""Number of texts per request without a specified batch size; a batch that is rejected is halved."""
BATCH_BYTES = 100_000
"""Maximum size of the texts of a request; OpenAI accepts 300,000 tokens."""
VECTOR_BYTES = 2**18
"""Maximum size of a vector in an answer: 8,192 numbers of 32 characters."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """Texts for a model on a server: everything that their vectors depend on, and nothing else."""

    base_url: str
    model: str
    texts: tuple[str, ...]
    dimensions: int | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request."""
        body = {"model": self.model, "input": [*self.texts], "encoding_format": "base64"}
        return body if self.dimensions is None else {**body, "dimensions": self.dimensions}

    @property
    def key(self) -> str:
        """SHA-256 of the request."""
        parts = {"base_url": self.base_url, **self.body}
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def largest_usage(self) -> tuple[int, int]:
        """Upper bounds of input and output tokens."""
        return sum(map(largest_input, self.texts)), 0

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        return client.embeddings.with_raw_response.create(**self.body)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the vectors in the order of the texts, as one line of base64 each; the problem).

        The order of the response is that of its numbers ``index``. Raises ValueError if the vectors are not
        those of the texts.
        """
        rows = document.get("data")
        if not isinstance(rows, list):
            return "", "without vectors"
        by_index = {row.get("index"): row.get("embedding") for row in rows if isinstance(row, dict)}
        expected = range(len(self.texts))
        if len(rows) != len(self.texts) or by_index.keys() != set(expected):
            indices = ", ".join(
                str(row.get("index") if isinstance(row, dict) else row)[:20] for row in rows[:10]
            )
            raise ValueError(
                f"the server returned {len(rows)} vectors with index {indices or '-'} for "
                f"{len(self.texts)} texts; expected one per text, with index from 0"
            )
        vectors = [_vector(by_index[index], index) for index in expected]
        sizes = {len(vector) for vector in vectors}
        if len(sizes) > 1 or self.dimensions not in (None, *sizes):
            wanted = f"{self.dimensions} dimensions" if self.dimensions else "one number of them"
            raise ValueError(
                f"the server returned vectors of {_listed(sizes)} dimensions; expected {wanted}"
            )
        return "\n".join(_written(vector) for vector in vectors), ""


def _vector(embedding: Any, index: int) -> Vectors:
    """Return the (D,) vector of a text; raise ValueError if it is none, or not finite."""
    try:
        if isinstance(embedding, str):
            vector = _read_base64(embedding)
        else:
            numbers = embedding if isinstance(embedding, list) else []
            if not all(isinstance(number, int | float) for number in numbers):
                raise ValueError
            with np.errstate(over="ignore"):
                vector = np.array(numbers, dtype=np.float64).astype(np.float32)
    except (ValueError, OverflowError):
        vector = np.empty(0, dtype=np.float32)
    if vector.ndim != 1 or not len(vector):
        message = f"the server returned no vector for text {index + 1} of the request"
        raise ValueError(f"{message}; expected numbers, or base64 of 32-bit floats")
    if not np.isfinite(vector).all():
        raise ValueError(
            f"the server returned a vector with NaN or infinity for text {index + 1} of the request"
        )
    return vector


def _read_base64(text: str) -> Vectors:
    """Return the (D,) numbers; raise ValueError for other text.

    >>> _read_base64(_written(np.array([0.5, -2], dtype=np.float32))).tolist()
    [0.5, -2.0]
    """
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


def _written(vector: Vectors) -> str:
    return binascii.b2a_base64(vector.astype("<f4").tobytes(), newline=False).decode("ascii")


def _listed(sizes: set[int]) -> str:
    return " and ".join(map(str, sorted(sizes)))


@dataclass(frozen=True, slots=True)
class Batches:
    """Sends several texts in one request."""

    max_texts: int

    @property
    def largest_answer(self) -> int:
        """Maximum size of the answer to a batch in bytes; a larger one is paid for, but not read."""
        return self.max_texts * VECTOR_BYTES

    def batches(
        self, requests: Sequence[EmbeddingsRequest]
    ) -> Iterator[Sequence[EmbeddingsRequest]]:
        """Yield consecutive requests, at most `max_texts` and `BATCH_BYTES`, or a single one."""
        batch: list[EmbeddingsRequest] = []
        size = 0
        for request in requests:
            added = len(request.texts[0].encode("utf-8", "surrogatepass"))
            if batch and (len(batch) == self.max_texts or size + added > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(request)
            size += added
        if batch:
            yield batch

    def joined(self, requests: Sequence[EmbeddingsRequest]) -> EmbeddingsRequest:
        """Return a request with the texts of several."""
        return replace(requests[0], texts=tuple(request.texts[0] for request in requests))


def open_embeddings(name: str, location: str, options: ModelOptions) -> EmbeddingsModel:
    """Return the encoder with the given name on the server, without sending a request.

    Raises InputError with a remedy if the server settings are invalid.
    """
    return EmbeddingsModel(name, location, open_server(name, location, options), options)


class EmbeddingsModel(
    PairModel, SidedModel, PromptedModel, ResizableModel, ServedModel, LimitedModel
):
    """An encoder behind a server's ``/v1/embeddings``; similarity is the cosine.

    The maximum number of tokens is known to the server only, which rejects longer texts.
    """

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
        self._dimensions: int | None = None
        self._prompt = resolve_prompt(name, "default", {})
        batching = Batches(options.batch_size or BATCH_TEXTS)
        self._asker = Asker(name, model, server, options, FILE, limits, batching)
        self._checked: dict[str, Answer] = {}
        """Answers to the requests of `fits` since the last call for vectors, by key."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors, as far as they are known."""
        dimensions = {} if self._dimensions is None else {"dimensions": self._dimensions}
        return {
            "kind": "embeddings",
            "base_url": self._server.base_url,
            "served_model": self._model,
            **dimensions,
            **self._prompt.identity(),
            "similarity": "cosine",
        }

    def with_prompt(self, prompt: str) -> EmbeddingsModel:
        """Return this model with another prompt, which is put before each text."""
        model = copy(self)
        model._prompt = resolve_prompt(self.name, prompt, {})
        return model

    def with_dimensions(self, dimensions: int) -> EmbeddingsModel:
        """Return this model with vectors of fewer dimensions, as shortened by the server."""
        model = copy(self)
        model._dimensions = dimensions
        return model

    def is_symmetric(self) -> bool:
        """Return whether targets and candidates have the same prompt."""
        return self._prompt.is_symmetric

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress = silent
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair."""
        return row_cosines(*self.side_vectors(left, right, progress))

    def vectors(self, texts: Sequence[str], progress: Progress = silent) -> Vectors:
        """Return (N, D) vectors of N texts.

        Equal texts are sent once, and texts with stored vectors are not sent. Raises InputError if a text has
        no vector after all retries; earlier vectors are stored.
        """
        check_symmetric(self)
        with self._one_usage():
            return encoded(texts, self._batches_of(self._prompt.target, progress), silent)

    def side_vectors(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress = silent
    ) -> tuple[Vectors, Vectors]:
        """Return (N, D) vectors of N targets and (M, D) vectors of M candidates, with their prompts."""
        batches_after = partial(self._batches_of, progress=progress)
        with self._one_usage():
            return encoded_sides(targets, candidates, self._prompt, batches_after, silent)

    def fits(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress = silent
    ) -> NDArray[np.bool_]:
        """Return (N,) whether the server accepts both texts of each pair, with their prompts.

        The texts are sent, and the next call for vectors does not send them again. Raises InputError as
        `vectors`, except for texts that are too long.
        """
        if not self._checked:
            self._asker.forget()
        sides = (self._prompt.target, targets), (self._prompt.candidate, candidates)
        requests = [self._requests([side.prompt + text for text in texts]) for side, texts in sides]
        too_long: set[str] = set()
        unknown = [each for side in requests for each in side if each.key not in self._checked]
        self._checked = self._checked | self._asker.answers(
            [*enumerate(unknown, start=1)], progress, "encoding", too_long
        )
        fits = [not {a.key, b.key} & too_long for a, b in zip(*requests, strict=True)]
        return np.array(fits, dtype=np.bool_)

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and model and usage of the last call."""
        return self._asker.environment()

    def usage(self) -> str:
        """Return the usage of the last call as one line."""
        return str(self._asker.usage)

    @contextmanager
    def _one_usage(self) -> Iterator[None]:
        """Count the requests in this block, with those of `fits` for the same texts."""
        if not self._checked:
            self._asker.forget()
        try:
            yield
        finally:
            self._checked = {}

    def _batches_of(self, side: Side, progress: Progress) -> Any:
        """Return an encoder of the distinct texts of a side."""

        def batches(texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
            yield (
                list(range(len(texts))),
                self._encoded([side.prompt + text for text in texts], progress),
            )

        return batches

    def _requests(self, texts: Sequence[str]) -> list[EmbeddingsRequest]:
        """Return a request per text; raise InputError for empty ones."""
        if problems := [
            Problem(self.name, None, f"text {n} is empty; expected text")
            for n, text in enumerate(texts, start=1)
            if not text.strip()
        ]:
            raise InputError(problems)
        return [
            EmbeddingsRequest(self._server.base_url, self._model, (text,), self._dimensions)
            for text in texts
        ]

    def _encoded(self, texts: Sequence[str], progress: Progress) -> Vectors:
        requests = self._requests(texts)
        unknown = [
            (n, request)
            for n, request in enumerate(requests, start=1)
            if request.key not in self._checked
        ]
        answers = self._checked | self._asker.answers(unknown, progress, "encoding")
        try:
            vectors = [_read_base64(answers[request.key].text) for request in requests]
        except ValueError:
            message = f"a stored vector is damaged; move {FILE} away and run again"
            raise InputError(Problem(self.name, None, message)) from None
        if len(sizes := {len(vector) for vector in vectors}) > 1:
            message = (
                f"the server returned vectors of {_listed(sizes)} dimensions; serve a single model under "
                f"this name, and move {FILE} away if it contains vectors of another one"
            )
            raise InputError(Problem(self.name, None, message))
        return np.stack(vectors)
