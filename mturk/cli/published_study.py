"""What the commands on a published study share: its ledger, its service, and asking before money goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import option
from bws.command import Console

if TYPE_CHECKING:
    from mturk.study.client import Endpoint
    from mturk.study.collect import CollectionResult
    from mturk.study.ledger import Ledger

__all__ = [
    "Opened",
    "confirmed",
    "ledger_option",
    "opened",
    "type_amount",
    "workers_option",
    "yes_option",
]

ledger_option = option(
    "--ledger", "The file that remembers what was published.", default="ledger.db", metavar="FILE"
)
yes_option = option("--yes", "Do it without asking.", is_flag=True, show_default=False)
workers_option = option(
    "--worker-ids", "Whether workers appear by pseudonym or by id.  [default: as in the ledger]",
    choices="pseudonyms real", show_default=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opened:
    """A published study and its service."""

    console: Console
    book: Ledger
    where: Endpoint
    client: Any

    def collect(self) -> CollectionResult:
        """Bring the ledger up to date, and say what was new."""
        from mturk.study.collect import collect
        from mturk.study.privacy import worker_namer

        console = self.console
        found = collect(
            self.client, self.book, worker_namer(self.book),
            progress=lambda hits: console.progress(hits, "collecting", len(hits)),
        )  # fmt: skip
        if found.deleted_hits:
            console.note(
                f"{len(found.deleted_hits)} HITs were deleted at the service; "
                "what was collected before is kept"
            )
        return found


@contextmanager
def opened(console: Console, ledger: str) -> Iterator[Opened]:
    """Open a ledger and connect to the service that its study is at."""
    from mturk.study.client import connect, resolve
    from mturk.study.ledger import Ledger

    with Ledger.open(ledger) as book:
        # whoever published there insisted on it then
        where = resolve(book.study().endpoint, insist_on_production=True)
        yield Opened(console, book, where, connect(where))


def confirmed(study: Opened, what: str, cost: Decimal, *, yes: bool) -> None:
    """Let the user type the amount where money may be real; anything else ends the command."""
    imaginary = "" if study.where.amazon else " (imaginary: a service of your own moves no money)"
    said = f"{what}: ${cost} with fees{imaginary}"
    if yes or study.where.loopback or not cost:
        study.console.note(said)
        return
    click.echo(said, err=True)
    type_amount(cost, f"Type the amount to spend it at {study.where.url}", "nothing was done")


def type_amount(cost: Decimal, prompt: str, otherwise: str) -> None:
    """Let the user type an amount; UsageError, which says `otherwise`, for anything else."""
    typed = click.prompt(prompt, default="", show_default=False, err=True)
    if typed.strip().removeprefix("$") != str(cost):
        raise click.UsageError(f"{typed!r} is not {cost}; {otherwise}")
