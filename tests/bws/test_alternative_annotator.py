"""The alternative annotator test of Calderon, Reichart and Dror (2025)."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from bws.alternative_annotator import Wins, alternative_annotator_test, wins
from bws.common_tuples import common_tuples
from bws.files import judgments_from_records
from bws.records import Judgment

from .model_judgments import study


def answers_by_tuple(judgments):
    """Return {annotator: {tuple: [(best, worst), ...]}} with ids as keys."""
    table = {}
    for judgment in judgments.records():
        key = (judgment.group, frozenset(judgment.items))
        answers = table.setdefault(judgment.annotator, {})
        answers.setdefault(key, []).append((judgment.best, judgment.worst))
    return table


def agreement_of(answer, other):
    return ((answer[0] == other[0]) + (answer[1] == other[1])) / 2


def direct_test(people, model, epsilon):
    """Return rho^f, rho^h and p of every annotator, and the winning rate, from the definitions."""
    table = answers_by_tuple(people)
    (machine,) = answers_by_tuple(model).values()
    rows = {}
    for name, answers in table.items():
        as_good, beaten = [], []
        for key, (own,) in sorted(answers.items(), key=str):
            others = [
                a for n, more in table.items() if n != name and key in more for a in more[key]
            ]
            if not others or key not in machine:
                continue
            score = np.mean([agreement_of(own, other) for other in others])
            runs = [np.mean([agreement_of(run, o) for o in others]) for run in machine[key]]
            as_good.append(np.mean([run >= score for run in runs]))
            beaten.append(np.mean([score >= run for run in runs]))
        difference = np.array(beaten) - np.array(as_good)
        p = stats.ttest_1samp(difference, epsilon, alternative="less").pvalue
        rows[name] = (np.mean(as_good), np.mean(beaten), p)
    corrected = stats.false_discovery_control([p for *_, p in rows.values()], method="by")
    return rows, np.mean(corrected <= 0.05), corrected


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("noise", [0.3, 0.9])
def test_without_groups_it_equals_an_independent_implementation(noise, runs):
    people, model = study(noise, runs=runs, items=24)
    result = alternative_annotator_test(wins(common_tuples(people, model)), epsilon=0.15)
    rows, winning_rate, corrected = direct_test(people, model, 0.15)
    assert [each.annotator for each in result.comparisons] == sorted(rows)
    for each, correct in zip(result.comparisons, corrected, strict=True):
        found = (each.model_advantage, each.annotator_advantage, each.p, each.corrected_p)
        assert found == pytest.approx((*rows[each.annotator], correct), rel=1e-9)
    assert result.winning_rate == winning_rate
    assert result.advantage.value == pytest.approx(np.mean([row[0] for row in rows.values()]))


def test_standard_errors_are_clustered_by_group():
    people, model = study(0.6, groups=12, items=6)
    compared = wins(common_tuples(people, model))
    result = alternative_annotator_test(compared, epsilon=0.1)
    assert "standard errors clustered by groups" in result.notes[0]
    assert "approximate below 20, the fewest of an annotator are 12" in result.notes[0]
    for number, each in enumerate(result.comparisons):
        rows = compared.annotator_of == number
        d = (compared.annotator - compared.model)[rows]
        cluster = compared.cluster_of[rows]
        sums = np.array([(d[cluster == c] - d.mean()).sum() for c in np.unique(cluster)])
        error = np.sqrt(12 / 11 * (sums**2).sum()) / len(d)
        assert each.clusters == 12
        assert each.p == pytest.approx(stats.t.cdf((d.mean() - 0.1) / error, 11))


def test_a_careful_model_may_replace_annotators_and_a_careless_one_may_not():
    good, bad = (
        alternative_annotator_test(wins(common_tuples(*study(noise, groups=30, careless=careless))))
        for noise, careless in ((0.2, 0.0), (0.6, 1.0))
    )
    assert good.may_replace
    assert good.verdict == (
        "may replace annotators: winning rate 1.00 ≥ 0.5, 4 of 4 annotators, epsilon 0.1"
    )
    assert not bad.may_replace
    assert bad.verdict.startswith("may not replace annotators: winning rate 0.00 < 0.5, 0 of 4")
    assert good.advantage.low > bad.advantage.high


def test_the_chance_of_a_wrong_verdict_is_small_at_the_margin():
    """A model that answers like a random annotator has d near 0; with epsilon 0 it rarely wins."""
    won = [
        alternative_annotator_test(
            wins(common_tuples(*study(0.6, groups=20, items=6, seed=s))), epsilon=0
        )
        for s in range(100, 140)
    ]
    assert np.mean([each.is_won for test in won for each in test.comparisons]) < 0.05


def test_no_verdict_from_two_annotators_or_few_tuples():
    people, model = study(0.6, groups=12, items=6, annotators=2)
    result = alternative_annotator_test(wins(common_tuples(people, model)))
    assert result.may_replace is None
    assert np.isnan(result.winning_rate)
    assert result.verdict.startswith("no verdict: the test needs 3 annotators with 30 tuples each")
    assert len(result.comparisons) == 2
    people, model = study(0.6, items=8)
    few = alternative_annotator_test(wins(common_tuples(people, model)))
    assert "4 of 4 annotators are left out: fewer than 30 tuples" in few.notes[0]
    assert not few.comparisons
    people, model = study(0.6, groups=4, items=12)
    clustered = alternative_annotator_test(wins(common_tuples(people, model)))
    assert "4 of 4 annotators are left out: tuples of fewer than 5 groups" in clustered.notes[0]


def test_differences_without_variance_have_the_limit_of_the_p_value():
    n = 30
    equal = Wins(
        ("a", "b", "c"),
        np.repeat([0, 1, 2], n),
        np.tile(np.arange(n), 3),
        np.ones(3 * n),
        np.ones(3 * n),
    )
    assert [each.p for each in alternative_annotator_test(equal).comparisons] == [0, 0, 0]
    lost = replace(equal, model=np.zeros(3 * n))
    assert [each.p for each in alternative_annotator_test(lost).comparisons] == [1, 1, 1]


def test_epsilon_out_of_range():
    people, model = study(0.6)
    with pytest.raises(
        ValueError, match="epsilon is 1; expected a number of at least 0 and below 1"
    ):
        alternative_annotator_test(wins(common_tuples(people, model)), epsilon=1)


def test_answers_are_matched_by_group_and_items_in_any_order():
    """The result is independent of the order of rows and of items in a tuple."""
    people, model = study(0.6, groups=3, items=6)
    shuffled = [
        replace(row, items=next(p for p in permutations(row.items) if p != row.items), tuple_id="")
        for row in reversed([*model.records()])
    ]
    one, two = (common_tuples(people, m) for m in (model, judgments_from_records(shuffled)))
    first, second = wins(one), wins(two)
    assert (first.model == second.model).all()
    assert (first.annotator == second.annotator).all()
    assert (one.n_people_only, one.n_model_only) == (0, 0)
    part = common_tuples(people.select(people.tuple_of > 1), model.select(model.tuple_of != 4))
    assert (part.n_people_only, part.n_model_only) == (1, 2)
    assert len(part) == len(people.tuples) - 3
    assert (part.people.best < 4).all()
    other = judgments_from_records([Judgment(("w", "x", "y", "z"), "w", "z", "ann")])
    with_other_groups = common_tuples(other, model)
    assert len(with_other_groups) == 0
    assert wins(with_other_groups).model.size == 0


def test_the_power_is_that_of_a_model_that_is_an_equal():
    """By simulation: equal models are accepted as often as the mean of the powers says."""
    tests = {
        epsilon: [
            alternative_annotator_test(
                wins(common_tuples(*study(0.6, groups=20, items=6, seed=s))), epsilon=epsilon
            )
            for s in range(100, 130)
        ]
        for epsilon in (0, 0.2)
    }
    for several in tests.values():
        accepted = np.mean([test.may_replace for test in several])
        assert accepted == pytest.approx(np.mean([test.power for test in several]), abs=0.2)
    assert max(test.power for test in tests[0]) < 0.05
    first = tests[0.2][0]
    assert first.document()["power"] == first.power
    assert f"may replace them with a probability of {first.power:.0%}" in " ".join(first.notes)


def test_equal_answers_have_power_with_a_margin_only():
    n = 30
    rows = np.repeat([0, 1, 2], n), np.tile(np.arange(n), 3)
    equal = Wins(("a", "b", "c"), *rows, np.ones(3 * n), np.ones(3 * n))
    assert alternative_annotator_test(equal, epsilon=0.1).power == 1
    assert alternative_annotator_test(equal, epsilon=0).power == 0
