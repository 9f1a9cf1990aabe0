"""What a requester does about workers: blocks and messages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, insert, select

from mturk import limits
from mturk.service.api.call import Answer, Call, Parameters, check, page
from mturk.service.store.schema import block, message, worker

__all__ = [
    "create_worker_block",
    "delete_worker_block",
    "list_worker_blocks",
    "notify_workers",
    "tell",
]

REASON = limits.LengthLimit("Reason", 4_096)


def create_worker_block(call: Call, parameters: Parameters) -> Answer:
    """CreateWorkerBlock: the worker sees no work any more; the last reason stays."""
    check(REASON.problem(parameters["Reason"]))
    delete_worker_block(call, parameters)
    row = {"worker_id": parameters["WorkerId"], "reason": parameters["Reason"]}
    call.connection.execute(insert(block).values(**row))
    return {}


def delete_worker_block(call: Call, parameters: Parameters) -> Answer:
    """DeleteWorkerBlock: where there is none nothing happens."""
    call.connection.execute(delete(block).where(block.c.worker_id == parameters["WorkerId"]))
    return {}


def list_worker_blocks(call: Call, parameters: Parameters) -> Answer:
    """ListWorkerBlocks."""
    return page(call, parameters, select(block), block.c.number, "WorkerBlocks", _block)


def _block(row: Row[Any]) -> Answer:
    return {"WorkerId": row.worker_id, "Reason": row.reason}


def notify_workers(call: Call, parameters: Parameters) -> Answer:
    """NotifyWorkers: shown on the worker site; unknown workers come back as failures."""
    ids = list(dict.fromkeys(parameters["WorkerIds"]))
    check(
        limits.MESSAGE_SUBJECT.problem(parameters["Subject"]),
        limits.MESSAGE_TEXT.problem(parameters["MessageText"]),
        limits.MESSAGE_WORKERS.problem(len(parameters["WorkerIds"])),
    )
    known = set(
        call.connection.scalars(select(worker.c.worker_id).where(worker.c.worker_id.in_(ids)))
    )
    for one in filter(known.__contains__, ids):
        tell(call, one, parameters["Subject"], parameters["MessageText"])
    return {"NotifyWorkersFailureStatuses": [_failure(one) for one in ids if one not in known]}


def tell(call: Call, worker_id: str, subject: str, text: str) -> None:
    """Leave a worker a message; it is shown on the worker site."""
    row = {"worker_id": worker_id, "subject": subject, "text": text, "at": call.now}
    call.connection.execute(insert(message).values(**row))


def _failure(worker_id: str) -> Answer:
    return {
        "NotifyWorkersFailureCode": "HardFailure",
        "NotifyWorkersFailureMessage": f"Worker {worker_id} does not exist.",
        "WorkerId": worker_id,
    }
