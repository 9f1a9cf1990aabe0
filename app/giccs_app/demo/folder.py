"""The output folder of the demo: paths of its files and consistency with the plan."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from bws.base.problems import InputError, Problem
from bws.base.text import read_text, write_atomic
from giccs_app.demo.plan import Plan

ADVICE = "remove it, or choose another folder with -o"


class Folder:
    """All files of a run, from which the next run continues.

    Files that are derived from other files are written again in each run, so that manual changes have no
    effect.
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
        self.anchors = self.path / "anchors.csv"
        self.scores = self.path / "scores.csv"
        self.benchmark = self.path / "benchmark.jsonl"
        self.results = self.path / "results"
        self.report = self.path / "report.html"

    def subset(self, every: int) -> Path:
        """Return the path of the benchmark of every `every`-th dialogue."""
        return self.path / f"one-in-{every}.jsonl"

    def begin(self, plan: Plan) -> None:
        """Create the folder, or check that it belongs to the same plan; InputError otherwise."""
        if self.path.exists() and not self.path.is_dir():
            raise self._input_error("is a file; expected a folder (-o)")
        self.path.mkdir(parents=True, exist_ok=True)
        if self.plan.exists():
            self._check(plan)
        elif any(not name.startswith(".") for name in os.listdir(self.path)):
            message = "contains other files, possibly of an earlier giccs demo"
            raise self._input_error(f"{message}; choose an empty folder with -o, or move the files")
        else:
            write_atomic(self.plan, f"{json.dumps(plan.document(), indent=2)}\n")
        self.derive(self.dialogues, lambda path: write_atomic(path, plan.dialogues))
        self.derive(self.settings, lambda path: write_atomic(path, plan.settings))

    def derive(self, path: Path, write: Callable[[Path], object]) -> None:
        """Write a derived file with `write`; report if its previous content was different."""
        before = path.read_bytes() if path.exists() else None
        write(path)
        if before not in (None, path.read_bytes()):
            self.note(f"note: {path} was inconsistent with the other files and has been rewritten")

    def _check(self, plan: Plan) -> None:
        try:
            stored = dict(json.loads(read_text(self.plan)))
        except (TypeError, ValueError, RecursionError):
            raise self._input_error(f"cannot read demo.json; {ADVICE}") from None
        differences = [
            f"{key} {stored.get(key)!r}, not {value!r}"
            for key, value in plan.document().items()
            if stored.get(key) != value
        ]
        if differences:
            raise self._input_error(f"was created with {'; '.join(differences)}; {ADVICE}")

    def _input_error(self, message: str) -> InputError:
        return InputError(Problem(str(self.path), None, message))
