"""Commands that read and write files: killed, on full disks, with damaged input, with closed pipes."""

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

from robustness.chaos.cases import Case, PromiseBrokenError
from robustness.chaos.faults import (
    fill,
    needs_mounts,
    read_only,
    small_disk,
    truncations,
    with_flipped_bits,
)
from robustness.chaos.processes import (
    SAMPLE,
    CommandResult,
    check_failed_with_message,
    kill_after_start,
    launch,
    run_command,
    run_in_process,
    sibling_paths,
)

KILLS = 8
"""Kills per command: half after its start, half after it begins to write."""
STEPS = 50
OLD_CONTENT = b"what stood here before\n"
WRITERS: dict[str, tuple[object, ...]] = {
    "design": (SAMPLE / "dialogues.jsonl", "-k", 3, "--factor", 40, "--allow-repeats"),
    "score": (SAMPLE / "judgments.csv", "--scale", "unit"),
    "simulate": (SAMPLE / "tuples.csv", "--truth", SAMPLE / "scores.csv", "--annotators", 20),
    "build": ("--dialogues", SAMPLE / "dialogues.jsonl", "--scores", SAMPLE / "scores.csv"),
}
EVALUATE = ("giccs", "eval", "baseline:chance", "-o", "results", "--limit", 3, "--quiet")
EXPORT = ("giccs", "report", "results", "--mteb", "out/mteb")


def _write(folder: Path, name: str) -> CommandResult:
    return run_command(folder, "giccs", name, *WRITERS[name], "-o", "out/file")


def _old_content(folder: Path, name: str) -> bytes:
    """Return the content of an existing file that a command replaces: only simulated judgments may be."""
    if name != "simulate":
        return OLD_CONTENT
    run_command(folder, "giccs", name, *WRITERS[name][:-1], 1, "-o", "old.csv")
    return (folder / "old.csv").read_bytes()


def _kill_writer(name: str, folder: Path) -> str:
    _write(folder, name)
    output, start = folder / "out" / "file", time.monotonic()
    _write(folder, name)  # again, with a warm disk cache
    takes, new = time.monotonic() - start, output.read_bytes()
    old = _old_content(folder, name)
    draw, seen = random.Random(0), Counter[str]()
    for kill in range(KILLS):
        output.write_bytes(old)
        process = launch(folder, "giccs", name, *WRITERS[name], "-o", "out/file")
        if kill % 2:
            died = kill_after_start(process, lambda: sibling_paths(output), draw.uniform(0, 0.001))
        else:
            died = kill_after_start(process, lambda: True, draw.uniform(0, takes))
        content = output.read_bytes()
        if content not in (old, new):
            raise PromiseBrokenError(
                f"after kill {kill + 1} {len(content)} bytes are stored, neither old nor new"
            )
        seen["killed"] += died
        seen["old" if content == old else "new"] += 1
    return (
        f"killed {seen['killed']} times in {KILLS} calls: {seen['old']} times the old file, "
        f"{seen['new']} times the new one; {_check_cleanup(folder, name, new)}"
    )


def _check_cleanup(folder: Path, name: str, new: bytes) -> str:
    """Check that temporary files are removed by a call a day later."""
    output = folder / "out" / "file"
    left = sibling_paths(output)
    for path in left:
        os.utime(path, (path.stat().st_mtime - 86_400,) * 2)
    _write(folder, name)
    if output.read_bytes() != new or sibling_paths(output):
        raise PromiseBrokenError(f"the next call left {sibling_paths(output)}")
    return f"{len(left)} temporary files left, removed by a call a day later"


def _fill_disk(folder: Path) -> str:
    tried = 1
    run_command(folder, *EVALUATE)
    with small_disk(folder / "out", 4 * 2**20) as disk:
        for name in WRITERS:
            (disk / "file").write_bytes(old := _old_content(folder, name))
            for leave in (0, 8192):
                filling = fill(disk, leave)
                done = _write(folder, name)
                check_failed_with_message(done, "out/file: No space left on device")
                if (disk / "file").read_bytes() != old or sibling_paths(disk / "file") != [filling]:
                    raise PromiseBrokenError(f"{name} left {os.listdir(disk)}")
                filling.unlink()
                tried += 1
            if _write(folder, name).code:
                raise PromiseBrokenError(f"{name} fails although there is space again")
        fill(disk)
        check_failed_with_message(run_command(folder, *EXPORT), "No space left on device")
    return f"{tried} of {tried} calls failed with a message, the old file was kept; with space they succeeded"


def _fill_output_disk(folder: Path) -> str:
    """Redirect standard output to a full disk, as with `giccs report --format latex > table.tex`."""
    run_command(folder, *EVALUATE)
    commands: list[list[object]] = [
        ["giccs", "report", "results", "--format", "latex"],
        ["giccs", "validate", "giccs-sample", "--json"],
        *(["giccs", name, *words] for name, words in WRITERS.items()),
    ]
    with small_disk(folder / "out", 2**20) as disk:
        fill(disk)
        for command in commands:
            with (disk / "table").open("wb") as table:
                done = run_command(folder, *command, stdout=table)
            check_failed_with_message(done, "No space left on device")
            if "Exception ignored" in done.err:
                raise PromiseBrokenError(f"giccs {command[1]} printed: {done.err.strip()}")
    return f"{len(commands)} of {len(commands)} commands failed with a message"


def _read_only(folder: Path) -> str:
    run_command(folder, *EVALUATE)
    (folder / "out").mkdir()
    for name in WRITERS:
        (folder / "out" / "file").write_bytes(old := _old_content(folder, name))
        with read_only(folder / "out"):
            check_failed_with_message(_write(folder, name), "out/file: Read-only file system")
        if os.listdir(folder / "out") != ["file"] or (folder / "out" / "file").read_bytes() != old:
            raise PromiseBrokenError("the folder has changed")
    with read_only(folder / "out"):
        check_failed_with_message(run_command(folder, *EXPORT), "Read-only file system")
    return f"{len(WRITERS) + 1} commands failed with a message that names the file"


def _close_pipes(folder: Path) -> str:
    commands: list[list[object]] = [
        *(["giccs", name, *words] for name, words in WRITERS.items()),
        ["giccs", "validate", "giccs-sample", "--json"],
        ["giccs", "eval", "baseline:chance", "--limit", 3, "--json", "--quiet"],
        ["giccs", "eval", "--help"],
    ]
    for command in commands:
        for lines in (0, 1):
            with launch(folder, *command) as process:
                assert process.stdout
                assert process.stderr
                for _ in range(lines):
                    process.stdout.readline()
                process.stdout.close()
                errors = process.stderr.read()
            loud = "Traceback" in errors or "Exception ignored" in errors
            if loud or process.returncode not in (0, 1):
                raise PromiseBrokenError(
                    f"giccs {command[1]} ended with {process.returncode} and printed {errors}"
                )
    return f"{2 * len(commands)} calls with a pipe closed at once or after a line ended quietly"


def _change_clock(folder: Path) -> str:
    outputs: set[tuple[str, bytes]] = set()
    for day in ("1971-01-01", "2037-12-31", ""):
        before = ["faketime", f"{day} 23:59:59"] if day else []
        done = run_command(
            folder, "giccs", "simulate", *WRITERS["simulate"], "-o", "out.gz", before=before
        )
        results = folder / f"results{day}"
        run_command(
            folder, "giccs", "eval", "baseline:chance", "--limit", 3, "-o", results, before=before
        )
        (result,) = results.glob("*.json")
        document = json.loads(result.read_text("utf-8"))
        if done.code or document["seconds"] < 0:
            raise PromiseBrokenError(
                f"on {day} it took {document['seconds']} s, exit code {done.code}"
            )
        outputs.add((result.name + repr(document["metrics"]), (folder / "out.gz").read_bytes()))
    if len(outputs) != 1:
        raise PromiseBrokenError("the output depends on the clock")
    return "in 1971, in 2037 and today the same bytes and the same numbers"


def _needs_faketime() -> str:
    return "" if shutil.which("faketime") else "faketime is not installed"


# Inputs: a file of each format, and the command that reads it.


def _first_lines(name: str, lines: int) -> bytes:
    with (SAMPLE / name).open("rb") as file:
        return b"".join(line for _, line in zip(range(lines), file, strict=False))


def _parquet() -> bytes:
    import io

    import polars as pl

    table = io.BytesIO()
    pl.read_ndjson(_first_lines("benchmark.jsonl", 40)).write_parquet(table)
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
    "judgments.csv": (lambda: _first_lines("judgments.csv", 60), ["giccs", "score"]),
    "judgments.csv.gz": (
        lambda: gzip.compress(_first_lines("judgments.csv", 60)),
        ["giccs", "score"],
    ),
    "tuples.csv": (
        lambda: _first_lines("tuples.csv", 60),
        ["giccs", "simulate", "--truth", SAMPLE / "scores.csv"],
    ),
    "scores.csv": (
        lambda: (SAMPLE / "scores.csv").read_bytes(),
        ["giccs", "simulate", SAMPLE / "tuples.csv", "--annotators", 1, "--truth"],
    ),
    "dialogues.jsonl": (lambda: _first_lines("dialogues.jsonl", 8), ["giccs", "design", "-k", 3]),
    "benchmark.jsonl": (lambda: _first_lines("benchmark.jsonl", 20), ["giccs", "validate"]),
    "benchmark.jsonl.gz": (
        lambda: gzip.compress(_first_lines("benchmark.jsonl", 20)),
        ["giccs", "validate"],
    ),
    "release/data/test-00000-of-00001.parquet": (_parquet, ["giccs", "validate"]),
    "recipe.toml": (_recipe, ["giccs", "eval", "--quiet", "--force", "--limit", 2, "--recipe"]),
}
CHECKSUMMED_SUFFIXES = (".gz",)
"""Formats with a checksum: a damaged file is refused or read correctly."""


def _damage_inputs(damage: Callable[[bytes, int], list[bytes]], folder: Path) -> str:
    seen = Counter[str]()
    for name, (make, command) in FORMATS.items():
        data, path = make(), folder / name
        file_argument = Path(name).parts[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        undamaged = run_in_process(folder, *command, file_argument)
        if undamaged.code:
            raise PromiseBrokenError(f"{name} is refused although it is undamaged: {undamaged.err}")
        for number, changed in enumerate(damage(data, STEPS)):
            path.write_bytes(changed)
            done = run_in_process(folder, *command, file_argument)
            if done.code == 2 and _is_file_named(name, command, done.err):
                seen["refused"] += 1
            elif done.code or (name.endswith(CHECKSUMMED_SUFFIXES) and done.out != undamaged.out):
                raise PromiseBrokenError(
                    f"{name}, damage {number}: exit code {done.code}, {done.err[-300:]}"
                )
            else:
                seen["read"] += 1
    return (
        f"{len(FORMATS)} formats, {seen.total()} damaged files: {seen['refused']} refused by name, "
        f"{seen['read']} read as valid files"
    )


def _is_file_named(name: str, command: Sequence[object], message: str) -> bool:
    """Return whether an error message names the damaged file or another argument."""
    return name == "recipe.toml" or any(str(file) in message for file in (name, *command[1:]))


KILLED = "the old or the new file exists, complete"
IN_WORDS = "exit code 1, a message with file name and reason; the old file is unchanged"
DAMAGED = (
    "refused with exit code 2 and the file name, or read as a valid file (CSV has no checksum); a .gz file "
    "is read correctly or refused"
)

CASES = (
    *(Case("SIGKILL", f"giccs {name}", KILLED, partial(_kill_writer, name)) for name in WRITERS),
    Case("full disk", "files that commands write", IN_WORDS, _fill_disk, needs_mounts),
    Case(
        "full disk", "standard output of commands", "exit code 1 and a message", _fill_output_disk,
        needs_mounts,
    ),
    Case("read-only folder", "files that commands write", IN_WORDS, _read_only, needs_mounts),
    Case("file cut off", "inputs of commands", DAMAGED, partial(_damage_inputs, truncations)),
    Case("flipped bit", "inputs of commands", DAMAGED, partial(_damage_inputs, with_flipped_bits)),
    Case("closed pipe", "standard output", "the command ends quietly", _close_pipes),
    Case("changed clock", "giccs simulate, giccs eval", "the same bytes", _change_clock, _needs_faketime),
)  # fmt: skip
