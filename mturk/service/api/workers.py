"""API operations on workers: blocks and messages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, insert, select

from mturk import limits
from mturk.service.api.call import Answer, Call, Parameters, check, page
from mturk.service.store.schema import block, message, worker

BLOCK_REASON = limits.LengthLimit("Reason", 4_096)


def create_worker_block(call: Call, parameters: Parameters) -> Answer:
    """CreateWorkerBlock: block a worker from all work; the latest reason is kept."""
    check(BLOCK_REASON.problem(parameters["Reason"]))
    delete_worker_block(call, parameters)
    row = {"worker_id": parameters["WorkerId"], "reason": parameters["Reason"]}
    call.connection.execute(insert(block).values(**row))
    return {}


def delete_worker_block(call: Call, parameters: Parameters) -> Answer:
    """DeleteWorkerBlock: remove a worker's block, if there is one."""
    call.connection.execute(delete(block).where(block.c.worker_id == parameters["WorkerId"]))
    return {}


def list_worker_blocks(call: Call, parameters: Parameters) -> Answer:
    """ListWorkerBlocks: list blocked workers."""
    return page(call, parameters, select(block), block.c.number, "WorkerBlocks", _block_document)


def _block_document(row: Row[Any]) -> Answer:
    return {"WorkerId": row.worker_id, "Reason": row.reason}


def notify_workers(call: Call, parameters: Parameters) -> Answer:
    """NotifyWorkers: send a message, shown on the worker site; unknown workers are returned as failures."""
    ids = list(dict.fromkeys(parameters["WorkerIds"]))
    check(
        limits.MESSAGE_SUBJECT.problem(parameters["Subject"]),
        limits.MESSAGE_TEXT.problem(parameters["MessageText"]),
        limits.MESSAGE_WORKERS.problem(len(parameters["WorkerIds"])),
    )
    existing_ids = set(
        call.connection.scalars(select(worker.c.worker_id).where(worker.c.worker_id.in_(ids)))
    )
    for worker_id in filter(existing_ids.__contains__, ids):
        send_message(call, worker_id, parameters["Subject"], parameters["MessageText"])
    return {
        "NotifyWorkersFailureStatuses": [
            _failure_document(worker_id) for worker_id in ids if worker_id not in existing_ids
        ]
    }


def send_message(call: Call, worker_id: str, subject: str, text: str) -> None:
    """Store a message to a worker, shown on the worker site."""
    row = {"worker_id": worker_id, "subject": subject, "text": text, "at": call.now}
    call.connection.execute(insert(message).values(**row))


def _failure_document(worker_id: str) -> Answer:
    return {
        "NotifyWorkersFailureCode": "HardFailure",
        "NotifyWorkersFailureMessage": f"Worker {worker_id} does not exist.",
        "WorkerId": worker_id,
    }
