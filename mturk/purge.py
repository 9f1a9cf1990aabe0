"""Deleting what the ledger knows of a worker, or what leads pseudonyms back to ids."""

from __future__ import annotations

from collections.abc import Iterable

from bws.problems import InputError, Problem
from mturk.ledger import Ledger
from mturk.pseudonyms import key_path, namer

__all__ = ["assignments_of", "purge_workers"]


def assignments_of(ledger: Ledger, workers: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of each worker's assignments; a worker is named by pseudonym or by worker id.

    Raises InputError with every worker of whom the ledger has nothing.
    """
    kept: dict[str, list[str]] = {}
    for one in ledger.assignments():
        kept.setdefault(one.worker, []).append(one.assignment_id)
    name = namer(ledger) if key_path(ledger).exists() else str
    found = {worker: kept.get(worker) or kept.get(name(worker), []) for worker in workers}
    problems = [
        Problem(
            worker,
            None,
            f"has no assignment in {ledger.path}; a worker's id or pseudonym is expected",
        )
        for worker, ids in found.items()
        if not ids
    ]
    if problems:
        raise InputError(problems)
    return found


def purge_workers(ledger: Ledger, workers: Iterable[str]) -> int:
    """Delete all assignments of workers for good, and what was written to them; return how many.

    They are not collected again, although the service has them still.
    """
    found = assignments_of(ledger, workers)
    return ledger.forget([its_id for ids in found.values() for its_id in ids])
