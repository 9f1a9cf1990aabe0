"""Requests to a server and their answers: stored ones first, the others concurrently."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bws.problems import InputError, Problem
from giccs.caching import cache_folder
from giccs.models.served.cache import Answer, Cache
from giccs.models.served.server import Server, Usage, find_price, find_server
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.client import Limits

__all__ = ["Asker", "Request", "open_server"]

log = logging.getLogger(__name__)

Question = TypeVar("Question")
Reply = TypeVar("Reply")


class Request(Protocol):
    """A prompt to a model on a server; equal requests have equal content."""

    @property
    def key(self) -> str:
        """Key of the stored answer: a digest of everything that it depends on."""
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


class Asker:
    """Sends requests to one server. Answers are stored in `file`, so that no request is paid for twice."""

    def __init__(
        self,
        name: str,
        model: str,
        server: Server,
        options: ModelOptions,
        file: str,
        limits: Limits | None = None,
    ) -> None:
        self._name, self._server, self._file, self._limits = name, server, file, limits
        self._threads = options.concurrency
        self._price = find_price(name, model, server, options.price)
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
            yield from self._ask(unknown, cache, too_long, len(cached))

    def _ask(
        self, requests: Numbered, cache: Cache, too_long: set[str] | None, n_cached: int
    ) -> Iterator[tuple[str, Answer | None]]:
        """Yield the server's answers, each stored before it is yielded; None for prompts that are too long.

        The result that a prompt is too long is not stored, because it costs nothing and may change.
        """
        from giccs.models.served.client import Failure, Limits, TooLong, Wire

        stop, in_order = Event(), sorted(requests, key=requests.__getitem__)
        wire = Wire(self._server, self._threads, self._limits or Limits(), stop)
        all_of_them = n_cached + len(requests)

        def ask(request: Request) -> Answer | None:
            try:
                answer = wire.answer(request, self.usage)
            except Failure as error:
                if isinstance(error, TooLong) and too_long is not None:
                    return None
                raise Failure(f"prompt {requests[request]}: {error}") from None
            cache.keep(request.key, answer)
            return answer

        try:
            for index, answer in _in_threads(ask, in_order, self._threads, stop):
                key = in_order[index].key
                if answer is None and too_long is not None:
                    too_long.add(key)
                n_cached += answer is not None
                yield key, answer
        except Failure as error:
            so_far = (
                f"{n_cached} of {all_of_them} answers are stored; the next run continues from there"
            )
            raise InputError(Problem(self._name, None, f"{error}; {so_far}")) from None
        finally:
            wire.close()


def _in_threads(
    ask: Callable[[Question], Reply], questions: Sequence[Question], threads: int, stop: Event
) -> Iterator[tuple[int, Reply]]:
    """Yield (index of a question, its answer) in the order in which answers arrive.

    After a failure, or if the caller stops, `stop` is set and no question is started. Running ones are
    completed, and the first failure is raised. The threads do not delay the end of the process.
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
    for _ in range(working):
        Thread(target=work, daemon=True).start()
    try:
        yield from _until_all_ended(done, working)
    finally:
        stop.set()


def _until_all_ended(
    done: SimpleQueue[tuple[int, Reply] | BaseException | None], working: int
) -> Iterator[tuple[int, Reply]]:
    failures = []
    while working:
        outcome = done.get()
        if outcome is None:
            working -= 1
        elif isinstance(outcome, BaseException):
            failures.append(outcome)
        else:
            yield outcome
    if failures:
        raise failures[0]
