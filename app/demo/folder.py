"""The output folder of the demo: the paths of its files, and whether it belongs to the same plan."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from app.demo.plan import Plan
from bws.problems import InputError, Problem
from bws.textio import read_text, write_atomic

__all__ = ["Folder"]

ADVICE = "remove it, or name another folder with -o"


class Folder:
    """Everything that a run makes, so that the next one goes on where it ended.

    What follows from something else in the folder is written anew in every run; that is cheap, and a
    file that somebody changed does not creep into the numbers.
    """

    def __init__(self, path: str | os.PathLike[str], note: Callable[[str], None]) -> None:
        self.path = Path(path)
        self.note = note
        self.plan = self.path / "demo.json"
        self.dialogues = self.path / "dialogues.jsonl"
        self.tuples = self.path / "tuples.csv"
        self.settings = self.path / "hits.toml"
        self.database = self.path / "hits.db"
        self.ledger = self.path / "ledger.db"
        self.log = self.path / "serve.log"
        self.judgments = self.path / "judgments.csv"
        self.scores = self.path / "scores.csv"
        self.benchmark = self.path / "benchmark.jsonl"
        self.results = self.path / "results"
        self.report = self.path / "report.html"

    def part(self, every: int) -> Path:
        """Return where the benchmark of one dialogue in so many lies."""
        return self.path / f"one-in-{every}.jsonl"

    def begin(self, plan: Plan) -> None:
        """Make the folder, or find it as a run of the same plan left it; InputError for any other."""
        if self.path.exists() and not self.path.is_dir():
            raise self._refused("is a file; a folder is needed: name another one with -o")
        self.path.mkdir(parents=True, exist_ok=True)
        if self.plan.exists():
            self._check(plan)
        elif any(not name.startswith(".") for name in os.listdir(self.path)):
            said = "holds other files, perhaps of an earlier giccs-demo"
            raise self._refused(f"{said}; name an empty folder with -o, or move them away")
        else:
            write_atomic(self.plan, f"{json.dumps(plan.document(), indent=2)}\n")
        self.derive(self.dialogues, lambda path: write_atomic(path, plan.dialogues))
        self.derive(self.settings, lambda path: write_atomic(path, plan.settings))

    def derive(self, path: Path, write: Callable[[Path], object]) -> None:
        """Let `write` make a file that follows from others; say so where another one stood there."""
        before = path.read_bytes() if path.exists() else None
        write(path)
        if before not in (None, path.read_bytes()):
            self.note(f"note: {path} was not what follows from the rest; it is written anew")

    def _check(self, plan: Plan) -> None:
        try:
            found = dict(json.loads(read_text(self.plan)))
        except (TypeError, ValueError, RecursionError):
            raise self._refused(f"its demo.json cannot be read; {ADVICE}") from None
        differences = [
            f"{key} {found.get(key)!r}, not {value!r}"
            for key, value in plan.document().items()
            if found.get(key) != value
        ]
        if differences:
            raise self._refused(f"was made with {'; '.join(differences)}; {ADVICE}")

    def _refused(self, message: str) -> InputError:
        return InputError(Problem(str(self.path), None, message))
