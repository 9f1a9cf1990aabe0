"""Input files of a report and their digest."""

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
    from giccs.measures.results import Limits, Result


@dataclass(frozen=True)
class Inputs:
    """Names of files in a folder; sections with missing files are omitted."""

    folder: Path
    simulated: bool = False
    """Whether the annotators are simulated, which the page then states."""
    benchmark_file: str = "benchmark.jsonl"
    judgments_file: str = "judgments.csv"
    anchors_file: str = "anchors.csv"
    metadata_file: str = "dialogues.jsonl"
    """File with source and n_turns of each dialogue, for example a benchmark."""
    dialogues_file: str = "dialogues.jsonl"
    tuples_file: str = "tuples.csv"
    settings_file: str = "hits.toml"
    results_folder: str = "results"

    def path(self, name: str) -> Path:
        """Return the path of a file of the folder."""
        return self.folder / name

    def has(self, *names: str) -> bool:
        """Return whether all files exist."""
        return all(self.path(name).exists() for name in names)

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        from giccs.benchmark import read_benchmark

        return read_benchmark(self.path(self.benchmark_file))

    @cached_property
    def judgments(self) -> Judgments | None:
        """The judgments; None if the judgments or the metadata are missing."""
        from bws.files import read_judgments

        is_available = self.has(self.judgments_file, self.metadata_file)
        path = self.path(self.judgments_file)
        return read_judgments(path, allow_copies=True) if is_available else None

    @cached_property
    def limits(self) -> Limits:
        """Limits of correlations from the anchors; none without anchors or absolute scores."""
        from giccs.measures.absolute_ceiling import cached_limits, load_anchors

        has_absolute = all(item.absolute_score is not None for item in self.benchmark.items)
        if self.judgments is None or not has_absolute or not self.has(self.anchors_file):
            return {}
        anchors = load_anchors(self.benchmark, self.path(self.anchors_file))
        folder = self.path(self.results_folder)
        return cached_limits(folder, self.judgments, anchors, self.benchmark) if anchors else {}

    @property
    def study(self) -> tuple[str, str, str]:
        """Names of the files of the study: tuples, dialogues, settings."""
        return self.tuples_file, self.dialogues_file, self.settings_file

    @cached_property
    def results(self) -> list[Result]:
        """All results in the order of giccs report."""
        from giccs.measures.results import Store

        has_some = self.path(self.results_folder).is_dir()
        return list(Store(self.path(self.results_folder)).results()) if has_some else []

    def digest(self) -> str:
        """Return the SHA-256 digest of all input files."""
        names = [self.benchmark_file, self.judgments_file, self.anchors_file, self.metadata_file]
        names += self.study
        paths = [self.path(name) for name in names]
        paths += sorted(self.path(self.results_folder).glob("*--*--*.json"))
        digest = hashlib.sha256(repr((self.simulated, names)).encode())
        for path in filter(os.path.exists, paths):
            digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
        return digest.hexdigest()
