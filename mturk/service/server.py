"""The server: API and worker site on one address, question frames on another."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import math
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from bws.base.problems import InputError, Problem
from mturk.service.api.model import service_model
from mturk.service.api.protocol import Api
from mturk.service.clock import Clock
from mturk.service.hosts import TrustedHosts
from mturk.service.monitoring.health import Health
from mturk.service.monitoring.requests import HEALTH_PATH, ObservedApp
from mturk.service.rules.retention import Retention
from mturk.service.rules.work import WorkerService
from mturk.service.site.app import build_site
from mturk.service.site.question_frame import build_frame
from mturk.service.site.rate_limits import RateLimits
from mturk.service.site.studies import PanelStudy
from mturk.service.store.database import Database

if TYPE_CHECKING:
    from mturk.service.monitoring.metrics import Metrics

log = logging.getLogger("mturk.server")
DUE_CHECK_SECONDS = 30
"""Interval at which due changes are applied, independent of requests."""
ERASURE_SECONDS = 3600
"""Interval at which workers whose time is over are erased."""
ERASURE_RETRY_SECONDS = 60
"""Time until the next run if one failed or was incomplete."""
Stop = Callable[[], object]
LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
ALL_ADDRESSES = ("0.0.0.0", "::", "[::]")  # noqa: S104 - names of hosts that need public addresses
LAST_PORT = 65_535
MAX_MALLOC_ARENAS = 2
M_ARENA_MAX = -8
"""Value in glibc's malloc.h."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Public addresses of the service: origins without a path."""

    site: str
    frames: str
    metrics: str | None = None
    """Address of the Prometheus metrics; None if disabled."""

    @property
    def api(self) -> str:
        """Endpoint URL for AWS clients."""
        return self.site

    @property
    def work(self) -> str:
        """Start page for workers."""
        return f"{self.site}/work/"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of the server."""

    host: str = "127.0.0.1"
    port: int = 8765
    """0: a free port."""
    frame_port: int | None = None
    """None: the port after `port`, or a free one if `port` is 0 or 65535."""
    site_url: str | None = None
    """Public address of the site if it is behind a proxy."""
    frame_url: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    """Access key -> secret; without keys, unauthenticated access from this machine only."""
    analysts: Container[str] = ()
    """Access keys that may only read, and see pseudonyms instead of worker ids."""
    studies: Sequence[PanelStudy] = ()
    retention_days: int | None = None
    """Days after the last activity until workers outside studies are erased; None: never."""
    grace_seconds: int = 60
    """Seconds after the deadline of a task in which it can still be submitted."""
    allow_external: bool = False
    image_origins: Sequence[str] = ()
    """Other origins from which questions may load images."""
    rates: RateLimits | None = None
    trust_proxy: str = ""
    """Comma-separated addresses of proxies whose X-Forwarded-For and -Proto are trusted."""
    metrics: tuple[str, int] | None = None
    """Host and port of the metrics endpoint; None: disabled."""


def is_loopback(host: str) -> bool:
    """Return whether a host is only reachable from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def build_apps(
    database: Database, clock: Clock, addresses: Addresses, options: ServerOptions,
    metrics: Metrics | None = None,
) -> tuple[ASGIApp, ASGIApp]:  # fmt: skip
    """Return two ASGI applications: API with worker site, and question frames."""
    work = WorkerService(database, clock, grace_seconds=options.grace_seconds)
    secret = database.secret()
    site = build_site(
        work, secret, frame_url=addresses.frames, site_url=addresses.site, now=clock.now,
        open_entry=not options.keys, studies=options.studies, rates=options.rates,
    )  # fmt: skip
    frames = build_frame(
        work, secret, site_url=addresses.site, frame_url=addresses.frames,
        allow_external=options.allow_external, image_origins=options.image_origins,
    )  # fmt: skip
    api = Api(database, clock, options.keys, options.analysts)
    routes = [
        Route("/", api.__call__, methods=["POST"]),
        Route(HEALTH_PATH, Health(database).__call__),
        *site.routes,
    ]
    # Without keys, protect against DNS rebinding: other host names are rejected.
    guard = [] if options.keys else [_trusted_hosts(options.host)]
    app = Starlette(
        routes=routes,
        middleware=guard,
        exception_handlers=site.exception_handlers,
        lifespan=_periodic_lifespan(work, _retention(work, options)),
    )
    return _observe(app, "page", options, metrics), _observe(frames, "frame", options, metrics)


def _trusted_hosts(host: str) -> Middleware:
    """Return middleware that only accepts host names of this machine."""
    hosts = [*LOOPBACK_HOSTS, host]
    return Middleware(TrustedHosts, hosts)


def _observe(
    app: ASGIApp, kind: Literal["page", "frame"], options: ServerOptions, metrics: Metrics | None
) -> ObservedApp:
    """Wrap an application with request logging and, if configured, headers of trusted proxies."""
    if not options.trust_proxy:
        return ObservedApp(app, kind, metrics)
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    # Not by uvicorn, whose middleware would hide the address of the proxy from ours.
    proxied = ProxyHeadersMiddleware(app, trusted_hosts=options.trust_proxy)  # type: ignore[arg-type]
    return ObservedApp(proxied, kind, metrics, proxied.trusted_hosts)  # type: ignore[arg-type]


def _metrics_app(database: Database, metrics: Metrics, host: str) -> Starlette:
    """Return the metrics application; it has no authentication and therefore its own port."""
    routes = [Route("/metrics", metrics.scrape), Route(HEALTH_PATH, Health(database).__call__)]
    return Starlette(routes=routes, middleware=[_trusted_hosts(host)] if is_loopback(host) else [])


def _retention(work: WorkerService, options: ServerOptions) -> Retention:
    days = {one.name: one.retention_days for one in options.studies if one.retention_days}
    return Retention(work.database, work.clock, days, options.retention_days)


def _periodic_lifespan(
    work: WorkerService, retention: Retention
) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    async def apply_periodically() -> None:
        next_erasure = -math.inf
        while True:
            await asyncio.sleep(DUE_CHECK_SECONDS)
            try:
                await run_in_threadpool(work.apply_due_changes)
                if time.monotonic() >= next_erasure:
                    next_erasure = time.monotonic() + ERASURE_RETRY_SECONDS
                    await run_in_threadpool(retention.run)
                    if retention.is_complete:
                        next_erasure = time.monotonic() + ERASURE_SECONDS
            except Exception:  # for example a busy database; retried at the next interval
                log.exception("due changes could not be applied")

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(apply_periodically())
        try:
            yield
        finally:
            task.cancel()

    return lifespan


def serve(
    database: Database,
    clock: Clock,
    options: ServerOptions,
    ready: Callable[[Addresses, Stop], None],
) -> None:
    """Serve until the process is stopped; `ready` is called once all addresses accept connections.

    `ready` receives the addresses and a function that stops the service from any thread. Raises InputError if
    the service is reachable from other machines without keys or public addresses, or a port is in use.
    """
    _check_exposure(options)
    service_model()
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(_listen(options.host, options.port))
        frames = stack.enter_context(_listen(options.host, _frame_port(options)))
        addresses = Addresses(
            options.site_url or _origin(options.host, site),
            options.frame_url or _origin(options.host, frames),
        )
        _warn_without_tls(addresses)
        metrics = _metrics(database) if options.metrics else None
        apps = build_apps(database, clock, addresses, options, metrics)
        listeners: list[tuple[ASGIApp, socket.socket]] = [*zip(apps, (site, frames), strict=True)]
        if metrics and options.metrics:
            host, port = options.metrics
            metrics_socket = stack.enter_context(_listen(host, port, "--metrics"))
            listeners.append((_metrics_app(database, metrics, host), metrics_socket))
            addresses = replace(addresses, metrics=f"{_origin(host, metrics_socket)}/metrics")
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_run(listeners, lambda stop: ready(addresses, stop)))


def _metrics(database: Database) -> Metrics:
    from mturk.service.monitoring.metrics import Metrics

    return Metrics(database)


def _check_exposure(options: ServerOptions) -> None:
    """Raise InputError if the service is reachable from other machines without keys, also through a proxy."""
    hosts = {
        "--host": options.host,
        "--site-url": urlsplit(options.site_url or "//localhost").hostname,
        "--frame-url": urlsplit(options.frame_url or "//localhost").hostname,
    }
    message = (
        "access from other machines requires keys, since any client could publish and read "
        "everything; use --keys FILE or set GICCS_KEYS"
    )
    public_options = [option for option, host in hosts.items() if not is_loopback(host or "")]
    if public_options and not options.keys:
        raise InputError([Problem(option, None, message) for option in public_options])
    if options.host in ALL_ADDRESSES:
        message = (
            f"is required with --host {options.host}, which is not an address that others can open"
        )
        urls = {"--site-url": options.site_url, "--frame-url": options.frame_url}
        if missing := [option for option, url in urls.items() if url is None]:
            raise InputError([Problem(option, None, message) for option in missing])


def _warn_without_tls(addresses: Addresses) -> None:
    """Log a warning per address that other machines reach without TLS."""
    for url in (addresses.site, addresses.frames):
        parts = urlsplit(url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            log.warning(
                "%s is not encrypted: sessions, personal links and answers can be read on the network; "
                "use a proxy with TLS and https addresses",
                url,
            )


def _listen(host: str, port: int, option: str = "--port") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # explicit TCP, or asyncio does not disable Nagle's algorithm, which adds 40 ms per response
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        message = f"cannot listen on {host} port {port}: {error.strerror}; choose another {option}"
        raise InputError(Problem(option, None, message)) from None
    listening.listen(1024)
    return listening


def _frame_port(options: ServerOptions) -> int:
    if options.frame_port is not None:
        return options.frame_port
    return options.port + 1 if 0 < options.port < LAST_PORT else 0


def _origin(host: str, listening: socket.socket) -> str:
    address = f"[{host.strip('[]')}]" if ":" in host else host
    return f"http://{address}:{listening.getsockname()[1]}"


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop, a faster event loop, where it exists; None for that of Python."""
    try:
        import uvloop
    except ImportError:  # not available for Windows
        return None
    return uvloop.new_event_loop


async def _run(
    listeners: Sequence[tuple[ASGIApp, socket.socket]], ready: Callable[[Stop], None]
) -> None:
    import uvicorn

    from mturk.service.connections import LimitedProtocol

    class Server(uvicorn.Server):
        """A uvicorn server that leaves signal handling to `_run`."""

        @contextlib.contextmanager
        def capture_signals(self):  # type: ignore[no-untyped-def]
            yield

    servers = [
        Server(
            uvicorn.Config(
                app, http=LimitedProtocol, log_config=None, log_level="warning", access_log=False,
                server_header=False, proxy_headers=False, timeout_graceful_shutdown=10,
                limit_concurrency=2000,
            )
        )
        for app, _ in listeners
    ]  # fmt: skip
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    _on_signals(loop, stop)
    running = [
        asyncio.create_task(server.serve(sockets=[listening]))
        for server, (_, listening) in zip(servers, listeners, strict=True)
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


def limit_malloc_arenas(max_arenas: int = MAX_MALLOC_ARENAS) -> bool:
    """Limit the number of malloc arenas of glibc; return whether the limit was set.

    glibc creates up to eight arenas per processor, and an arena keeps the memory of its largest request,
    about 10 MiB for a list of 100 HITs. Requests run in changing threads, so that all arenas grow to that
    size. Must be called before threads start. No effect with MALLOC_ARENA_MAX or other C libraries.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or "MALLOC_ARENA_MAX" in os.environ:
        return False
    return bool(mallopt(M_ARENA_MAX, max_arenas))
