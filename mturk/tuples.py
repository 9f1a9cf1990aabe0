"""Studies of tuples: the best and the worst of some utterances, for the last one of a dialogue."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

from bws.problems import InputError, Problem
from mturk import answers
from mturk.answers import ExpectedTuple, Fields

if TYPE_CHECKING:
    from mturk.judged import Judged
    from mturk.records import PlannedStudy
    from mturk.settings import SettingsFile
    from mturk.simulate import Behaviour, Truth

__all__ = [
    "ANSWER",
    "FILE",
    "PART",
    "columns",
    "planned",
    "problems",
    "remarks",
    "simulated",
    "write",
]

PART = "tuple"
ANSWER = "judgment"
FILE = "judgments.csv"
CONTRACT = ("assignment_id", "seconds", "comment")


def problems(one: ExpectedTuple, fields: Fields) -> list[str]:
    """Return all that keeps the fields from being an answer."""
    return answers.check([one], fields)


def remarks(one: ExpectedTuple, fields: Fields) -> list[str]:
    """Return nothing: choices are judged by comparing them with others', see `bws.annotators`."""
    return []


def columns(part_id: str) -> dict[str, str]:
    """Return what the batch file calls the answer's fields -> the names of these fields."""
    return {
        "best": answers.best_field(part_id),
        "worst": answers.worst_field(part_id),
        "shown": answers.shown_field(part_id),
        "seconds": answers.seconds_field(part_id),
    }


def planned(
    file: str, dialogues: str | None, settings: SettingsFile, language: str | None
) -> PlannedStudy:
    """Return the study of a tuples file whose groups are dialogues.

    It is in the language that the dialogues state, or else the settings or `language`.
    """
    from bws.files import read_tuples
    from giccs.assemble import read_dialogues
    from giccs.languages import data_language, required_language
    from mturk.plan import notes, plan
    from mturk.records import PlannedStudy

    if dialogues is None:
        message = (
            "--dialogues is needed for a study of tuples; a file of --config may set another kind"
        )
        raise InputError(Problem(file, None, message))
    tuples, read = read_tuples(file), read_dialogues(dialogues)
    stated = settings.values.get("dialogue_language")
    language_of = data_language if stated else partial(required_language, purpose="worker pages")
    chosen = settings.settings(language_of(read, dialogues, language))
    plans = plan(tuples, read, chosen, file=file)
    plan_notes = notes(plans, chosen)
    if tuples.n_repeated:
        repeated = f"{tuples.n_repeated} of {len(tuples)} tuples repeat the items of another"
        plan_notes.append(f"{repeated}; each is paid for")
    return PlannedStudy(chosen, tuple(plans), tuple(plan_notes))


def simulated(
    one: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
) -> list[tuple[str, str]]:
    """Return the fields of an answer by the true scores, as far as the behaviour keeps to them."""
    best, worst, shown = _judged(one, _values(one, truth), behaviour, worker)
    return [
        (answers.shown_field(one.tuple_id), answers.join_shown(shown)),
        (answers.best_field(one.tuple_id), best),
        (answers.worst_field(one.tuple_id), worst),
    ]


def _values(one: ExpectedTuple, truth: Truth) -> list[float]:
    values = [truth.get((one.group, item), truth.get(("", item))) for item in one.items]
    lacking = [item for item, value in zip(one.items, values, strict=True) if value is None]
    if lacking:
        said = f"tuple {one.tuple_id!r}: no true score for {', '.join(map(repr, lacking))}"
        raise InputError(Problem("truth", None, f"{said}; every item needs one"))
    return [value for value in values if value is not None]


def _judged(
    one: ExpectedTuple, values: Sequence[float], behaviour: Behaviour, worker: str
) -> tuple[str, str, list[str]]:
    """Ask `bws.simulate` for one judgment."""
    import numpy as np

    from bws.records import Tuples
    from bws.simulate import simulate

    k = len(one.items)
    tuples = Tuples(
        ids=np.array([one.tuple_id], dtype=object),
        items=np.array(one.items, dtype=object),
        group_of_item=np.zeros(k, np.int32),
        groups=np.array([one.group], dtype=object),
        members=np.arange(k, dtype=np.int32)[np.newaxis],
    )
    tastes = [_taste(behaviour, worker, one.group, item) for item in one.items]
    said = simulate(
        tuples,
        np.array(values) + tastes,
        1,
        noise=behaviour.noise,
        careless=behaviour.careless,
        seed=_hashed(behaviour.seed, worker, one.group, one.tuple_id),
    )
    order = [one.items[place] for place in said.shown[0]] if said.shown is not None else []
    return one.items[int(said.best[0])], one.items[int(said.worst[0])], order


def _taste(behaviour: Behaviour, worker: str, group: str, item: str) -> float:
    """Return what a worker thinks of an item beyond its truth, the same in all tuples."""
    share = ((_hashed(behaviour.seed, "taste", worker, group, item) >> 11) + 0.5) / 2**53
    return behaviour.disagreement * NormalDist().inv_cdf(share)


def _hashed(*parts: object) -> int:
    """Return a number below 2**64 that depends on all parts."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:8])


def write(found: Judged, path: str | os.PathLike[str]) -> None:
    """Write the judgments file, whole or not at all; where there are none, only its header."""
    from bws.files import write_judgments
    from bws.textio import write_atomic

    if found.judgments is not None:
        write_judgments(found.judgments, path)
        return
    items = [f"item{place}" for place in range(1, found.k + 1)]
    header = ["tuple_id", "group", *items, "best", "worst", "annotator", *CONTRACT, "shown"]
    write_atomic(path, f"{','.join(header)}\n")
