"""Commands that read and write files: killed, on full disks, with damaged input, with readers that leave."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from robustness.chaos.cases import Broken, Case
from robustness.chaos.faults import fill, flipped, needs_mounts, read_only, small_disk, truncated
from robustness.chaos.processes import (
    SAMPLE,
    Done,
    call,
    failed_in_words,
    inside,
    kill_while,
    launch,
    others,
)

__all__ = ["CASES"]

KILLS = 8
"""Of each command: half from its start on, half from when it begins to write."""
STEPS = 50
OLD = b"what stood here before\n"
WRITERS: dict[str, tuple[object, ...]] = {
    "bws-make-tuples": (SAMPLE / "dialogues.jsonl", "-k", 3, "--factor", 40),
    "bws-score": (SAMPLE / "judgments.csv", "--scale", "unit"),
    "bws-simulate": (SAMPLE / "tuples.csv", "--truth", SAMPLE / "scores.csv", "--annotators", 20),
    "giccs-build": ("--dialogues", SAMPLE / "dialogues.jsonl", "--scores", SAMPLE / "scores.csv"),
}
EVALUATED = ("giccs-eval", "baseline:chance", "-o", "results", "--limit", 3, "--quiet")
EXPORT = ("giccs-report", "results", "--mteb", "out/mteb")


def _write(folder: Path, name: str) -> Done:
    return call(folder, name, *WRITERS[name], "-o", "out/file")


def _killed(name: str, folder: Path) -> str:
    _write(folder, name)
    output, start = folder / "out" / "file", time.monotonic()
    _write(folder, name)  # again, as the first time the disk is cold
    takes, new = time.monotonic() - start, output.read_bytes()
    draw, seen = random.Random(0), Counter[str]()
    for kill in range(KILLS):
        output.write_bytes(OLD)
        process = launch(folder, name, *WRITERS[name], "-o", "out/file")
        if kill % 2:
            died = kill_while(process, lambda: others(output), draw.uniform(0, 0.001))
        else:
            died = kill_while(process, lambda: True, draw.uniform(0, takes))
        found = output.read_bytes()
        if found not in (OLD, new):
            raise Broken(
                f"after kill {kill + 1} {len(found)} bytes stand there, neither old nor new"
            )
        seen["killed"] += died
        seen["old" if found == OLD else "new"] += 1
    return (
        f"killed {seen['killed']} times in {KILLS} calls: {seen['old']} times the old file, "
        f"{seen['new']} times the new one; {_tidied(folder, name, new)}"
    )


def _tidied(folder: Path, name: str, new: bytes) -> str:
    """Check that what was left goes with a call that comes a day later."""
    output = folder / "out" / "file"
    left = others(output)
    for path in left:
        os.utime(path, (path.stat().st_mtime - 86_400,) * 2)
    _write(folder, name)
    if output.read_bytes() != new or others(output):
        raise Broken(f"the next call left {others(output)}")
    return f"{len(left)} temporary files left, gone with a call a day later"


def _full(folder: Path) -> str:
    tried = 1
    call(folder, *EVALUATED)
    with small_disk(folder / "out", 4 * 2**20) as disk:
        for name in WRITERS:
            (disk / "file").write_bytes(OLD)
            for leave in (0, 8192):
                filling = fill(disk, leave)
                done = _write(folder, name)
                failed_in_words(done, "out/file: No space left on device")
                if (disk / "file").read_bytes() != OLD or others(disk / "file") != [filling]:
                    raise Broken(f"{name} left {os.listdir(disk)}")
                filling.unlink()
                tried += 1
            if _write(folder, name).code:
                raise Broken(f"{name} fails though there is room again")
        fill(disk)
        failed_in_words(call(folder, *EXPORT), "No space left on device")
    return (
        f"{tried} of {tried} calls failed in a sentence, the old file stayed; with room they wrote"
    )


def _full_output(folder: Path) -> str:
    """Standard output is a file on a full disk, as with `giccs-report --format latex > table.tex`."""
    call(folder, *EVALUATED)
    commands: list[list[object]] = [
        ["giccs-report", "results", "--format", "latex"],
        ["giccs-validate", "giccs-sample", "--json"],
        *([name, *words] for name, words in WRITERS.items()),
    ]
    with small_disk(folder / "out", 2**20) as disk:
        fill(disk)
        for command in commands:
            with (disk / "table").open("wb") as table:
                done = call(folder, *command, stdout=table)
            failed_in_words(done, "No space left on device")
            if "Exception ignored" in done.err:
                raise Broken(f"{command[0]} said: {done.err.strip()}")
    return f"{len(commands)} of {len(commands)} commands failed in a sentence"


def _read_only(folder: Path) -> str:
    call(folder, *EVALUATED)
    (folder / "out").mkdir()
    (folder / "out" / "file").write_bytes(OLD)
    with read_only(folder / "out"):
        for name in WRITERS:
            failed_in_words(_write(folder, name), "out/file: Read-only file system")
        failed_in_words(call(folder, *EXPORT), "Read-only file system")
    if os.listdir(folder / "out") != ["file"] or (folder / "out" / "file").read_bytes() != OLD:
        raise Broken("the folder changed")
    return f"{len(WRITERS) + 1} commands failed in a sentence that names the file"


def _pipes(folder: Path) -> str:
    commands: list[list[object]] = [
        *([name, *words] for name, words in WRITERS.items()),
        ["giccs-validate", "giccs-sample", "--json"],
        ["giccs-eval", "baseline:chance", "--limit", 3, "--json", "--quiet"],
        ["giccs-eval", "--help"],
    ]
    for command in commands:
        for lines in (0, 1):
            with launch(folder, *command) as process:
                assert process.stdout
                assert process.stderr
                for _ in range(lines):
                    process.stdout.readline()
                process.stdout.close()
                said = process.stderr.read()
            loud = "Traceback" in said or "Exception ignored" in said
            if loud or process.returncode not in (0, 1):
                raise Broken(f"{command[0]} ended with {process.returncode} and said {said}")
    return f"{2 * len(commands)} calls whose reader left at once or after a line ended quietly"


def _other_time(folder: Path) -> str:
    said: set[tuple[str, bytes]] = set()
    for day in ("1971-01-01", "2037-12-31", ""):
        before = ["faketime", f"{day} 23:59:59"] if day else []
        done = call(folder, "bws-simulate", *WRITERS["bws-simulate"], "-o", "out.gz", before=before)
        results = folder / f"results{day}"
        call(folder, "giccs-eval", "baseline:chance", "--limit", 3, "-o", results, before=before)
        (result,) = results.glob("*.json")
        document = json.loads(result.read_text("utf-8"))
        if done.code or document["seconds"] < 0:
            raise Broken(f"in {day} it took {document['seconds']} s, exit code {done.code}")
        said.add((result.name + repr(document["metrics"]), (folder / "out.gz").read_bytes()))
    if len(said) != 1:
        raise Broken("what is written depends on the clock")
    return "in 1971, in 2037 and today the same bytes and the same numbers"


def _needs_faketime() -> str:
    return "" if shutil.which("faketime") else "faketime is not installed"


# What is read: a file of each format, and the command that reads it.


def _some(name: str, lines: int) -> bytes:
    with (SAMPLE / name).open("rb") as file:
        return b"".join(line for _, line in zip(range(lines), file, strict=False))


def _parquet() -> bytes:
    import io

    import polars as pl

    table = io.BytesIO()
    pl.read_ndjson(_some("benchmark.jsonl", 40)).write_parquet(table)
    return table.getvalue()


def _recipe() -> bytes:
    recipe = """
title = "Chaos"
source = "https://example.org/"
data = "giccs-sample"

[[model]]
name = "baseline:chance"
task = "pairwise-sts"
published = [{ metric = "spearman", value = 0.25, n = 300 }]
"""
    return recipe.encode()


FORMATS: dict[str, tuple[Callable[[], bytes], Sequence[object]]] = {
    "judgments.csv": (lambda: _some("judgments.csv", 60), ["bws-score"]),
    "judgments.csv.gz": (lambda: gzip.compress(_some("judgments.csv", 60)), ["bws-score"]),
    "tuples.csv": (
        lambda: _some("tuples.csv", 60),
        ["bws-simulate", "--truth", SAMPLE / "scores.csv"],
    ),
    "scores.csv": (
        lambda: (SAMPLE / "scores.csv").read_bytes(),
        ["bws-simulate", SAMPLE / "tuples.csv", "--annotators", 1, "--truth"],
    ),
    "dialogues.jsonl": (lambda: _some("dialogues.jsonl", 8), ["bws-make-tuples", "-k", 3]),
    "benchmark.jsonl": (lambda: _some("benchmark.jsonl", 20), ["giccs-validate"]),
    "benchmark.jsonl.gz": (lambda: gzip.compress(_some("benchmark.jsonl", 20)), ["giccs-validate"]),
    "release/data/test-00000-of-00001.parquet": (_parquet, ["giccs-validate"]),
    "recipe.toml": (_recipe, ["giccs-eval", "--quiet", "--force", "--limit", 2, "--recipe"]),
}
CHECKED = (".gz",)
"""Formats with a checksum: what is read from a damaged file is what was written, or nothing."""


def _damaged(damage: Callable[[bytes, int], list[bytes]], folder: Path) -> str:
    seen = Counter[str]()
    for name, (make, command) in FORMATS.items():
        data, path = make(), folder / name
        named = Path(name).parts[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        whole = inside(folder, *command, named)
        if whole.code:
            raise Broken(f"{name} is refused though it is whole: {whole.err}")
        for number, changed in enumerate(damage(data, STEPS)):
            path.write_bytes(changed)
            done = inside(folder, *command, named)
            if done.code == 2 and _is_named(name, command, done.err):
                seen["refused"] += 1
            elif done.code or (name.endswith(CHECKED) and done.out != whole.out):
                raise Broken(f"{name}, damage {number}: exit code {done.code}, {done.err[-300:]}")
            else:
                seen["read"] += 1
    return (
        f"{len(FORMATS)} formats, {seen.total()} damaged files: {seen['refused']} refused by name, "
        f"{seen['read']} read as what they then say"
    )


def _is_named(name: str, command: Sequence[object], said: str) -> bool:
    """Tell whether a refusal names the file, one that does not fit it, or what a recipe then names."""
    return name == "recipe.toml" or any(str(file) in said for file in (name, *command[1:]))


KILLED = "the old file or the new one is there, whole"
IN_WORDS = "exit code 1, a line with the file's name and the reason; the old file is untouched"
DAMAGED = (
    "refused with exit code 2 and the file's name, or read as what it then says (CSV cannot know); what is "
    "read of a .gz is what was written"
)

CASES = (
    *(Case("SIGKILL", name, KILLED, partial(_killed, name)) for name in WRITERS),
    Case("full disk", "files that commands write", IN_WORDS, _full, needs_mounts),
    Case(
        "full disk", "standard output of commands", "exit code 1 and a sentence", _full_output,
        needs_mounts,
    ),
    Case("read-only folder", "files that commands write", IN_WORDS, _read_only, needs_mounts),
    Case("file cut off", "everything that commands read", DAMAGED, partial(_damaged, truncated)),
    Case("flipped bit", "everything that commands read", DAMAGED, partial(_damaged, flipped)),
    Case("reader of a pipe leaves", "standard output", "the command ends quietly", _pipes),
    Case("other time", "bws-simulate, giccs-eval", "the same bytes", _other_time, _needs_faketime),
)  # fmt: skip
