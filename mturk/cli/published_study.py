"""Shared by commands on a published study: options, ledger, service, confirmation of costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console
from bws.base.options import UPDATED
from bws.base.problems import Problem
from bws.base.terminal import echo
from bws.cli.options import arguments, option

if TYPE_CHECKING:
    from mturk.study.client import Endpoint
    from mturk.study.collect import CollectionResult
    from mturk.study.ledger import Ledger

ledger_option = option(
    "--ledger", "Ledger of the study (SQLite).", default="ledger.db", type=UPDATED, metavar="FILE"
)
ledgers_option = option(
    "--ledger ledgers", "Also the ledger of a study; repeat the option for further ledgers.",
    multiple=True, type=UPDATED, metavar="FILE",
)  # fmt: skip
endpoint_option = option(
    "--endpoint", "New address of the service, if it has changed; it is verified and stored in the ledger.",
    metavar="URL",
)  # fmt: skip
yes_option = option("--yes", "Do not ask for confirmation.", is_flag=True, show_default=False)
workers_option = option(
    "--worker-ids", "Names of workers: pseudonyms or real ids.  [default: as in the ledger]",
    choices="pseudonyms real", show_default=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublishedStudy:
    """A published study: its ledger and its service."""

    console: Console
    ledger: Ledger
    endpoint: Endpoint
    client: Any

    def collect(self) -> CollectionResult:
        """Collect new assignments into the ledger; return what changed."""
        from mturk.study.collect import collect
        from mturk.study.privacy import worker_namer

        console = self.console
        collected = collect(
            self.client, self.ledger, worker_namer(self.ledger),
            progress=lambda hits: console.progress(hits, "collecting", len(hits)),
        )  # fmt: skip
        if collected.deleted_hits:
            console.note(
                f"{len(collected.deleted_hits)} HITs were deleted at the service; "
                "their collected assignments are kept"
            )
        return collected


@contextmanager
def open_study(console: Console, ledger: str, endpoint: str | None) -> Iterator[PublishedStudy]:
    """Open a ledger and connect to the service of its study.

    endpoint: a new address of the service, which is verified and recorded.
    """
    from mturk.study.client import connect, resolve
    from mturk.study.ledger import Ledger

    with Ledger.open(ledger) as opened_ledger:
        # production was confirmed at publishing
        service = resolve(service_address(opened_ledger), insist_on_production=True)
        if endpoint is not None:
            with arguments():
                service = resolve(endpoint)
        client = connect(service)
        record_address(console, client, opened_ledger, service)
        yield PublishedStudy(console, opened_ledger, service, client)


def service_address(ledger: Ledger) -> str:
    """Return the address of the study's service; UsageError for the ledger of a study at Prolific."""
    address = ledger.study().endpoint
    if address.startswith("prolific "):
        raise click.UsageError(
            f"{ledger.path} is the ledger of a study at Prolific; "
            "expected a command of `giccs annotate prolific`"
        )
    return address


def record_address(console: Console, client: Any, ledger: Ledger, service: Endpoint) -> None:
    """Record the address of the service if it has changed, after verifying that it is the same service."""
    from mturk.study.address import change_address

    before = service_address(ledger)
    if service.url != before:
        change_address(client, ledger, service.url)
        console.note(f"{ledger.path}: the service is at {service.url} now, not at {before}")


def confirm_cost(
    study: PublishedStudy, description: str, cost: Decimal, *, yes: bool, doubt: str = ""
) -> None:
    """Ask the user to type the amount to confirm a cost at a remote service.

    doubt: why the amount may be a mistake, for which --yes does not suffice.
    """
    if doubt:
        study.console.warn([Problem(study.ledger.path, None, doubt)])
    imaginary = "" if study.endpoint.amazon else " (simulated: no real money)"
    message = f"{description}: ${cost} including fees{imaginary}"
    if (yes and not doubt) or study.endpoint.loopback or not cost:
        study.console.note(message)
        return
    echo(message, err=True)
    type_amount(cost, f"Type the amount to spend it at {study.endpoint.url}", "nothing was done")


def type_amount(cost: Decimal, prompt: str, otherwise: str) -> None:
    """Ask the user to type an amount; raise UsageError, ending in `otherwise`, if it differs."""
    typed = click.prompt(prompt, default="", show_default=False, err=True)
    if typed.strip().removeprefix("$") != str(cost):
        raise click.UsageError(f"{typed!r} is not {cost}; {otherwise}")
