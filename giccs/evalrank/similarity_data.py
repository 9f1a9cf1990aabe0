"""Which pairs of texts did people rate, and how similar did they find them?

Data is a file, or a folder. In a folder, the files of STS-Benchmark (sts-train, sts-dev, sts-test) are one
set and so are those of SICK; a file STS.input.NAME and its STS.gs.NAME are a set each, and the only ones of
their folder; other files are a set each, named after the file. How a file is read is in
`giccs.evalrank.similarity_formats`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bws.problems import InputError, Problem
from giccs.evalrank.data import holds_pairs
from giccs.evalrank.semeval_sts import input_files, set_name
from giccs.evalrank.similarity_formats import Columns, RatedFile, RatedPair, read_rated

__all__ = ["SimilarityData", "SimilaritySet", "read_similarity"]

ENDINGS = (".txt", ".csv", ".tsv", ".jsonl")
IN_PARTS: Mapping[str, tuple[str, ...]] = {
    "STS-Benchmark": ("sts-train.csv", "sts-dev.csv", "sts-test.csv"),
    "SICK": ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"),
}
"""Name of a set -> the files it comes in, in the order in which they are joined."""
BESIDE = ("readme", "license", "licence")
"""How files begin that lie beside data and hold none."""


@dataclass(frozen=True)
class SimilaritySet:
    """Rated pairs of one source."""

    name: str
    pairs: tuple[RatedPair, ...]
    """In the order of the files."""
    scale: tuple[float, float] | None
    """The least and the most similar a pair can be; None where the files do not tell."""
    files: tuple[tuple[str, str], ...]
    """(file, SHA-256 of its bytes)."""
    n_unrated: int = 0
    """Rows without a score, which are not among the pairs."""


@dataclass(frozen=True)
class SimilarityData:
    """One set or more."""

    name: str
    """How it was called."""
    sets: tuple[SimilaritySet, ...]
    warnings: tuple[Problem, ...] = ()
    """What is odd but does not make the data unusable."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the content, whatever the order of the rows and the form of the files."""
        lines = sorted(
            json.dumps([one.name if len(self.sets) > 1 else "", *pair], ensure_ascii=False)
            for one in self.sets
            for pair in one.pairs
        )
        return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()

    def first(self, pairs: int) -> SimilarityData:
        """Return the data of the first `pairs` pairs of every set."""
        return replace(self, sets=tuple(replace(one, pairs=one.pairs[:pairs]) for one in self.sets))

    def described(self) -> str:
        """Return how many pairs of how many sets there are."""
        pairs = f"{sum(len(one.pairs) for one in self.sets)} pairs"
        return pairs if len(self.sets) == 1 else f"{pairs} in {len(self.sets)} sets"


def read_similarity(data: str | os.PathLike[str], columns: Columns | None = None) -> SimilarityData:
    """Read rated pairs from a file or a folder; raise InputError with every problem of every file.

    columns: what the two texts and the score are called in a table; None tries the names that are known.
    Pairs that repeat an earlier one of their set, in either order, are kept: a warning counts them.
    """
    name = os.fspath(data)
    found: dict[str, list[RatedFile]] = {}
    problems: list[Problem] = []
    for source, paths in _sources(Path(data)):
        for path in paths:
            try:
                found.setdefault(source, []).append(read_rated(path, columns))
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems)
    sets = tuple(_joined(source, files) for source, files in found.items())
    warnings = [
        *_unused(Path(data), sets),
        *(text for one in sets for text in (*_missing(one), *_unrated(one), *_repeated(one))),
    ]
    return SimilarityData(name, sets, tuple(Problem(name, None, text) for text in warnings))


def _sources(place: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    """Yield the name and the files of every set."""
    if not place.is_dir():
        yield _stem(place), [place]
        return
    for name, parts in IN_PARTS.items():
        if any((place / part).is_file() for part in parts):
            yield name, [place / part for part in parts if (place / part).is_file()]
            return
    if holds_pairs(place):
        message = "holds ranking data (for evalrank-* and uniformity); rated pairs are expected"
        raise InputError(Problem(str(place), None, message))
    files = [path for path in sorted(place.iterdir()) if _is_data(path)]
    if any(map(set_name, files)):
        yield from _semeval_sets(place, files)
        return
    if not files:
        inside = ", ".join(sorted(path.name for path in place.iterdir() if path.is_dir()))
        message = (
            f"holds no file that ends with {', '.join(ENDINGS)}; name a file or a folder that does"
        )
        hint = f" (in it are the folders {inside})" if inside else ""
        raise InputError(Problem(str(place), None, message + hint))
    for path in files:
        yield _stem(path), [path]


def _semeval_sets(place: Path, files: Sequence[Path]) -> Iterator[tuple[str, Sequence[Path]]]:
    inputs = input_files(files)
    if not inputs:
        message = "holds gold scores (STS.gs.*) without their texts; copy STS.input.* into it"
        raise InputError(Problem(str(place), None, message))
    for path in inputs:
        yield set_name(path), [path]


def _unused(place: Path, sets: Sequence[SimilaritySet]) -> Iterator[str]:
    """Yield a warning for the data files of a folder that belong to no set."""
    used = {file for one in sets for file, _ in one.files}
    files = sorted(place.iterdir()) if place.is_dir() else []
    if unused := [path.name for path in files if _is_data(path) and str(path) not in used]:
        yield f"{', '.join(unused)}: skipped, part of no set"


def _is_data(path: Path) -> bool:
    name = path.name.lower()
    return (
        path.is_file()
        and name.removesuffix(".gz").endswith(ENDINGS)
        and not name.startswith((".", *BESIDE))
    )


def _stem(path: Path) -> str:
    return set_name(path) or Path(path.name.removesuffix(".gz")).stem


def _joined(name: str, files: Sequence[RatedFile]) -> SimilaritySet:
    scales = {one.scale for one in files}
    return SimilaritySet(
        name,
        tuple(pair for one in files for pair in one.pairs),
        scales.pop() if len(scales) == 1 else None,
        tuple(file for one in files for file in one.files),
        sum(one.n_unrated for one in files),
    )


def _missing(of: SimilaritySet) -> Iterator[str]:
    there = {Path(file).name for file, _ in of.files}
    lost = [part for part in IN_PARTS.get(of.name, ()) if part not in there]
    if lost:
        yield f"{of.name}: {', '.join(lost)} is not there; the set is what the other files hold"


def _unrated(of: SimilaritySet) -> Iterator[str]:
    if of.n_unrated:
        rows = of.n_unrated + len(of.pairs)
        yield f"{of.name}: {of.n_unrated} of {rows} rows have no gold score; skipped"


def _repeated(of: SimilaritySet) -> Iterator[str]:
    again = len(of.pairs) - len({pair.texts for pair in of.pairs})
    if again:
        yield f"{of.name}: {again} of {len(of.pairs)} pairs repeat an earlier one, and stay"
