"""Faults of the service while workers are active."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.postgresql import Cluster, NoServerError, cluster
from benchmarks.study_processes import NGINX, configuration, free_ports, proxy
from robustness.chaos.cases import Case
from robustness.chaos.faults import fill, needs_mounts, small_disk
from robustness.chaos.service import (
    Crowd,
    Service,
    check_submissions,
    publish_study,
    serving,
    wait_until,
)

FAKETIME = next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), "")
HITS, ASSIGNMENTS = 24, 8
KILLS = 5


def needs_postgresql() -> str:
    """Return the reason why PostgreSQL is unavailable; empty if available."""
    try:
        with cluster():
            return ""
    except NoServerError as error:
        return str(error)


def needs_nginx() -> str:
    """Return the reason why PostgreSQL or nginx is unavailable; empty if both are available."""
    return needs_postgresql() if NGINX else "nginx is not installed (make system)"


def strike_while_working(crowd: Crowd, strike: Callable[[], object], times: int) -> None:
    """Inject a fault at random times (with a seed) while work is in progress."""
    chance = random.Random(10)
    for number in range(times):
        mark = (number + 1) * HITS * ASSIGNMENTS // (times + 2)
        wait_until(lambda: crowd.confirmed >= mark, f"{mark} submissions are confirmed", 180)  # noqa: B023
        time.sleep(chance.uniform(0, 0.2))
        strike()


def restart(service: Service) -> None:
    """Kill a service with SIGKILL and restart it."""
    service.end()
    service.start()


def kill_service(db: str | Path, folder: Path) -> str:
    """Kill the service repeatedly while workers are active."""
    with (
        serving(db, folder) as service,
        publish_study(service.url, folder, HITS, ASSIGNMENTS) as study,
    ):
        with Crowd(service.url) as crowd:
            strike_while_working(crowd, lambda: restart(service), KILLS)
        return f"killed {KILLS} times; {check_submissions(*study, crowd, ASSIGNMENTS)}"


def kill_on_sqlite(folder: Path) -> str:
    return kill_service(folder / "hits.db", folder)


def kill_on_postgresql(folder: Path) -> str:
    with cluster() as server:
        return kill_service(server.create("killed"), folder)


def restart_later(service: Service, crowd: Crowd) -> None:
    """Kill a service, and restart it after the others have confirmed more submissions."""
    service.end()
    mark = crowd.confirmed + 5
    wait_until(lambda: crowd.confirmed >= mark, "the others confirm submissions", 120)
    service.start()


def kill_one_of_three(folder: Path) -> str:
    """Kill each of three processes behind nginx once, and restart it later."""
    with (
        cluster() as server,
        behind_nginx(server.create("three"), folder) as (url, services),
        publish_study(url, folder, HITS, ASSIGNMENTS) as study,
    ):
        with Crowd(url, pace=0.6) as crowd:  # slow enough to be at work at the last kill
            turns = iter(services)
            strike_while_working(crowd, lambda: restart_later(next(turns), crowd), len(services))
        return f"each of 3 killed once, the others continued; {check_submissions(*study, crowd, ASSIGNMENTS)}"


@contextmanager
def behind_nginx(db: str, folder: Path) -> Iterator[tuple[str, list[Service]]]:
    """Run three processes of the service behind nginx."""
    outside, frames = free_ports(2)
    url = f"http://127.0.0.1:{outside}"
    addresses = ("--site-url", url, "--frame-url", f"http://127.0.0.1:{frames}")
    with ExitStack() as stack:
        services = []
        for number in range(3):
            (service_folder := folder / str(number)).mkdir()
            services.append(stack.enter_context(serving(db, service_folder, *addresses)))
        pairs = [service.ports for service in services]
        (folder / "nginx.conf").write_text(configuration(folder, outside, frames, pairs))
        stack.enter_context(proxy(folder, outside))
        yield url, services


def crash_postgresql(folder: Path) -> str:
    """Crash the database server while workers are active, and restart it."""
    crashes = 3

    def crash(server: Cluster) -> None:
        server.stop()
        server.start()

    with (
        cluster() as server,
        serving(server.create("crash"), folder) as service,
        publish_study(service.url, folder, HITS, ASSIGNMENTS) as study,
    ):
        with Crowd(service.url) as crowd:
            strike_while_working(crowd, lambda: crash(server), crashes)
        return f"crashed {crashes} times, service not restarted; " + check_submissions(
            *study, crowd, ASSIGNMENTS
        )


def fill_disk_of_service(folder: Path) -> str:
    """Fill the disk of the database while workers are active, and free the space again."""
    with (
        small_disk(folder / "disk", 16 * 2**20) as disk,
        serving(disk / "hits.db", folder) as service,
        publish_study(service.url, folder, HITS, ASSIGNMENTS) as study,
    ):
        with Crowd(service.url) as crowd:
            wait_until(lambda: crowd.confirmed >= HITS, "work is on its way", 120)
            filling = fill(disk)
            wait_until(lambda: "disk is full" in service.log.read_text(), "the disk is full", 120)
            time.sleep(1)  # time for workers to retry
            filling.unlink()
        return (
            f"{crowd.refusals.total()} requests refused while it was full, service not restarted; "
            f"{check_submissions(*study, crowd, ASSIGNMENTS)}"
        )


def needs_faketime() -> str:
    """Return the reason why libfaketime is unavailable; empty if available."""
    return "" if FAKETIME else "libfaketime is not installed (make system)"


def jump_clock(folder: Path) -> str:
    """Set the clock of a service days forward and an hour back while workers are active."""
    clock = folder / "clock"
    jumps = iter(["+1d", "-1h", "+0", "+2d", "+1d", "+0"])
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    with (
        serving(folder / "hits.db", folder, **environment) as service,
        publish_study(service.url, folder, HITS, ASSIGNMENTS) as study,
    ):
        with Crowd(service.url, pace=0.2) as crowd:
            strike_while_working(crowd, lambda: clock.write_text(next(jumps)), 6)
        late = crowd.refusals["submit 410"]
        checked = check_submissions(*study, crowd, ASSIGNMENTS)
        return f"6 jumps, {late} submissions refused as too late; {checked}"


SUBMISSIONS = (
    "Every confirmed submission is stored once; no HIT exceeds its maximum assignments; the balance is "
    "exact"
)

CASES = (
    Case("SIGKILL", "giccs annotate serve on SQLite, workers active", SUBMISSIONS, kill_on_sqlite),
    Case("SIGKILL", "giccs annotate serve on PostgreSQL, workers active", SUBMISSIONS,
         kill_on_postgresql, needs_postgresql),
    Case("SIGKILL", "one of three giccs annotate serve behind nginx", f"{SUBMISSIONS}; the others continue",
         kill_one_of_three, needs_nginx),
    Case("SIGKILL", "the PostgreSQL server (pg_ctl -m immediate)",
         f"{SUBMISSIONS}; the service continues when the database is back", crash_postgresql,
         needs_postgresql),
    Case("full disk", "disk of the SQLite database of giccs annotate serve",
         f"Workers get an error page; {SUBMISSIONS[0].lower()}{SUBMISSIONS[1:]}; with free space the "
         "service continues without a restart", fill_disk_of_service, needs_mounts),
    Case("clock jump", "giccs annotate serve: days forward, an hour back, workers active",
         f"{SUBMISSIONS}. Deadlines follow the service's clock: assignments whose deadline passes in a "
         "jump expire and become available again", jump_clock, needs_faketime),
)  # fmt: skip
