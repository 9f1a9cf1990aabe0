"""Pseudonyms of workers, the key that leads back to their ids, and deletion of data on a worker."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

from bws.problems import InputError, Problem
from mturk.study.ledger import Ledger

__all__ = [
    "Namer",
    "destroy_key",
    "find_assignments",
    "key_path",
    "pseudonym",
    "pseudonym_namer",
    "purge_workers",
    "worker_namer",
]

KEY_BYTES = 32
DIGITS = 16
CHECK = "key check"
Namer = Callable[[str], str]
"""From a worker's id at the service to the name that is written down."""


def pseudonym(key: bytes, worker_id: str) -> str:
    """Return the pseudonym of a worker: 64 bits of HMAC-SHA256.

    >>> pseudonym(bytes(32), "A1")
    'w-ba82317d276eb88c'
    """
    return f"w-{hmac.digest(key, worker_id.encode(), 'sha256').hex()[:DIGITS]}"


def key_path(ledger: Ledger) -> Path:
    """Return where a ledger's key lies."""
    return Path(f"{ledger.path}.key")


def worker_namer(ledger: Ledger) -> Namer:
    """Return what names workers as the study's settings have it; see `pseudonym_namer`."""
    return pseudonym_namer(ledger) if ledger.study().settings.pseudonyms else str


def pseudonym_namer(ledger: Ledger) -> Namer:
    """Return what gives workers pseudonyms; a key is made where there is none yet.

    Raises InputError where the key is gone, is another one, or can be read by other people: with it the
    pseudonyms can be led back to ids.
    """
    key = _load_key(ledger)
    return lambda worker_id: pseudonym(key, worker_id)


def destroy_key(ledger: Ledger) -> bool:
    """Delete the key, for good; tell whether there was one."""
    path = key_path(ledger)
    if not path.exists():
        return False
    with path.open("r+b") as file:  # on file systems that write in place nothing of it is left
        file.write(bytes(path.stat().st_size))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    return True


def _load_key(ledger: Ledger) -> bytes:
    path, known_check = key_path(ledger), ledger.get_note(CHECK)
    if not path.exists():
        if known_check:
            message = "is gone, so workers cannot be named as before; put it back from a backup"
            raise _input_error(
                path, f"{message} (where purge --key deleted it, collecting has ended)"
            )
        _create_key_file(path)
    key = _read_key_file(path)
    check = pseudonym(key, "")
    if known_check and check != known_check:
        raise _input_error(path, f"is not the key of {ledger.path}; put the right one back")
    if not known_check:
        ledger.set_note(CHECK, check)
    return key


def _create_key_file(path: Path) -> None:
    """Make the file whole or not at all; of two processes that make it one wins."""
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
        error.filename = str(path)  # not the temporary name, and never without a name
        raise
    finally:
        temporary.unlink()


def _read_key_file(path: Path) -> bytes:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise _input_error(path, "can be read by others; allow it to its owner alone: chmod 600")
    try:
        key = bytes.fromhex(path.read_text("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise _input_error(path, f"is no key; {2 * KEY_BYTES} hexadecimal digits are expected")
    return key


def _input_error(path: Path, message: str) -> InputError:
    return InputError(Problem(str(path), None, message))


def find_assignments(ledger: Ledger, workers: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of each worker's assignments; a worker is named by pseudonym or by worker id.

    Raises InputError with every worker of whom the ledger has nothing.
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
            f"has no assignment in {ledger.path}; a worker's id or pseudonym is expected",
        )
        for worker, ids in assignment_ids.items()
        if not ids
    ]
    if problems:
        raise InputError(problems)
    return assignment_ids


def purge_workers(ledger: Ledger, workers: Iterable[str]) -> int:
    """Delete all assignments of workers for good, and what was written to them; return how many.

    They are not collected again, although the service has them still.
    """
    assignment_ids = find_assignments(ledger, workers)
    return ledger.delete_assignments([its_id for ids in assignment_ids.values() for its_id in ids])
