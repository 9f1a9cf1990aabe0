"""Faults of the requester's commands: each HIT and bonus is created once, each answer is kept."""

from __future__ import annotations

import csv
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from mturk.study.client import connect, resolve
from mturk.study.ledger import Ledger
from robustness.chaos.cases import Case, PromiseBrokenError
from robustness.chaos.faults import cutting_relay, fill, needs_mounts, small_disk
from robustness.chaos.processes import (
    CommandResult,
    check_failed_with_message,
    kill_after_start,
    launch,
    run_command,
)
from robustness.chaos.service import DATA, Crowd, serving

REWARD, FEE = Decimal("0.30"), Decimal("1.2")


@dataclass(frozen=True)
class StudyCommands:
    """A study in a folder, and the command lines on it."""

    folder: Path
    url: str
    ledger: Path

    def publish(self) -> list[object]:
        """Return the command line of `giccs annotate publish`."""
        return [
            "giccs", "annotate", "publish", self.folder / "tuples.csv", "--dialogues",
            DATA / "dialogues.jsonl", "--config", self.folder / "hits.toml", "--endpoint", self.url,
            "--ledger", self.ledger, "--json",
        ]  # fmt: skip

    def collect(self, output: str = "judgments.csv", *more: str) -> list[object]:
        """Return the command line of `giccs annotate collect`."""
        return [
            "giccs",
            "annotate",
            "collect",
            "-o",
            self.folder / output,
            "--ledger",
            self.ledger,
            *more,
        ]

    def bonus(self) -> list[object]:
        """Return the command line of `giccs annotate bonus`."""
        return [
            "giccs",
            "annotate",
            "bonus",
            self.folder / "bonuses.csv",
            "--ledger",
            self.ledger,
            "--yes",
        ]

    def count(self, table: str, condition: str = "1") -> int:
        """Return the number of rows of a ledger table; 0 if there is no ledger yet."""
        try:
            with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as connection:
                query = f"SELECT COUNT(*) FROM {table} WHERE {condition}"
                return int(connection.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # no file or no tables yet
            return 0

    def created(self) -> int:
        """Return the number of HITs recorded as created."""
        return self.count("hit", "hit_id IS NOT NULL")


def prepare_study(
    folder: Path, url: str, hits: int, *, ledger: Path | None = None, seed: int = 0
) -> StudyCommands:
    """Write the files of a study with `hits` HITs of two tuples each."""
    folder.mkdir(exist_ok=True)
    lines = (DATA / "tuples.csv").read_text("utf-8").splitlines(keepends=True)
    (folder / "tuples.csv").write_text("".join(lines[: 1 + 2 * hits]), "utf-8")
    settings = f"seed = {seed}\nassignments = 3\nreward = '{REWARD}'\napproval_rate_above = -1\n"
    (folder / "hits.toml").write_text(settings)
    return StudyCommands(folder, url, ledger or folder / "ledger.db")


def run_successfully(study: StudyCommands, words: list[object]) -> None:
    """Run a command that must succeed."""
    done = run_command(study.folder, *words)
    if done.code:
        raise PromiseBrokenError(f"{words[1]} ended with {done.code}: {done.err.strip()[-300:]}")


def publish_and_answer(study: StudyCommands) -> StudyCommands:
    """Publish a study and let workers complete it."""
    run_successfully(study, study.publish())
    with Crowd(study.url, workers=3):
        pass
    return study


def check_hits_once(study: StudyCommands, hits: int) -> str:
    """Check that each planned HIT exists once, as recorded in the ledger, and is on hold once."""
    with Ledger.open(study.ledger) as book:
        known_ids = {hit.annotation: hit.hit_id for hit in book.hits()}
    counts: Counter[str] = Counter()
    client = connect(resolve(study.url))
    for page in client.get_paginator("list_hits").paginate():
        for listed_hit in page["HITs"]:
            annotation = listed_hit["RequesterAnnotation"]
            counts[annotation] += annotation in known_ids
            if known_ids.get(annotation, listed_hit["HITId"]) != listed_hit["HITId"]:
                raise PromiseBrokenError(
                    f"the ledger has {known_ids[annotation]} for {annotation}, not {listed_hit['HITId']}"
                )
    several = [annotation for annotation, count in counts.items() if count > 1]
    if several or (+counts).total() != hits or len(known_ids) != hits:
        raise PromiseBrokenError(
            f"{(+counts).total()} of {hits} HITs exist, {len(several)} of them twice or more"
        )
    on_hold = Decimal(client.get_account_balance()["OnHoldBalance"])
    if on_hold != (cost := REWARD * FEE * 3 * len(counts)):
        raise PromiseBrokenError(f"${on_hold} are on hold; {len(counts)} HITs cost ${cost}")
    return f"{hits} of {hits} HITs exist, none twice, ${on_hold} on hold as expected"


def run_with_kills(
    study: StudyCommands, words: list[object], far: Callable[[], int], step: int
) -> int:  # fmt: skip
    """Run a command to completion with kills after up to `step` further items; return the number of kills."""
    chance = random.Random(10)
    kills = 0
    while True:
        mark = far() + chance.randint(1, step)
        process = launch(study.folder, *words)

        def far_enough() -> bool:
            time.sleep(0.001)
            return far() >= mark  # noqa: B023

        if not kill_after_start(process, far_enough, chance.uniform(0, 0.02)):
            break
        kills += 1
    if process.returncode:
        raise PromiseBrokenError(f"{words[1]} ended with {process.returncode} after {kills} kills")
    return kills


def kill_publish(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = prepare_study(folder / "study", service.url, 60)
        kills = run_with_kills(study, study.publish(), study.created, 10)
        return f"killed {kills} times; {check_hits_once(study, 60)}"


def kill_collect(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = publish_and_answer(prepare_study(folder / "study", service.url, 60))
        kills = run_with_kills(study, study.collect(), lambda: study.count("assignment"), 40)
        return f"killed {kills} times; {check_all_collected(study, 60)}"


def check_all_collected(study: StudyCommands, hits: int, output: str = "judgments.csv") -> str:
    """Check that ledger and file contain every answer once."""
    n_collected = study.count("assignment")
    with (study.folder / output).open(encoding="utf-8", newline="") as file:
        rows = Counter((row["assignment_id"], row["tuple_id"]) for row in csv.DictReader(file))
    if n_collected != 3 * hits or len(rows) != 6 * hits or rows.total() != len(rows):
        raise PromiseBrokenError(
            f"{n_collected} of {3 * hits} assignments are in the ledger, {len(rows)} of {6 * hits} judgments "
            f"in the file, {rows.total() - len(rows)} of them again"
        )
    return f"{n_collected} of {n_collected} assignments and {len(rows)} of {len(rows)} judgments, each once"


def run_concurrently(study: StudyCommands, *commands: list[object]) -> list[CommandResult]:
    """Run commands at the same time."""
    running = [launch(study.folder, *words) for words in commands]
    ended = [(process.communicate(timeout=120), process.returncode) for process in running]
    for (_, errors), _ in ended:
        if "Traceback" in errors:
            raise PromiseBrokenError(f"a traceback: {errors.strip().splitlines()[-1]}")
    return [CommandResult(code, out, errors) for (out, errors), code in ended]


def check_one_or_both(results: list[CommandResult]) -> str:
    """Check that each of two processes succeeded or was refused because of the other."""
    waits = [
        result
        for result in results
        if result.code == 2 and "another giccs annotate process" in result.err
    ]
    if len(waits) == len(results) or any(result.code for result in results if result not in waits):
        raise PromiseBrokenError(
            f"exit codes {[result.code for result in results]}: {results[0].err} {results[1].err}"
        )
    return "one succeeded and one was told to wait" if waits else "both succeeded"


def publish_twice(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = prepare_study(folder / "study", service.url, 60)
        summary = check_one_or_both(run_concurrently(study, study.publish(), study.publish()))
        return f"{summary}; {check_hits_once(study, 60)}"


def collect_twice(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = publish_and_answer(prepare_study(folder / "study", service.url, 60))
        results = run_concurrently(study, study.collect("a.csv"), study.collect("b.csv"))
        if any(result.code for result in results):
            raise PromiseBrokenError(
                f"exit codes {[result.code for result in results]}: {results[0].err} {results[1].err}"
            )
        run_successfully(study, study.collect("c.csv"))
        return f"both succeeded; {check_all_collected(study, 60, 'c.csv')}"


def bonus_twice(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = publish_and_answer(prepare_study(folder / "study", service.url, 20))
        run_successfully(study, study.collect())
        with Ledger.open(study.ledger) as book:
            ids = [assignment.assignment_id for assignment in book.assignments()]
        rows = [f"{assignment_id},0.05,thank you\n" for assignment_id in ids]
        (study.folder / "bonuses.csv").write_text("assignment_id,amount,reason\n" + "".join(rows))
        client = connect(resolve(study.url))
        before = Decimal(client.get_account_balance()["AvailableBalance"])
        summary = check_one_or_both(run_concurrently(study, study.bonus(), study.bonus()))
        paid: Counter[str] = Counter()
        for assignment_ref in ids:
            answer = client.list_bonus_payments(AssignmentId=assignment_ref)
            paid[assignment_ref] = len(answer["BonusPayments"])
        spent = before - Decimal(client.get_account_balance()["AvailableBalance"])
        if set(paid.values()) != {1} or spent != Decimal("0.06") * len(ids):
            raise PromiseBrokenError(
                f"{paid.total()} bonuses are paid, expected {len(ids)}; ${spent} spent"
            )
        return f"{summary}; {len(ids)} of {len(ids)} bonuses paid, none twice, ${spent} spent as expected"


def fill_disk_of_publish(folder: Path) -> str:
    """Publish with too little disk space of several sizes, then again with enough space."""
    far = []
    with serving(folder / "hits.db", folder) as service:
        for seed, kilobytes in enumerate((64, 1300, 1600, 2000)):
            with small_disk(folder / f"disk{seed}", 8 * 2**20) as disk:
                study = prepare_study(
                    folder / f"study{seed}", service.url, 20, ledger=disk / "ledger.db", seed=seed
                )
                filling = fill(disk, kilobytes * 1024)
                check_failed_with_message(
                    run_command(study.folder, *study.publish()), str(study.ledger)
                )
                far.append(str(study.created()))
                filling.unlink()
                run_successfully(study, study.publish())
                summary = check_hits_once(study, 20)
    return f"failed after {', '.join(far)} of 20 HITs with a message; after resuming, {summary}"


def fails_with_message(study: StudyCommands, words: list[object]) -> bool:
    """Run a command that may run out of disk space; return whether it failed with a message."""
    done = run_command(study.folder, *words)
    if done.code:
        check_failed_with_message(done, str(study.ledger))
    return bool(done.code)


def fill_disk_of_collect(folder: Path) -> str:
    failed = 0
    sizes = (4, 32, 64, 128)
    with serving(folder / "hits.db", folder) as service:
        for seed, kilobytes in enumerate(sizes):
            with small_disk(folder / f"disk{seed}", 8 * 2**20) as disk:
                study = publish_and_answer(
                    prepare_study(folder / f"study{seed}", service.url, 20, ledger=disk / "ledger.db",
                          seed=seed)
                )  # fmt: skip
                filling = fill(disk, kilobytes * 1024)
                failed += fails_with_message(study, study.collect())
                filling.unlink()
                run_successfully(study, study.collect())
                summary = check_all_collected(study, 20)
    return f"{failed} of {len(sizes)} runs failed with a message; after resuming, {summary}"


def cut_connections(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service, cutting_relay(service.url) as proxy:
        study = prepare_study(folder / "study", proxy.url, 40)
        runs = 1
        while (done := run_command(study.folder, *study.publish())).code == 1 and runs < 50:
            runs += 1
        if done.code:
            raise PromiseBrokenError(f"publish ended with {done.code}: {done.err.strip()[-300:]}")
        direct = StudyCommands(study.folder, service.url, study.ledger)
        return f"{proxy.n_cut} answers cut off, {runs} runs; {check_hits_once(direct, 40)}"


CASES = (
    Case("SIGKILL", "giccs annotate publish, repeatedly until it completes",
         "The same command continues; each HIT exists once and is paid once", kill_publish),
    Case("SIGKILL", "giccs annotate collect, repeatedly until it completes",
         "The same command continues; each answer is in ledger and file once", kill_collect),
    Case("two processes", "giccs annotate publish on one ledger",
         "One succeeds, the other waits or is refused; each HIT exists once", publish_twice),
    Case("two processes", "giccs annotate collect on one ledger",
         "Both succeed; each answer is stored once", collect_twice),
    Case("two processes", "giccs annotate bonus on one ledger",
         "One succeeds, the other waits or is refused; each bonus is paid once", bonus_twice),
    Case("full disk", "disk of the ledger in giccs annotate publish",
         "A message and exit code 1; with free space the same command continues, each HIT exists once",
         fill_disk_of_publish, needs_mounts),
    Case("full disk", "disk of the ledger in giccs annotate collect",
         "A message and exit code 1; with free space the same command collects everything once",
         fill_disk_of_collect, needs_mounts),
    Case("connection cut", "within the service's responses to giccs annotate publish",
         "Calls are retried, or the same command continues; each HIT exists once", cut_connections),
)  # fmt: skip
