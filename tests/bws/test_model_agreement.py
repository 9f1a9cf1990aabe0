"""Agreement of a model with people, and the audit of its own judgments, against direct counts."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from bws.chance_agreement import agreement
from bws.common_tuples import common_tuples
from bws.model_agreement import agreement_with_people
from bws.model_audit import model_audit
from bws.scoring import score
from bws.stats.clusters import clustered_mean, clustered_share

from .model_judgments import as_model, study, together


def records_by_tuple(judgments):
    table = {}
    for row in judgments.records():
        table.setdefault((row.group, frozenset(row.items)), []).append(row)
    return table


QUESTIONS = {
    "best": lambda row: row.best,
    "worst": lambda row: row.worst,
    "joint": lambda row: (row.best, row.worst),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_shares_of_equal_answers_equal_direct_counts(question):
    people, model = study(0.4, runs=3, groups=8, items=6)
    answer = QUESTIONS[question]
    judged, answered = records_by_tuple(people), records_by_tuple(model)
    with_people, with_model, groups = [], [], []
    for key, rows in judged.items():
        for row in rows:
            others = [other for other in rows if other is not row]
            with_people.append(np.mean([answer(other) == answer(row) for other in others]))
            with_model.append(np.mean([answer(run) == answer(row) for run in answered[key]]))
            groups.append(int(key[0][1:]))
    measure = agreement_with_people(common_tuples(people, model)).answers[question]
    assert measure.people.value == pytest.approx(np.mean(with_people))
    assert measure.model.value == pytest.approx(np.mean(with_model))
    observed = agreement(people).groups[0].observed
    assert measure.people.value == pytest.approx(observed[question].value)
    difference = np.array(with_model) - np.array(with_people)
    expected = clustered_mean(difference, np.array(groups))
    assert measure.difference.low == pytest.approx(expected.low)
    assert measure.difference.value == pytest.approx(measure.model.value - measure.people.value)
    assert measure.chance == pytest.approx(1 / 12 if question == "joint" else 1 / 4)


def test_correlations_are_those_of_counting_scores():
    people, model = study(0.5, runs=2, groups=7, items=6)
    measures = agreement_with_people(common_tuples(people, model)).scores
    x, y = (score(judgments, method="counting").score for judgments in (people, model))
    assert measures["pearson"].model.value == pytest.approx(stats.pearsonr(x, y)[0])
    assert measures["spearman"].model.value == pytest.approx(stats.spearmanr(x, y)[0])
    group = people.tuples.group_of_item
    z = np.arctanh([np.corrcoef(x[group != g], y[group != g])[0, 1] for g in range(7)])
    error = np.sqrt(6 / 7 * ((z - z.mean()) ** 2).sum())
    low = np.tanh(np.arctanh(measures["pearson"].model.value) - stats.t.ppf(0.975, 6) * error)
    assert measures["pearson"].model.low == pytest.approx(low)
    assert 0.8 < measures["pearson"].people.value < 1
    assert np.isnan(measures["pearson"].difference.value)


def test_tuples_with_one_judgment_of_people_count_in_the_scores_alone():
    people, model = study(0.5, items=16)
    rows = np.flatnonzero((people.tuple_of > 3) | (people.annotator_of == 0))
    found = agreement_with_people(common_tuples(people.select(rows), model))
    assert found.tuples == len(people.tuples) - 4
    assert "4 of 32 tuples have one judgment of people" in found.notes[0]
    nobody = agreement_with_people(common_tuples(people.select(people.annotator_of == 0), model))
    assert nobody.tuples == 0
    assert np.isnan(nobody.answers["best"].people.value)
    assert np.isfinite(nobody.scores["pearson"].model.value)


def test_intervals_of_shares_are_within_the_range_and_cover():
    cluster_of = np.repeat(np.arange(25), 4)
    covered = []
    rng = np.random.default_rng(1)
    for _ in range(400):
        p = rng.beta(9, 1, 25).repeat(4)
        found = clustered_share((rng.random(100) < p).astype(float), cluster_of)
        assert 0 <= found.low <= found.value <= found.high <= 1
        covered.append(found.low <= 0.9 <= found.high)
    assert 0.92 <= np.mean(covered) <= 0.98
    independent = clustered_share(np.arange(40) % 4 == 0.0, np.arange(40))
    t2, n, p = stats.t.ppf(0.975, 39) ** 2, 39, 0.25
    center = (p + t2 / (2 * n)) / (1 + t2 / n)
    assert (independent.low + independent.high) / 2 == pytest.approx(center)
    assert np.isnan(clustered_share(np.ones(8), np.arange(8) % 4).low)
    assert np.isnan(clustered_share(np.zeros(0), np.zeros(0, int)).value)


def test_t_interval_of_independent_values_is_the_usual_one():
    values = np.random.default_rng(2).normal(size=30)
    found = clustered_mean(values, np.arange(30))
    low, high = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))


# Audit --------------------------------------------------------------------------------------------


def swapped(judgments, rows):
    """Return judgments in which some have exchanged best and worst."""
    best, worst = judgments.best.copy(), judgments.worst.copy()
    best[rows], worst[rows] = judgments.worst[rows], judgments.best[rows]
    return replace(judgments, best=best, worst=worst)


def named(judgments, prompt, run):
    names = {"prompt": prompt, "run": run}
    columns = {name: np.full(len(judgments), text, dtype=object) for name, text in names.items()}
    return replace(judgments, columns=columns)


def calls_of_a_model():
    """Return two orders; a repeated call of the first, and another prompt, with some other answers."""
    _, model = study(0.5, runs=2, groups=6, items=6)
    first, second = (model.select(model.columns["run"] == run) for run in "01")
    repeated = swapped(first, np.arange(0, len(first), 4))
    reworded = swapped(first, np.arange(0, len(first), 2))
    parts = [first, second, named(repeated, "judge-en-1", "2"), named(reworded, "judge-en-2", "0")]
    merged = together(*parts)
    one = np.zeros(len(merged), np.int32)
    return replace(merged, annotator_of=one, annotators=model.annotators)


COMPARED = {
    "orders": lambda a, b: a["prompt"] == b["prompt"] and a["items"] != b["items"],
    "calls": lambda a, b: a["prompt"] == b["prompt"] and a["items"] == b["items"],
    "prompts": lambda a, b: (
        a["prompt"] != b["prompt"] and a["run"] == b["run"] and a["items"] == b["items"]
    ),
}


@pytest.mark.parametrize("kind", COMPARED)
def test_consistency_equals_direct_counts(kind):
    judgments = calls_of_a_model()
    table = {}
    for number, row in enumerate(judgments.records()):
        call = {name: judgments.columns[name][number] for name in ("prompt", "run")}
        call |= {"items": row.items, "best": row.best, "worst": row.worst}
        table.setdefault((row.group, frozenset(row.items)), []).append(call)
    shares, groups, n_pairs = [], [], 0
    for (group, _), calls in table.items():
        pairs = [(a, b) for a, b in combinations(calls, 2) if COMPARED[kind](a, b)]
        n_pairs += len(pairs)
        if not pairs:  # The two orders are the same.
            continue
        shares.append(
            np.mean([a["best"] == b["best"] and a["worst"] == b["worst"] for a, b in pairs])
        )
        groups.append(int(group[1:]))
    found = model_audit(judgments).consistency[kind]
    assert (found.pairs, found.tuples) == (n_pairs, len(shares))
    expected = clustered_share(np.array(shares), np.array(groups))
    assert found.joint.value == pytest.approx(expected.value)
    assert (found.joint.low, found.joint.high) == pytest.approx((expected.low, expected.high))
    assert found.best.value >= found.joint.value


def test_answers_per_position_of_a_model_that_prefers_the_first():
    _, model = study(0.5, runs=2, groups=25, items=6, position_bias=2.0)
    audit = model_audit(model)
    shown = [row.items.index(row.best) for row in model.records()]
    values = [each.best.value for each in audit.positions]
    assert values == pytest.approx(np.bincount(shown, minlength=4) / len(shown))
    assert audit.positions[0].best.low > 0.25 > audit.positions[3].best.high
    assert audit.positions[0].worst.high < 0.25
    assert audit.consistency["orders"].joint.value < 0.6


def test_a_model_without_repeated_calls_has_no_consistency_and_the_reasons():
    _, model = study(0.5, groups=6, items=6)
    audit = model_audit(model)
    assert all(np.isnan(each.best.value) for each in audit.consistency.values())
    assert audit.notes[:3] == (
        "another order: no tuple was judged in two orders with one prompt",
        "a repeated call: no tuple was judged twice in one order with one prompt",
        "another prompt: no tuple was judged with two prompts in one order and run",
    )
    unknown = model_audit(replace(calls_of_a_model(), shown=None))
    assert unknown.positions == ()
    assert unknown.notes[0] == "another order: the order of the items is unknown"
    assert unknown.consistency["prompts"].pairs > 0
    assert "the order of the items is unknown" in str(unknown.position_table())


def test_a_model_with_the_same_answers_has_an_interval_below_one():
    _, model = study(0.5, items=16)
    copies = together(model, named(model, "judge-en-1", "1"))
    found = model_audit(as_model(copies)).consistency["calls"]
    assert found.joint.value == found.joint.high == 1
    assert 0.8 < found.joint.low < 0.95


def test_the_audit_is_independent_of_the_order_of_items_in_a_tuple():
    judgments = calls_of_a_model()
    order = next(permutations(range(4), 4))[::-1]
    inverse = np.argsort(order)
    tuples = replace(judgments.tuples, members=judgments.tuples.members[:, order])
    moved = replace(
        judgments,
        tuples=tuples,
        best=inverse[judgments.best].astype(np.int8),
        worst=inverse[judgments.worst].astype(np.int8),
        shown=inverse[judgments.shown].astype(np.int8),
    )
    assert model_audit(moved).document() == model_audit(judgments).document()
