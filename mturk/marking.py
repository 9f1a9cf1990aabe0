"""Who has worked on a study: a qualification that marks them, so that another study can do without them."""

from __future__ import annotations

from typing import Any

from mturk.client import error_code, explained
from mturk.collect import worker_ids
from mturk.ledger import Ledger
from mturk.qualification import EXISTS, named

__all__ = ["mark_workers"]


def mark_workers(client: Any, ledger: Ledger) -> tuple[str, int]:
    """Return the id of a qualification type that all who submitted have, and how many they are.

    `collect` first. The same again marks those who have come since. A worker who asks for the type waits
    for the requester, as with every type without a test. Raises ServiceError.
    """
    its_id = _marker(client, ledger)
    workers = sorted(set(worker_ids(client, ledger).values()))
    for worker in workers:
        with explained():
            client.associate_qualification_with_worker(
                QualificationTypeId=its_id, WorkerId=worker, IntegerValue=1, SendNotification=False
            )
    return its_id, len(workers)


def _marker(client: Any, ledger: Ledger) -> str:
    study = ledger.study()
    name = f"Has worked on study {ledger.hits()[0].annotation.split(':')[1][:16]}"
    with explained():
        try:
            made = client.create_qualification_type(
                Name=name, Description=study.settings.title, QualificationTypeStatus="Active"
            )["QualificationType"]
        except client.exceptions.RequestError as error:
            if error_code(error).rpartition(".")[2] != EXISTS:
                raise
            made = named(client, name)
    return str(made["QualificationTypeId"])
