"""Damaged or read-only files: the ledger, and the service's database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DatabaseError

from bws.base.problems import InputError
from robustness.chaos.cases import Case, PromiseBrokenError
from robustness.chaos.faults import needs_mounts, read_only, truncations, with_flipped_bits
from robustness.chaos.processes import (
    CommandResult,
    check_failed_with_message,
    run_command,
    run_in_process,
)
from robustness.chaos.requester import prepare_study, publish_and_answer, run_successfully
from robustness.chaos.service import serving

HEADER, PAGE, PAGE_HEADER = 100, 4096, 12
"""Sizes in bytes of the header of a SQLite file, of its pages, and of a page header."""


def damaged_copies(content: bytes) -> list[bytes]:
    """Return copies of a SQLite file, truncated or with bits flipped in the headers and elsewhere."""
    pages = range(PAGE, len(content), max(PAGE, len(content) // PAGE // 40 * PAGE))
    return [
        *(head + content[HEADER:] for head in with_flipped_bits(content[:HEADER], 40)),
        *(
            content[:at]
            + with_flipped_bits(content[at : at + PAGE_HEADER], number + 1)[-1]
            + content[at + PAGE_HEADER :]
            for number, at in enumerate(pages)
        ),
        *with_flipped_bits(content, 60),
        *truncations(content, 20),
    ]


def read_only_ledger(folder: Path) -> str:
    """Run commands on a ledger in a read-only folder."""
    with serving(folder / "hits.db", folder) as service:
        (folder / "ledger").mkdir()
        study = publish_and_answer(
            prepare_study(folder / "study", service.url, 10, ledger=folder / "ledger" / "ledger.db")
        )
        before = {path.name: path.read_bytes() for path in study.ledger.parent.iterdir()}
        commands = [study.publish(), study.collect(), study.collect("offline.csv", "--offline")]
        with read_only(study.ledger.parent):
            for words in commands:
                check_failed_with_message(run_command(study.folder, *words), str(study.ledger))
        if before != {path.name: path.read_bytes() for path in study.ledger.parent.iterdir()}:
            raise PromiseBrokenError("the folder has changed")
    return f"{len(commands)} commands failed with a message and exit code 1, nothing was changed"


def damage_ledger(folder: Path) -> str:
    """Damage a ledger at many positions, and collect from it."""
    with serving(folder / "hits.db", folder) as service:
        study = publish_and_answer(prepare_study(folder / "study", service.url, 20))
        run_successfully(study, study.collect())
    expected = (study.folder / "judgments.csv").read_bytes()
    tally: Counter[str] = Counter()
    for content in damaged_copies(study.ledger.read_bytes()):
        (study.folder / "damaged.db").write_bytes(content)
        (output := study.folder / "out.csv").unlink(missing_ok=True)
        done = run_in_process(study.folder, "giccs", "annotate", "collect", "--offline", "--ledger",
                      study.folder / "damaged.db", "-o", output)  # fmt: skip
        tally[_check_judgments(done, output, expected)] += 1
    return ", ".join(f"{count} times {result}" for result, count in sorted(tally.items()))


def _check_judgments(done: CommandResult, output: Path, expected: bytes) -> str:
    if done.code == 2 and "damaged.db" in done.err and not output.exists():
        return "refused with a message"
    if done.code:
        raise PromiseBrokenError(f"exit code {done.code}: {done.err.strip()[-300:]}")
    judgments_bytes = output.read_bytes()
    if judgments_bytes == expected:
        return "all judgments correct"
    lines, n_expected = judgments_bytes.count(b"\n"), expected.count(b"\n")
    if "excluded: " in done.err:
        return "a judgment excluded with a note"
    if lines >= n_expected:
        return "all judgments, with a changed letter"
    raise PromiseBrokenError(f"{lines} lines instead of {n_expected}: {done.err[-300:]}")


def damage_database(folder: Path) -> str:
    """Damage the service's database at many positions, and read all assignments."""
    with serving(folder / "hits.db", folder) as service:
        publish_and_answer(prepare_study(folder / "study", service.url, 20))
    tally: Counter[str] = Counter()
    expected = _assignments(folder / "hits.db")
    for content in damaged_copies((folder / "hits.db").read_bytes()):
        for old in folder.glob("damaged.db*"):
            old.unlink()
        (folder / "damaged.db").write_bytes(content)
        if content:  # a file of no bytes is a new database
            tally[_check_assignments(folder / "damaged.db", expected)] += 1
    return ", ".join(f"{count} times {result}" for result, count in sorted(tally.items()))


def _check_assignments(path: Path, expected: dict[str, Any]) -> str:
    try:
        read = _assignments(path)
    except InputError as error:
        if path.name not in str(error):
            raise PromiseBrokenError(f"the refusal does not name the file: {error}") from None
        return "refused with a message"
    except DatabaseError:  # the service returns an error response
        return "an error at the first query"
    if read == expected:
        return "all answers correct"
    if read.keys() != expected.keys():
        raise PromiseBrokenError(
            f"{len(read.keys() & expected.keys())} of {len(expected)} assignments exist"
        )
    return "all answers, with a changed letter"


def _assignments(path: Path) -> dict[str, Any]:
    """Return all assignments as returned by the API."""
    from mturk.service.api.protocol import Api
    from mturk.service.clock import SystemClock
    from mturk.service.store.database import Database

    database = Database(path)
    try:
        api = Api(database, SystemClock(), {})
        hits = api.call("ListHITs", {"MaxResults": 100})["HITs"]
        return {
            assignment["AssignmentId"]: assignment["Answer"]
            for hit in hits
            for assignment in api.call("ListAssignmentsForHIT", {"HITId": hit["HITId"]})[
                "Assignments"
            ]
        }
    finally:
        database.close()


def read_only_database(folder: Path) -> str:
    """Serve a database in a read-only folder."""
    (data_folder := folder / "place").mkdir()
    with serving(data_folder / "hits.db", folder):
        pass
    before = {path.name: path.read_bytes() for path in data_folder.iterdir()}
    with read_only(data_folder):
        done = run_command(
            folder, "giccs", "annotate", "serve", "--port", "0", "--db", data_folder / "hits.db"
        )
        if done.code not in (1, 2) or str(data_folder / "hits.db") not in done.err:
            raise PromiseBrokenError(f"exit code {done.code}: {done.err.strip()[-300:]}")
    if before != {path.name: path.read_bytes() for path in data_folder.iterdir()}:
        raise PromiseBrokenError("the folder has changed")
    return f"serve ended with exit code {done.code} and a message, nothing was changed"


CASES = (
    Case("read-only folder", "folder of the ledger, in giccs annotate publish and collect",
         "A message and exit code 1; nothing is changed", read_only_ledger, needs_mounts),
    Case("damaged file", "the ledger: flipped bytes, truncation",
         "Refused with a message that names the file, or no judgment is lost silently. "
         "SQLite has no checksums: a changed letter in an answer is not detected", damage_ledger),
    Case("read-only folder", "folder of the database, at the start of giccs annotate serve",
         "A message that names the file; nothing is changed", read_only_database, needs_mounts),
    Case("damaged file", "the SQLite database of giccs annotate serve: flipped bytes, truncation",
         "Refused with a message that names the file, or an error, or no answer is missing. SQLite has "
         "no checksums: a changed letter in an answer is not detected; an empty file is a new database",
         damage_database),
)  # fmt: skip
