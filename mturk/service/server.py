"""Running the service: the API and the worker site on one address, the questions on another."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from bws.problems import InputError, Problem
from mturk.service.api.model import service_model
from mturk.service.api.protocol import Api
from mturk.service.clock import Clock
from mturk.service.monitoring.health import Health
from mturk.service.monitoring.requests import HEALTH, Observed
from mturk.service.rules.work import Work
from mturk.service.site.app import build_site
from mturk.service.site.question_frame import build_frame
from mturk.service.site.rate_limits import Rates
from mturk.service.site.studies import Study
from mturk.service.store.database import Database

if TYPE_CHECKING:
    from mturk.service.monitoring.metrics import Metrics

__all__ = ["ARENAS", "Addresses", "Options", "bound_arenas", "build", "serve"]

log = logging.getLogger("mturk.server")
SWEEP_SECONDS = 30
"""How often what is due is settled although nobody looks."""
Stop = Callable[[], object]
LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
LAST_PORT = 65_535
ARENAS = 2
M_ARENA_MAX = -8
"""From glibc's malloc.h."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the service is reached, as browsers and clients see it; origins without a path."""

    site: str
    frames: str
    metrics: str | None = None
    """The page that Prometheus reads, where there is one."""

    @property
    def api(self) -> str:
        """Return what AWS clients take as their endpoint URL."""
        return self.site

    @property
    def work(self) -> str:
        """Return where workers begin."""
        return f"{self.site}/work/"


@dataclass(frozen=True, slots=True)
class Options:
    """How the service is run."""

    host: str = "127.0.0.1"
    port: int = 8765
    """0 takes a free one."""
    frame_port: int | None = None
    """None: the next port after `port`, or a free one where `port` is 0 or the last."""
    site_url: str | None = None
    """The address behind a proxy."""
    frame_url: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    """Access key -> secret; without them only this machine is served, and anybody on it."""
    studies: Sequence[Study] = ()
    allow_external: bool = False
    rates: Rates | None = None
    trust_proxy: str = ""
    """Addresses of proxies whose X-Forwarded-For and -Proto are believed, comma-separated."""
    metrics: tuple[str, int] | None = None
    """Where the numbers of the service are told, host and port; None: nowhere."""


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def build(
    database: Database, clock: Clock, addresses: Addresses, options: Options,
    metrics: Metrics | None = None,
) -> tuple[ASGIApp, ASGIApp]:  # fmt: skip
    """Return the two applications: API with worker site, and question frames."""
    work = Work(database, clock)
    secret = database.secret()
    site = build_site(
        work, secret, frame_url=addresses.frames, site_url=addresses.site, now=clock.now,
        open_entry=not options.keys, studies=options.studies, rates=options.rates,
    )  # fmt: skip
    frames = build_frame(
        work, secret, site_url=addresses.site, frame_url=addresses.frames,
        allow_external=options.allow_external,
    )  # fmt: skip
    api = Api(database, clock, options.keys)
    routes = [
        Route("/", api.__call__, methods=["POST"]),
        Route(HEALTH, Health(database).__call__),
        Mount("/", site),
    ]
    # Without keys a page elsewhere could name its own host and resolve it to this machine.
    guard = [] if options.keys else [_known_hosts(options.host)]
    whole = Starlette(routes=routes, middleware=guard, lifespan=_sweeping(work))
    return _observed(whole, "page", options, metrics), _observed(frames, "frame", options, metrics)


def _known_hosts(host: str) -> Middleware:
    """Return what answers under names of this machine only."""
    hosts = [*LOOPBACK_HOSTS, host]
    return Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)


def _observed(
    app: ASGIApp, kind: Literal["page", "frame"], options: Options, metrics: Metrics | None
) -> Observed:
    """Return the application as it is reached: through trusted proxies, and with a log line a request."""
    if not options.trust_proxy:
        return Observed(app, kind, metrics)
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    # Here and not in uvicorn: its own is around ours, which could not tell any more who asks.
    proxied = ProxyHeadersMiddleware(app, trusted_hosts=options.trust_proxy)  # type: ignore[arg-type]
    return Observed(proxied, kind, metrics, proxied.trusted_hosts)  # type: ignore[arg-type]


def _monitor(database: Database, metrics: Metrics, host: str) -> Starlette:
    """Return the application that tells the numbers; it knows no keys, so it has a port of its own."""
    routes = [Route("/metrics", metrics.show), Route(HEALTH, Health(database).__call__)]
    return Starlette(routes=routes, middleware=[_known_hosts(host)] if is_loopback(host) else [])


def _sweeping(work: Work) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    async def sweep() -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await run_in_threadpool(work.settle)
            except Exception:  # a database that is busy now is not busy for ever
                log.exception("what is due could not be settled")

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(sweep())
        try:
            yield
        finally:
            task.cancel()

    return lifespan


def serve(
    database: Database, clock: Clock, options: Options, ready: Callable[[Addresses, Stop], None]
) -> None:
    """Serve until the process is asked to stop; `ready` is called once both addresses answer.

    It gets a function that stops the service from any thread.

    InputError where others than this machine reach the service and no keys are set, or a port is taken.
    """
    _check_reach(options)
    service_model()
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(_listen(options.host, options.port))
        frames = stack.enter_context(_listen(options.host, _frame_port(options)))
        addresses = Addresses(
            options.site_url or _origin(options.host, site),
            options.frame_url or _origin(options.host, frames),
        )
        metrics = _metrics(database) if options.metrics else None
        apps = build(database, clock, addresses, options, metrics)
        served: list[tuple[ASGIApp, socket.socket]] = [*zip(apps, (site, frames), strict=True)]
        if metrics and options.metrics:
            host, port = options.metrics
            own = stack.enter_context(_listen(host, port, "--metrics"))
            served.append((_monitor(database, metrics, host), own))
            addresses = replace(addresses, metrics=f"{_origin(host, own)}/metrics")
        asyncio.run(_run(served, lambda stop: ready(addresses, stop)))


def _metrics(database: Database) -> Metrics:
    from mturk.service.monitoring.metrics import Metrics

    return Metrics(database)


def _check_reach(options: Options) -> None:
    """Refuse to be reached from elsewhere without keys, through a proxy too."""
    hosts = {
        "--host": options.host,
        "--site-url": urlsplit(options.site_url or "//localhost").hostname,
        "--frame-url": urlsplit(options.frame_url or "//localhost").hostname,
    }
    message = (
        "being reached from beyond this machine needs keys: whoever reaches the service could "
        "publish and read everything; use --keys FILE or set GICCS_KEYS"
    )
    beyond = [option for option, host in hosts.items() if not is_loopback(host or "")]
    if beyond and not options.keys:
        raise InputError([Problem(option, None, message) for option in beyond])


def _listen(host: str, port: int, option: str = "--port") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # named as TCP, or asyncio leaves Nagle's algorithm on: 40 ms for every answer
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        message = f"cannot listen on {host} port {port}: {error.strerror}; name another {option}"
        raise InputError(Problem(option, None, message)) from None
    listening.listen(1024)
    return listening


def _frame_port(options: Options) -> int:
    if options.frame_port is not None:
        return options.frame_port
    return options.port + 1 if 0 < options.port < LAST_PORT else 0


def _origin(host: str, listening: socket.socket) -> str:
    shown = f"[{host.strip('[]')}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"


async def _run(
    served: Sequence[tuple[ASGIApp, socket.socket]], ready: Callable[[Stop], None]
) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        """One of the servers in a process: stopping one stops all."""

        @contextlib.contextmanager
        def capture_signals(self):  # type: ignore[no-untyped-def]
            yield

    servers = [
        Server(
            uvicorn.Config(
                app, log_config=None, log_level="warning", access_log=False, server_header=False,
                proxy_headers=False, timeout_graceful_shutdown=10, limit_concurrency=2000,
            )
        )
        for app, _ in served
    ]  # fmt: skip
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    _on_signals(loop, stop)
    running = [
        asyncio.create_task(server.serve(sockets=[one]))
        for server, (_, one) in zip(servers, served, strict=True)
    ]
    while not all(server.started for server in servers):
        if any(task.done() for task in running):
            break
        await asyncio.sleep(0.01)
    else:
        ready(lambda: loop.call_soon_threadsafe(stop))
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    stop()
    await asyncio.gather(*running)


def _on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop)


def bound_arenas(most: int = ARENAS) -> bool:
    """Let the C library's malloc keep so many pools of memory for all threads; tell whether it obeys.

    glibc gives every thread a pool of its own, up to eight for each processor, and a pool keeps what its
    largest request took: a list of a hundred HITs with their questions is some ten MiB. Requests run in
    threads that come and go, so one pool after the other grows to that size. MALLOC_ARENA_MAX in the
    environment counts more; other C libraries have no such pools, and nothing happens. Before threads start.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or "MALLOC_ARENA_MAX" in os.environ:
        return False
    return bool(mallopt(M_ARENA_MAX, most))
