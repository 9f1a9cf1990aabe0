"""mturk-hits serve, migrate, invite: the service of one's own, its tables, the links to come in."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import arguments, option
from bws.command import Console, command
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    from mturk.service.server import Addresses
    from mturk.service.site.studies import PanelStudy

__all__ = ["invite", "migrate", "serve"]

WORKER_ID = re.compile("A[A-Z0-9]{1,63}")
RESUME_NOTE = "the database has all HITs and assignments; the same command serves them again"
database_option = option("--db", "A file (SQLite), or the URL of a database.", default="hits.db")


@command(
    "mturk-hits serve",
    example="""
    mturk-hits serve
    mturk-hits serve --log json --metrics 127.0.0.1:9464
    mturk-hits serve --host 0.0.0.0 --keys keys.toml --site-url https://work.example.org \\
        --frame-url https://questions.example.org --trust-proxy 127.0.0.1
    """,
    logs_itself=True,
    interrupt_message=RESUME_NOTE,
)
@option("--host", "Where to listen; beyond this machine only with keys.", default="127.0.0.1")
@option("--port", "Port of API and worker site; 0 takes a free one.", type=click.IntRange(0, 65535),
        default=8765)  # fmt: skip
@option("--frame-port", "Port of the question frames.  [default: the next one]",
        type=click.IntRange(0, 65535))  # fmt: skip
@database_option
@option("--keys", 'TOML with access_key = "secret" lines; or set GICCS_KEYS.', metavar="FILE")
@option("--site-url", "How browsers reach the service through a proxy.", metavar="URL")
@option("--frame-url", "How browsers reach the frames; another host or port.", metavar="URL")
@option(
    "--trust-proxy", "Proxies whose X-Forwarded headers count.", metavar="ADDRESSES", default=""
)
@option("--studies", "TOML with recruiting links and completion codes.", metavar="FILE")
@option(
    "--balance", "Imaginary US dollars of a new database.", default="10000.00", metavar="AMOUNT"
)
@option("--allow-external", "Questions may load scripts from elsewhere.", is_flag=True)
@option("--log", "Lines for people, or a JSON object a line.", type=click.Choice(["text", "json"]),
        default="text")  # fmt: skip
@option(
    "--metrics", "Where Prometheus reads numbers; port 0 takes a free one.", metavar="HOST:PORT"
)
def serve(
    console: Console, host: str, port: int, frame_port: int | None, db: str, keys: str | None,
    site_url: str | None, frame_url: str | None, trust_proxy: str, studies: str | None,
    balance: str, allow_external: bool, log: str, metrics: str | None,
) -> None:  # fmt: skip
    """Serve Mechanical Turk's API and a site on which workers do the HITs, from this machine.

    AWS clients reach it with --endpoint-url; without keys any credentials do, from this machine only.
    One line with both addresses says that it is ready; Ctrl-C ends it.
    """
    from mturk.service.api.authentication import read_keys
    from mturk.service.clock import SystemClock
    from mturk.service.server import ServerOptions, limit_malloc_arenas, serve
    from mturk.service.site.links import study_link
    from mturk.service.store.database import Database

    _configure_logging(console, log)
    limit_malloc_arenas()
    panel_studies = _read_studies(studies)
    options = ServerOptions(
        host=host, port=port, frame_port=frame_port, site_url=site_url, frame_url=frame_url,
        keys=read_keys(keys, os.environ), studies=panel_studies, allow_external=allow_external,
        trust_proxy=trust_proxy, metrics=None if metrics is None else _parse_address(metrics),
    )  # fmt: skip
    database = Database(db, balance=_parse_cents(balance))

    def ready(addresses: Addresses, _: object) -> None:
        secret = database.secret()
        links = {
            study.name: study_link(addresses.site, secret, study.name) for study in panel_studies
        }
        _print_addresses(console, addresses, links)

    try:
        with arguments():
            serve(database, SystemClock(), options, ready)
        logging.getLogger("mturk.server").info("stopped: %s", RESUME_NOTE)
    finally:
        database.close()


def _print_addresses(console: Console, addresses: Addresses, links: Mapping[str, str]) -> None:
    """Print the one line that scripts wait for; without --json the recruiting links come below it."""
    if console.as_json:
        document = {"api": addresses.api, "site": addresses.work, "frames": addresses.frames}
        click.echo(json.dumps(document | {"metrics": addresses.metrics, "studies": dict(links)}))
        return
    metrics_text = f"  metrics {addresses.metrics}" if addresses.metrics else ""
    click.echo(
        f"mturk-hits serve: requester API {addresses.api}  worker site {addresses.work}{metrics_text}"
    )
    for name, link in links.items():
        click.echo(f"recruiting link of {name}: {link}")


def _configure_logging(console: Console, form: str) -> None:
    from mturk.service.monitoring.logs import configure

    level = logging.DEBUG if console.verbose else logging.INFO
    configure(form, logging.WARNING if console.quiet else level)
    if console.verbose:
        from bws.verbosity import begin

        begin()


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host.strip("[]") and re.fullmatch("[0-9]{1,5}", port) and int(port) < 65_536:
        return host, int(port)
    message = f"is {text!r}; a host and a port such as 127.0.0.1:9464 are allowed"
    raise InputError(Problem("--metrics", None, message))


def _parse_cents(text: str) -> int:
    try:
        amount = Decimal(text)
        if amount.is_finite() and 0 <= amount <= 10**12:
            return int(amount * 100)
    except InvalidOperation:
        pass
    message = f"is {text!r}; US dollars such as 10000.00 are allowed"
    raise InputError(Problem("--balance", None, message))


def _read_studies(path: str | None) -> list[PanelStudy]:
    if path is None:
        return []
    from mturk.service.site.studies import read_studies

    return read_studies(path)


@command(
    "mturk-hits migrate",
    example="""
    mturk-hits migrate --db hits.db
    mturk-hits migrate --db postgresql+psycopg://giccs@/giccs
    """,
)
@database_option
def migrate(console: Console, db: str) -> None:
    """Bring the tables of a database to the version that this program needs.

    Stop what serves the database and make a backup first. All of it is done, or nothing.
    """
    from mturk.service.store.database import Database
    from mturk.service.store.schema import VERSIONS

    _check_database_exists(db)
    database = Database(db, migrate=True)
    database.close()
    old, new = database.previous_version, VERSIONS[-1]
    messages = {None: f"was empty and is now of version {new}", new: f"is of version {new} already"}
    text = messages.get(old, f"was of version {old} and is now of version {new}")
    console.answer(f"the database {text}", {"from": old, "to": new})


def _check_database_exists(db: str) -> None:
    if "://" not in db and not os.path.exists(db):
        raise InputError(
            Problem(db, None, "is not there; start `mturk-hits serve` first, or name --db")
        )


@command(
    "mturk-hits invite",
    example="""
    mturk-hits invite --workers 20 > links.txt
    mturk-hits invite AANNA ABEN --site-url https://work.example.org
    """,
)
@click.argument("names", nargs=-1, metavar="[WORKER]...")
@option("--workers", "Make so many workers instead of naming them.", type=click.IntRange(1, 10000))
@database_option
@option("--site-url", "How workers reach the site.", default="http://127.0.0.1:8765", metavar="URL")
@option(
    "--days", "After how many days the links end.  [default: never]", type=click.IntRange(1, 3650)
)
def invite(
    console: Console, names: tuple[str, ...], workers: int | None, db: str, site_url: str,
    days: int | None,
) -> None:  # fmt: skip
    """Print a personal link for each worker: who has it works under this id.

    Give each link to one person only. Links are signed with the database's secret.
    """
    import time

    from mturk.service.site.links import worker_link
    from mturk.service.store.database import Database

    expires = None if days is None else time.time() + days * 86_400
    ids, site = _worker_ids(names, workers), _parse_origin(site_url)
    _check_database_exists(db)
    database = Database(db)
    try:
        secret = database.secret()
        links = {
            worker_id: worker_link(site, secret, worker_id, expires=expires) for worker_id in ids
        }
    except ValueError as error:
        raise InputError(Problem("WORKER", None, str(error))) from None
    finally:
        database.close()
    text = "\n".join(f"{worker_id}\t{link}" for worker_id, link in links.items())
    rows: list[Any] = [{"worker": worker_id, "link": link} for worker_id, link in links.items()]
    console.answer(text, {"links": rows})


def _parse_origin(url: str) -> str:
    from mturk.service.site.headers import origin_of

    origin = url.rstrip("/")
    if origin != origin_of(origin) or not re.fullmatch(r"https?://[^/\s]+", origin):
        message = f"is {url!r}; scheme, host and port without a path are allowed"
        raise InputError(Problem("--site-url", None, message))
    return origin


def _worker_ids(names: tuple[str, ...], workers: int | None) -> list[str]:
    import secrets

    if bool(names) == (workers is not None):
        message = "name workers, or say with --workers how many to make; one of the two is needed"
        raise InputError(Problem("WORKER", None, message))
    if wrong := [name for name in names if not WORKER_ID.fullmatch(name)]:
        message = f"{', '.join(wrong)}: a worker id is A and 1 to 63 capital letters or digits"
        raise InputError(Problem("WORKER", None, message))
    new_ids = [f"A{secrets.token_hex(7).upper()}" for _ in range(workers or 0)]
    return [*dict.fromkeys(names), *new_ids]
