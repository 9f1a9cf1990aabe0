"""Pseudonyms of workers, their key, and deletion of a worker's data."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

from bws.base.problems import InputError, Problem
from mturk.pseudonyms import pseudonym
from mturk.study.ledger import Ledger

KEY_BYTES = 32
CHECK = "key check"
Namer = Callable[[str], str]
"""Maps a worker id at the service to the stored name."""


def key_path(ledger: Ledger) -> Path:
    """Return the path of a ledger's key."""
    return Path(f"{ledger.path}.key")


def worker_namer(ledger: Ledger) -> Namer:
    """Return the namer of workers according to the study's settings; see `pseudonym_namer`."""
    return pseudonym_namer(ledger) if ledger.study().settings.pseudonyms else str


def pseudonym_namer(ledger: Ledger) -> Namer:
    """Return a function that maps worker ids to pseudonyms; a key is created if needed.

    Raises InputError if the key is missing, wrong, or readable by other users: whoever has the key and worker
    ids can compute the pseudonyms.
    """
    key = _load_key(ledger)
    return lambda worker_id: pseudonym(key, worker_id)


def destroy_key(ledger: Ledger, *, actor: str, now: float) -> bool:
    """Delete the key irreversibly; return whether it existed."""
    path = key_path(ledger)
    if not path.exists():
        return False
    with ledger.transaction():
        ledger.record_audit(actor, "purge key", now)
    with path.open("r+b") as file:  # overwrite, which suffices on file systems that write in place
        file.write(bytes(path.stat().st_size))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    return True


def _load_key(ledger: Ledger) -> bytes:
    path, known_check = key_path(ledger), ledger.get_note(CHECK)
    if not path.exists():
        if known_check:
            message = (
                "the key is missing, so pseudonyms cannot be computed; restore it from a backup"
            )
            raise _input_error(
                path, f"{message} (if purge --key deleted it, no more data can be collected)"
            )
        _create_key_file(path)
    key = _read_key_file(path)
    check = pseudonym(key, "")
    if known_check and check != known_check:
        raise _input_error(path, f"is not the key of {ledger.path}; restore the right one")
    if not known_check:
        ledger.set_note(CHECK, check)
    return key


def _create_key_file(path: Path) -> None:
    """Create the file atomically; if two processes create it, the first one wins."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{secrets.token_hex(KEY_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError as error:
        error.filename = str(path)  # not the temporary file
        raise
    finally:
        temporary.unlink()


def _read_key_file(path: Path) -> bytes:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise _input_error(path, "is readable by other users; expected mode 600 (chmod 600)")
    try:
        key = bytes.fromhex(path.read_text("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise _input_error(path, f"is not a key; expected {2 * KEY_BYTES} hexadecimal digits")
    return key


def _input_error(path: Path, message: str) -> InputError:
    return InputError(Problem(str(path), None, message))


def find_assignments(ledger: Ledger, workers: Iterable[str]) -> dict[str, list[str]]:
    """Return worker -> assignment ids; workers are given by pseudonym or worker id.

    Raises InputError with all workers without assignments in the ledger.
    """
    ids_by_worker: dict[str, list[str]] = {}
    for assignment in ledger.assignments():
        ids_by_worker.setdefault(assignment.worker, []).append(assignment.assignment_id)
    name = worker_namer(ledger) if key_path(ledger).exists() else str
    assignment_ids = {
        worker: ids_by_worker.get(worker) or ids_by_worker.get(name(worker), [])
        for worker in workers
    }
    problems = [
        Problem(
            worker,
            None,
            f"no assignments in {ledger.path}; expected a worker id or a pseudonym",
        )
        for worker, ids in assignment_ids.items()
        if not ids
    ]
    if problems:
        raise InputError(problems)
    return assignment_ids


def purge_workers(ledger: Ledger, workers: Iterable[str], *, actor: str, now: float) -> int:
    """Delete all assignments of workers and messages to them; return the number of assignments.

    They are not collected again, although the service still has them.
    """
    assignment_ids = find_assignments(ledger, workers)
    return ledger.delete_assignments(
        [assignment_id for ids in assignment_ids.values() for assignment_id in ids],
        actor=actor, now=now,
    )  # fmt: skip
