"""Similarity data: sets of text pairs with human similarity ratings, from files, folders or data frames.

In a folder, the files of STS-Benchmark (sts-train, sts-dev, sts-test) form one set, as do those of SICK. In a
folder with SemEval files, each STS.input.NAME with its STS.gs.NAME is a set, and other files are skipped.
Otherwise each file is a set, named after the file. For file formats see `giccs.evalrank.similarity_formats`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bws.base.frames import Source, is_path
from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from giccs.evalrank.data import is_ranking_folder
from giccs.evalrank.semeval_sts import input_files, set_name
from giccs.evalrank.similarity_formats import Columns, RatedFile, RatedPair, read_rated

DATA_SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl")
MULTI_FILE_SETS: Mapping[str, tuple[str, ...]] = {
    "STS-Benchmark": ("sts-train.csv", "sts-dev.csv", "sts-test.csv"),
    "SICK": ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"),
}
"""Files by set name, in the order in which they are joined."""
NON_DATA_PREFIXES = ("readme", "license", "licence")
"""Prefixes of names of files that contain no data."""


@dataclass(frozen=True)
class SimilaritySet:
    """Rated pairs of one source."""

    name: str
    pairs: tuple[RatedPair, ...]
    """In the order of the files."""
    scale: tuple[float, float] | None
    """Minimum and maximum of the rating scale; None if unknown."""
    files: tuple[tuple[str, str], ...]
    """Names and SHA-256 digests of the files."""
    n_unrated: int = 0
    """Number of rows without a score, which are excluded from `pairs`."""
    repeated_headers: tuple[tuple[str, int], ...] = ()
    """Files and lines that repeat the header, which are excluded from `pairs`."""


@dataclass(frozen=True)
class SimilarityData:
    """One or more similarity sets."""

    name: str
    """Name of the file or folder as given by the user."""
    sets: tuple[SimilaritySet, ...]
    warnings: tuple[Problem, ...] = ()
    """Non-fatal problems of the data."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, independent of the order of rows and the file format."""
        lines = sorted(
            json.dumps(
                [similarity_set.name if len(self.sets) > 1 else "", *pair], ensure_ascii=False
            )
            for similarity_set in self.sets
            for pair in similarity_set.pairs
        )
        return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()

    def first(self, pairs: int) -> SimilarityData:
        """Return the data with the first `pairs` pairs of each set."""
        return replace(
            self,
            sets=tuple(
                replace(similarity_set, pairs=similarity_set.pairs[:pairs])
                for similarity_set in self.sets
            ),
        )

    def described(self) -> str:
        """Return the numbers of pairs and sets as text."""
        pairs = f"{sum(len(similarity_set.pairs) for similarity_set in self.sets)} pairs"
        return pairs if len(self.sets) == 1 else f"{pairs} in {len(self.sets)} sets"


def read_similarity(data: Source, columns: Columns | None = None) -> SimilarityData:
    """Read rated pairs from a file, a folder, a data frame or a list of dicts.

    columns: names of the columns of the two texts and the score in a table; None tries the known names.

    Repeated pairs of a set, in either order, are kept and counted in a warning. Raises InputError with all
    problems of all files.

    >>> read_similarity([{"sentence1": "A kite.", "sentence2": "A red kite.", "score": 4}]).described()
    '1 pairs'
    """
    name = display_name(data)
    files_by_set: dict[str, list[RatedFile]] = {}
    problems: list[Problem] = []
    sources = _find_sets(Path(data)) if is_path(data) else [("data", [data])]
    for source, paths in sources:
        for path in paths:
            try:
                files_by_set.setdefault(source, []).append(read_rated(path, columns))
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems)
    sets = tuple(_join_files(source, files) for source, files in files_by_set.items())
    warnings = [
        *(_unused_file_warnings(Path(data), sets) if is_path(data) else ()),
        *(
            text
            for similarity_set in sets
            for text in (
                *_missing_file_warnings(similarity_set),
                *_unrated_warnings(similarity_set),
                *_repeated_header_warnings(similarity_set),
                *_repeated_pair_warnings(similarity_set),
            )
        ),
    ]
    return SimilarityData(name, sets, tuple(Problem(name, None, text) for text in warnings))


def _find_sets(location: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    """Yield the name and the files of each set."""
    if not location.is_dir():
        yield _set_stem(location), [location]
        return
    for name, parts in MULTI_FILE_SETS.items():
        if any((location / part).is_file() for part in parts):
            yield name, [location / part for part in parts if (location / part).is_file()]
            return
    if is_ranking_folder(location):
        message = "ranking data (for evalrank-* and uniformity); expected rated pairs"
        raise InputError(Problem(str(location), None, message))
    files = [path for path in sorted(location.iterdir()) if _is_data(path)]
    if any(map(set_name, files)):
        yield from _semeval_sets(location, files)
        return
    if not files:
        inside = ", ".join(sorted(path.name for path in location.iterdir() if path.is_dir()))
        endings = ", ".join(DATA_SUFFIXES)
        message = f"no data files; expected a file or folder with files that end with {endings}"
        hint = f" (subfolders: {inside})" if inside else ""
        raise InputError(Problem(str(location), None, message + hint))
    for path in files:
        yield _set_stem(path), [path]


def _semeval_sets(location: Path, files: Sequence[Path]) -> Iterator[tuple[str, Sequence[Path]]]:
    inputs = input_files(files)
    if not inputs:
        message = "gold scores (STS.gs.*) without texts; expected STS.input.* in the same folder"
        raise InputError(Problem(str(location), None, message))
    for path in inputs:
        yield set_name(path), [path]


def _unused_file_warnings(location: Path, sets: Sequence[SimilaritySet]) -> Iterator[str]:
    """Yield a warning if data files of a folder belong to no set."""
    used = {file for similarity_set in sets for file, _ in similarity_set.files}
    files = sorted(location.iterdir()) if location.is_dir() else []
    if unused := [path.name for path in files if _is_data(path) and str(path) not in used]:
        yield f"{', '.join(unused)}: skipped, part of no set"


def _is_data(path: Path) -> bool:
    name = path.name.lower()
    return (
        path.is_file()
        and name.removesuffix(".gz").endswith(DATA_SUFFIXES)
        and not name.startswith((".", *NON_DATA_PREFIXES))
    )


def _set_stem(path: Path) -> str:
    return set_name(path) or Path(path.name.removesuffix(".gz")).stem


def _join_files(name: str, files: Sequence[RatedFile]) -> SimilaritySet:
    scales = {file.scale for file in files}
    return SimilaritySet(
        name,
        tuple(pair for file in files for pair in file.pairs),
        scales.pop() if len(scales) == 1 else None,
        tuple(file for rated_file in files for file in rated_file.files),
        sum(file.n_unrated for file in files),
        tuple((file.files[0][0], line) for file in files for line in file.repeated_headers),
    )


def _missing_file_warnings(similarity_set: SimilaritySet) -> Iterator[str]:
    present_files = {Path(file).name for file, _ in similarity_set.files}
    missing_files = [
        part for part in MULTI_FILE_SETS.get(similarity_set.name, ()) if part not in present_files
    ]
    if missing_files:
        names = ", ".join(missing_files)
        yield f"{similarity_set.name}: {names} missing; the set contains the other files only"


def _unrated_warnings(similarity_set: SimilaritySet) -> Iterator[str]:
    if similarity_set.n_unrated:
        rows = similarity_set.n_unrated + len(similarity_set.pairs)
        yield f"{similarity_set.name}: {similarity_set.n_unrated} of {rows} rows have no gold score; skipped"


def _repeated_header_warnings(similarity_set: SimilaritySet) -> Iterator[str]:
    lines = similarity_set.repeated_headers
    if lines:
        first, number = lines[0]
        skipped = f"{len(lines)} lines repeat the header; skipped (first: {first}:{number})"
        yield f"{similarity_set.name}: {skipped}"


def _repeated_pair_warnings(similarity_set: SimilaritySet) -> Iterator[str]:
    n_repeated = len(similarity_set.pairs) - len({pair.texts for pair in similarity_set.pairs})
    if n_repeated:
        share = f"{n_repeated} of {len(similarity_set.pairs)} pairs"
        yield f"{similarity_set.name}: {share} repeat an earlier one and are kept"
