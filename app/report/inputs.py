"""The input files of a report, read once, and their digest."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bws.records import Judgments
    from giccs.benchmark import Benchmark
    from giccs.measures.results import Result

__all__ = ["Inputs"]


@dataclass(frozen=True)
class Inputs:
    """Names of files in a folder; a section whose files are not there is left out."""

    folder: Path
    simulated: bool = False
    """Whether the annotators are; the page then says so wherever their scores count."""
    benchmark_file: str = "benchmark.jsonl"
    judgments_file: str = "judgments.csv"
    metadata_file: str = "dialogues.jsonl"
    """What has source and n_turns of each dialogue; a benchmark will do."""
    dialogues_file: str = "dialogues.jsonl"
    tuples_file: str = "tuples.csv"
    settings_file: str = "hits.toml"
    results_folder: str = "results"

    def path(self, name: str) -> Path:
        """Return where a file of the folder lies."""
        return self.folder / name

    def has(self, *names: str) -> bool:
        """Tell whether all of these are there."""
        return all(self.path(name).exists() for name in names)

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        from giccs.benchmark import read_benchmark

        return read_benchmark(self.path(self.benchmark_file))

    @cached_property
    def judgments(self) -> Judgments | None:
        """The judgments; None where they, or what tells parts of them apart, are not there."""
        from bws.files import read_judgments

        there = self.has(self.judgments_file, self.metadata_file)
        return read_judgments(self.path(self.judgments_file)) if there else None

    @property
    def study(self) -> tuple[str, str, str]:
        """The files that say what was asked: tuples, dialogues, settings."""
        return self.tuples_file, self.dialogues_file, self.settings_file

    @cached_property
    def results(self) -> list[Result]:
        """All results, in the order in which giccs-report prints them."""
        from giccs.measures.results import Store

        has_some = self.path(self.results_folder).is_dir()
        return list(Store(self.path(self.results_folder)).results()) if has_some else []

    def digest(self) -> str:
        """Return SHA-256 over all that the page is made from."""
        names = [self.benchmark_file, self.judgments_file, self.metadata_file, *self.study]
        paths = [self.path(name) for name in names]
        paths += sorted(self.path(self.results_folder).glob("*--*--*.json"))
        found = hashlib.sha256(repr((self.simulated, names)).encode())
        for path in filter(os.path.exists, paths):
            found.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
        return found.hexdigest()
