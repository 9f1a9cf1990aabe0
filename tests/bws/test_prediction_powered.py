"""Prediction-powered scores: people's judgments of a part of the tuples, models' of others."""

import json
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import beta, norm, t

from bws import prediction_powered_scores, score, utilities
from bws.base.problems import InputError
from bws.cli import score as score_command
from bws.components import finite_population_correction
from bws.design import fresh_rounds
from bws.files import judgments_from_records, write_judgments
from bws.records import Judgment
from bws.scoring.pooling import shrink
from bws.scoring.prediction_powered import mean_width
from bws.simulation import simulate

ITEMS = [f"i{n:02}" for n in range(12)]
TRUTH = np.linspace(-2, 2, len(ITEMS))


@cache
def design(rounds, factor):
    return fresh_rounds(ITEMS, 4, rounds, factor=factor)


def study(
    judge=TRUTH,
    *,
    rounds=5,
    judged=("1",),
    annotators=8,
    per_tuple=4,
    seed=0,
    runs=1,
    factor=4,
    noise=1,
):
    """People's judgments of some rounds of a design, and a judge's of all of them."""
    tuples = design(rounds, factor)
    number = np.array([ITEMS.index(item) for item in tuples.items])
    everything = simulate(
        tuples, TRUTH[number], annotators, noise=1, per_tuple=per_tuple, seed=seed + 1
    )
    people = everything.select(np.isin(tuples.columns["round"][everything.tuple_of], judged))
    return people, by_model(simulate(tuples, judge[number], runs, noise=1, seed=seed + 2))


def by_model(judgments):
    """The judgments of simulated annotators as runs of one model."""
    runs = judgments.annotator_of.astype(str).astype(object)
    return replace(
        judgments,
        annotators=np.array(["model:judge@1"], dtype=object),
        annotator_of=np.zeros_like(judgments.annotator_of),
        columns={**judgments.columns, "run": runs},
    )


def expected_value(utility, position):
    """P(best) - P(worst) of one of K items under the best-worst logit, by enumeration."""
    value = 0.0
    for best, worst in permutations(range(len(utility)), 2):
        others = [i for i in range(len(utility)) if i != best]
        p = np.exp(utility[best]) / np.exp(utility).sum()
        p *= np.exp(-utility[worst]) / np.exp(-utility[others]).sum()
        value += p * ((position == best) - (position == worst))
    return value


def values_by_loops(people, models):
    """Lists per item: (value, prediction) of people's judgments, and predictions of the other tuples."""
    fitted = utilities(models, "best-worst-logit").utility
    utility_of = dict(zip(models.tuples.items, fitted, strict=True))
    pairs = {item: [] for item in ITEMS}
    others = {item: {} for item in ITEMS}
    seen = {frozenset(judgment.items) for judgment in people.records()}
    for records, is_people in ((people.records(), True), (models.records(), False)):
        for judgment in records:
            u = np.array([utility_of[item] for item in judgment.items])
            for position, item in enumerate(judgment.items):
                f = expected_value(u, position)
                if is_people:
                    pairs[item].append(((item == judgment.best) - (item == judgment.worst), f))
                elif frozenset(judgment.items) not in seen:
                    others[item][frozenset(judgment.items)] = f
    return pairs, {item: list(values.values()) for item, values in others.items()}


def corrections(models, people):
    """Finite population corrections of the items in the tuples of models alone."""
    judged = set(people.tuple_of.tolist())
    alone = models.select(np.array([t not in judged for t in models.tuple_of])).canonical
    return dict(zip(alone.items, finite_population_correction(alone), strict=True))


def test_scores_and_lambda_are_those_of_ppi_computed_by_loops():
    people, models = study(judge=TRUTH + 0.5 * np.sin(np.arange(12) * 2), runs=2)
    result = prediction_powered_scores(people, models, cluster="judgment")
    pairs, others = values_by_loops(people, models)
    population = corrections(models, people)
    covariances, variances = [], []
    for item in ITEMS:
        h, f = np.array(pairs[item]).T
        unjudged = np.array(others[item])
        assert len(h) == 64
        assert len(unjudged) == 64
        covariances.append(np.cov(h, f)[0, 1] / len(h))
        variances.append(
            f.var(ddof=1) / len(h) + unjudged.var(ddof=1) / len(unjudged) * population[item]
        )
    weight = sum(covariances) / sum(variances)
    assert 0.1 < weight < 1
    assert result.signature["lambda"] == pytest.approx(weight, abs=1e-9)
    for item, value, low, high in zip(
        result.items, result.score, result.low, result.high, strict=True
    ):
        h, f = np.array(pairs[item]).T
        expected = weight * np.mean(others[item]) + np.mean(h - weight * f)
        assert value == pytest.approx(expected, abs=1e-9)
        assert low < value < high


def test_interval_is_that_of_ppi_on_the_logit_scale_with_jeffreys_end():
    people, models = study()
    result = prediction_powered_scores(people, models, cluster="judgment")
    pairs, others = values_by_loops(people, models)
    population = corrections(models, people)
    weight = result.signature["lambda"]
    extended = 0
    for item, low, high in zip(result.items, result.low, result.high, strict=True):
        (h, f), unjudged = np.array(pairs[item]).T, np.array(others[item])
        n = len(h)
        values = h - weight * f + weight * unjudged.mean()
        s = values.sum() / (n + 1)
        slope = 2 / (1 - s**2)
        between = ((values - s) ** 2).sum() / (n + 1) ** 2 * n / (n - 1)
        pseudo = (1 + s**2) / 2 / (n + 1) ** 2
        mean_of_f = unjudged.var(ddof=1) / len(unjudged) * population[item] * (n / (n + 1)) ** 2
        variance = between + pseudo + weight**2 * mean_of_f
        quantile = t.ppf(0.975, variance**2 / (between**2 / (n - 1)))
        margin = quantile * slope * np.sqrt(variance)
        expected = np.tanh((2 * np.arctanh(s) + np.array([-1, 1]) * margin) / 2)
        p = (1 + values.mean()) / 2
        size = p * (1 - p) / ((variance - pseudo) * ((n + 1) / n) ** 2 / 4)
        size *= (norm.ppf(0.975) / quantile) ** 2
        end = int(p > 0.5)
        jeffreys = beta.ppf((0.025, 0.975)[end], size * p + 0.5, size * (1 - p) + 0.5) * 2 - 1
        expected[end] = (min, max)[end](expected[end], jeffreys)
        extended += expected[end] == jeffreys
        assert (low, high) == pytest.approx(expected, abs=1e-9)
    assert extended


def test_order_of_rows_does_not_matter():
    people, models = study()
    rng = np.random.default_rng(0)
    shuffled = [j.select(rng.permutation(len(j))) for j in (people, models)]
    first, second = prediction_powered_scores(people, models), prediction_powered_scores(*shuffled)
    assert first.score.tolist() == second.score.tolist()
    assert first.signature == second.signature


def test_opposite_judge_changes_nothing():
    people, models = study(judge=-TRUTH)
    result, alone = prediction_powered_scores(people, models), score(people, interval="model")
    assert result.signature["lambda"] == 0
    np.testing.assert_allclose(result.score, alone.score, rtol=1e-12)
    np.testing.assert_allclose(result.low, alone.low, rtol=1e-12)
    np.testing.assert_allclose(result.high, alone.high, rtol=1e-12)


def test_judge_without_signal_changes_nothing():
    people, models = study()
    records = [
        Judgment(judgment.items, *answer, annotator="model:judge")
        for judgment in models.records()
        for answer in permutations(judgment.items, 2)
    ]
    even = by_model(judgments_from_records([replace(r, annotator="") for r in records]))
    result = prediction_powered_scores(people, even)
    assert result.signature["lambda"] == 0
    assert result.score.tolist() == score(people).score.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_useless_judge_does_not_widen_intervals(seed):
    judge = np.random.default_rng(seed).permutation(TRUTH)
    people, models = study(judge=judge, seed=seed)
    alone = score(people, interval="model")
    assert mean_width(prediction_powered_scores(people, models)) <= 1.02 * mean_width(alone)


def test_good_judge_narrows_intervals():
    people, models = study(runs=3)
    alone, result = score(people, interval="model"), prediction_powered_scores(people, models)
    assert mean_width(result) < 0.98 * mean_width(alone)
    assert any("judgments by people alone would give the same width" in n for n in result.notes)


def test_items_without_further_tuples_keep_the_score_of_people():
    people, models = study()
    same = models.select(np.isin(models.tuple_of, people.tuple_of))
    result = prediction_powered_scores(people, same)
    assert result.score.tolist() == score(people).score.tolist()
    assert "12 of 12 items have no predictions and keep" in " ".join(result.notes)


def test_item_that_the_models_never_judged_and_its_opponents_keep_their_scores():
    people, models = study()
    without = models.select(~(models.tuples.members[models.tuple_of] == 0).any(axis=1))
    shares_tuple = np.zeros(12, dtype=bool)
    members = people.tuples.members[people.tuple_of]
    shares_tuple[members[(members == 0).any(axis=1)]] = True
    result, alone = prediction_powered_scores(people, without), score(people)
    assert (result.score == alone.score)[shares_tuple].all()
    assert f"{shares_tuple.sum()} of 12 items have no predictions" in " ".join(result.notes)


def test_items_that_people_never_judged_have_no_score():
    people, models = study()
    added = by_model(judgments_from_records([Judgment(("i00", "i01", "i02", "new"), "new", "i00")]))
    records = [replace(r, tuple_id="") for r in (*models.records(), *added.records())]
    runs = [replace(r, annotator="", tuple_id="") for r in records]
    result = prediction_powered_scores(people, by_model(judgments_from_records(runs)))
    assert result.items[-1] == "new"
    assert np.isnan([result.score[-1], result.low[-1], result.high[-1]]).all()
    assert "1 of 13 items were never judged and have no score: new" in result.notes


@pytest.mark.parametrize(("n_low_items", "is_noticed"), [(0, False), (2, True)])
def test_part_with_other_opponents_than_the_design_is_noticed(n_low_items, is_noticed):
    people, models = study(rounds=4, judged=("1", "2", "3", "4"), runs=3)
    n_low = np.isin(people.tuples.members, np.arange(4)).sum(axis=1)
    chosen = np.flatnonzero(n_low >= n_low_items)
    chosen = chosen if n_low_items else chosen[::2]
    result = prediction_powered_scores(people.select(np.isin(people.tuple_of, chosen)), models)
    message = "people's tuples are no random part of the design"
    assert any(message in note for note in result.notes) == is_noticed


def test_kinds_of_judgments_are_not_exchanged_or_mixed():
    people, models = study()
    with pytest.raises(InputError, match="are by language models; expected those of people alone"):
        prediction_powered_scores(models, models)
    with pytest.raises(InputError, match="are by people; expected those of language models"):
        prediction_powered_scores(people, people)


def test_other_items_other_sizes_and_adaptive_tuples_are_refused():
    people, models = study()
    other = by_model(judgments_from_records([Judgment(("x", "y", "z", "u"), "x", "y")]))
    with pytest.raises(InputError, match="no item of people's judgments"):
        prediction_powered_scores(people, other)
    three = by_model(judgments_from_records([Judgment(("i00", "i01", "i02"), "i00", "i01")]))
    with pytest.raises(InputError, match="tuples of 3 items; expected 4"):
        prediction_powered_scores(people, three)
    for kind in (people, models):
        purpose = np.full(len(kind), "adaptive", dtype=object)
        adaptive = replace(kind, columns={"purpose": purpose})
        files = (adaptive, models) if kind is people else (people, adaptive)
        with pytest.raises(ValueError, match="biased on adaptive tuples"):
            prediction_powered_scores(*files)


def test_too_few_annotators_are_refused():
    people, models = study(annotators=3, per_tuple=3)
    with pytest.raises(ValueError, match="no prediction-powered scores: 3 annotators"):
        prediction_powered_scores(people, models)
    assert prediction_powered_scores(people, models, cluster="tuple").low is not None


def test_unit_scale_is_that_of_the_signed_scores():
    people, models = study()
    signed = prediction_powered_scores(people, models)
    unit = prediction_powered_scores(people, models, scale="unit")
    np.testing.assert_allclose(unit.high, (signed.high + 1) / 2, atol=1e-14)
    with pytest.raises(ValueError, match="expected one of: signed, unit"):
        prediction_powered_scores(people, models, scale="counting")


@pytest.fixture
def files(tmp_path):
    paths = [str(tmp_path / name) for name in ("people.csv", "models.csv")]
    for judgments, path in zip(study(), paths, strict=True):
        write_judgments(judgments, path)
    return paths


def run(*arguments):
    return CliRunner().invoke(score_command, arguments)


def test_command_prints_scores_intervals_and_signature(files):
    done = run(files[0], "--model-judgments", files[1], "--json")
    document = json.loads(done.stdout)
    expected = prediction_powered_scores(*files)
    assert [row["high"] for row in document["scores"]] == expected.high.tolist()
    signature = document["signature"]
    assert signature["method"] == "prediction-powered counting"
    assert signature["models"] == ["judge@1"]
    assert len(signature["models_sha256"]) == len(signature["sha256"]) == 64
    assert signature["lambda"] == expected.signature["lambda"]


@pytest.mark.parametrize(
    "options",
    [
        ["--method", "abw"], ["--scale", "counting"], ["--bootstrap", "10"], ["--prior", "1"],
        ["--merge-variants"], ["--anchor", "x.csv"],
    ],
)  # fmt: skip
def test_command_refuses_options_that_are_no_part_of_it(files, options):
    done = run(files[0], "--model-judgments", files[1], *options)
    assert done.exit_code == 2
    assert f"--model-judgments cannot be combined with {options[0]}" in done.output


def test_pooled_scores_are_shrunk_prediction_powered_scores():
    people, models = study(judge=TRUTH + np.sin(np.arange(12) * 2), per_tuple=2)
    powered, pooled = (prediction_powered_scores(people, models, pool=p) for p in (False, True))
    assert pooled.signature == powered.signature | {"pooled": True}
    model_scores = score(models, "best-worst-logit", scale="counting")
    assert model_scores.items.tolist() == pooled.items.tolist()
    slope = np.polyfit(model_scores.score, powered.score, 1)
    residual = powered.score - np.polyval(slope, model_scores.score)
    moved = pooled.score - powered.score
    share = moved / -residual  # equal numbers of judgments, so that all items are shrunk alike
    assert share == pytest.approx(np.full(12, share.mean()), abs=1e-6)
    assert 0.05 < share.mean() < 0.95
    assert mean_width(pooled) < mean_width(powered)
    assert any("right on average over the items, not for each item" in n for n in pooled.notes)


def test_pooled_variance_is_the_mean_variance_between_clusters():
    people, models = study(per_tuple=2)
    same = models.select(np.isin(models.tuple_of, people.tuple_of))  # no predictions, lambda 0
    pooled = prediction_powered_scores(people, same, cluster="judgment", pool=True)
    pairs, _ = values_by_loops(people, models)
    h = np.array([[value for value, _ in pairs[item]] for item in pooled.items])
    n = h.shape[1]
    variance = np.full(12, h.var(axis=1, ddof=1).mean() / n)
    predictor = score(same, "best-worst-logit", scale="counting").score
    expected = shrink(h.mean(axis=1), variance, predictor)
    np.testing.assert_allclose(pooled.score, expected.estimate, atol=1e-9)
    limits = np.clip(expected.estimate - expected.half_width, -1, 1)
    np.testing.assert_allclose(pooled.low, limits, atol=1e-9)


def test_items_without_interval_or_model_score_are_not_pooled():
    people, models = study()
    without = models.select(~(models.tuples.members[models.tuple_of] == 0).any(axis=1))
    first = people.tuples.items[0]
    powered, pooled = (prediction_powered_scores(people, without, pool=p) for p in (False, True))
    assert (powered.score == pooled.score).tolist() == (pooled.items == first).tolist()
    assert "1 items without an interval or judgments by models are not pooled" in pooled.notes


def test_command_pools_only_with_models(files):
    done = run(files[0], "--pool")
    assert done.exit_code == 2
    assert "--pool requires --model-judgments" in done.output
    signature = json.loads(run(files[0], "--model-judgments", files[1], "--pool", "--json").stdout)[
        "signature"
    ]
    assert signature["pooled"] is True
