"""Jobs on a Ray cluster: one actor per model, as many at a time as the cluster supports.

The unit is a model with its tasks: an actor loads its model once and processes one task after the other. Ray
places the actors and restarts lost ones on other nodes. Only the driver reads and writes the store, shows
progress and reports errors. The data of a task are not split: texts are batched by length over the whole
data, the padding and size of a batch affect the rounding of sums, and steps such as whitening are fitted on
all texts, so results of parts could not be bit-identical to those of the whole.

Bit-identical results also require the same number of threads. A worker uses as many as this process would,
according to ``OMP_NUM_THREADS`` or the number of cores, and reserves as many CPUs. They also require a fixed
batch size: ``auto`` depends on timing, with either engine.

Ray serialises with cloudpickle between its own processes, so a cluster must be as trusted as this process.
Only names, options, tasks and data are sent, as dataclasses of giccs, but no models. Nothing of this is ever
read from or written to a file. Ray's telemetry and dashboard are disabled.
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

from bws.base.problems import InputError, Problem
from giccs.evaluation.engines import EngineError
from giccs.evaluation.engines.local import EvaluationJob, find_existing
from giccs.evaluation.engines.worker import THREAD_VARIABLES, Worker, WorkerReply
from giccs.evaluation.task_results import environment, signature_of
from giccs.measures.results import Result, Store, digest
from giccs.models import kinds
from giccs.progress import Progress, silent

log = logging.getLogger(__name__)

MAX_RESTARTS = 3
"""Maximum number of restarts of a lost worker."""
OBJECT_STORE_BYTES = 256 * 2**20
"""Memory for data and results on a local cluster, in bytes; Ray spills more to disk."""
CONNECT_TIMEOUT_SECONDS = 10
"""Timeout for a response of the cluster in seconds."""
HTTP2_SETTINGS_FRAME = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The first frame of both sides of HTTP/2: a frame of type 4, here empty."""
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HTTP2_SETTINGS_FRAME

IndexedJob = tuple[int, EvaluationJob]


def run_on_ray(
    jobs: Iterable[EvaluationJob],
    store: Store,
    *,
    address: str | None = None,
    force: bool = False,
    note: Callable[[str], None] = lambda message: None,
    progress: Progress = silent,
) -> Iterator[tuple[int, Result]]:
    """Yield (index in `jobs`, its result) in order of completion, each stored before it is yielded.

    address: address of a running cluster, ``auto`` to find one, None for a local cluster. Existing results
    with the same signature are reused, unless `force`. Failures do not stop other jobs. At the end,
    InputError is raised for problems of models, and EngineError for other failures.
    """
    pending: list[IndexedJob] = []
    for index, job in enumerate(jobs):
        stored_result, origin = find_existing(job, None if force else store)
        if stored_result:
            note(f"{job}{origin}")
            yield index, stored_result
        else:
            pending.append((index, job))
    if not pending:
        return
    _check_requirements(pending)
    if address and address != "auto":
        _check_address(address)
    if any(_can_use_gpu(ask) and ask.options.batch_size is None for _, ask in pending):
        note("automatic batch sizes depend on timing; use --batch-size N for bit-identical numbers")
    failures = _Failures()
    with _connect(address) as ray:
        log.debug("Ray %s: %s", ray.__version__, ray.cluster_resources())
        replies = _run_jobs(ray, pending)
        numbered_replies = enumerate(progress(replies, "models × tasks", len(pending)), 1)
        for number, (index, job, reply) in numbered_replies:
            for record in getattr(reply, "log_records", ()):
                logging.getLogger(record.name).handle(record)
            result = failures.check_reply(job, reply)
            if result:
                store.add(result)
                note(f"{job}: {result.seconds:.1f} s ({number} of {len(pending)})")
                if reply.usage:
                    note(f"{job.model.name}: {reply.usage}")
                yield index, result
    failures.raise_recorded()


@dataclass
class _Failures:
    """Failed jobs and their causes."""

    problems: dict[Problem, None] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def check_reply(self, job: EvaluationJob, reply: WorkerReply | Exception) -> Result | None:
        """Return the result in a reply, or record why there is none."""
        if isinstance(reply, Exception):
            self.errors.append(f"{job}: {_error_line(reply)}")
            return None
        self.problems |= dict.fromkeys(reply.problems)
        if reply.result is None:
            return None
        signature = signature_of(job.task, job.model, job.data)
        if digest(reply.result.signature) == digest(signature):
            return reply.result
        different_keys = [
            key for key in signature if reply.result.signature.get(key) != signature.get(key)
        ]
        message = f"differs on the worker; different keys: {', '.join(different_keys)}"
        self.problems[Problem(job.model.name, None, message)] = None
        return None

    def raise_recorded(self) -> None:
        """Raise the recorded problems, if any."""
        if self.errors:
            raise EngineError("\n".join([*self.errors, *map(str, self.problems)]))
        if self.problems:
            raise InputError(self.problems)


def _error_line(error: Exception) -> str:
    """Return the exception of the task on the worker as one line, or that the worker was lost."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return f"{type(cause).__name__}: {cause}".splitlines()[0]
    message_lines = str(error).strip().splitlines()
    if "creation task" in message_lines[0]:
        return f"its worker cannot start: {message_lines[-1]}"
    return (
        f"its worker was lost {MAX_RESTARTS + 1} times ({type(error).__name__}: {message_lines[0]})"
    )


def _check_requirements(pending: Sequence[IndexedJob]) -> None:
    if find_spec("ray") is None:
        message = "needs ray; install it with: pip install 'giccs[ray]'"
        raise InputError(Problem("--engine ray", None, message))
    for device in {job.options.device for _, job in pending}:
        if ":" in device:
            message = f"{device} is not supported, because Ray assigns the GPUs; use --device cuda"
            raise InputError(Problem("--engine ray", None, message))


def _check_address(address: str) -> None:
    """Raise InputError if the address does not respond; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        message = "invalid address; expected auto or HOST:PORT"
        raise InputError(Problem(f"--address {address}", None, message))
    try:
        with socket.create_connection(
            (host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_SECONDS
        ) as connection:
            _check_protocol(connection)
    except (OSError, OverflowError) as error:
        message = f"no response of a Ray cluster ({getattr(error, 'strerror', None) or error})"
        raise InputError(Problem(f"--address {address}", None, message)) from None


def _check_protocol(connection: socket.socket) -> None:
    """Raise OSError if the server does not use HTTP/2, on which gRPC and Ray are based."""
    if os.environ.get("RAY_USE_TLS", "0") != "0":  # Encrypted from the first byte.
        return
    connection.sendall(HTTP2_PREFACE)
    if connection.recv(len(HTTP2_SETTINGS_FRAME))[3:4] != HTTP2_SETTINGS_FRAME[3:4]:
        raise OSError("another service responds")


@contextmanager
def _connect(address: str | None) -> Iterator[Any]:
    """Yield Ray connected to a cluster; without an address, to a local one that is shut down afterwards."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Read when Ray is imported.
    import ray

    local_options: dict[str, Any] = {
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES,
    }
    quiet_options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    try:
        ray.init(address or "local", **quiet_options, **({} if address else local_options))
    # No cluster, no token, or another version of Ray or Python.
    except (ConnectionError, RuntimeError, ray.exceptions.AuthenticationError) as error:
        raise EngineError(f"cannot work with Ray: {_connection_message(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _connection_message(error: Exception) -> str:
    """Return Ray's message as one line; it does not mention a missing authentication token."""
    message = " ".join(str(error).split())
    if "Failed to connect" in message:
        message += "; if it requires a token, set RAY_AUTH_MODE=token"
    return message


def _run_jobs(ray: Any, pending: Sequence[IndexedJob]) -> Iterator[tuple[int, EvaluationJob, Any]]:
    """Yield (index, job, outcome) in order of completion: a `WorkerReply`, or Ray's exception.

    An actor gets the next task after the previous one is done, so that waiting tasks are not lost with it. If
    an actor is not restarted any more, its remaining tasks get a new one.
    """
    data = {id(job.data): job.data for _, job in pending}
    data_refs = {key: ray.put(data_set) for key, data_set in data.items()}
    threads = _thread_variables(pending)
    running: dict[Any, tuple[Any, IndexedJob, deque[IndexedJob]]] = {}

    def submit_next(queue: deque[IndexedJob], actor: Any = None) -> None:
        index, job = queue.popleft()
        actor = actor or _start_actor(ray, job, threads)
        running[actor.evaluate.remote(job.task, data_refs[id(job.data)])] = (
            actor,
            (index, job),
            queue,
        )

    for job_queue in _queues_by_model(pending):
        submit_next(job_queue)
    while running:
        [finished], _ = ray.wait(list(running), num_returns=1)
        actor, (job_index, ask), job_queue = running.pop(finished)
        try:
            reply = ray.get(finished)
        except ray.exceptions.RayError as error:
            reply = error
        is_lost = isinstance(reply, ray.exceptions.RayActorError)
        if job_queue:
            submit_next(job_queue, None if is_lost else actor)
        elif not is_lost:
            ray.kill(actor)  # Its slot is free for the next model.
        yield job_index, ask, reply


def _queues_by_model(pending: Sequence[IndexedJob]) -> list[deque[IndexedJob]]:
    groups: dict[Any, deque[IndexedJob]] = {}
    for index, job in pending:
        groups.setdefault((job.model.name, job.options), deque()).append((index, job))
    return list(groups.values())


def _start_actor(ray: Any, job: EvaluationJob, threads: Mapping[str, str]) -> Any:
    return (
        ray.remote(Worker)
        .options(
            num_cpus=_n_cpus(ray, threads["OMP_NUM_THREADS"]),
            num_gpus=_n_gpus(ray, job),
            max_restarts=MAX_RESTARTS,
            max_task_retries=-1,  # While it is restarted; a call that finds no node counts, too.
        )
        .remote(
            job.model.name,
            asdict(job.options),
            threads,
            os.getcwd(),
            log.isEnabledFor(logging.DEBUG),
        )
    )


def _thread_variables(pending: Sequence[IndexedJob]) -> dict[str, str]:
    """Return the numbers of threads of libraries in this process, as the environment variables that set
    them."""
    set_variables = {
        variable: os.environ[variable] for variable in THREAD_VARIABLES if variable in os.environ
    }
    if "OMP_NUM_THREADS" in set_variables:
        return set_variables
    n_cpus = n_omp_threads = str(environment()["cpus"])
    if find_spec("torch") and any(_can_use_gpu(job) for _, job in pending):
        import torch  # One per core, which may have several CPUs.

        n_omp_threads = str(torch.get_num_threads())
    return {"OPENBLAS_NUM_THREADS": n_cpus, **set_variables, "OMP_NUM_THREADS": n_omp_threads}


def _n_cpus(ray: Any, threads: str) -> int:
    """Return the number of CPUs of a worker: one per thread, at most all of the largest node."""
    largest = max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"])
    return min(int(threads) if threads.isdecimal() else environment()["cpus"], int(largest))


def _n_gpus(ray: Any, job: EvaluationJob) -> int:
    """Return 1 if the model would use a GPU and the cluster has one."""
    device = job.options.device
    if device == "cpu" or not _can_use_gpu(job):
        return 0
    has_gpu = ray.cluster_resources().get("GPU", 0) >= 1
    if device != "auto" and not has_gpu:
        message = f"--device {device} requested, but the cluster has no GPU"
        raise InputError(Problem(job.model.name, None, message))
    return int(has_gpu)


def _can_use_gpu(job: EvaluationJob) -> bool:
    kind = kinds().get(str(job.model.identity.get("kind")))
    return kind is None or kind.has_weights
