"""What the requester's commands promise under faults: each HIT once, each bonus once, each answer kept."""

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
from robustness.chaos.cases import Broken, Case
from robustness.chaos.faults import cutting, fill, needs_mounts, small_disk
from robustness.chaos.processes import Done, call, failed_in_words, kill_while, launch
from robustness.chaos.service import DATA, Crowd, serving

__all__ = ["CASES"]

REWARD, FEE = Decimal("0.30"), Decimal("1.2")


@dataclass(frozen=True)
class Study:
    """A study in a folder of its own, and the commands on it."""

    folder: Path
    url: str
    ledger: Path

    def publish(self) -> list[object]:
        """Return the words of `mturk-hits publish`."""
        return [
            "mturk-hits", "publish", self.folder / "tuples.csv", "--dialogues",
            DATA / "dialogues.jsonl", "--config", self.folder / "hits.toml", "--endpoint", self.url,
            "--ledger", self.ledger, "--json",
        ]  # fmt: skip

    def collect(self, output: str = "judgments.csv", *more: str) -> list[object]:
        """Return the words of `mturk-hits collect`."""
        return ["mturk-hits", "collect", "-o", self.folder / output, "--ledger", self.ledger, *more]

    def bonus(self) -> list[object]:
        """Return the words of `mturk-hits bonus`."""
        return [
            "mturk-hits",
            "bonus",
            self.folder / "bonuses.csv",
            "--ledger",
            self.ledger,
            "--yes",
        ]

    def count(self, table: str, condition: str = "1") -> int:
        """Return how many rows the ledger has; 0 where there is none yet."""
        try:
            with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as connection:
                query = f"SELECT COUNT(*) FROM {table} WHERE {condition}"
                return int(connection.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # not there yet, or not yet with tables
            return 0

    def created(self) -> int:
        """Return how many HITs the ledger knows to exist."""
        return self.count("hit", "hit_id IS NOT NULL")


def begun(folder: Path, url: str, hits: int, *, ledger: Path | None = None, seed: int = 0) -> Study:
    """Write the files of a study with so many HITs, two tuples each."""
    folder.mkdir(exist_ok=True)
    lines = (DATA / "tuples.csv").read_text("utf-8").splitlines(keepends=True)
    (folder / "tuples.csv").write_text("".join(lines[: 1 + 2 * hits]), "utf-8")
    settings = f"seed = {seed}\nassignments = 3\nreward = '{REWARD}'\napproval_rate_above = -1\n"
    (folder / "hits.toml").write_text(settings)
    return Study(folder, url, ledger or folder / "ledger.db")


def done_well(study: Study, words: list[object]) -> None:
    """Run a command that must succeed."""
    done = call(study.folder, *words)
    if done.code:
        raise Broken(f"{words[1]} ended with {done.code}: {done.err.strip()[-300:]}")


def answered(study: Study) -> Study:
    """Publish a study and let workers answer all of it."""
    done_well(study, study.publish())
    with Crowd(study.url, workers=3):
        pass
    return study


def each_once(study: Study, hits: int) -> str:
    """Check that each HIT that was meant exists once, as the ledger has it, and is paid for once."""
    with Ledger.open(study.ledger) as book:
        known = {hit.annotation: hit.hit_id for hit in book.hits()}
    found: Counter[str] = Counter()
    client = connect(resolve(study.url))
    for page in client.get_paginator("list_hits").paginate():
        for there in page["HITs"]:
            annotation = there["RequesterAnnotation"]
            found[annotation] += annotation in known
            if known.get(annotation, there["HITId"]) != there["HITId"]:
                raise Broken(
                    f"the ledger has {known[annotation]} for {annotation}, not {there['HITId']}"
                )
    several = [annotation for annotation, count in found.items() if count > 1]
    if several or (+found).total() != hits or len(known) != hits:
        raise Broken(
            f"{(+found).total()} of {hits} HITs exist, {len(several)} of them twice or more"
        )
    held = Decimal(client.get_account_balance()["OnHoldBalance"])
    if held != (cost := REWARD * FEE * 3 * len(found)):
        raise Broken(f"${held} are on hold; {len(found)} HITs cost ${cost}")
    return f"{hits} of {hits} HITs exist, none twice, ${held} on hold as meant"


def killed_until_done(
    study: Study, words: list[object], far: Callable[[], int], step: int
) -> int:  # fmt: skip
    """Kill a command at random moments (with a seed) after up to `step` more are done; how often it took."""
    chance = random.Random(10)
    kills = 0
    while True:
        mark = far() + chance.randint(1, step)
        process = launch(study.folder, *words)

        def far_enough() -> bool:
            time.sleep(0.001)
            return far() >= mark  # noqa: B023

        if not kill_while(process, far_enough, chance.uniform(0, 0.02)):
            break
        kills += 1
    if process.returncode:
        raise Broken(f"{words[1]} ended with {process.returncode} after {kills} kills")
    return kills


def kill_publish(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = begun(folder / "study", service.url, 60)
        kills = killed_until_done(study, study.publish(), study.created, 10)
        return f"killed {kills} times; {each_once(study, 60)}"


def kill_collect(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = answered(begun(folder / "study", service.url, 60))
        kills = killed_until_done(study, study.collect(), lambda: study.count("assignment"), 40)
        return f"killed {kills} times; {all_collected(study, 60)}"


def all_collected(study: Study, hits: int, output: str = "judgments.csv") -> str:
    """Check that ledger and file have every answer once."""
    kept = study.count("assignment")
    with (study.folder / output).open(encoding="utf-8", newline="") as file:
        rows = Counter((row["assignment_id"], row["tuple_id"]) for row in csv.DictReader(file))
    if kept != 3 * hits or len(rows) != 6 * hits or rows.total() != len(rows):
        raise Broken(
            f"{kept} of {3 * hits} assignments are in the ledger, {len(rows)} of {6 * hits} judgments in "
            f"the file, {rows.total() - len(rows)} of them again"
        )
    return f"{kept} of {kept} assignments and {len(rows)} of {len(rows)} judgments, each once"


def together(study: Study, *commands: list[object]) -> list[Done]:
    """Run commands at the same time."""
    running = [launch(study.folder, *words) for words in commands]
    ended = [(process.communicate(timeout=120), process.returncode) for process in running]
    for (_, errors), _ in ended:
        if "Traceback" in errors:
            raise Broken(f"a traceback: {errors.strip().splitlines()[-1]}")
    return [Done(code, out, errors) for (out, errors), code in ended]


def one_or_both(found: list[Done]) -> str:
    """Check that each of two processes did its work or was told that another is at it."""
    waits = [one for one in found if one.code == 2 and "another mturk-hits is at work" in one.err]
    if len(waits) == len(found) or any(one.code for one in found if one not in waits):
        raise Broken(f"exit codes {[one.code for one in found]}: {found[0].err} {found[1].err}")
    return "one worked and one was told to wait" if waits else "both ended well"


def publish_twice(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = begun(folder / "study", service.url, 60)
        said = one_or_both(together(study, study.publish(), study.publish()))
        return f"{said}; {each_once(study, 60)}"


def collect_twice(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = answered(begun(folder / "study", service.url, 60))
        found = together(study, study.collect("a.csv"), study.collect("b.csv"))
        if any(one.code for one in found):
            raise Broken(f"exit codes {[one.code for one in found]}: {found[0].err} {found[1].err}")
        done_well(study, study.collect("c.csv"))
        return f"both ended well; {all_collected(study, 60, 'c.csv')}"


def bonus_twice(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service:
        study = answered(begun(folder / "study", service.url, 20))
        done_well(study, study.collect())
        with Ledger.open(study.ledger) as book:
            ids = [one.assignment_id for one in book.assignments()]
        rows = [f"{one},0.05,thank you\n" for one in ids]
        (study.folder / "bonuses.csv").write_text("assignment_id,amount,reason\n" + "".join(rows))
        client = connect(resolve(study.url))
        before = Decimal(client.get_account_balance()["AvailableBalance"])
        said = one_or_both(together(study, study.bonus(), study.bonus()))
        paid: Counter[str] = Counter()
        for one in ids:
            answer = client.list_bonus_payments(AssignmentId=one)
            paid[one] = len(answer["BonusPayments"])
        spent = before - Decimal(client.get_account_balance()["AvailableBalance"])
        if set(paid.values()) != {1} or spent != Decimal("0.06") * len(ids):
            raise Broken(f"{paid.total()} bonuses are paid, {len(ids)} were meant; ${spent} spent")
        return f"{said}; {len(ids)} of {len(ids)} bonuses paid, none twice, ${spent} spent as meant"


def fill_disk_of_publish(folder: Path) -> str:
    """Publish onto disks of several sizes that are too small, then again with room."""
    far = []
    with serving(folder / "hits.db", folder) as service:
        for seed, kilobytes in enumerate((64, 1300, 1600, 2000)):
            with small_disk(folder / f"disk{seed}", 8 * 2**20) as disk:
                study = begun(
                    folder / f"study{seed}", service.url, 20, ledger=disk / "ledger.db", seed=seed
                )
                filling = fill(disk, kilobytes * 1024)
                failed_in_words(call(study.folder, *study.publish()), str(study.ledger))
                far.append(str(study.created()))
                filling.unlink()
                done_well(study, study.publish())
                said = each_once(study, 20)
    return f"failed after {', '.join(far)} of 20 HITs with a sentence; after resuming, {said}"


def failed_or_done(study: Study, words: list[object]) -> bool:
    """Run a command for which there may be too little room; tell whether it failed, in words."""
    done = call(study.folder, *words)
    if done.code:
        failed_in_words(done, str(study.ledger))
    return bool(done.code)


def fill_disk_of_collect(folder: Path) -> str:
    failed = 0
    sizes = (4, 32, 64, 128)
    with serving(folder / "hits.db", folder) as service:
        for seed, kilobytes in enumerate(sizes):
            with small_disk(folder / f"disk{seed}", 8 * 2**20) as disk:
                study = answered(
                    begun(folder / f"study{seed}", service.url, 20, ledger=disk / "ledger.db",
                          seed=seed)
                )  # fmt: skip
                filling = fill(disk, kilobytes * 1024)
                failed += failed_or_done(study, study.collect())
                filling.unlink()
                done_well(study, study.collect())
                said = all_collected(study, 20)
    return f"{failed} of {len(sizes)} runs failed with a sentence; after resuming, {said}"


def cut_connections(folder: Path) -> str:
    with serving(folder / "hits.db", folder) as service, cutting(service.url) as proxy:
        study = begun(folder / "study", proxy.url, 40)
        runs = 1
        while (done := call(study.folder, *study.publish())).code == 1 and runs < 50:
            runs += 1
        if done.code:
            raise Broken(f"publish ended with {done.code}: {done.err.strip()[-300:]}")
        direct = Study(study.folder, service.url, study.ledger)
        return f"{proxy.cut} answers cut off, {runs} runs; {each_once(direct, 40)}"


CASES = (
    Case("SIGKILL", "mturk-hits publish, again and again until it is done",
         "The same command goes on; each HIT exists once and is paid for once", kill_publish),
    Case("SIGKILL", "mturk-hits collect, again and again until it is done",
         "The same command goes on; each answer is in ledger and file once", kill_collect),
    Case("two processes", "mturk-hits publish on one ledger",
         "One works, the other waits or is told so; each HIT exists once", publish_twice),
    Case("two processes", "mturk-hits collect on one ledger",
         "Both end well; each answer is there once", collect_twice),
    Case("two processes", "mturk-hits bonus on one ledger",
         "One works, the other waits or is told so; each bonus is paid once", bonus_twice),
    Case("full disk", "below the ledger in mturk-hits publish",
         "A sentence and exit code 1; with room again the same command goes on, each HIT exists once",
         fill_disk_of_publish, needs_mounts),
    Case("full disk", "below the ledger in mturk-hits collect",
         "A sentence and exit code 1; with room again the same command collects everything once",
         fill_disk_of_collect, needs_mounts),
    Case("connection cut", "in the middle of the service's answers to mturk-hits publish",
         "Calls are repeated, or the same command goes on; each HIT exists once", cut_connections),
)  # fmt: skip
