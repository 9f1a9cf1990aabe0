"""Requests to a server and their answers: stored ones first, the others concurrently."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bws.base.problems import InputError, Problem
from giccs.caching import cache_folder
from giccs.models.served.budget import Account
from giccs.models.served.cache import Answer, Cache
from giccs.models.served.claims import Claims
from giccs.models.served.server import Limits, Server, Usage, find_price, find_server
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.client import Wire

log = logging.getLogger(__name__)

SPECIAL_TOKENS = 64
"""Upper bound of the tokens that a server adds to a text, such as those of a chat template."""
POLL_SECONDS = 0.2
"""Interval of looking for answers to requests of another process."""

Question = TypeVar("Question")
Reply = TypeVar("Reply")


class Request(Protocol):
    """A prompt to a model on a server; equal requests have equal content."""

    @property
    def key(self) -> str:
        """Key of the stored answer: a digest of everything that it depends on."""
        ...

    @property
    def largest_usage(self) -> tuple[int, int]:
        """Upper bounds of input and output tokens."""
        ...

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        ...

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the answer, the problem that requires another attempt).

        Raises ValueError with the reason if further attempts are useless.
        """
        ...


Numbered = Mapping[Request, int]
"""Requests, each with the number of its first prompt."""


class Batching(Protocol):
    """Sends several requests as one, whose answer has one line per request."""

    @property
    def largest_answer(self) -> int:
        """Maximum size of the answer to a batch in bytes; 0 for that of a single request."""
        ...

    def batches(self, requests: Sequence[Any]) -> Iterable[Sequence[Any]]:
        """Return the requests in batches that the server accepts."""
        ...

    def joined(self, requests: Sequence[Any]) -> Any:
        """Return a request with the content of several."""
        ...


class OneByOne:
    """Sends each request alone."""

    largest_answer = 0

    def batches(self, requests: Sequence[Request]) -> Iterable[Sequence[Request]]:
        """Return a batch per request."""
        return [[request] for request in requests]

    def joined(self, requests: Sequence[Request]) -> Request:
        """Return the only request."""
        (request,) = requests
        return request


def open_server(name: str, model: str, options: ModelOptions) -> Server:
    """Return the server for the model `name`, called `model` on the server, without sending a request.

    Raises InputError with a remedy if the server settings are invalid.
    """
    if not model.strip():
        kind = name.partition(":")[0]
        raise InputError(Problem(name, None, f"missing model name; expected {kind}:NAME"))
    if find_spec("openai") is None:
        message = "needs openai; install it with: pip install 'giccs[chat]'"
        raise InputError(Problem(name, None, message))
    return find_server(name, options.base_url)


def largest_input(text: str) -> int:
    """Return an upper bound of the tokens of a text: tokenizers produce at most one per byte.

    >>> largest_input("Schön") - SPECIAL_TOKENS
    6
    """
    return len(text.encode("utf-8", "surrogatepass")) + SPECIAL_TOKENS


class Asker:
    """Sends requests to one server. Answers are stored in `file`, so that no request is paid for twice.

    A request that another process or thread has sent is not sent; its answer is awaited.
    """

    def __init__(
        self,
        name: str,
        model: str,
        server: Server,
        options: ModelOptions,
        file: str,
        limits: Limits | None = None,
        batching: Batching | None = None,
    ) -> None:
        self._name, self._server, self._file, self._limits = name, server, file, limits
        self._threads = options.concurrency
        self._batching = batching or OneByOne()
        self._price = find_price(name, model, server, options.price)
        if options.budget is not None and self._price is None:
            message = "has no known price, which --budget requires; state it with --price IN OUT"
            raise InputError(Problem(name, None, message))
        budget = Decimal("Infinity" if options.budget is None else str(options.budget))
        self._account = Account(options.spending, budget)
        self._answered_by: set[str] = set()
        self.usage = Usage(self._price)

    def forget(self) -> None:
        """Reset the counts."""
        self.usage = Usage(self._price)
        self._answered_by = set()

    def answers(
        self,
        requests: Sequence[tuple[int, Request]],
        progress: Progress,
        label: str,
        too_long: set[str] | None = None,
    ) -> dict[str, Answer]:
        """Return the answers by the keys of their requests, each given with the number of its prompt.

        Equal requests are sent once, and requests with stored answers are not sent. If a prompt is too long
        for the server, the key of its request is added to the set `too_long`, if given. Raises InputError if
        a request has no answer after all retries; earlier answers are stored.
        """
        distinct: dict[Request, int] = {}
        for n, request in requests:
            distinct.setdefault(request, n)
        cache = Cache(cache_folder() / self._file)
        try:
            work = self._answers(distinct, cache, too_long)
            answers_by_request = dict(progress(work, label, len(distinct)))
        finally:
            cache.close()
        self._answered_by |= {answer.model for answer in answers_by_request.values() if answer}
        return {key: answer for key, answer in answers_by_request.items() if answer}

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and models and usage since the last reset."""
        from importlib.metadata import version

        return {
            "openai": version("openai"),
            "answered_by": sorted(self._answered_by),
            **self.usage.document(),
        }

    def _answers(
        self, requests: Numbered, cache: Cache, too_long: set[str] | None
    ) -> Iterator[tuple[str, Answer | None]]:
        """Yield (key of a request, its answer): stored ones, then the others as they arrive."""
        cached = cache.find([request.key for request in requests])
        log.debug(
            "%s: %d requests, %d stored in %s", self._name, len(requests), len(cached), self._file
        )
        self.usage.requests += len(requests)
        self.usage.cached += len(cached)
        yield from cached.items()
        unknown = {request: n for request, n in requests.items() if request.key not in cached}
        if unknown:
            try:
                yield from self._ask(unknown, cache, too_long)
            except RequestError as error:
                n_stored = len(cache.find([request.key for request in requests]))
                stored = f"{n_stored} of {len(requests)} answers are stored"
                message = f"{error}; {stored}; the next run continues from there"
                raise InputError(Problem(self._name, None, message)) from None

    def _ask(
        self, requests: Numbered, cache: Cache, too_long: set[str] | None
    ) -> Iterator[tuple[str, Answer | None]]:
        """Yield the server's answers, each stored before it is yielded; None for prompts that are too long.

        The result that a prompt is too long is not stored, because it costs nothing and may change.
        """
        from giccs.models.served.client import Wire

        stop = Event()
        limits = self._limits or Limits()
        limits = replace(limits, largest=max(limits.largest, self._batching.largest_answer))
        wire = Wire(self._server, self._threads, limits, stop, self._account)
        sender = _Sender(wire, cache, self.usage, self._batching, requests, too_long)
        claims = Claims((cache_folder() / self._file).with_suffix(".claims"))
        left = sorted(requests, key=requests.__getitem__)
        try:
            while left:
                batches = [*self._batching.batches(left)]
                work = _in_threads(
                    lambda batch: sender.claimed(batch, claims), batches, self._threads, stop
                )
                answered_keys: set[str] = set()
                with closing(
                    work
                ):  # Running requests are completed before the connection is closed.
                    for _, answers in work:
                        answered_keys |= answers.keys()
                        yield from answers.items()
                left = [request for request in left if request.key not in answered_keys]
                if left:
                    stop.clear()
                    stop.wait(POLL_SECONDS)
        finally:
            wire.close()


class RequestError(Exception):
    """A request without an answer, with the number of its prompt and the reason."""


class _Sender:
    """Sends batches of requests and stores their answers; usable by several threads."""

    def __init__(
        self,
        wire: Wire,
        cache: Cache,
        usage: Usage,
        batching: Batching,
        numbers: Numbered,
        too_long: set[str] | None,
    ) -> None:
        self._wire, self._cache, self._usage = wire, cache, usage
        self._batching, self._numbers, self._too_long = batching, numbers, too_long

    def claimed(self, batch: Sequence[Request], claims: Claims) -> dict[str, Answer | None]:
        """Return the answers by key, without those to requests that another process or thread is sending."""
        free = [request for request in batch if claims.take(request.key)]
        try:
            answers = self._cache.find([request.key for request in free])  # Of another process.
            self._usage.add_cached(len(answers))
            left = [request for request in free if request.key not in answers]
            return {**answers, **(self._sent(left) if left else {})}
        finally:
            for request in free:
                claims.release(request.key)

    def _sent(self, batch: Sequence[Request]) -> dict[str, Answer | None]:
        """Send a batch, in halves if the server rejects it; return the answers by key, each stored."""
        from giccs.models.served.client import Failure, Rejected, TooLong

        try:
            answer = self._wire.answer(self._batching.joined(batch), self._usage)
        except Failure as error:
            if isinstance(error, Rejected) and len(batch) > 1:
                middle = len(batch) // 2
                return self._sent(batch[:middle]) | self._sent(batch[middle:])
            if isinstance(error, TooLong) and self._too_long is not None:
                self._too_long.add(batch[0].key)
                return {batch[0].key: None}
            raise RequestError(f"prompt {self._numbers[batch[0]]}: {error}") from None
        lines = answer.text.split("\n") if len(batch) > 1 else [answer.text]
        answers = {
            request.key: Answer(line, answer.model)
            for request, line in zip(batch, lines, strict=True)
        }
        for key, each in answers.items():
            self._cache.keep(key, each)
        return {**answers}


def _in_threads(
    ask: Callable[[Question], Reply], questions: Sequence[Question], threads: int, stop: Event
) -> Generator[tuple[int, Reply]]:
    """Yield (index of a question, its answer) in the order in which answers arrive.

    After a failure, or if the caller stops or is interrupted, `stop` is set and no question is started.
    Running ones are completed, unless there is another interrupt, and the first failure is raised.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for index in range(len(questions)):
        waiting.put(index)
    done: SimpleQueue[tuple[int, Reply] | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                index = waiting.get_nowait()
                done.put((index, ask(questions[index])))
        except Empty:
            pass
        except (
            BaseException
        ) as error:  # Raised in the main thread, before the errors of the threads that it stops.
            done.put(error)
            stop.set()
        finally:
            done.put(None)

    working = min(threads, len(questions))
    failures = []
    for _ in range(working):
        Thread(target=work, daemon=True).start()
    try:
        while working:
            outcome = done.get()
            if outcome is None:
                working -= 1
            elif isinstance(outcome, BaseException):
                failures.append(outcome)
            else:
                yield outcome
    finally:
        stop.set()
        while working:
            working -= done.get() is None
    if failures:
        raise failures[0]
