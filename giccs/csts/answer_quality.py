"""Quality of generated answers, rated by people from 1 to 5 (L-CSTS, section 4.1, "Answer quality analysis").

The paper samples 200 instances, and two annotators rate each answer from "unrelated" to "very accurate". It
reports "a Spearman's Correlation of 4.54" and an accuracy of 75 % ("labels with 5"). A correlation cannot be
4.54, so that this is taken as the mean rating.

Raters get sheets without the names of the models, each in another order. ``key.csv`` beside the sheets says
which answer a row is about.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bws.base.problems import InputError, Location, Problem
from bws.base.rows import csv_text
from bws.base.text import display_name, write_atomic
from bws.files.schema import NAME, TEXT, Field, Schema, Unique, choice
from bws.files.table import read_table
from bws.stats.estimates import Estimate
from giccs.csts.answer_generation import question
from giccs.csts.data import LABELS, NUMBERS, Dataset, Instance
from giccs.csts.measures import RESAMPLES
from giccs.csts.verification import fleiss_kappas
from giccs.measures.clusters import Clusters
from giccs.measures.metrics import SHARE_BOUNDS, Floats, Ints, jackknife_estimate

RATINGS = LABELS
"""From 1 (unrelated) to 5 (very accurate)."""
BEST = max(RATINGS)
KEY_FILE = "key.csv"
KEY_COLUMNS = ("id", "answers", "uid", "pair", "sentence")
SHEET_COLUMNS = ("id", "sentence", "question", "answer", "rating")
RATING_BOUNDS = (1.0, 5.0)
DIFFERENCE_BOUNDS = (-4.0, 4.0)
NOT_RATED = 0


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """A row of ``key.csv``: an answer about one sentence of an instance."""

    id: str
    answers: str
    """Name of the file of answers."""
    uid: str
    pair: int
    """Index of the sentence pair."""
    sentence: str
    """1 or 2."""


@dataclass(frozen=True, eq=False, slots=True)
class Ratings:
    """Ratings of N answers by R raters."""

    answers: tuple[RatedAnswer, ...]
    raters: tuple[str, ...]
    """Names of the sheets."""
    values: Ints
    """(N, R) ratings from 1 to 5; 0 where an answer is not rated."""

    @property
    def pairs(self) -> Ints:
        """(N,) index of the sentence pair of each answer."""
        return np.array([answer.pair for answer in self.answers], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of the answers of one file."""

    answers: str
    mean: Estimate
    """Mean rating."""
    accuracy: Estimate
    """Share of ratings that are 5."""
    difference: Estimate | None
    """Mean rating minus that of the first file, over answers that are rated in both; None for the first."""


ANSWERS = Schema(
    dict[str, str],
    {"uid": NAME, "answer1": TEXT, "answer2": TEXT},
    unique=[Unique("uid", lambda row: row["uid"])],
)


def _index(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("it must be a whole number")
    return int(text)


KEY = Schema(
    RatedAnswer,
    {
        "id": NAME,
        "answers": NAME,
        "uid": NAME,
        "pair": Field(_index, 0),
        "sentence": choice({"1": "1", "2": "2"}, "", "1 or 2"),
    },
    unique=[Unique("id", lambda answer: answer.id)],
)
SHEET = Schema(
    dict[str, Any],
    {"id": NAME, "rating": choice({**NUMBERS, "": NOT_RATED}, NOT_RATED, "1, 2, 3, 4, 5 or empty")},
    unique=[Unique("id", lambda row: str(row["id"]))],
)


def write_sheets(
    folder: str | os.PathLike[str],
    dataset: Dataset,
    answers: Sequence[str | os.PathLike[str]],
    instances: int = 200,
    raters: int = 2,
    seed: int = 0,
) -> list[Path]:
    """Write a sheet per rater and the key; return the files.

    answers: files with the columns uid, answer1 and answer2, as from ``giccs csts answers``. The sample is
    drawn from the instances that have answers in all of them, or is all of these if there are fewer.
    Raises InputError for invalid answers, for two files of one name, if no instance has answers in all files,
    or if the folder has a key, whose sheets may contain ratings.
    """
    target = Path(folder)
    if (target / KEY_FILE).exists():
        message = "exists, and its sheets may contain ratings; choose another folder"
        raise InputError(Problem(str(target / KEY_FILE), None, message))
    by_file = _answers_by_file(answers)
    rng = np.random.default_rng(seed)
    complete = [
        row
        for row in dataset.instances
        if question(row.condition) and all(row.uid in by_uid for by_uid in by_file.values())
    ]
    if not complete:
        message = "no instance has a condition and answers in all files; expected uids of the data"
        raise InputError(Problem(", ".join(by_file), None, message))
    sample = sorted(rng.permutation(len(complete))[:instances].tolist())
    rows = [row for index in sample for row in _rows(complete[index], by_file)]
    ids = [f"r{number + 1:04}" for number in rng.permutation(len(rows))]
    key = [(row_id, *row[:4]) for row_id, row in zip(ids, rows, strict=True)]
    files = {target / KEY_FILE: csv_text(sorted(key), KEY_COLUMNS)}
    lines = [(row_id, *row[4:], "") for row_id, row in zip(ids, rows, strict=True)]
    for rater in range(1, raters + 1):
        order = rng.permutation(len(lines)).tolist()
        sheet = csv_text((lines[index] for index in order), SHEET_COLUMNS)
        files[target / f"rater-{rater}.csv"] = sheet
    target.mkdir(parents=True, exist_ok=True)
    for path, content in reversed(files.items()):  # the key last: it marks a complete folder
        write_atomic(path, content)
    return list(files)


def _answers_by_file(
    files: Iterable[str | os.PathLike[str]],
) -> dict[str, dict[str, tuple[str, str]]]:
    by_file: dict[str, dict[str, tuple[str, str]]] = {}
    for file in files:
        name = Path(file).name
        if name in by_file:
            raise InputError(
                Problem(display_name(file), None, "two files of answers have this name")
            )
        rows = ANSWERS.read(read_table(file)).checked("answers")
        by_file[name] = {row["uid"]: (row["answer1"], row["answer2"]) for row in rows}
    return by_file


def _rows(
    row: Instance, by_file: Mapping[str, Mapping[str, tuple[str, str]]]
) -> list[tuple[str, ...]]:
    """Return (file, uid, pair, number of the sentence, sentence, question, answer) per answer."""
    asked = question(row.condition)
    return [
        (file, row.uid, str(row.pair), str(number), sentence, asked, answer)
        for file, by_uid in by_file.items()
        for number, sentence, answer in zip(
            (1, 2), (row.sentence1, row.sentence2), by_uid[row.uid], strict=True
        )
    ]


def read_ratings(folder: str | os.PathLike[str]) -> Ratings:
    """Read the key and all sheets ``rater-….csv`` of a folder.

    Raises InputError with every problem: no sheet, a rating that is not from 1 to 5, an id that is missing or
    not in the key, no rating at all, or files with answers about different sentences.
    """
    answers = KEY.read(read_table(Path(folder, KEY_FILE))).checked("answers")
    _check_same_sentences(folder, answers)
    index_of = {answer.id: index for index, answer in enumerate(answers)}
    sheets = sorted(Path(folder).glob("rater-*.csv"))
    if not sheets:
        raise InputError(Problem(str(folder), None, "no sheets of ratings; expected rater-1.csv …"))
    values = np.full((len(answers), len(sheets)), NOT_RATED, dtype=np.intp)
    problems: list[Problem] = []
    for rater, sheet in enumerate(sheets):
        read = SHEET.read(read_table(sheet))
        problems += read.problems
        unknown = [row for row in read.rows if row.record["id"] not in index_of]
        problems += [_not_in_key(row.record["id"], row.location) for row in unknown]
        known = [row.record for row in read.rows if row.record["id"] in index_of]
        if missing := index_of.keys() - {row["id"] for row in known}:
            message = f"{len(missing)} ids of the key are missing, among them {min(missing)}"
            problems.append(Problem(str(sheet), None, message))
        for row in known:
            values[index_of[row["id"]], rater] = row["rating"]
    if not problems and not values.any():
        problems.append(Problem(str(folder), None, "the sheets contain no ratings yet"))
    if problems:
        raise InputError(problems)
    return Ratings(tuple(answers), tuple(sheet.stem for sheet in sheets), values)


def _check_same_sentences(folder: str | os.PathLike[str], answers: Iterable[RatedAnswer]) -> None:
    sentences: dict[str, list[tuple[str, str]]] = {}
    for answer in answers:
        sentences.setdefault(answer.answers, []).append((answer.uid, answer.sentence))
    if len({tuple(sorted(of_file)) for of_file in sentences.values()}) > 1:
        message = "the files of answers are about different sentences; expected the key as written"
        raise InputError(Problem(str(Path(folder, KEY_FILE)), None, message))


def _not_in_key(row_id: str, location: Location) -> Problem:
    return location.problem(f"id {row_id!r} is not in {KEY_FILE}")


def quality(ratings: Ratings, *, seed: int = 0) -> list[Quality]:
    """Return the quality of each file of answers, in the order of their names.

    Intervals: `giccs.measures.metrics.jackknife_interval` over sentence pairs, because the conditions of a
    pair share sentences. `seed`: as in `giccs.measures.metrics.correlations`.
    NaN with a reason: no answer is rated.

    >>> key = [RatedAnswer(f"r{n}", "a.csv", str(n), n, "1") for n in range(4)]
    >>> (only,) = quality(Ratings(tuple(key), ("rater-1",), np.array([[5], [5], [4], [0]])))
    >>> round(only.mean.value, 3), round(only.accuracy.value, 3), only.mean.n
    (4.667, 0.667, 3)
    """
    values, pair = ratings.values, ratings.pairs
    rated = (values != NOT_RATED).sum(axis=1).astype(np.float64)
    total, best = values.sum(axis=1).astype(np.float64), (values == BEST).sum(axis=1)

    def ratio(numerator: Floats, rows: Ints, bounds: tuple[float, float], n: Floats) -> Estimate:
        return _ratio(numerator, n, pair[rows], bounds, seed)

    rows_of = _rows_of_files(ratings)
    first, *_ = rows_of.values()
    qualities = []
    for file, rows in rows_of.items():
        mean = ratio(total[rows], rows, RATING_BOUNDS, rated[rows])
        accuracy = ratio(best[rows].astype(np.float64), rows, SHARE_BOUNDS, rated[rows])
        difference = None
        if rows is not first:
            both = (rated[rows] > 0) & (rated[first] > 0)
            ours, theirs = rows[both], first[both]
            gained = total[ours] / rated[ours] - total[theirs] / rated[theirs]
            difference = ratio(gained, ours, DIFFERENCE_BOUNDS, np.ones(len(ours)))
        qualities.append(Quality(file, mean, accuracy, difference))
    return qualities


def rater_agreement(ratings: Ratings, *, seed: int = 0) -> tuple[Estimate, Estimate]:
    """Return Fleiss' kappa of the ratings, and the share of answers that all raters rate equally.

    Both are over the answers that all raters rated, of all files; intervals as in `quality`. NaN with a
    reason: there is one rater, or no answer that all of them rated.
    """
    everyone = (ratings.values != NOT_RATED).all(axis=1)
    if ratings.values.shape[1] < 2 or not everyone.any():
        nothing = Estimate(math.nan, math.nan, math.nan, 0, "no answer is rated by two raters")
        return nothing, nothing
    values = ratings.values[everyone]
    pair = ratings.pairs[everyone]
    counts = np.stack([(values == rating).sum(axis=1) for rating in RATINGS], axis=1)
    index = np.unique(pair, return_inverse=True)[1]
    kappa, _ = fleiss_kappas(counts.astype(np.float64), index, seed)
    equal = (values == values[:, :1]).all(axis=1).astype(np.float64)
    return kappa, _ratio(equal, np.ones(len(equal)), pair, SHARE_BOUNDS, seed)


def _rows_of_files(ratings: Ratings) -> dict[str, Ints]:
    """Return the indices of the answers of each file, in one order of instances and sentences."""
    order: dict[str, list[tuple[str, str, int]]] = {}
    for index, answer in enumerate(ratings.answers):
        order.setdefault(answer.answers, []).append((answer.uid, answer.sentence, index))
    return {
        file: np.array([index for *_, index in sorted(order[file])], dtype=np.intp)
        for file in sorted(order)
    }


def _ratio(
    numerator: Floats,
    denominator: Floats,
    pair: Ints,
    bounds: tuple[float, float],
    seed: int,
) -> Estimate:
    """Return sum(numerator) / sum(denominator) of answers, with its interval over sentence pairs."""
    used = denominator > 0
    if not used.any():
        return Estimate(math.nan, math.nan, math.nan, 0, "no answer is rated")
    index = np.unique(pair[used], return_inverse=True)[1]
    above, below = (np.bincount(index, values[used]) for values in (numerator, denominator))

    def ratio(weights: Floats) -> Floats:
        return np.asarray(weights @ above / (weights @ below))

    return jackknife_estimate(
        ratio,
        int(used.sum()),
        Clusters.single(len(above), "sentence pairs"),
        bounds=bounds,
        resamples=RESAMPLES,
        seed=seed,
    )
