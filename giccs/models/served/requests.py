"""Requests to a server and their answers: cached ones first, the others several at a time."""

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
    """One prompt to one model of one server; equal where the same is sent."""

    @property
    def key(self) -> str:
        """Name under which the answer is kept: a digest of all that it may depend on."""
        ...

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        ...

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the answer, what is wrong with it, so that it must be asked for again).

        ValueError, in words, where the server will never give the answer, however often it is asked.
        """
        ...


Numbered = Mapping[Request, int]
"""Requests, each with the number of the first prompt that it is for."""


def open_server(name: str, model: str, options: ModelOptions) -> Server:
    """Return the server of the model that `name` says it calls `model`; nothing is sent yet.

    InputError with one sentence on what to do where the server cannot be asked as it is set.
    """
    if not model.strip():
        kind = name.partition(":")[0]
        raise InputError(Problem(name, None, f"names no model; write {kind}:NAME"))
    if find_spec("openai") is None:
        message = "needs openai; install it with: pip install 'giccs[chat]'"
        raise InputError(Problem(name, None, message))
    return find_server(name, options.base_url)


class Asker:
    """Asks one server. Answers are kept in `file`, so that no request is paid for twice."""

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
        """Count anew."""
        self.usage = Usage(self._price)
        self._answered_by = set()

    def answers(
        self,
        requests: Sequence[tuple[int, Request]],
        progress: Progress,
        label: str,
        too_long: set[str] | None = None,
    ) -> dict[str, Answer]:
        """Return the answers by the keys of their requests, each of which stands with its prompt's number.

        Equal requests are sent once, and those that were answered before not at all. Where a server has no
        room for a prompt, the request's key is put into `too_long`, if there is such a set. InputError
        where a request is not answered after all tries; what was answered until then is kept.
        """
        distinct: dict[Request, int] = {}
        for n, request in requests:
            distinct.setdefault(request, n)
        cache = Cache(cache_folder() / self._file)
        try:
            work = self._answers(distinct, cache, too_long)
            found = dict(progress(work, label, len(distinct)))
        finally:
            cache.close()
        self._answered_by |= {answer.model for answer in found.values() if answer}
        return {key: answer for key, answer in found.items() if answer}

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and who answered since the count began, and what it took."""
        from importlib.metadata import version

        return {
            "openai": version("openai"),
            "answered_by": sorted(self._answered_by),
            **self.usage.document(),
        }

    def _answers(
        self, requests: Numbered, cache: Cache, too_long: set[str] | None
    ) -> Iterator[tuple[str, Answer | None]]:
        """Yield (key of a request, its answer): those that are known, then the others as they come."""
        known = cache.find([request.key for request in requests])
        log.debug(
            "%s: %d requests, %d kept in %s", self._name, len(requests), len(known), self._file
        )
        self.usage.requests += len(requests)
        self.usage.cached += len(known)
        yield from known.items()
        unknown = {request: n for request, n in requests.items() if request.key not in known}
        if unknown:
            yield from self._ask(unknown, cache, too_long, len(known))

    def _ask(
        self, requests: Numbered, cache: Cache, too_long: set[str] | None, kept: int
    ) -> Iterator[tuple[str, Answer | None]]:
        """Yield the server's answers, each kept before it is seen; None where it has no room.

        That a prompt is too long is not kept: it costs nothing to hear it again, and may change.
        """
        from giccs.models.served.client import Failure, Limits, TooLong, Wire

        stop, in_order = Event(), sorted(requests, key=requests.__getitem__)
        wire = Wire(self._server, self._threads, self._limits or Limits(), stop)
        all_of_them = kept + len(requests)

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
            for place, answer in _in_threads(ask, in_order, self._threads, stop):
                key = in_order[place].key
                if answer is None and too_long is not None:
                    too_long.add(key)
                kept += answer is not None
                yield key, answer
        except Failure as error:
            so_far = f"{kept} of {all_of_them} answers are kept, and the next run goes on from them"
            raise InputError(Problem(self._name, None, f"{error}; {so_far}")) from None
        finally:
            wire.close()


def _in_threads(
    ask: Callable[[Question], Reply], questions: Sequence[Question], threads: int, stop: Event
) -> Iterator[tuple[int, Reply]]:
    """Yield (place of a question, its answer) in the order in which answers come.

    After a failure, or where the caller leaves, `stop` is set and no question is begun; those under way
    come to their end, and the first failure is raised. The threads do not hold up the end of the process.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for place in range(len(questions)):
        waiting.put(place)
    done: SimpleQueue[tuple[int, Reply] | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                place = waiting.get_nowait()
                done.put((place, ask(questions[place])))
        except Empty:
            pass
        except BaseException as error:  # raised where it is heard, and heard before what it stops
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
        one = done.get()
        if one is None:
            working -= 1
        elif isinstance(one, BaseException):
            failures.append(one)
        else:
            yield one
    if failures:
        raise failures[0]
