"""Simulation of annotators of known accuracy, for dry runs, tests and estimates of power."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bws.base.file_kinds import remark
from bws.base.frames import Source, frames_like_source
from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from bws.files import as_tuples, read_scores
from bws.files.schema import json_objects
from bws.model_annotators import model_annotator
from bws.records import Floats, Judgments, Scores, Tuples
from bws.stats.constancy import constant_groups

Model = Literal["gumbel", "thurstone"]
MAX_LISTED_NAMES = 5
LEVELS = (1, 2, 3, 4, 5)
TASTES = 1
"""Stream of the random numbers for annotators' individual preferences."""
TURNS = 2
"""Stream of the random numbers for the order in which annotators take turns."""
MODEL_SCORES = 3
"""Stream of the random numbers for the scores of a simulated language model."""


@frames_like_source
def simulate(
    tuples: Tuples | Source,
    truth: Floats | Scores | Source,
    annotators: int = 5,
    *,
    noise: float = 0.25,
    model: Model = "gumbel",
    disagreement: float = 0.0,
    careless: float = 0.0,
    position_bias: float = 0.0,
    per_tuple: int | None = None,
    seed: int = 0,
) -> Judgments:
    """Return simulated judgments: each of `annotators` judges each tuple once, or `per_tuple` of them do.

    tuples: `Tuples`, a path, a data frame, or records.
    truth: the true score of every item, on any scale: (N,) numbers in the order of `tuples.items`, or
        scores (also as a path, a data frame, or records), whose items are matched by group and id, or by id
        alone without groups.
    noise: scale of the error of a judgment, in units of the truth; 0 for none. With ``gumbel`` it is the
    scale of the
        best–worst logit: the best item is drawn with probability proportional to exp(truth/noise), then the
        worst of the others with exp(-truth/noise). With ``thurstone`` it is the standard deviation of a
        normal error of each item; best and worst are the highest and the lowest of one impression.
    disagreement: systematic differences between annotators, in units of the truth. Each annotator has a fixed
    normal
        deviation with this standard deviation for every item, which affects all of his or her judgments of
        it.
    careless: the share of judgments, in [0, 1], with random best and worst items.
    position_bias: the advantage of the item displayed first, in units of the truth; it decreases linearly to
    0
        for the item displayed last.

    per_tuple: number of annotators per tuple, who take turns in a random order of the tuples; None for all of
    them, 1 for fresh tuples (`fresh_rounds`).

    The display order is random for every judgment and stored in `shown`. Ties are resolved in display order.
    The annotators are named simulated-1, simulated-2, ...; the judgments are sorted by tuple. Raises
    ValueError for arguments out of range and for items without a true score.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> design = judgments_from_records([Judgment(("a", "b", "c"), best="a", worst="b")]).tuples
    >>> judgments = simulate(design, np.array([0.0, 1.0, -1.0]), annotators=2, noise=0.0)
    >>> design.items[judgments.best_item].tolist(), design.items[judgments.worst_item].tolist()
    (['b', 'b'], ['c', 'c'])
    """
    per_tuple = annotators if per_tuple is None else per_tuple
    _check(annotators, noise, model, disagreement, careless, position_bias, per_tuple)
    tuples = as_tuples(tuples)
    value = truth_of_items(truth, tuples)
    _check_truth(tuples, value)
    random = np.random.Generator(np.random.PCG64(seed))
    tuple_of = np.repeat(np.arange(len(tuples), dtype=np.int32), per_tuple)
    shape = (len(tuple_of), tuples.k)
    display_order = np.argsort(random.random(shape), axis=1).astype(np.int8)
    annotator_of = _annotators(len(tuples), annotators, per_tuple, seed)
    item = tuples.members[tuple_of[:, np.newaxis], display_order]
    merit = value[item]
    if disagreement:
        taste = tastes(annotators, len(value), disagreement, seed)
        merit = merit + taste[annotator_of[:, np.newaxis], item]
    merit = merit + position_bias * np.linspace(1, 0, tuples.k)
    best, worst = _choices(random, merit, noise, model)
    guessed = random.random(len(tuple_of)) < careless
    guess = np.argsort(random.random(shape), axis=1)
    rows = np.arange(len(tuple_of))
    return Judgments(
        tuples=tuples,
        tuple_of=tuple_of,
        best=display_order[rows, np.where(guessed, guess[:, 0], best)],
        worst=display_order[rows, np.where(guessed, guess[:, -1], worst)],
        annotator_of=annotator_of,
        annotators=np.array([f"simulated-{n}" for n in range(1, annotators + 1)], dtype=object),
        shown=display_order,
        columns={name: column[tuple_of] for name, column in _columns(tuples).items()},
        source=f"simulated ({model}, noise {noise}, seed {seed})",
        allow_copies=True,
    )


def tastes(annotators: int, n_items: int, disagreement: float, seed: int) -> Floats:
    """Return (A, N) systematic deviations of annotators, from random numbers of their own."""
    random = np.random.Generator(np.random.PCG64([seed, TASTES]))
    return disagreement * _normal(random, (annotators, n_items))


def _columns(tuples: Tuples) -> dict[str, NDArray[np.object_]]:
    column = tuples.control_column
    return {**tuples.columns, **({} if column is None else {"control": column})}


def simulate_model(
    tuples: Tuples, truth: Floats, correlation: float, *, seed: int = 0
) -> Judgments:
    """Return one judgment of each tuple by a language model whose scores correlate with the true ones.

    truth: (N,) the true score of every item. The model chooses by its own `correlated_scores`, without noise.
    Raises ValueError as `correlated_scores`.
    """
    scores = correlated_scores(tuples, truth, correlation, seed)
    judgments = simulate(tuples, scores, 1, noise=0.0, seed=seed)
    name = model_annotator("simulated", "")
    return replace(judgments, annotators=np.array([name], dtype=object))


def correlated_scores(tuples: Tuples, truth: Floats, correlation: float, seed: int) -> Floats:
    """Return (N,) random scores with a correlation with the true ones, without means of groups.

    Both are relative to the mean of the item's group, since tuples compare the items of a group only. The
    correlation over all items is exact. Raises ValueError for a correlation that is not from 0 to below 1,
    for equal true scores within all groups, and for a single group of two items.

    >>> from bws.design import make_tuples
    >>> tuples, truth = make_tuples(list("abcdefgh"), 4), np.arange(8.0)
    >>> round(float(np.corrcoef(correlated_scores(tuples, truth, 0.8, seed=0), truth)[0, 1]), 6)
    0.8
    """
    if not 0 <= correlation < 1:
        raise ValueError(
            f"the correlation of the model is {correlation}; expected a number from 0 to below 1"
        )
    random = np.random.Generator(np.random.PCG64([seed, MODEL_SCORES]))
    signal = without_group_means(tuples, truth)
    noise = without_group_means(tuples, _normal(random, truth.shape))
    if constant_groups(truth, tuples.group_of_item).all():
        raise ValueError(
            "the true scores of the items of a group are equal; expected different ones"
        )
    if len(truth) - len(tuples.groups) < 2:
        raise ValueError(f"{len(truth)} items; expected at least three")
    noise -= signal * (noise @ signal) / (signal @ signal)
    ratio = np.sqrt((1 - correlation**2) * (signal @ signal) / (noise @ noise))
    return correlation * signal + ratio * noise


def without_group_means(tuples: Tuples, values: Floats) -> Floats:
    """Return (N,) values of the items without the mean of the items of their group."""
    sums = np.bincount(tuples.group_of_item, values)
    return values - (sums / np.bincount(tuples.group_of_item))[tuples.group_of_item]


def _annotators(n_tuples: int, annotators: int, per_tuple: int, seed: int) -> NDArray[np.int32]:
    """Return (J,) the annotator of each judgment, sorted by tuple: all of them, or the next ones in turn."""
    if per_tuple == annotators:
        return np.tile(np.arange(annotators, dtype=np.int32), n_tuples)
    turns = np.random.Generator(np.random.PCG64([seed, TURNS])).permutation(n_tuples)
    annotator = (turns[:, np.newaxis] * per_tuple + np.arange(per_tuple)) % annotators
    return annotator.astype(np.int32).ravel()


def _check(
    annotators: int,
    noise: float,
    model: str,
    disagreement: float,
    careless: float,
    position_bias: float,
    per_tuple: int,
) -> None:
    faults = []
    if annotators < 1:
        faults.append(f"annotators is {annotators}; it must be 1 or more")
    elif not 1 <= per_tuple <= annotators:
        faults.append(f"per_tuple is {per_tuple}; it must be from 1 to annotators, {annotators}")
    if not 0 <= noise < np.inf:
        faults.append(f"noise is {noise}; it must be 0 or more")
    if model not in get_args(Model):
        faults.append(f"model is {model!r}; expected {' or '.join(get_args(Model))}")
    if not 0 <= disagreement < np.inf:
        faults.append(f"disagreement is {disagreement}; it must be 0 or more")
    if not 0 <= careless <= 1:
        faults.append(f"careless is {careless}; it must be a share from 0 to 1")
    if not np.isfinite(position_bias):
        faults.append(f"position_bias is {position_bias}; it must be a number")
    if faults:
        raise ValueError("\n".join(faults))


def _of_items(tuples: Tuples, truth: Scores) -> Floats:
    """Return (N,) the score of each item; NaN for missing ones."""
    groups = tuples.groups[tuples.group_of_item]
    if not any(truth.groups):
        groups = np.full(len(groups), "", dtype=object)
    keys = zip(truth.groups, truth.items, strict=True)
    score = dict(zip(keys, truth.score.tolist(), strict=True))
    required_items = zip(groups, tuples.items, strict=True)
    return np.array([score.get(key, np.nan) for key in required_items], np.float64)


def _check_truth(tuples: Tuples, value: Floats) -> None:
    if value.shape != tuples.items.shape:
        raise ValueError(f"truth has the shape {value.shape}; it must be ({len(tuples.items)},)")
    unknown = tuples.items[~np.isfinite(value)]
    if len(unknown):
        listed_names = ", ".join(map(repr, unknown[:MAX_LISTED_NAMES])) + (
            ", ..." if len(unknown) > MAX_LISTED_NAMES else ""
        )
        raise ValueError(
            f"{len(unknown)} items have no true score: {listed_names}; expected one for every item"
        )


def _choices(
    random: np.random.Generator, merit: Floats, noise: float, model: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the best and the worst item of each row."""
    if model == "thurstone":
        seen = merit + noise * _normal(random, merit.shape)
        # From the end, so that best and worst differ if all items are equal.
        return seen.argmax(axis=1), merit.shape[1] - 1 - seen[:, ::-1].argmin(axis=1)
    best = (merit + noise * _gumbel(random, merit.shape)).argmax(axis=1)
    badness = -merit + noise * _gumbel(random, merit.shape)
    badness[np.arange(len(best)), best] = -np.inf
    return best, merit.shape[1] - 1 - badness[:, ::-1].argmax(axis=1)


def _uniform(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return numbers above 0 and below 1. All noise is derived from them, because their stream is stable."""
    return random.random(shape) + 2.0**-54


def _gumbel(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return -np.log(-np.log(_uniform(random, shape)))


def _normal(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return standard normal numbers (Box and Muller 1958)."""
    radius = np.sqrt(-2 * np.log(_uniform(random, shape)))
    angle = 2 * np.pi * _uniform(random, shape)
    return np.asarray(radius * np.cos(angle))


def truth_of_items(truth: Floats | Scores | Source, tuples: Tuples) -> Floats:
    """Return (N,) true scores in the order of the items."""
    if isinstance(truth, np.ndarray):
        return truth
    return _of_items(tuples, truth) if isinstance(truth, Scores) else read_truth(truth, tuples)


def read_truth(path: Source, tuples: Tuples) -> Floats:
    """Read (N,) true scores of the tuples' items from scores or dialogues.

    The `intended` levels 1 to 5 of candidates in dialogues are mapped to -1, -0.5, 0, 0.5 and 1. Raises
    InputError with every fault, and for items without a score.
    """
    name = display_name(path)
    dialogues = name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    value = _of_items(tuples, _intended(path, name) if dialogues else read_scores(path))
    try:
        _check_truth(tuples, value)
    except ValueError as error:
        raise InputError(Problem(name, None, str(error))) from None
    return value


def _intended(path: str | os.PathLike[str], name: str) -> Scores:
    keys: list[tuple[str, str]] = []
    levels: list[int] = []
    problems: list[Problem] = []
    rows = json_objects(path)
    for line, dialogue in rows:
        candidates = dialogue.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else []:
            level = candidate.get("intended") if isinstance(candidate, dict) else None
            if level in LEVELS and not isinstance(level, bool):
                names = (str(dialogue.get("dialogue_id")), str(candidate.get("utterance_id")))
                keys.append((normal_id(names[0]), normal_id(names[1])))
                levels.append(level)
            else:
                message = f"a candidate's intended is {level!r}; expected an integer from 1 to 5"
                problems.append(Problem(name, line, message))
    if problems or not keys:
        message = f"no candidates with an intended level{remark(rows[0][1], 'dialogues')}"
        nothing = Problem(name, None, message)
        raise InputError(problems or nothing)
    groups, items = (np.array(names, dtype=object) for names in zip(*keys, strict=True))
    none = np.zeros(len(keys), np.int64)
    return Scores(items, groups, (np.array(levels) - 3) / 2, none, none, none)
