"""Rows, files and validation of C-STS, and the reannotation of L-CSTS.

The published files (github.com/princeton-nlp/c-sts) are ``csts_train.csv``, ``csts_validation.csv`` and
``csts_test.csv`` with the columns ``sentence1, sentence2, condition, label``. They must be requested, so no
test uses them. A label of -1 is hidden; a condition may be empty. The authors' programs group the rows by
their two sentences and ignore groups of other than two rows. The row with the higher label is the positive
one. `pairs` does the same.

In the reannotation (github.com/brandeis-llc/L-CSTS), ``uid`` ranges from 0 to 2833, "in the same order as the
original C-STS dev split". It is therefore the index of a row of ``csts_validation.csv``.

The following is inferred, not documented: the two rows of a pair are adjacent, and the condition of high
similarity comes first. In the reannotation, row 2i has a higher label than row 2i+1 791 times and a lower one
255 times. Between rows 2i+1 and 2i+2 the counts are 201 and 752, and all parts of the file agree.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from itertools import accumulate
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Location, Problem, suggestion
from bws.base.rows import csv_text
from bws.base.text import display_name, write_atomic
from bws.files.dialogue_texts import equal_form
from bws.files.schema import NAME, LocatedRecord, Schema, Unique, choice
from bws.files.table import Table, read_table
from giccs.csts import sts_benchmark

LABELS = (1, 2, 3, 4, 5)
"""The Likert scale from 1 (most dissimilar) to 5 (most similar) (C-STS, 2.2.2)."""
INVALID = -1
"""The label in the reannotation of a condition that does not apply to the sentences (L-CSTS, 3.3)."""

SAMPLE = "csts-sample"
"""The sample data set included in giccs."""
SPLITS = ("train", "validation", "test")
COLUMNS = ("sentence1", "sentence2", "condition", "label")
UID_COLUMNS = ("uid", "index", "Unnamed: 0", "column 1")
"""Names of the uid column; the last is the name that `read_table` gives to an unnamed first column."""
HIDDEN = frozenset(["", "hidden", "-1", "-1.0"])
"""Labels of rows whose label is hidden."""
NUMBERS = {text: label for label in LABELS for text in (str(label), f"{label}.0")}
RELABELS = NUMBERS | {"-1": INVALID, "-1.0": INVALID}
ALLOWED = "expected 1, 2, 3, 4 or 5"
OR_INVALID = f", or {INVALID} for an invalid condition"
RELABELLED = Schema(
    dict[str, Any],
    {
        "uid": NAME,
        "reannotated-label": choice(RELABELS, 0, f"1, 2, 3, 4 or 5{OR_INVALID}"),
    },
    unique=[Unique("uid", lambda row: str(row["uid"]))],
)


@dataclass(frozen=True, slots=True)
class Instance:
    """One row of C-STS.

    >>> Instance("0", "A red kite.", "A red bus.", "the color of the object", 5, 0).label
    5
    """

    uid: str
    """Unique in its data set: from the file, or the index of the row from 0."""
    sentence1: str
    sentence2: str
    condition: str
    label: float | None
    """An integer from 1 to 5; -1 (`INVALID`) for a condition invalid in a reannotation; None if unlabelled. A
    float from 1 to 5 in the STS Benchmark."""
    pair: int
    """Index of the sentence pair, from 0 in the order of the file."""


def text_columns(rows: Sequence[Instance]) -> dict[str, list[str]]:
    """Return the columns of a prediction table with the texts of the rows."""
    names = ("sentence1", "sentence2", "condition")
    return {name: [getattr(row, name) for row in rows] for name in names}


@dataclass(frozen=True)
class Dataset:
    """Rows of C-STS; rows of one sentence pair share its index."""

    name: str
    """The name or path given by the caller."""
    instances: tuple[Instance, ...]
    warnings: tuple[Problem, ...] = ()
    """Problems that do not make the data unusable."""
    scale: tuple[float, float] = (1.0, 5.0)
    """Scale on which annotators gave the labels; 0 to 5 in the STS Benchmark."""

    @property
    def has_conditions(self) -> bool:
        """Whether any row has a condition; the STS Benchmark has none."""
        return any(instance.condition for instance in self.instances)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, independent of the order of rows and the file format."""
        lines = sorted(_canonical(instance) for instance in self.instances)
        return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()

    def labelled(self) -> Dataset:
        """Return the data set of the rows with a label from 1 to 5."""
        return replace(
            self, instances=tuple(instance for instance in self.instances if _is_scored(instance))
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """A data set with its reannotation, and the unmatched rows and labels."""

    dataset: Dataset
    """The rows with a second label, which replaces the first."""
    without_label: tuple[str, ...]
    """uids of rows without a second label."""
    without_row: tuple[str, ...]
    """uids of second labels without a row."""


def read_csts(
    data: str | os.PathLike[str], split: str | None = None, *, relabelled: bool = False
) -> Dataset:
    """Read a C-STS file, a folder of them, or csts-sample; raise InputError with every problem.

    split: one of `SPLITS`, the file to read from a folder. None reads all existing splits as one data set,
    with uids that begin with the split (``validation:17``). The files of the STS Benchmark are read as rows
    without a condition (see `giccs.csts.sts_benchmark`). relabelled: -1 is an invalid condition, not a
    hidden label.

    Rows without a partner, pairs with equal conditions and empty conditions are usable: they are warnings
    here and problems for `check_csts`. Raises ValueError for an unknown split.
    """
    contents = _read(data, split, relabelled)
    if contents.problems:
        raise InputError(_in_order(contents.problems))
    return replace(contents.dataset(data), warnings=_in_order(contents.flaws + contents.warnings))


def check_csts(
    data: str | os.PathLike[str], split: str | None = None, *, relabelled: bool = False
) -> tuple[Dataset, list[Problem]]:
    """Read data like `read_csts`, strictly, and return the problems instead of raising them.

    A file that is not a table, or lacks a column, still raises InputError.
    """
    contents = _read(data, split, relabelled)
    return contents.dataset(data), list(_in_order(contents.problems + contents.flaws))


def pairs(dataset: Dataset) -> list[tuple[Instance, Instance]]:
    """Return (high, low) for every sentence pair of exactly two rows, both labelled or both not.

    The first row is high if labels are equal or hidden. Sentence pairs with another number of rows (as in the
    authors' programs), with one label, or with an invalid condition are skipped.
    """
    rows: dict[int, list[Instance]] = {}
    for instance in dataset.instances:
        rows.setdefault(instance.pair, []).append(instance)
    ordered = (sorted(two, key=lambda one: -(one.label or 0)) for two in rows.values())
    return [(two[0], two[1]) for two in ordered if _is_pair(two)]


def read_relabelled(path: str | os.PathLike[str]) -> dict[str, int]:
    """Read ``uid, reannotated-label`` (tab or comma): labels 1 to 5 by uid, or -1 for an invalid condition.

    Raises InputError with every problem: unknown labels, empty or repeated uids.
    """
    rows = RELABELLED.read(read_table(path)).checked()
    return {row["uid"]: row["reannotated-label"] for row in rows}


def write_relabelled(labels: Mapping[str, int], path: str | os.PathLike[str]) -> None:
    """Write labels by uid as in the file of L-CSTS, separated by tabs, atomically."""
    write_atomic(path, csv_text(labels.items(), tuple(RELABELLED.fields), separator="\t"))


def merged(dataset: Dataset, labels: Mapping[str, int]) -> Merged:
    """Assign second labels to the rows by uid; unmatched rows and labels are skipped and listed.

    >>> rows = (Instance("0", "A kite.", "A bus.", "the color", 1, 0),)
    >>> both = merged(Dataset("kites", rows), {"0": 5, "1": 2})
    >>> both.dataset.instances[0].label, both.without_label, both.without_row
    (5, (), ('1',))
    """
    uids = {instance.uid for instance in dataset.instances}
    matched_instances = [
        replace(instance, label=labels[instance.uid])
        for instance in dataset.instances
        if instance.uid in labels
    ]
    return Merged(
        replace(dataset, instances=tuple(matched_instances)),
        tuple(instance.uid for instance in dataset.instances if instance.uid not in labels),
        tuple(uid for uid in labels if uid not in uids),
    )


def write_csts(instances: Iterable[Instance], path: str | os.PathLike[str]) -> None:
    """Write rows with their uids to a CSV file atomically; labels of unlabelled rows are empty."""
    rows = (
        (instance.uid, instance.sentence1, instance.sentence2, instance.condition, instance.label)
        for instance in instances
    )
    write_atomic(path, csv_text(rows, ("uid", *COLUMNS)))


@dataclass(slots=True)
class _FileContents:
    """Rows of the files of a data set, with their locations and problems."""

    rows: list[LocatedRecord[Instance]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Errors that make a file unusable."""
    flaws: list[Problem] = field(default_factory=list)
    """Violations of the design of the data set that do not prevent its use."""
    warnings: list[Problem] = field(default_factory=list)
    scale: tuple[float, float] = (1.0, 5.0)

    def dataset(self, data: str | os.PathLike[str]) -> Dataset:
        rows = tuple(row.record for row in self.rows)
        return Dataset(os.fspath(data), rows, _in_order(self.warnings), self.scale)


def _read(data: str | os.PathLike[str], split: str | None, relabelled: bool) -> _FileContents:
    if split is not None and split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; expected one of {', '.join(SPLITS)}")
    contents = _FileContents()
    folder = Path(str(resources.files("giccs.data") / SAMPLE)) if data == SAMPLE else Path(data)
    if not folder.exists() and (guess := suggestion(str(data), [SAMPLE])):
        raise InputError(Problem(str(data), None, f"no such file{guess}"))
    if not folder.is_dir():
        _read_file(contents, data, "", relabelled)
        return contents
    for name, path in _files(folder, split):
        _read_file(contents, path, "" if split else f"{name}:", relabelled)
    contents.warnings += in_two_files(contents.rows)
    return contents


def split_file(folder: Path, split: str) -> Path | None:
    """Return the file of a split in a folder, or None."""
    names = (f"csts_{split}.csv", f"csts_{split}.csv.gz", sts_benchmark.FILES[split])
    return next((path for name in names if (path := folder / name).is_file()), None)


def _files(folder: Path, split: str | None) -> list[tuple[str, Path]]:
    splits = [split] if split else SPLITS
    paths = {name: path for name in splits if (path := split_file(folder, name))}
    if not paths:
        names = ", ".join(f"csts_{name}.csv" for name in splits)
        raise InputError(Problem(str(folder), None, f"contains none of {names} (or .csv.gz)"))
    return list(paths.items())


def _read_sts_benchmark(
    contents: _FileContents, path: str | os.PathLike[str], prefix: str
) -> None:  # fmt: skip
    file = display_name(path)
    contents.scale = sts_benchmark.SCALE
    rated_rows, problems = sts_benchmark.read_rated_rows(path)
    contents.problems += problems
    if not rated_rows and not problems:
        contents.problems.append(Problem(file, None, "no rows; expected sentence pairs"))
    first_pair = 1 + max((row.record.pair for row in contents.rows), default=-1)
    pair_of: dict[tuple[str, str], int] = {}
    rows = []
    for index, (line, score, sentence1, sentence2) in enumerate(rated_rows):
        pair = pair_of.setdefault((sentence1, sentence2), first_pair + len(pair_of))
        label = sts_benchmark.label_of(score)
        instance = Instance(f"{prefix}{index}", sentence1, sentence2, "", label, pair)
        rows.append(LocatedRecord(instance, Location(file, line)))
    contents.problems += unusable(rows)
    contents.warnings += duplicates(rows)
    contents.rows += rows


def _read_file(
    contents: _FileContents, path: str | os.PathLike[str], prefix: str, relabelled: bool
) -> None:  # fmt: skip
    if Path(path).name in sts_benchmark.FILES.values():
        _read_sts_benchmark(contents, path, prefix)
        return
    table = read_table(path, (*UID_COLUMNS, *COLUMNS))
    uid_column = next((name for name in UID_COLUMNS if name in table.frame.columns), None)
    unknown = [name for name in table.frame.columns if name not in (*COLUMNS, uid_column)]
    # With another column present, the labels may exist under another name.
    table.need(COLUMNS if unknown else COLUMNS[:3])
    contents.problems += table.problems
    if "label" not in table.frame.columns:
        contents.flaws.append(
            Problem(table.file, 1, "no column label; all labels are treated as hidden")
        )
    if not len(table.frame):
        contents.problems.append(Problem(table.file, None, "no rows; expected sentence pairs"))
    if unknown:
        contents.warnings.append(Problem(table.file, 1, f"columns ignored: {', '.join(unknown)}"))
    labels = _labels(contents, table, relabelled)
    uids = _uids(contents, table, uid_column)
    first_pair = 1 + max((row.record.pair for row in contents.rows), default=-1)
    rows = _build_rows(table, [prefix + uid for uid in uids], labels, first_pair)
    contents.problems += unusable(rows)
    contents.flaws += pairing(rows)
    contents.warnings += duplicates(rows)
    contents.rows += rows


def _build_rows(
    table: Table, uids: Sequence[str], labels: Sequence[int | None], first_pair: int
) -> list[LocatedRecord[Instance]]:
    """Return the rows; rows with the same two sentences have the same pair index, wherever they are."""
    lines: list[int] = table.lines.tolist()
    texts = (table.frame[name].to_list() for name in COLUMNS[:3])
    pair_of: dict[tuple[str, str], int] = {}
    rows = []
    for line, uid, label, sentence1, two, condition in zip(
        lines, uids, labels, *texts, strict=True
    ):
        pair = pair_of.setdefault((sentence1, two), first_pair + len(pair_of))
        instance = Instance(uid, sentence1, two, condition, label, pair)
        rows.append(LocatedRecord(instance, Location(table.file, line)))
    return rows


def _uids(contents: _FileContents, table: Table, column: str | None) -> list[str]:
    """Return the uids of the file, or the indices of its rows; note empty uids."""
    if column is None:
        return list(map(str, range(len(table.frame))))
    uids = [cell.strip() for cell in table.frame[column].to_list()]
    contents.problems += [
        Problem(table.file, line, f"{column} is empty; expected a unique uid")
        for line, uid in zip(table.lines.tolist(), uids, strict=True)
        if not uid
    ]
    return uids


def _labels(contents: _FileContents, table: Table, relabelled: bool) -> list[int | None]:
    """Return the labels, None for missing ones; note unknown labels."""
    if "label" not in table.frame.columns:
        return [None] * len(table.frame)
    cells = [cell.strip() for cell in table.frame["label"].to_list()]
    hidden = HIDDEN - RELABELS.keys() if relabelled else HIDDEN
    if all(cell.lower() in hidden for cell in cells):
        return [None] * len(cells)
    label_values = RELABELS if relabelled else NUMBERS
    also = OR_INVALID if relabelled else f" ({INVALID} only in a reannotation)"
    contents.problems += [
        Problem(table.file, line, f"label is {cell!r}; {ALLOWED}{also}")
        for line, cell in zip(table.lines.tolist(), cells, strict=True)
        if cell and cell not in label_values
    ]
    if empty := cells.count(""):
        message = f"{empty} of {len(cells)} rows have no label"
        contents.warnings.append(Problem(table.file, None, message))
    return [label_values.get(cell) for cell in cells]


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda one: (one.file, one.line or 0)))


def _is_scored(instance: Instance) -> bool:
    return instance.label is not None and instance.label != INVALID


def _is_pair(rows: Sequence[Instance]) -> bool:
    return len(rows) == 2 and (
        all(map(_is_scored, rows)) or all(row.label is None for row in rows)
    )  # fmt: skip


def _canonical(instance: Instance) -> str:
    values = [
        instance.uid,
        instance.sentence1,
        instance.sentence2,
        instance.condition,
        instance.label,
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


UID = Unique[Instance]("uid", lambda instance: instance.uid)


def unusable(rows: Sequence[LocatedRecord[Instance]]) -> list[Problem]:
    """Return problems of empty sentences and repeated uids."""
    empty = [
        row.location.problem(f"{name} is empty; expected text")
        for row in rows
        for name in ("sentence1", "sentence2")
        if not getattr(row.record, name).strip()
    ]
    return [*empty, *UID.problems(rows)]


def pairing(rows: Sequence[LocatedRecord[Instance]]) -> list[Problem]:
    """Return violations of the design: each sentence pair must have two rows with two conditions."""
    problems = [
        row.location.problem("condition is empty; expected text")
        for row in rows
        if not row.record.condition.strip()
    ]
    row_indices: dict[int, list[int]] = {}
    for index, located_row in enumerate(rows):
        row_indices.setdefault(located_row.record.pair, []).append(index)
    for members in row_indices.values():
        problems += _pair_problems(rows, members)
    return problems


def duplicates(rows: Sequence[LocatedRecord[Instance]]) -> list[Problem]:
    """Return problems of rows that repeat the label of an earlier row and, up to white space, its texts."""
    first: dict[tuple[object, ...], LocatedRecord[Instance]] = {}
    problems = []
    for row in rows:
        record = row.record
        texts = map(equal_form, (record.sentence1, record.sentence2, record.condition))
        earlier = first.setdefault((*texts, record.label), row)
        if earlier is not row:
            message = f"repeats line {earlier.location.line}, with the same label"
            problems.append(row.location.problem(message))
    return problems


def in_two_files(rows: Sequence[LocatedRecord[Instance]]) -> list[Problem]:
    """Return problems of files that share sentence pairs with an earlier file: overlapping splits."""
    first: dict[tuple[str, str], str] = {}
    again: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        earlier = first.setdefault((row.record.sentence1, row.record.sentence2), row.location.file)
        if earlier != row.location.file:
            again.setdefault((row.location.file, earlier), set()).add(row.record.pair)
    return [
        Problem(file, None, f"{len(same_rows)} of its sentence pairs are also in {earlier}")
        for (file, earlier), same_rows in again.items()
    ]


def _pair_problems(
    rows: Sequence[LocatedRecord[Instance]], members: Sequence[int]
) -> Iterator[Problem]:
    first = rows[members[0]]
    if len(members) != 2:
        rows_text = "one row" if len(members) == 1 else f"{len(members)} rows"
        yield first.location.problem(
            f"its sentence pair has {rows_text}; expected two, with one condition each"
        )
        return
    second = rows[members[1]]
    if members[1] != members[0] + 1:
        message = (
            f"the other row of its sentence pair is line {first.location.line}; the two rows must "
            "be adjacent"
        )
        yield second.location.problem(message)
    conditions = {row.record.condition.strip().casefold() for row in (first, second)}
    if len(conditions) == 1 and conditions != {""}:
        message = (
            f"repeats the condition of line {first.location.line}; expected different "
            "conditions within a pair"
        )
        yield second.location.problem(message)


def relabel_rows(dataset: Dataset, labels: Mapping[str, int]) -> tuple[Dataset, int]:
    """Assign second labels to the rows; return the valid rows and the number of invalid conditions.

    >>> rows = [Instance(uid, "A kite.", "A bus.", "the color", 1, 0) for uid in ("0", "1")]
    >>> valid, n_invalid = relabel_rows(Dataset("kites", tuple(rows)), {"0": 5, "1": -1})
    >>> [(row.uid, row.label) for row in valid.instances], n_invalid
    ([('0', 5)], 1)
    """
    relabelled_dataset = merged(dataset, labels).dataset
    valid_instances = tuple(
        instance for instance in relabelled_dataset.instances if instance.label != INVALID
    )
    return replace(relabelled_dataset, instances=valid_instances), len(
        relabelled_dataset.instances
    ) - len(valid_instances)


def divide_rows(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Split the rows at random into approximately this share and the rest.

    L-CSTS samples 70 % of the instances. Here, the rows of a sentence pair stay together, because a model
    trained on a pair under one condition has seen the sentences of the other. The share is therefore accurate
    to one pair. Raises ValueError for a share outside (0, 1).
    """
    import numpy as np

    if not 0 < share < 1:
        raise ValueError(f"share is {share}; expected a number between 0 and 1")
    rows = Counter(instance.pair for instance in dataset.instances)
    pairs = np.random.default_rng(seed).permutation(sorted(rows)).tolist()
    before = [0, *accumulate(rows[pair] for pair in pairs)]
    enough = share * len(dataset.instances)
    first = {pair for pair, so_far in zip(pairs, before, strict=False) if so_far < enough}
    inside, outside = (
        tuple(instance for instance in dataset.instances if (instance.pair in first) is in_first)
        for in_first in (True, False)
    )
    return replace(dataset, instances=inside), replace(dataset, instances=outside)
