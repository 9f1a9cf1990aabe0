"""giccs annotate serve, migrate, invite: the annotation service, its database and personal links."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, UPDATED, Choice
from bws.base.problems import InputError, Problem
from bws.base.terminal import echo
from bws.cli.options import arguments, option

if TYPE_CHECKING:
    from mturk.service.server import Addresses
    from mturk.service.site.studies import PanelStudy
    from mturk.service.store.database import Database

SECONDS_PER_DAY = 86_400
RESUME_NOTE = (
    "all HITs and assignments are stored in the database; run the same command to continue"
)
database_option = option("--db", "SQLite file or database URL.", default="hits.db", type=UPDATED)


def _origins(urls: Sequence[str]) -> list[str]:
    from mturk.question_xml import normalise_url
    from mturk.service.site.headers import origin_of

    try:
        return [origin_of(normalise_url(url)) for url in urls]
    except ValueError as error:
        raise click.UsageError(f"--images-from: {error}; expected an https address") from None


@command(
    "giccs annotate serve",
    example="""
    giccs annotate serve
    giccs annotate serve --log json --metrics 127.0.0.1:9464
    giccs annotate serve --host 0.0.0.0 --keys keys.toml --site-url https://work.example.org \\
        --frame-url https://questions.example.org --trust-proxy 127.0.0.1
    """,
    logs_itself=True,
    interrupt_message=RESUME_NOTE,
)
@option(
    "--host",
    "Address to listen on; other machines require --keys, 0.0.0.0 also --site-url.",
    default="127.0.0.1",
)
@option("--port", "Port of API and worker site; 0: a free port.", type=click.IntRange(0, 65535),
        default=8765)  # fmt: skip
@option("--frame-port", "Port of the question frames.  [default: the next port]",
        type=click.IntRange(0, 65535))  # fmt: skip
@database_option
@option(
    "--keys", 'TOML file of access_key = "secret" lines, or tables with secret and role; or set GICCS_KEYS.',
    type=INPUT, metavar="FILE",
)  # fmt: skip
@option("--site-url", "Public URL of the service behind a proxy.", metavar="URL")
@option("--frame-url", "Public URL of the frames; another host or port.", metavar="URL")
@option(
    "--trust-proxy", "Proxies with trusted X-Forwarded headers.", metavar="ADDRESSES", default=""
)
@option("--studies", "TOML file of studies with recruiting links.", type=INPUT, metavar="FILE")
@option("--grace-seconds", "Seconds after the deadline in which a task can still be submitted.",
        type=click.IntRange(0, 3600), default=60, metavar="N")  # fmt: skip
@option("--retention-days", "Erase workers outside studies after these days without activity.",
        type=click.IntRange(1, 36_500), metavar="N")  # fmt: skip
@option(
    "--balance",
    "Initial simulated balance of a new database, in USD.",
    default="10000.00",
    metavar="AMOUNT",
)
@option("--allow-external", "Allow questions to load external scripts.", is_flag=True)
@option("--images-from image_origins", "Allow questions to load images of a site. Can be repeated.",
        metavar="URL", multiple=True, show_default=False)  # fmt: skip
@option("--log", "Log format: text, or one JSON object per line.", type=Choice(["text", "json"]),
        default="text")  # fmt: skip
@option("--metrics", "Address of Prometheus metrics; port 0: a free port.", metavar="HOST:PORT")
def serve(
    console: Console, host: str, port: int, frame_port: int | None, db: str, keys: str | None,
    site_url: str | None, frame_url: str | None, trust_proxy: str, studies: str | None,
    grace_seconds: int, retention_days: int | None, balance: str, allow_external: bool,
    image_origins: tuple[str, ...], log: str, metrics: str | None,
) -> None:  # fmt: skip
    """Run the annotation service: a requester API like Mechanical Turk's, and a site for workers.

    AWS clients use it by --endpoint-url. Without keys, any credentials are accepted, from this machine only.
    When the service is ready, it prints one line with its addresses; Ctrl-C stops it.
    """
    from mturk.service.api.authentication import read_keys
    from mturk.service.clock import SystemClock
    from mturk.service.server import ServerOptions, limit_malloc_arenas, serve
    from mturk.service.site.links import study_link
    from mturk.service.store.database import Database

    _configure_logging(console, log)
    limit_malloc_arenas()
    panel_studies = _read_studies(studies)
    _check_catalogues()
    access_keys = read_keys(keys, os.environ)
    options = ServerOptions(
        host=host, port=port, frame_port=frame_port, site_url=site_url, frame_url=frame_url,
        keys=access_keys.secrets, analysts=access_keys.analysts, studies=panel_studies,
        grace_seconds=grace_seconds, retention_days=retention_days, allow_external=allow_external,
        image_origins=_origins(image_origins),
        trust_proxy=trust_proxy, metrics=None if metrics is None else _parse_address(metrics),
    )  # fmt: skip
    database = Database(db, balance=_parse_cents(balance))

    name = click.get_current_context().command_path

    def ready(addresses: Addresses, _: object) -> None:
        secret = database.secret()
        now = SystemClock().now()
        links = {
            study.name: study_link(
                addresses.site, secret, study.name, expires=now + study.link_days * SECONDS_PER_DAY
            )
            for study in panel_studies
        }
        _print_addresses(console, name, addresses, links)

    try:
        with arguments():
            serve(database, SystemClock(), options, ready)
        logging.getLogger("mturk.server").info("stopped: %s", RESUME_NOTE)
    finally:
        database.close()


def _print_addresses(
    console: Console, command: str, addresses: Addresses, links: Mapping[str, str]
) -> None:
    """Print the line that signals readiness; without --json, the recruiting links follow it.

    command: the name by which the command was called.
    """
    if console.as_json:
        document = {"api": addresses.api, "site": addresses.work, "frames": addresses.frames}
        echo(json.dumps(document | {"metrics": addresses.metrics, "studies": dict(links)}))
        return
    metrics_text = f"  metrics {addresses.metrics}" if addresses.metrics else ""
    echo(f"{command}: requester API {addresses.api}  worker site {addresses.work}{metrics_text}")
    for name, link in links.items():
        echo(f"recruiting link of {name}: {link}")


def _configure_logging(console: Console, form: str) -> None:
    from mturk.service.monitoring.logs import configure

    level = logging.DEBUG if console.verbose else logging.INFO
    configure(form, logging.WARNING if console.quiet else level)
    if console.verbose:
        from bws.base.verbosity import begin

        begin()


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host.strip("[]") and re.fullmatch("[0-9]{1,5}", port) and int(port) < 65_536:
        return host, int(port)
    message = f"is {text!r}; expected a host and a port such as 127.0.0.1:9464"
    raise InputError(Problem("--metrics", None, message))


def _parse_cents(text: str) -> int:
    try:
        amount = Decimal(text)
        if amount.is_finite() and 0 <= amount <= 10**12:
            return int(amount * 100)
    except InvalidOperation:
        pass
    message = f"is {text!r}; expected US dollars such as 10000.00"
    raise InputError(Problem("--balance", None, message))


def _read_studies(path: str | None) -> list[PanelStudy]:
    if path is None:
        return []
    from mturk.service.site.studies import read_studies

    return read_studies(path)


def _check_catalogues() -> None:
    """Log what is missing in the languages of the site; InputError for faults in those of a study."""
    from mturk.catalogues import read_catalogue
    from mturk.catalogues.source import catalogue_problems, missing_notes, unreviewed_languages
    from mturk.service.site.texts import folders, languages

    own = [read_catalogue(path) for folder in folders() for path in sorted(folder.glob("*.po"))]
    if problems := [one for catalogue in own for one in catalogue_problems(catalogue)]:
        raise InputError(problems)
    log = logging.getLogger("mturk.server")
    if unreviewed := unreviewed_languages([*languages()], folders()):
        log.info("nobody has reviewed the translations in %s", ", ".join(unreviewed))
    for note in missing_notes([*languages()], folders()):
        log.warning("%s", note)


@command(
    "giccs annotate migrate",
    example="""
    giccs annotate migrate --db hits.db
    giccs annotate migrate --db postgresql+psycopg://giccs@/giccs
    """,
)
@database_option
def migrate(console: Console, db: str) -> None:
    """Migrate a database to the current schema version.

    Stop the service and make a backup first. The migration is atomic.
    """
    from mturk.service.store.database import Database
    from mturk.service.store.schema import VERSIONS

    _check_database_exists(db)
    database = Database(db, migrate=True)
    database.close()
    old, new = database.previous_version, VERSIONS[-1]
    messages = {None: f"was empty and now has version {new}", new: f"already has version {new}"}
    text = messages.get(old, f"was migrated from version {old} to {new}")
    console.answer(f"the database {text}", {"from": old, "to": new})


@contextmanager
def open_database(db: str) -> Iterator[Database]:
    """Open the database of a service; raise InputError if its file does not exist."""
    from mturk.service.store.database import Database

    _check_database_exists(db)
    database = Database(db)
    try:
        yield database
    finally:
        database.close()


def _check_database_exists(db: str) -> None:
    if "://" not in db and not os.path.exists(db):
        raise InputError(
            Problem(db, None, "no such file; start `giccs annotate serve` first, or set --db")
        )


def note_remaining_log(console: Console, database: Database) -> None:
    """Note that deleted data remain in the write-ahead log of a database that others are reading."""
    if not database.truncate_log():
        path = database.url.database
        console.note(
            f"{path}: the data are deleted, but remain in {path}-wal, which another process is reading, "
            "until the next hourly cleanup of the service or its end"
        )


@command(
    "giccs annotate invite",
    example="""
    giccs annotate invite --workers 20 > links.txt
    giccs annotate invite AANNA ABEN --site-url https://work.example.org
    """,
)
@click.argument("names", nargs=-1, metavar="[WORKER]...")
@option(
    "--workers",
    "Create this number of workers instead of naming them.",
    type=click.IntRange(1, 10000),
)
@database_option
@option(
    "--site-url", "Public URL of the worker site.", default="http://127.0.0.1:8765", metavar="URL"
)
@option("--days", "Days until the links expire.", type=click.IntRange(1, 3650), default=90)
def invite(
    console: Console, names: tuple[str, ...], workers: int | None, db: str, site_url: str,
    days: int,
) -> None:  # fmt: skip
    """Print a personal link per worker.

    Anybody with a link can work under its id: give each link to one person only. Links are signed with the
    database's secret.
    """
    import time

    from mturk.service.site.links import worker_link

    expires = time.time() + days * SECONDS_PER_DAY
    ids, site = _worker_ids(names, workers), _parse_origin(site_url)
    with open_database(db) as database:
        secret = database.secret()
    try:
        links = {
            worker_id: worker_link(site, secret, worker_id, expires=expires) for worker_id in ids
        }
    except ValueError as error:
        raise InputError(Problem("WORKER", None, str(error))) from None
    text = "\n".join(f"{worker_id}\t{link}" for worker_id, link in links.items())
    rows: list[Any] = [{"worker": worker_id, "link": link} for worker_id, link in links.items()]
    console.answer(text, {"links": rows})


def _parse_origin(url: str) -> str:
    from mturk.service.site.headers import origin_of

    origin = url.rstrip("/")
    if origin != origin_of(origin) or not re.fullmatch(r"https?://[^/\s]+", origin):
        message = f"is {url!r}; expected scheme, host and port without a path"
        raise InputError(Problem("--site-url", None, message))
    return origin


def _worker_ids(names: tuple[str, ...], workers: int | None) -> list[str]:
    import secrets

    from mturk.limits import WORKER_ID

    if bool(names) == (workers is not None):
        message = "exactly one of WORKER names and --workers is required"
        raise InputError(Problem("WORKER", None, message))
    if wrong := [name for name in names if not WORKER_ID.fullmatch(name)]:
        message = (
            f"{', '.join(wrong)}: a worker id must be a letter A-Z or a-z followed by up to 63 letters, "
            "digits, '_', '.' or '-'"
        )
        raise InputError(Problem("WORKER", None, message))
    spelling = {name.lower(): name for name in reversed(names)}
    if other := [name for name in names if spelling[name.lower()] != name]:
        message = f"{other[0]} and {spelling[other[0].lower()]} differ only in case; expected distinct ids"
        raise InputError(Problem("WORKER", None, message))
    new_ids = [f"A{secrets.token_hex(7).upper()}" for _ in range(workers or 0)]
    return [*dict.fromkeys(names), *new_ids]
