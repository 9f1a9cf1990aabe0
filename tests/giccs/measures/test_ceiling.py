"""The noise ceiling, against models that know the true scores because the judgments are simulated."""

import itertools
import math
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from scipy import stats

from bws.base.problems import InputError
from bws.components import components
from bws.design import make_tuples
from bws.files import judgments_from_records, read_tuples
from bws.records import Judgment
from bws.scoring import score
from bws.simulation import simulate
from giccs.benchmark import Benchmark, read_benchmark
from giccs.measures.ceiling import explain_ceiling, judgments_digest, load_judgments, noise_ceiling
from giccs.measures.metrics import correlations
from tests.nightly import others_nightly


@pytest.fixture(scope="module")
def sample():
    return read_benchmark("giccs-sample")


@pytest.fixture(scope="module")
def tuples():
    """The 600 tuples of giccs-sample: 60 dialogues of five candidates."""
    return read_tuples(resources.files("giccs.data") / "tuples.csv")


def scored_by(judgments, benchmark, method="counting", scale="unit"):
    """The benchmark with the scores of other judgments; those on counting's scale as (score + 1) / 2."""
    result = score(judgments, method, scale=scale)
    shares = result.score if scale == "unit" else (result.score + 1) / 2
    by_id = dict(zip(result.items, shares.tolist(), strict=True))
    items = (replace(item, score=by_id[item.utterance_id]) for item in benchmark.items)
    return Benchmark("simulated", tuple(items))


@pytest.mark.parametrize(
    ("noise", "disagreement"),
    others_nightly(itertools.product([0.4, 0.8, 1.3], [0, 0.5]), (0.4, 0), (1.3, 0.5)),
)
def test_a_model_that_knows_the_expected_scores_reaches_the_ceiling(
    sample, tuples, noise, disagreement
):
    """Also where annotators have tastes of their own, which halves of their judgments share."""
    reached, ceilings = [], []
    for seed in range(4):
        truth = np.random.default_rng(seed).uniform(-1, 1, len(tuples.items))
        how = {"noise": noise, "disagreement": disagreement}
        observed = simulate(tuples, truth, 5, seed=seed, **how)
        expected = score(simulate(tuples, truth, 500, seed=1000 + seed, **how)).score
        ceiling = noise_ceiling(observed, scored_by(observed, sample))
        given = score(observed).score
        reached.append([np.corrcoef(expected, given)[0, 1], stats.spearmanr(expected, given)[0]])
        ceilings.append([ceiling[name].value for name in ("pearson", "spearman")])
    assert np.mean(ceilings, axis=0) == pytest.approx(np.mean(reached, axis=0), abs=0.016)


def benchmark_of(sample, judgments, per_dialogue=4):
    """The counting scores of judgments without groups, so many of them in a dialogue."""
    scores = score(judgments, scale="unit")
    return Benchmark(
        "simulated",
        tuple(
            replace(
                sample.items[0],
                item_id=item,
                utterance_id=item,
                dialogue_id=f"d{number // per_dialogue}",
                score=value,
            )
            for number, (item, value) in enumerate(
                zip(scores.items, scores.score.tolist(), strict=True)
            )
        ),
    )


def test_the_choice_of_tuples_is_part_of_the_error(sample):
    """Halves of the same tuples correlate too well: the root of their reliability is far above this."""
    items, reached, ceilings = [f"i{number:03}" for number in range(120)], [], []
    chosen = make_tuples(items, 4, factor=2)
    others = make_tuples(items, 4, factor=60, seed=1)
    for seed in range(4):
        truth = np.random.default_rng(seed).normal(size=120)
        observed = simulate(chosen, truth, 4, noise=0.36, seed=seed)
        expected = score(simulate(others, truth, 20, noise=0.36, seed=1000 + seed)).score
        reached.append(np.corrcoef(expected, score(observed).score)[0, 1])
        ceilings.append(noise_ceiling(observed, benchmark_of(sample, observed))["pearson"].value)
    assert np.mean(ceilings) == pytest.approx(np.mean(reached), abs=0.006)
    assert np.mean(reached) < 0.975


def test_the_reliability_is_that_of_the_components(sample):
    judgments = load_judgments(sample)
    ceiling = noise_ceiling(judgments, sample)["pearson"]
    assert ceiling.extra["reliability"] == pytest.approx(
        components(judgments.canonical).reliability, abs=1e-12
    )
    assert ceiling.value == pytest.approx(math.sqrt(ceiling.extra["reliability"]))
    assert ceiling.extra["data"] == sample.fingerprint
    assert ceiling.n == 300


def test_annotators_who_differ_in_care_widen_the_interval(sample, tuples):
    truth = np.random.default_rng(3).uniform(-1, 1, 300)
    alike = simulate(tuples, truth, 6, noise=0.5, seed=3)
    careful, careless = (simulate(tuples, truth, 6, noise=noise, seed=3) for noise in (0.05, 1.4))
    half = careful.annotator_of < 3
    mixed = replace(
        alike,
        best=np.where(half, careful.best, careless.best),
        worst=np.where(half, careful.worst, careless.worst),
    )
    widths = []
    for judgments in (alike, mixed):
        ceiling = noise_ceiling(judgments, scored_by(judgments, sample))["pearson"]
        widths.append(math.log((1 - ceiling.low**2) / (1 - ceiling.high**2)))
    assert widths[1] > 1.5 * widths[0]


def test_few_annotators_and_unknown_annotators_are_remarked(sample, tuples):
    truth = np.random.default_rng(4).uniform(-1, 1, 300)
    few = simulate(tuples, truth, 5, noise=0.5)
    ceiling = noise_ceiling(few, scored_by(few, sample))["spearman"]
    assert ceiling.reason == "5 annotators: the interval is approximate below 20"
    assert ceiling.low < ceiling.value < ceiling.high
    unknown = replace(few, annotator_of=np.full_like(few.annotator_of, -1))
    ceiling = noise_ceiling(unknown, scored_by(unknown, sample))["pearson"]
    assert "3000 of 3000 judgments have no annotator" in ceiling.reason
    assert "may be too high" in ceiling.reason
    many = simulate(tuples, truth, 20, noise=0.5)
    assert not noise_ceiling(many, scored_by(many, sample))["pearson"].reason


def test_absolute_similarity_stays_below_the_ceiling_of_scores_within_dialogues(sample, tuples):
    random = np.random.default_rng(5)
    truth = random.normal(size=300) + np.repeat(random.normal(size=60), 5)
    judgments = simulate(tuples, truth, 20, noise=0.3)
    benchmark = scored_by(judgments, sample)
    given = np.array([item.score for item in benchmark.items])
    ceiling = noise_ceiling(judgments, benchmark)
    assert ceiling["pearson"].extra["equal_dialogue_means"]
    assert "within-dialogue ρ" in " ".join(explain_ceiling(ceiling))
    absolute = dict(zip(tuples.items, truth.tolist(), strict=True))
    model = correlations(
        np.array([absolute[item.utterance_id] for item in benchmark.items]),
        given,
        np.array([benchmark.dialogue_ids.index(item.dialogue_id) for item in benchmark.items]),
    )
    assert model["pearson"].value < ceiling["pearson"].low - 0.1
    assert model["rank_spearman"].value > 0.95


def test_scores_over_all_items_say_nothing_of_dialogues(sample):
    items = [f"i{number:03}" for number in range(60)]
    judgments = simulate(make_tuples(items, 4), np.linspace(-1, 1, 60), 20)
    ceiling = noise_ceiling(judgments, benchmark_of(sample, judgments))
    assert not ceiling["pearson"].extra["equal_dialogue_means"]
    assert ceiling["pearson"].reason.startswith("tuples have items of several dialogues")
    assert len(explain_ceiling(ceiling)) == 1


def test_the_digest_of_judgments_does_not_depend_on_annotators_names(tuples):
    judgments = simulate(tuples, np.linspace(-1, 1, 300), 5)
    renamed = replace(judgments, annotators=np.array(list("zyxwv"), dtype=object))
    fewer = judgments.select(np.arange(1, len(judgments)))
    shuffled = np.random.default_rng(0).permutation(judgments.annotator_of)
    swapped = replace(judgments, annotator_of=shuffled)
    assert judgments_digest(renamed) == judgments_digest(judgments)
    assert len({judgments_digest(one) for one in (judgments, fewer, swapped)}) == 3


def test_the_digest_depends_on_the_judgments_of_a_single_annotator():
    first, second = (judged(("abc", best, "c"), annotators=("w1",)) for best in "ab")
    assert judgments_digest(first) != judgments_digest(second)


def judged(*answers, group="d", annotators=("w1", "w2")):
    """Judgments of one dialogue's tuples: (items, best, worst) by each annotator."""
    return judgments_from_records(
        Judgment(tuple(items), best, worst, annotator, group)
        for annotator in annotators
        for items, best, worst in answers
    )


def of_items(sample, judgments, group="d"):
    """Items with just the counting scores of the judgments."""
    result = score(judgments, scale="unit")
    like = sample.items[0]
    return Benchmark(
        "small",
        tuple(
            replace(like, item_id=name, utterance_id=name, dialogue_id=group, score=value)
            for name, value in zip(result.items, result.score.tolist(), strict=True)
        ),
    )


ONE_ORDER = [("abc", "a", "c"), ("abd", "a", "d"), ("bcd", "b", "d"), ("acd", "a", "d")]


def test_unanimous_annotators_leave_a_ceiling_of_one(sample):
    judgments = judged(*ONE_ORDER)
    result = noise_ceiling(judgments, of_items(sample, judgments))
    for one in result.values():
        assert one.value == pytest.approx(1.0)
        assert math.isnan(one.low)
        assert one.reason.endswith("1 dialogues: no interval, which needs 5")


def test_one_annotator_leaves_none(sample):
    judgments = judged(*ONE_ORDER, annotators=("w1",))
    result = noise_ceiling(judgments, of_items(sample, judgments))
    for one in result.values():
        assert math.isnan(one.value)
        assert one.reason.startswith("no tuple was judged by two annotators")
        assert math.isnan(one.extra["reliability"])


def test_annotators_who_contradict_each_other_leave_none(sample):
    turned = [(items, worst, best) for items, best, worst in ONE_ORDER[:-1]]
    records = [*judged(*ONE_ORDER, annotators=("w1",)).records()]
    records += [*judged(*turned, annotators=("w2",)).records()]
    judgments = judgments_from_records(records)
    result = noise_ceiling(judgments, of_items(sample, judgments))["pearson"]
    assert math.isnan(result.value)
    assert "is as large as their variance" in result.reason


def test_too_few_or_equal_scores_leave_none(sample):
    judgments = judged(("ab", "a", "b"))
    result = noise_ceiling(judgments, of_items(sample, judgments))["spearman"]
    assert math.isnan(result.value)
    assert "fewer than three" in result.reason


def test_judgments_of_other_scores_are_refused_and_counted(sample, tuples):
    other = simulate(tuples, np.random.default_rng(1).uniform(-1, 1, 300), 5, seed=1)
    with pytest.raises(InputError) as caught:
        noise_ceiling(other, sample)
    (problem,) = caught.value.problems
    result = score(other, scale="unit")
    by_id = dict(zip(result.items, result.score.tolist(), strict=True))
    differ = sum(abs(by_id[item.utterance_id] - item.score) > 0.005 for item in sample.items)
    assert f"{differ} of 300 items have another score than that of counting (" in str(problem)
    assert "expected the judgments behind the scores of giccs-sample" in str(problem)
    assert "giccs score --scale unit, then giccs build" in str(problem)


def test_items_that_nobody_judged_are_named(sample):
    judgments = load_judgments(sample)
    kept = np.array([group != "restaurant-01" for group in judgments.tuples.groups])
    fewer = judgments.select(kept[judgments.tuples.group_of_tuple][judgments.tuple_of])
    with pytest.raises(
        InputError, match=r"5 of 300 items are not judged \(restaurant-01-a, .*\.\.\."
    ):
        noise_ceiling(fewer, sample)


def test_judgments_of_more_dialogues_than_the_benchmark_has_do(sample):
    judgments = load_judgments(sample)
    part = sample.first(20)
    own = np.isin(judgments.tuples.groups, part.dialogue_ids)
    alone = judgments.select(own[judgments.tuples.group_of_tuple][judgments.tuple_of])
    result, expected = (noise_ceiling(one, part) for one in (judgments, alone))
    assert result == expected
    assert result["pearson"].n == 100


def test_scores_with_two_decimals_are_the_same_scores(sample):
    rounded = tuple(replace(item, score=round(item.score, 2)) for item in sample.items)
    benchmark = Benchmark("rounded", rounded)
    result = noise_ceiling(load_judgments(sample), benchmark)
    assert result["pearson"].value > 0.9


def test_judgments_without_groups_are_joined_by_item(sample):
    records = [replace(record, group="") for record in load_judgments(sample).records()]
    nameless = judgments_from_records(records)
    with_groups = noise_ceiling(load_judgments(sample), sample)
    result = noise_ceiling(nameless, sample)
    assert result["pearson"].value == pytest.approx(with_groups["pearson"].value, abs=0.005)
    same_ids = tuple(replace(item, utterance_id=item.utterance_id[-1]) for item in sample.items)
    with pytest.raises(InputError, match="295 utterance ids occur in more than one dialogue"):
        noise_ceiling(nameless, Benchmark("clash", same_ids))


def test_judgments_come_from_a_file_or_with_the_sample(sample, tmp_path):
    path = resources.files("giccs.data") / "judgments.csv"
    assert len(load_judgments(replace(sample, name="other"), path)) == 3000
    assert load_judgments(replace(sample, name="other")) is None
    assert len(load_judgments(sample.first(2))) == 3000
    with pytest.raises(InputError, match="no such file"):
        load_judgments(sample, tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("scale", "disagreement"),
    others_nightly(itertools.product(["unit", "counting"], [0, 0.5]), ("unit", 0.5)),
)
def test_true_scores_of_a_choice_model_reach_its_ceiling(sample, tuples, scale, disagreement):
    """True: what the model finds in the judgments of 400 others, with a prior that does not shrink."""
    reached, ceilings = [], []
    for seed in range(3):
        truth = 1.5 * np.random.default_rng(seed).standard_normal(len(tuples.items))
        how = {"noise": 1, "disagreement": disagreement}
        observed = simulate(tuples, truth, 4, seed=seed, **how)
        others = simulate(tuples, truth, 400, seed=1000 + seed, **how)
        true = score(others, "best-worst-logit", scale=scale, prior=100).score
        given = score(observed, "best-worst-logit", scale=scale).score
        ceiling = noise_ceiling(observed, scored_by(observed, sample, "best-worst-logit", scale))
        assert ceiling["pearson"].extra["method"] == "best-worst-logit"
        assert ceiling["pearson"].extra["scale"] == scale
        reached.append([np.corrcoef(true, given)[0, 1], stats.spearmanr(true, given)[0]])
        ceilings.append([ceiling[name].value for name in ("pearson", "spearman")])
        assert ceiling["pearson"].low < ceiling["pearson"].value < ceiling["pearson"].high
    assert np.mean(ceilings, axis=0) == pytest.approx(np.mean(reached, axis=0), abs=0.012)


def test_the_method_of_the_scores_is_found(sample, tuples):
    four = make_tuples([f"i{number:03}" for number in range(40)], 4, factor=3)
    judgments = simulate(four, np.random.default_rng(2).normal(size=40), 5, noise=0.7)
    for method in ("counting", "best-worst-logit", "maxdiff"):
        shares = score(judgments, method, scale="unit").score.tolist()
        benchmark = Benchmark(
            "simulated",
            tuple(
                replace(
                    sample.items[0], item_id=item, utterance_id=item, dialogue_id=item, score=share
                )
                for item, share in zip(four.items, shares, strict=True)
            ),
        )
        result = noise_ceiling(judgments, benchmark)["spearman"]
        assert (result.extra["method"], result.extra["scale"]) == (method, "unit")
        assert result.value > 0.8


def test_scores_that_no_method_gives_name_what_was_tried(sample, tuples):
    judgments = simulate(tuples, np.random.default_rng(1).uniform(-1, 1, 300), 5, noise=0.5)
    with pytest.raises(InputError) as caught:
        noise_ceiling(judgments, scored_by(judgments, sample, "elo"))
    message = str(caught.value)
    assert "have another score than that of counting (" in message
    assert (
        "best-worst-logit (unit), best-worst-logit (counting), maxdiff (unit), maxdiff (counting)"
        in message
    )


def test_a_part_of_the_dialogues_has_the_prior_of_all(sample, tuples):
    """The scores of a part depend on all judgments, of which the prior is estimated."""
    judgments = simulate(tuples, np.random.default_rng(1).normal(size=300), 4, noise=0.7)
    part = scored_by(judgments, sample, "best-worst-logit").first(20)
    result = noise_ceiling(judgments, part)["pearson"]
    assert result.n == 100
    assert 0.85 < result.value < 1


def test_a_choice_model_is_named_and_its_utilities_have_equal_means(sample, tuples):
    judgments = simulate(tuples, np.random.default_rng(1).normal(size=300), 4, noise=0.7)
    benchmark = scored_by(judgments, sample, "best-worst-logit")
    said = explain_ceiling(noise_ceiling(judgments, benchmark))
    assert "best-worst-logit, whose ceiling assumes that its model is correct" in said[1]
    assert said[2].startswith("The utilities of every dialogue have the same mean")


def test_annotators_who_contradict_each_other_leave_a_model_hardly_a_ceiling(sample, tuples):
    """Each of two annotators has an order of their own, so that nothing is known of others."""
    first, second = (
        simulate(tuples, np.random.default_rng(seed).normal(size=300), 2, noise=0.1, seed=seed)
        for seed in (1, 2)
    )
    own = first.annotator_of == 0
    mixed = replace(
        first,
        best=np.where(own, first.best, second.best),
        worst=np.where(own, first.worst, second.worst),
        shown=None,
    )
    result = noise_ceiling(mixed, scored_by(mixed, sample, "best-worst-logit"))["pearson"]
    assert math.isnan(result.value) or result.value < 0.4


def test_few_judgments_of_an_item_are_remarked_where_a_model_made_the_scores(sample):
    """Three-item tuples, one per item: three judgments of an item by each of two annotators."""
    items, groups = [f"i{n:03}" for n in range(60)], [f"g{n // 5}" for n in range(60)]
    sparse = make_tuples(items, 3, factor=1, groups=groups)
    judgments = simulate(sparse, np.random.default_rng(1).normal(size=60), 2, noise=0.5)

    def benchmark(method):
        shares = score(judgments, method, scale="unit").score.tolist()
        return Benchmark(
            "sparse",
            tuple(
                replace(
                    sample.items[0], item_id=name, utterance_id=name, dialogue_id=group, score=share
                )
                for name, group, share in zip(sparse.items, groups, shares, strict=True)
            ),
        )

    result = {
        method: noise_ceiling(judgments, benchmark(method))["pearson"].reason
        for method in ("counting", "best-worst-logit")
    }
    assert "judgments per item" not in result["counting"]
    assert "6.0 judgments per item: below 8, the ceiling" in result["best-worst-logit"]
