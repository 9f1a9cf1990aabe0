"""Annotators of known accuracy: judgments for rehearsals, tests and estimates of power."""

from __future__ import annotations

import os
import re
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bws.file_kinds import remark
from bws.files import read_scores
from bws.files.schema import json_objects
from bws.problems import InputError, Problem
from bws.records import Floats, Judgments, Scores, Tuples, normal_id
from bws.textio import display_name

__all__ = ["Model", "is_simulated", "read_truth", "simulate"]

Model = Literal["gumbel", "thurstone"]
NAMED = 5
LEVELS = (1, 2, 3, 4, 5)
TASTES = 1
"""Marks the random numbers of the annotators' tastes."""
SIMULATED = re.compile(r"simulated-\d+|ASIMULATED\d+")


def is_simulated(annotator: str) -> bool:
    """Tell whether a name is one that bws-simulate or mturk-hits simulate gives.

    >>> is_simulated("simulated-3"), is_simulated("ASIMULATED12"), is_simulated("w-simulated")
    (True, True, False)
    """
    return SIMULATED.fullmatch(annotator) is not None


def simulate(
    tuples: Tuples,
    truth: Floats | Scores,
    annotators: int = 5,
    *,
    noise: float = 0.25,
    model: Model = "gumbel",
    disagreement: float = 0.0,
    careless: float = 0.0,
    position_bias: float = 0.0,
    seed: int = 0,
) -> Judgments:
    """Return what `annotators` simulated people say of the tuples: each judges each tuple once.

    truth: the true score of every item, on any scale: (N,) numbers in the order of `tuples.items`, or
        scores, in which items are found by group and id, or by id alone where they have no groups.
    noise: how far a judgment strays from the truth, in units of the truth; 0 is never. With ``gumbel`` it is
        the scale of the best–worst logit: the best item is drawn with probability proportional to
        exp(truth/noise), then the worst of the others with exp(-truth/noise). With ``thurstone`` it is the
        standard deviation of a normal error on each item; the best is the highest and the worst the
        lowest of one impression.
    disagreement: how far annotators differ for good, in units of the truth: each has a taste of their own, a
        normal number with this standard deviation for every item, that enters all their judgments of it.
    careless: the share of judgments, in [0, 1], that are made without looking: best and worst at random.
    position_bias: how much better the item shown first seems, in units of the truth; it falls evenly to 0
        for the item shown last.

    The items are shown in an order that is shuffled for every judgment and kept in `shown`. Items of
    equal merit go by that order. The annotators are called simulated-1, simulated-2, ...; the judgments
    stand tuple by tuple. Raises ValueError for arguments out of range and for items without a truth.

    >>> from bws.records import Judgment, Judgments
    >>> design = Judgments.from_records([Judgment(("a", "b", "c"), best="a", worst="b")]).tuples
    >>> said = simulate(design, np.array([0.0, 1.0, -1.0]), annotators=2, noise=0.0)
    >>> design.items[said.best_item].tolist(), design.items[said.worst_item].tolist()
    (['b', 'b'], ['c', 'c'])
    """
    _check(annotators, noise, model, disagreement, careless, position_bias)
    value = _of_items(tuples, truth) if isinstance(truth, Scores) else truth
    _check_truth(tuples, value)
    random = np.random.Generator(np.random.PCG64(seed))
    tuple_of = np.repeat(np.arange(len(tuples), dtype=np.int32), annotators)
    shape = (len(tuple_of), tuples.k)
    shown = np.argsort(random.random(shape), axis=1).astype(np.int8)
    annotator_of = np.tile(np.arange(annotators, dtype=np.int32), len(tuples))
    item = tuples.members[tuple_of[:, np.newaxis], shown]
    merit = value[item]
    if disagreement:
        tastes = np.random.Generator(
            np.random.PCG64([seed, TASTES])
        )  # the other draws stay as they are
        taste = disagreement * _normal(tastes, (annotators, len(value)))
        merit = merit + taste[annotator_of[:, np.newaxis], item]
    merit = merit + position_bias * np.linspace(1, 0, tuples.k)
    best, worst = _choices(random, merit, noise, model)
    guessed = random.random(len(tuple_of)) < careless
    guess = np.argsort(random.random(shape), axis=1)
    rows = np.arange(len(tuple_of))
    return Judgments(
        tuples=tuples,
        tuple_of=tuple_of,
        best=shown[rows, np.where(guessed, guess[:, 0], best)],
        worst=shown[rows, np.where(guessed, guess[:, -1], worst)],
        annotator_of=annotator_of,
        annotators=np.array([f"simulated-{n}" for n in range(1, annotators + 1)], dtype=object),
        shown=shown,
        source=f"simulated ({model}, noise {noise}, seed {seed})",
    )


def _check(
    annotators: int,
    noise: float,
    model: str,
    disagreement: float,
    careless: float,
    position_bias: float,
) -> None:
    faults = []
    if annotators < 1:
        faults.append(f"annotators is {annotators}; it must be 1 or more")
    if not 0 <= noise < np.inf:
        faults.append(f"noise is {noise}; it must be 0 or more")
    if model not in get_args(Model):
        faults.append(f"model is {model!r}; {' and '.join(get_args(Model))} are allowed")
    if not 0 <= disagreement < np.inf:
        faults.append(f"disagreement is {disagreement}; it must be 0 or more")
    if not 0 <= careless <= 1:
        faults.append(f"careless is {careless}; it must be a share from 0 to 1")
    if not np.isfinite(position_bias):
        faults.append(f"position_bias is {position_bias}; it must be a number")
    if faults:
        raise ValueError("\n".join(faults))


def _of_items(tuples: Tuples, truth: Scores) -> Floats:
    """Return (N,) the score of each item; NaN where there is none."""
    groups = tuples.groups[tuples.group_of_item]
    if not any(truth.groups):
        groups = np.full(len(groups), "", dtype=object)
    keys = zip(truth.groups, truth.items, strict=True)
    score = dict(zip(keys, truth.score.tolist(), strict=True))
    wanted = zip(groups, tuples.items, strict=True)
    return np.array([score.get(key, np.nan) for key in wanted], np.float64)


def _check_truth(tuples: Tuples, value: Floats) -> None:
    if value.shape != tuples.items.shape:
        raise ValueError(f"truth has the shape {value.shape}; it must be ({len(tuples.items)},)")
    unknown = tuples.items[~np.isfinite(value)]
    if len(unknown):
        named = ", ".join(map(repr, unknown[:NAMED])) + (", ..." if len(unknown) > NAMED else "")
        raise ValueError(f"{len(unknown)} items have no true score: {named}; every item needs one")


def _choices(
    random: np.random.Generator, merit: Floats, noise: float, model: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the best and the worst item of each row."""
    if model == "thurstone":
        seen = merit + noise * _normal(random, merit.shape)
        # from the end, so that all-equal items have a best and a worst that differ
        return seen.argmax(axis=1), merit.shape[1] - 1 - seen[:, ::-1].argmin(axis=1)
    best = (merit + noise * _gumbel(random, merit.shape)).argmax(axis=1)
    badness = -merit + noise * _gumbel(random, merit.shape)
    badness[np.arange(len(best)), best] = -np.inf
    return best, merit.shape[1] - 1 - badness[:, ::-1].argmax(axis=1)


def _uniform(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return numbers above 0 and below 1. All noise is made of them, as their stream never changes."""
    return random.random(shape) + 2.0**-54


def _gumbel(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return -np.log(-np.log(_uniform(random, shape)))


def _normal(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return standard normal numbers (Box and Muller 1958)."""
    radius = np.sqrt(-2 * np.log(_uniform(random, shape)))
    angle = 2 * np.pi * _uniform(random, shape)
    return np.asarray(radius * np.cos(angle))


def read_truth(path: str | os.PathLike[str], tuples: Tuples) -> Floats:
    """Read (N,) the true scores of the tuples' items, from scores or from dialogues.

    Of dialogues, the candidates' `intended` levels 1 to 5 become -1, -0.5, 0, 0.5 and 1. Raises InputError
    with every fault, and where an item has no score.
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
                message = (
                    f"a candidate's intended is {level!r}; it must be a whole number from 1 to 5"
                )
                problems.append(Problem(name, line, message))
    if problems or not keys:
        message = f"holds no candidates with an intended level{remark(rows[0][1], 'dialogues')}"
        nothing = Problem(name, None, message)
        raise InputError(problems or nothing)
    groups, items = (np.array(names, dtype=object) for names in zip(*keys, strict=True))
    none = np.zeros(len(keys), np.int64)
    return Scores(items, groups, (np.array(levels) - 3) / 2, none, none, none)
