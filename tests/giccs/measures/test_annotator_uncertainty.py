"""Intervals of correlations over dialogues and annotators, against a calculation without arrays."""

import math
from dataclasses import replace
from importlib import resources
from itertools import combinations

import numpy as np
import polars
import pytest
from scipy import stats

from bws.base.problems import InputError
from bws.files import judgments_from_records, read_tuples
from bws.records import Judgment
from bws.scoring import score
from bws.simulation import simulate
from giccs.benchmark import Benchmark, read_benchmark
from giccs.measures.annotator_uncertainty import (
    correlations_over_annotators,
    results_over_annotators,
)
from giccs.measures.clusters import Clusters
from giccs.measures.metrics import correlations
from giccs.measures.results import Result

DIALOGUES, ANNOTATORS = 6, 5
COEFFICIENTS = ("pearson", "spearman", "rank_spearman")


@pytest.fixture(scope="module")
def like():
    return read_benchmark("giccs-sample").items[0]


def study(seed, skipped=lambda dialogue, annotator: False):
    """Records of a small study: six dialogues of four candidates, all 3-tuples, five annotators.

    Each annotator likes or dislikes a feature of the candidates in all dialogues.
    """
    random = np.random.default_rng(seed)
    for d in range(DIALOGUES):
        utility, feature = (dict(zip("abcd", random.normal(size=4), strict=True)) for _ in "uf")
        for items in combinations("abcd", 3):
            for annotator in range(ANNOTATORS):
                if not skipped(d, annotator):
                    slant = annotator - (ANNOTATORS - 1) / 2
                    merit = {i: utility[i] + slant * feature[i] + random.normal() for i in items}
                    ranked = sorted(items, key=merit.__getitem__)
                    ids = tuple(f"{d}{item}" for item in items)
                    yield Judgment(
                        ids, f"{d}{ranked[2]}", f"{d}{ranked[0]}", f"w{annotator}", f"d{d}"
                    )


def counted(records):
    """Counting scores by item, on -1 ... 1."""
    total, shown = {}, {}
    for record in records:
        for item in record.items:
            shown[item] = shown.get(item, 0) + 1
            total[item] = total.get(item, 0) + (item == record.best) - (item == record.worst)
    return {item: total[item] / shown[item] for item in sorted(shown)}


def benchmark_of(like, records):
    return Benchmark(
        "small",
        tuple(
            replace(like, item_id=item, utterance_id=item, dialogue_id=f"d{item[0]}", score=(1 + value) / 2)
            for item, value in counted(records).items()
        ),
    )  # fmt: skip


def predictions_of(benchmark, seed=9):
    random = np.random.default_rng(seed)
    return np.array([item.score + random.normal(0, 0.3) for item in benchmark.items])


def z_of(name, prediction, scores, dialogues):
    """Fisher's z over some dialogues; prediction and scores by item."""
    items = [item for item in scores if int(item[0]) in dialogues]
    if name != "rank_spearman":
        of = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[name]
        return math.atanh(of([prediction[i] for i in items], [scores[i] for i in items])[0])
    inside = []
    for d in dialogues:
        own = [item for item in items if int(item[0]) == d]
        inside.append(stats.spearmanr([prediction[i] for i in own], [scores[i] for i in own])[0])
    return math.atanh(np.mean(inside))


def jackknife(values):
    """Return the jackknife variance of a statistic from its values without each."""
    mean = sum(values) / len(values)
    return (len(values) - 1) / len(values) * sum((value - mean) ** 2 for value in values)


def limits_by_definition(name, prediction, records, cluster_of, annotators=ANNOTATORS):
    everything = range(DIALOGUES)
    fewer = [[d for d in everything if cluster_of[d] != left] for left in sorted(set(cluster_of))]
    effective = DIALOGUES**2 / sum(cluster_of.count(left) ** 2 for left in set(cluster_of))
    scores = counted(records)
    own = jackknife([z_of(name, prediction, scores, some) for some in fewer])
    without = [counted([r for r in records if r.annotator != f"w{a}"]) for a in range(annotators)]
    z = [[z_of(name, prediction, one, some) for some in (everything, *fewer)] for one in without]
    means = [sum(column) / annotators for column in zip(*z, strict=True)]
    changes = [[value - mean for value, mean in zip(row, means, strict=True)] for row in z]
    between = sum(change[0] ** 2 - jackknife(change[1:]) for change in changes)
    between = max(0, between * (annotators - 1) / annotators)
    half = math.hypot(
        stats.t.ppf(0.975, effective - 1) * math.sqrt(own),
        stats.t.ppf(0.975, annotators - 1) * math.sqrt(between),
    )
    middle = z_of(name, prediction, scores, everything)
    return between, math.tanh(middle - half), math.tanh(middle + half)


@pytest.mark.parametrize(
    ("skipped", "cluster_of"),
    [
        (lambda d, a: False, [*range(DIALOGUES)]),
        (lambda d, a: (d + a) % 3 == 0, [*range(DIALOGUES)]),
        (lambda d, a: False, [0, 1, 2, 3, 4, 4]),
    ],
    ids=["all", "partial", "domains"],
)
def test_limits_are_those_of_the_definition(like, skipped, cluster_of):
    wider = 0
    for seed in range(4):
        records = [*study(seed, skipped)]
        benchmark = benchmark_of(like, records)
        values = predictions_of(benchmark)
        prediction = dict(zip(counted(records), values, strict=True))
        clusters = Clusters(np.array(cluster_of), "domains")
        (result,) = correlations_over_annotators(
            judgments_from_records(records), benchmark, [values], clusters=clusters
        )
        for name in COEFFICIENTS:
            between, low, high = limits_by_definition(name, prediction, records, cluster_of)
            wider += between > 0
            assert (result[name].low, result[name].high) == pytest.approx((low, high), abs=1e-9)
    assert wider > 1  # the cases in which nothing is added are not the only ones


def test_the_value_and_the_rest_of_the_interval_are_those_over_dialogues(like):
    records = [*study(1)]
    benchmark = benchmark_of(like, records)
    values = predictions_of(benchmark)
    (result,) = correlations_over_annotators(judgments_from_records(records), benchmark, [values])
    dialogue = np.array([int(item.item_id[0]) for item in benchmark.items])
    alone = correlations(values, np.array([item.score for item in benchmark.items]), dialogue)
    for name in COEFFICIENTS:
        assert result[name].value == alone[name].value
        assert result[name].n == alone[name].n
        assert result[name].low <= alone[name].low
        assert result[name].high >= alone[name].high
        assert result[name].extra == {"annotators": 5}
        assert result[name].reason.split("; ") == [
            "6 dialogues: the interval is approximate below 20",
            "5 annotators: the interval is approximate below 20",
        ]


def test_the_order_of_judgments_and_the_names_of_annotators_do_not_matter(like):
    records = [*study(2)]
    benchmark = benchmark_of(like, records)
    values = predictions_of(benchmark)
    other = [replace(r, annotator=f"v{9 - int(r.annotator[1])}") for r in reversed(records)]
    first, second = (
        correlations_over_annotators(judgments_from_records(some), benchmark, [values])[0]
        for some in (records, other)
    )
    for name in COEFFICIENTS:
        ends = (second[name].low, second[name].high)
        assert (first[name].low, first[name].high) == pytest.approx(ends, abs=1e-12)


@pytest.fixture(scope="module")
def tuples():
    return read_tuples(resources.files("giccs.data") / "tuples.csv")


def slanted(tuples, slants, tastes=0.0):
    """Judgments and predictions; a slant is an annotator's preference for a feature, in all dialogues."""
    random = np.random.default_rng(11)
    utility, feature = random.normal(size=(2, len(tuples.items)))
    merits = utility + np.multiply.outer(slants, feature)
    merits += tastes * random.normal(size=merits.shape)
    parts = [simulate(tuples, m, 1, noise=0.5, seed=n) for n, m in enumerate(merits)]
    judgments = replace(
        parts[0],
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("tuple_of", "best", "worst", "shown")
        },
        annotator_of=np.repeat(np.arange(len(parts)), len(tuples)).astype(np.int32),
        annotators=np.array([f"w{n}" for n in range(len(parts))], dtype=object),
    )
    return judgments, dict(zip(tuples.items.tolist(), utility + feature, strict=True))


def widths(judgments, prediction):
    """Widths of the intervals on Fisher's z, beside those over dialogues alone."""
    sample = read_benchmark("giccs-sample")
    result = score(judgments, scale="unit")
    by_id = dict(zip(result.items, result.score.tolist(), strict=True))
    items = [replace(item, score=by_id[item.utterance_id]) for item in sample.items]
    benchmark = Benchmark("simulated", tuple(items))
    values = np.array([prediction[item.utterance_id] for item in items])
    (both,) = correlations_over_annotators(judgments, benchmark, [values])
    number = {name: n for n, name in enumerate(benchmark.dialogue_ids)}
    dialogue = np.array([number[item.dialogue_id] for item in items])
    alone = correlations(values, np.array([item.score for item in items]), dialogue)
    return [
        [math.atanh(one.high) - math.atanh(one.low) for one in (both[name], alone[name])]
        for name in COEFFICIENTS
    ]


def test_what_annotators_do_alike_in_all_dialogues_widens_the_interval(tuples):
    for both, alone in widths(*slanted(tuples, [-1.5, -0.5, 0.0, 0.4, 0.8, 1.5])):
        assert both > 1.5 * alone


def test_tastes_that_are_new_in_every_dialogue_hardly_widen_it(tuples):
    for both, alone in widths(*slanted(tuples, [0.0] * 20, tastes=1.0)):
        assert alone <= both < 1.15 * alone


def refused(like, records, values=None):
    benchmark = benchmark_of(like, records)
    values = predictions_of(benchmark) if values is None else values
    (result,) = correlations_over_annotators(judgments_from_records(records), benchmark, [values])
    assert all(math.isnan(one.low) and math.isnan(one.high) for one in result.values())
    return {name: one.reason for name, one in result.items()}


def test_few_or_nameless_annotators_have_no_interval(like):
    four = [r for r in study(3) if r.annotator != "w4"]
    reasons = refused(like, four)
    assert set(reasons.values()) == {"4 annotators: no interval, which needs 5"}
    nameless = [replace(r, annotator="") for r in study(3)]
    reasons = refused(like, nameless)
    assert set(reasons.values()) == {"0 annotators: no interval, which needs 5"}


def test_few_dialogues_and_undefined_predictions_have_no_interval(like):
    few = [r for r in study(3) if r.group in {"d0", "d1", "d2", "d3"}]
    reasons = refused(like, few)
    assert set(reasons.values()) == {"4 dialogues: no interval, which needs 5"}
    reasons = refused(like, [*study(3)], np.zeros(24))
    assert set(reasons.values()) == {"all predictions are equal"}
    reasons = refused(like, [*study(3)], np.full(24, math.nan))
    assert set(reasons.values()) == {"24 predictions are NaN"}


def test_an_item_that_one_annotator_judged_has_no_score_without(like):
    reasons = refused(like, [*study(4, lambda d, a: d == 2 and a > 0)])
    assert set(reasons.values()) == {"4 items were judged by a single annotator: no interval"}


def test_a_correlation_of_one_without_an_annotator_has_no_interval(like):
    """Only the last annotator disagrees with the predictions, which are scores without this one."""
    records = [*study(5)]
    without = counted([r for r in records if r.annotator != "w4"])
    reasons = refused(like, records, np.array(list(without.values())))
    for name in ("pearson", "spearman"):
        assert reasons[name] == (
            "undefined or at its bound without some of the annotators: no interval"
        )


def test_judgments_without_a_name_and_tuples_across_dialogues_are_remarked(like):
    records = [replace(r, annotator="" if n < 7 else r.annotator) for n, r in enumerate(study(6))]
    benchmark = benchmark_of(like, records)
    values = predictions_of(benchmark)
    (result,) = correlations_over_annotators(judgments_from_records(records), benchmark, [values])
    assert (
        "7 of 120 judgments have no annotator: the interval excludes differences"
        in result["pearson"].reason
    )
    assert not math.isnan(result["pearson"].low)
    across = [replace(r, group="") for r in records]
    items = tuple(replace(item, dialogue_id=f"d{n // 3}") for n, item in enumerate(benchmark.items))
    (result,) = correlations_over_annotators(
        judgments_from_records(across), Benchmark("across", items), [values]
    )
    assert "tuples have items of several dialogues" in result["spearman"].reason


def test_scores_of_a_choice_model_have_no_interval(like):
    judgments = judgments_from_records(study(1))
    result = score(judgments, "best-worst-logit", scale="unit")
    value = dict(zip(result.items, result.score.tolist(), strict=True))
    benchmark = benchmark_of(like, study(1))
    items = tuple(replace(item, score=value[item.item_id]) for item in benchmark.items)
    benchmark = replace(benchmark, items=items)
    (metrics,) = correlations_over_annotators(judgments, benchmark, [predictions_of(benchmark)])
    for metric in metrics.values():
        assert math.isnan(metric.low)
        assert "the scores are those of best-worst-logit: no interval" in metric.reason


def test_judgments_of_other_scores_are_refused(like):
    benchmark = benchmark_of(like, [*study(7)])
    with pytest.raises(InputError, match="expected the judgments behind the scores of small"):
        correlations_over_annotators(
            judgments_from_records(study(8)), benchmark, [predictions_of(benchmark)]
        )


def result_of(benchmark, table):
    return Result("m", "pairwise-sts", {}, (), {"data": benchmark.fingerprint}, {}, 0.0, table)


def test_results_are_joined_by_item_and_need_predictions(like):
    records = [*study(2)]
    judgments, benchmark = judgments_from_records(records), benchmark_of(like, records)
    values = predictions_of(benchmark)
    ids = [item.item_id for item in benchmark.items]
    table = polars.DataFrame({"item_id": ids, "prediction": values})
    whole = result_of(benchmark, table.reverse())
    elsewhere = replace(whole, signature={"data": "other"})
    bare = result_of(benchmark, None)
    (result,) = results_over_annotators([elsewhere, bare, whole], judgments, benchmark)
    assert [result.metrics] == correlations_over_annotators(judgments, benchmark, [values])
    items = [replace(item, domain=item.dialogue_id[:1]) for item in benchmark.items]
    of_domain = replace(benchmark, items=tuple(items))
    (of_one,) = results_over_annotators(
        [result_of(of_domain, table)], judgments, of_domain, "domain"
    )
    assert of_one.metrics["spearman"].value == result.metrics["spearman"].value
    assert "1 domains: no interval, which needs 6" in of_one.metrics["spearman"].reason
    with pytest.raises(
        InputError, match="m: the items of its predictions differ from those of small"
    ):
        results_over_annotators([result_of(benchmark, table.head(9))], judgments, benchmark)
