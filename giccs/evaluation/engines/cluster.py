"""Asks over a Ray cluster: an actor a model, as many at a time as the cluster holds.

A model and its tasks are the unit: an actor loads its model once and is asked one task after the other; Ray
places the actors, starts a lost one again elsewhere and asks it anew. The driver alone reads and writes
the store, shows progress and says what went wrong. There are no shards of one task's data: texts are
batched by length over the whole data, a batch's padding and size change how its sums are rounded, and steps
such as whitening are fitted on all texts, so that parts could not be equal to the whole bit for bit.

Equal bits need equal threads, as these too change the rounding: a worker takes as many as this process
would, by ``OMP_NUM_THREADS`` or all there are, and claims as many CPUs. They also need a batch size:
``auto`` finds one by the clock, with either engine.

Ray serialises with cloudpickle between its own processes, so a cluster must be as trusted as this
process. What is sent are names, options, tasks and data, dataclasses of ours; no model is. Nothing of that is
ever read from or written to a file. Ray's telemetry and dashboard stay off.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from typing import Any

from bws.problems import InputError, Problem
from giccs.evaluation.engines import EngineError
from giccs.evaluation.engines.local import Ask
from giccs.evaluation.engines.worker import THREADS, Answer, Worker
from giccs.evaluation.task_results import environment, signature_of
from giccs.measures.results import Result, Store, digest
from giccs.models import kinds
from giccs.progress import Progress, silent

__all__ = ["RETRIES", "over_ray"]

log = logging.getLogger(__name__)

RETRIES = 3
"""How often a lost worker is started again, to be asked anew."""
SHARED_MEMORY = 256 * 2**20
"""Bytes for data and results on a cluster of this machine alone; what is more, Ray puts on disk."""
PATIENCE = 10
"""Seconds in which a cluster must answer."""
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""With which both ends of HTTP/2 begin: a frame of type 4, here an empty one."""
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS

Numbered = tuple[int, Ask]


def over_ray(
    asks: Iterable[Ask],
    store: Store,
    *,
    address: str | None = None,
    force: bool = False,
    note: Callable[[str], None] = lambda message: None,
    progress: Progress = silent,
) -> Iterator[tuple[int, Result]]:
    """Yield (place in `asks`, its result) as they come, each kept before it is passed on.

    address: of a cluster that runs, ``auto`` to find one, None for this machine alone. A result whose
    signature stands in the store is not computed again, unless `force`. What fails does not stop the rest;
    at the end InputError tells what was wrong with models, and EngineError what else failed.
    """
    todo: list[Numbered] = []
    for place, ask in enumerate(asks):
        if known := None if force else ask.known(store):
            note(f"{ask}, kept from before")
            yield place, known
        else:
            todo.append((place, ask))
    if not todo:
        return
    _check(todo)
    if address and address != "auto":
        _check_address(address)
    if any(_takes_gpu(ask) and ask.options.batch_size is None for _, ask in todo):
        note(
            "batch sizes are found by the clock; --batch-size N makes numbers equal to the last bit"
        )
    failures = _Failures()
    with _connected(address) as ray:
        log.debug("Ray %s: %s", ray.__version__, ray.cluster_resources())
        answers = _answers(ray, todo)
        counted = enumerate(progress(answers, "models × tasks", len(todo)), 1)
        for number, (place, ask, answer) in counted:
            for line in getattr(answer, "lines", ()):
                logging.getLogger(line.name).handle(line)
            result = failures.sifted(ask, answer)
            if result:
                store.add(result)
                note(f"{ask}: {result.seconds:.1f} s ({number} of {len(todo)})")
                if answer.usage:
                    note(f"{ask.model.name}: {answer.usage}")
                yield place, result
    failures.tell()


@dataclass
class _Failures:
    """What came to no result, and why."""

    problems: dict[Problem, None] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    def sifted(self, ask: Ask, answer: Answer | Exception) -> Result | None:
        """Return the result of an answer, or note why there is none."""
        if isinstance(answer, Exception):
            self.others.append(f"{ask}: {_reason(answer)}")
            return None
        self.problems |= dict.fromkeys(answer.problems)
        if answer.result is None:
            return None
        signature = signature_of(ask.task, ask.model, ask.data)
        if digest(answer.result.signature) == digest(signature):
            return answer.result
        differ = [
            key for key in signature if answer.result.signature.get(key) != signature.get(key)
        ]
        message = f"is not the same on the worker; {', '.join(differ)} differ"
        self.problems[Problem(ask.model.name, None, message)] = None
        return None

    def tell(self) -> None:
        """Raise what was noted, if anything was."""
        if self.others:
            raise EngineError("\n".join([*self.others, *map(str, self.problems)]))
        if self.problems:
            raise InputError(self.problems)


def _reason(error: Exception) -> str:
    """Return a line: what the task raised on the worker, or that the worker was lost."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return f"{type(cause).__name__}: {cause}".splitlines()[0]
    said = str(error).strip().splitlines()
    if "creation task" in said[0]:
        return f"its worker cannot start: {said[-1]}"
    return f"its worker was lost {RETRIES + 1} times ({type(error).__name__}: {said[0]})"


def _check(todo: Sequence[Numbered]) -> None:
    if find_spec("ray") is None:
        message = "needs ray; install it with: pip install 'giccs[ray]'"
        raise InputError(Problem("--engine ray", None, message))
    for device in {ask.options.device for _, ask in todo}:
        if ":" in device:
            message = f"{device} is not allowed, as Ray deals out the GPUs; write --device cuda"
            raise InputError(Problem("--engine ray", None, message))


def _check_address(address: str) -> None:
    """Raise InputError where nobody answers; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        message = "is not an address; expected auto or HOST:PORT"
        raise InputError(Problem(f"--address {address}", None, message))
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE) as there:
            _check_protocol(there)
    except (OSError, OverflowError) as error:
        message = f"no Ray cluster answers ({getattr(error, 'strerror', None) or error})"
        raise InputError(Problem(f"--address {address}", None, message)) from None


def _check_protocol(there: socket.socket) -> None:
    """Raise OSError where something else answers than HTTP/2, as gRPC and so Ray speaks it."""
    if os.environ.get("RAY_USE_TLS", "0") != "0":  # encrypted from the first byte
        return
    there.sendall(GREETING)
    if there.recv(len(SETTINGS))[3:4] != SETTINGS[3:4]:
        raise OSError("something else does")


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Yield Ray on a cluster; on one that is made here and ends with the block, without address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read when Ray is imported
    import ray

    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": SHARED_MEMORY}
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    try:
        ray.init(address or "local", **quiet, **({} if address else own))
    except (ConnectionError, RuntimeError) as error:  # none found; another version of Ray or Python
        raise EngineError(f"cannot work with Ray: {_unconnected(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _unconnected(error: Exception) -> str:
    """Return what Ray says in a line; it does not say that a cluster asks for a token and got none."""
    said = " ".join(str(error).split())
    if "Failed to connect" in said:
        said += "; if it asks for a token, set RAY_AUTH_MODE=token here, too"
    return said


def _answers(ray: Any, todo: Sequence[Numbered]) -> Iterator[tuple[int, Ask, Any]]:
    """Yield (place, ask, what came of it) as they come: an `Answer`, or Ray's exception.

    An actor is asked the next task once the last is done, so that what waits is not lost with it. Where an
    actor is started no more, what is left of its tasks gets a new one.
    """
    data = {id(ask.data): ask.data for _, ask in todo}
    held = {key: ray.put(one) for key, one in data.items()}
    threads = _threads(todo)
    running: dict[Any, tuple[Any, Numbered, deque[Numbered]]] = {}

    def ask_next(rest: deque[Numbered], actor: Any = None) -> None:
        place, ask = rest.popleft()
        actor = actor or _actor(ray, ask, threads)
        running[actor.ask.remote(ask.task, held[id(ask.data)])] = actor, (place, ask), rest

    for rest in _by_model(todo):
        ask_next(rest)
    while running:
        [done], _ = ray.wait(list(running), num_returns=1)
        actor, (place, ask), rest = running.pop(done)
        try:
            answer = ray.get(done)
        except ray.exceptions.RayError as error:
            answer = error
        lost = isinstance(answer, ray.exceptions.RayActorError)
        if rest:
            ask_next(rest, None if lost else actor)
        elif not lost:
            ray.kill(actor)  # its place is free for the next model
        yield place, ask, answer


def _by_model(todo: Sequence[Numbered]) -> list[deque[Numbered]]:
    groups: dict[Any, deque[Numbered]] = {}
    for place, ask in todo:
        groups.setdefault((ask.model.name, ask.options), deque()).append((place, ask))
    return list(groups.values())


def _actor(ray: Any, ask: Ask, threads: Mapping[str, str]) -> Any:
    return (
        ray.remote(Worker)
        .options(
            num_cpus=_cpus(ray, threads["OMP_NUM_THREADS"]),
            num_gpus=_gpus(ray, ask),
            max_restarts=RETRIES,
            max_task_retries=-1,  # as long as it is started again: a call that finds no node counts too
        )
        .remote(
            ask.model.name,
            asdict(ask.options),
            threads,
            os.getcwd(),
            log.isEnabledFor(logging.DEBUG),
        )
    )


def _threads(todo: Sequence[Numbered]) -> dict[str, str]:
    """Return how many threads libraries take in this process, in the variables that they read."""
    said = {variable: os.environ[variable] for variable in THREADS if variable in os.environ}
    if "OMP_NUM_THREADS" in said:
        return said
    every = omp = str(environment()["cpus"])
    if find_spec("torch") and any(_takes_gpu(ask) for _, ask in todo):
        import torch  # takes one a core, which may have several CPUs

        omp = str(torch.get_num_threads())
    return {"OPENBLAS_NUM_THREADS": every, **said, "OMP_NUM_THREADS": omp}


def _cpus(ray: Any, threads: str) -> int:
    """Return as many CPUs as a worker has threads, at most all of the largest node."""
    largest = max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"])
    return min(int(threads) if threads.isdecimal() else environment()["cpus"], int(largest))


def _gpus(ray: Any, ask: Ask) -> int:
    """Return 1 where the model would take a GPU and the cluster has some."""
    device = ask.options.device
    if device == "cpu" or not _takes_gpu(ask):
        return 0
    there = ray.cluster_resources().get("GPU", 0) >= 1
    if device != "auto" and not there:
        message = f"--device {device} is asked for, and the cluster has no GPU"
        raise InputError(Problem(ask.model.name, None, message))
    return int(there)


def _takes_gpu(ask: Ask) -> bool:
    kind = kinds().get(str(ask.model.identity.get("kind")))
    return kind is None or kind.has_weights
