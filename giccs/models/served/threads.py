"""Several questions at a time, and none begun once one has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

__all__ = ["in_threads"]

Question = TypeVar("Question")
Answer = TypeVar("Answer")


def in_threads(
    ask: Callable[[Question], Answer], questions: Sequence[Question], threads: int, stop: Event
) -> Iterator[tuple[int, Answer]]:
    """Yield (place of a question, its answer) in the order in which answers come.

    After a failure, or where the caller leaves, `stop` is set and no question is begun; those under way
    come to their end, and the first failure is raised. The threads do not hold up the end of the process.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for place in range(len(questions)):
        waiting.put(place)
    done: SimpleQueue[tuple[int, Answer] | BaseException | None] = SimpleQueue()

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
    done: SimpleQueue[tuple[int, Answer] | BaseException | None], working: int
) -> Iterator[tuple[int, Answer]]:
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
