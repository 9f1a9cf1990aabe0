"""The data of the section "People and models": agreement per annotator, and answers in which models part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.common_tuples import CommonTuples, common_tuples, tuple_keys
from bws.model_verdict import Verdicts, verdict
from bws.raw_agreement import answer_counts
from bws.records import CanonicalJudgments, Judgments
from bws.stats.clusters import clustered_share
from bws.stats.estimates import Estimate

if TYPE_CHECKING:
    from bws.annotators import Annotator

ANSWERS = ("best", "worst")
STRONG_AGREEMENT = 0.8
"""Share of people's answers from which they agree strongly, the default of `bws.agreement`."""
PARTING_COLUMNS = {
    "tuple": pl.String,
    "answer": pl.String,
    "people_item": pl.Int64,
    "people_share": pl.Float64,
    "model_item": pl.Int64,
    "model_share": pl.Float64,
    "model_with_people": pl.Float64,
}


@dataclass(frozen=True)
class AnnotatorAgreement:
    """A row of the table of people and models."""

    statistics: Annotator
    """Of `bws.annotators`, models compared with people alone."""
    is_model: bool
    same: dict[str, Estimate]
    """Share of equal best and worst answers with (other) people; NaN without common tuples."""


@dataclass(frozen=True, eq=False)
class PeopleAndModels:
    """The verdicts on models, and people and models side by side."""

    verdicts: Verdicts
    annotators: tuple[AnnotatorAgreement, ...]
    """People, then models, sorted by id."""


def compare_people_and_models(people: Judgments, models: Sequence[Judgments]) -> PeopleAndModels:
    """Return the verdicts and the table; raises as `bws.verdict`."""
    verdicts = verdict(people, list(models))
    same = people_agreement(people.without_adaptive("agreement")[0])
    by_model = {
        each.model: {name: each.agreement.answers[name].model for name in ANSWERS}
        for each in verdicts.models
    }
    rows = tuple(
        AnnotatorAgreement(each, each.annotator in by_model, (by_model | same)[each.annotator])
        for each in verdicts.annotators.annotators
    )
    return PeopleAndModels(verdicts, rows)


def people_agreement(people: Judgments) -> dict[str, dict[str, Estimate]]:
    """Return the share of answers that equal those of the others, per annotator and answer.

    For each judgment of a tuple that others judged, the share of the others' answers that are the same; then
    the mean over the judgments of the annotator. The mean over all judgments is the observed agreement of
    `bws.agreement`. Intervals are over groups, or over tuples without groups.
    """
    answers = people.canonical
    n_tuples, annotator_of = len(answers.members), answers.distinct_annotator_of
    cluster_of = answers.clusters()
    _, pair_of = np.unique(annotator_of * n_tuples + answers.tuple_of, return_inverse=True)
    shares = {name: _share_of_others(answers, name, pair_of) for name in ANSWERS}
    return {
        annotator: {
            name: clustered_share(share[rows], cluster_of[answers.tuple_of[rows]])
            for name, share in shares.items()
            for rows in [(answers.annotator_of == index) & ~np.isnan(share)]
        }
        for index, annotator in enumerate(answers.annotators)
    }


def _share_of_others(
    answers: CanonicalJudgments, name: str, pair_of: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (J,) the share of the others' answers to the tuple that are equal; NaN without others.

    pair_of: (J,) number of the pair of annotator and tuple.
    """
    given: NDArray[np.int64] = getattr(answers, name)
    of_tuple, own = (
        answer_counts(row, given, answers.k)[row] for row in (answers.tuple_of, pair_of)
    )
    others = of_tuple - own
    equal = others[np.arange(len(given)), given]
    with np.errstate(invalid="ignore"):
        share: NDArray[np.float64] = equal / others.sum(axis=1)
    return share


def judgments_of_model(models: Sequence[Judgments], name: str) -> Judgments:
    """Return the judgments of a model (its annotator) among several sources; KeyError without any."""
    for judgments in models:
        rows = judgments.annotators[judgments.annotator_of] == name
        if rows.any():
            return judgments.select(rows)
    raise KeyError(name)


def parting_answers(people: Judgments, model: Judgments) -> pl.DataFrame:
    """Return a row per answer in which people agree strongly and the model answers otherwise, surest first.

    People agree strongly if at least two judged the tuple and `STRONG_AGREEMENT` of their answers are the
    same. The model answers otherwise if this is not its most frequent answer, or one of several.

    Columns: tuple (id in `people`), answer (best or worst), people_item and model_item (index in
    `people.tuples.items` of the most frequent answer), people_share and model_share (of the answers of each),
    and model_with_people (share of the model's answers that are people's). The order is by people_share times
    the share of the model's other answers.
    """
    people = people.without_adaptive("tuples")[0]
    common = common_tuples(people, model)
    rows = [row for name in ANSWERS for row in _parting_rows(common, name)] if len(common) else []
    frame = pl.DataFrame(rows, schema=PARTING_COLUMNS, orient="row")
    surest = pl.col("people_share") * (1 - pl.col("model_with_people"))
    return frame.sort(surest, "tuple", "answer", descending=[True, False, False])


def _parting_rows(common: CommonTuples, name: str) -> Iterator[tuple[Any, ...]]:
    by_people, by_model = (
        answer_counts(
            judgments.canonical.tuple_of, getattr(judgments.canonical, name), judgments.tuples.k
        )
        for judgments in (common.people, common.model)
    )
    answers, row = common.people.canonical, np.arange(len(common))
    agreed, own = by_people.argmax(axis=1), by_model.argmax(axis=1)
    n_people, n_model = by_people.sum(axis=1), by_model.sum(axis=1)
    people_share, model_share = by_people[row, agreed] / n_people, by_model[row, own] / n_model
    with_people = by_model[row, agreed] / n_model
    is_strong = (n_people >= 2) & (people_share >= STRONG_AGREEMENT)
    ids = _first_tuple_ids(common.people)
    for t in np.flatnonzero(is_strong & (model_share > with_people)):
        item = answers.origin[answers.members[t]]
        yield (
            *(ids[tuple(sorted(item))], name, int(item[agreed[t]]), float(people_share[t])),
            *(int(item[own[t]]), float(model_share[t]), float(with_people[t])),
        )


def _first_tuple_ids(judgments: Judgments) -> dict[tuple[int, ...], str]:
    """Return the id of the first judged tuple with the same items, by the sorted indices of its items."""
    ids: dict[tuple[int, ...], str] = {}
    for t in np.unique(judgments.tuple_of):
        ids.setdefault(tuple(sorted(judgments.tuples.members[t])), str(judgments.tuples.ids[t]))
    return ids


def tuple_votes(people: Judgments, model: Judgments, tuple_id: str) -> pl.DataFrame:
    """Return the answers of people and of a model beside each item of a tuple of `people`.

    Columns: item (index in `people.tuples.items`), people_best, people_worst, model_best and model_worst
    (numbers of answers). All tuples with the same items count. Empty for an unknown id.
    """
    match = np.flatnonzero(people.tuples.ids == tuple_id)
    if not len(match):
        return pl.DataFrame()
    members, wanted = people.tuples.members[match[0]], tuple_keys(people.tuples)[match[0]]
    items = people.tuples.items[members]
    columns: dict[str, Any] = {"item": members.astype(np.int64)}
    for side, judgments in (("people", people), ("model", model)):
        same = [t for t, key in enumerate(tuple_keys(judgments.tuples)) if key == wanted]
        rows = np.isin(judgments.tuple_of, same)
        for name, item in (("best", judgments.best_item), ("worst", judgments.worst_item)):
            given = judgments.tuples.items[item[rows]]
            columns[f"{side}_{name}"] = [int(np.count_nonzero(given == each)) for each in items]
    return pl.DataFrame(columns)
