"""Rank sets: ranks of items within their groups that tests of all differences permit."""

import json
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.special import logsumexp
from scipy.stats import t

from bws import prediction_powered_scores, read_scores, score, utilities
from bws.base.problems import InputError
from bws.cli import score as score_command
from bws.design import fresh_rounds
from bws.files import judgments_from_records, write_judgments, write_scores
from bws.records import Judgment
from bws.scoring import anchor
from bws.scoring.choice import best_worst_logit, connected_labels
from bws.scoring.clustering import cluster_judgments
from bws.scoring.expected import expected_values
from bws.scoring.pair_tests import order_counts
from bws.scoring.prediction_powered import PoweredScores, predict
from bws.simulation import simulate

ITEMS = [f"i{n}" for n in range(6)]
TRUTH = np.array([-0.5, -0.3, -0.1, 0.1, 0.3, 0.5])
STUDIES = 200


@cache
def design(groups=("",)):
    """All tuples of three of the six items of each group."""
    records = [
        Judgment(members, members[0], members[1], group=group)
        for group in groups
        for members in combinations(ITEMS, 3)
    ]
    return judgments_from_records(records).tuples


def study(truth=TRUTH, annotators=20, seed=0, groups=("",)):
    order = [ITEMS.index(item) for item in design(groups).items]
    return simulate(design(groups), truth[order], annotators, noise=1, seed=seed)


def ranked(judgments, **options):
    return score(judgments, interval="model", ranks=True, **options)


def as_pairs(rank_low, rank_high):
    ends = zip(rank_low, rank_high, strict=True)
    return [(None, None) if np.isnan(a) else (int(a), int(b)) for a, b in ends]


def best_worst_log_likelihood(utility, records):
    """Return the log of the chance of the best items, and of the worst ones among the others."""
    items, best, worst = (
        np.array([[ITEMS.index(item) for item in row] for row in rows])
        for rows in (
            [record.items for record in records],
            [[record.best] for record in records],
            [[record.worst] for record in records],
        )
    )
    others = items[items != best].reshape(len(items), -1)
    chosen = utility[best].sum() - logsumexp(utility[items], axis=1).sum()
    return chosen - utility[worst].sum() - logsumexp(-utility[others], axis=1).sum()


def test_ranks_of_a_choice_model_against_a_numerical_sandwich_and_statsmodels():
    """Derivatives of the log-likelihood by differences, t tests by scipy, Holm by statsmodels."""
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    judgments, n, n_annotators = study(2 * TRUTH, 12), len(ITEMS), 12
    scores = ranked(judgments, method="best-worst-logit", prior=2.0)
    order = [list(scores.items).index(item) for item in ITEMS]
    utility = utilities(judgments, "best-worst-logit", prior=2.0).utility[order]

    def gradient(records, u):
        def along(axis):
            step = 1e-4 * np.eye(n)[axis]
            ends = (best_worst_log_likelihood(u + sign * step, records) for sign in (1, -1))
            return np.subtract(*ends) / 2e-4

        return np.array([along(axis) for axis in range(n)])

    records = list(judgments.records())
    steps = 1e-3 * np.eye(n)
    hessian = np.eye(n) / 2.0**2 - np.array(
        [(gradient(records, utility + s) - gradient(records, utility - s)) / 2e-3 for s in steps]
    )
    bread = np.linalg.inv(hessian)
    bread -= bread.mean(axis=0)
    influence = np.array(
        [
            bread @ gradient([r for r in records if r.annotator == annotator], utility)
            for annotator in {record.annotator for record in records}
        ]
    )
    pairs = list(combinations(range(n), 2))
    p = []
    for i, j in pairs:
        between = (
            n_annotators / (n_annotators - 1) * ((influence[:, i] - influence[:, j]) ** 2).sum()
        )
        total = between + ((bread[i] - bread[j]) ** 2).sum() / 2.0**2
        df = (n_annotators - 1) * (total / between) ** 2
        p.append(2 * t.sf(abs(utility[i] - utility[j]) / np.sqrt(total), df))
    rejected = multipletests(p, 0.05, "holm")[0]
    above, below = np.zeros((2, n), int)
    for (i, j), is_different in zip(pairs, rejected, strict=True):
        high, low = (i, j) if utility[i] > utility[j] else (j, i)
        above[low] += is_different
        below[high] += is_different
    assert 3 < rejected.sum() < len(pairs)
    found = as_pairs(scores.rank_low[order], scores.rank_high[order])
    assert found == list(zip(1 + above, n - below, strict=True))


@pytest.mark.nightly
def test_bootstrap_tests_have_nearly_the_variances_of_linear_ones():
    """Also of a method without a formula or standard errors of its own (value learning)."""
    judgments = study(TRUTH, 20)
    sizes = []
    for method, options in (
        ("counting", {"interval": "model"}),
        ("counting", {"bootstrap": 200}),
        ("best-worst-logit", {"bootstrap": 100}),
        ("value-learning", {"bootstrap": 60, "passes": 10}),
    ):
        scores = score(judgments, method, ranks=True, **options)
        sizes.append((scores.rank_high - scores.rank_low).mean())
    assert min(sizes) > 0
    assert max(sizes) <= 1.5 * min(sizes) + 0.4


def test_all_true_scores_and_ranks_of_a_group_are_within_their_sets_in_95_percent_of_studies():
    members = design().members
    utility = TRUTH[[ITEMS.index(item) for item in design().items]]
    values = expected_values(utility, members, best_worst_logit)
    truth = np.bincount(members.ravel(), values.ravel()) / np.bincount(members.ravel())
    rank = 1 + (truth[:, None] < truth).sum(axis=1)
    single, sets, width = [], [], []
    for seed in range(STUDIES):
        scores = ranked(study(annotators=10, seed=seed))
        single.append(((scores.low <= truth) & (truth <= scores.high)).all())
        sets.append(((scores.rank_low <= rank) & (rank <= scores.rank_high)).all())
        width.append((scores.rank_high - scores.rank_low).mean())
    assert np.mean(single) < 0.95  # intervals that hold for one item each
    assert np.mean(sets) >= 0.95
    more = ranked(study(annotators=80))
    assert 0 < (more.rank_high - more.rank_low).mean() < np.mean(width) < len(ITEMS) - 1


def test_items_without_an_interval_have_no_ranks_and_widen_those_of_the_others():
    judgments = study(4 * TRUTH)
    full = ranked(judgments)
    tuples = judgments.tuples
    extended = replace(
        tuples,
        items=np.append(tuples.items, "never judged"),
        group_of_item=np.append(tuples.group_of_item, tuples.group_of_item[0]),
    )
    scores = ranked(replace(judgments, tuples=extended))
    assert as_pairs(scores.rank_low, scores.rank_high)[-1] == (None, None)
    np.testing.assert_array_equal(scores.rank_low[:-1], full.rank_low)
    np.testing.assert_array_equal(scores.rank_high[:-1], full.rank_high + 1)
    assert any(note.startswith("1 items have no ranks") for note in scores.notes)
    assert not any("have no ranks" in note for note in full.notes)


def test_too_few_annotators_give_no_ranks():
    scores = ranked(study(annotators=3))
    assert np.isnan([scores.rank_low, scores.rank_high]).all()
    assert any(note.startswith("6 items have no ranks") for note in scores.notes)


def test_a_standard_error_of_zero_gives_no_ranks():
    records = [
        Judgment(("a", "b", "c"), "a", "c", f"w{annotator}") for annotator in range(6)
    ]  # all resamples are equal
    scores = score(judgments_from_records(records), "elo", bootstrap=20, ranks=True)
    np.testing.assert_array_equal(scores.low, scores.high)
    assert np.isnan(scores.rank_low).all()


def test_items_that_are_not_connected_are_not_compared():
    records = [
        Judgment(tuple(items), items[annotator == 0], items[2], f"w{annotator}")
        for annotator in range(30)
        for items in ("abc", "def")
    ]
    scores = ranked(judgments_from_records(records), cluster="annotator")
    assert scores.low[0] > scores.high[5]  # and they are compared with none of the other tuple
    assert as_pairs(scores.rank_low, scores.rank_high) == [(1, 4), (2, 5), (3, 6)] * 2
    assert any("of 1 groups are not all connected" in note for note in scores.notes)


def test_scale_order_of_rows_and_linking_change_no_ranks():
    judgments = study(4 * TRUTH)
    scores = ranked(judgments)
    unit = ranked(judgments, scale="unit")
    backwards = ranked(judgments.select(np.arange(len(judgments))[::-1]))
    linked = anchor([score(study(2 * TRUTH, seed=1)), scores])[1]
    for other in (unit, backwards, linked):
        np.testing.assert_array_equal(other.rank_low, scores.rank_low)
        np.testing.assert_array_equal(other.rank_high, scores.rank_high)
    assert scores.signature["ranks"] is True
    assert "ranks" not in score(judgments).signature


def test_ranks_need_intervals_that_hold_for_each_item():
    with pytest.raises(ValueError, match="ranks need intervals"):
        score(study(), ranks=True)
    with pytest.raises(ValueError, match="pooled scores have no ranks"):
        prediction_powered_scores(study(), study(), pool=True, ranks=True)


def test_prediction_powered_ranks():
    n = 12
    tuples = fresh_rounds([f"i{number:02}" for number in range(n)], 4, 5, factor=4)
    utility = np.array([float(item[1:]) / 3 for item in tuples.items])
    everything = simulate(tuples, utility, 8, noise=1, seed=1)
    people = everything.select(tuples.columns["round"][everything.tuple_of] == "1")
    models = replace(
        simulate(tuples, utility, 1, noise=1, seed=2),
        annotators=np.array(["model:judge@1"], dtype=object),
    )
    scores = prediction_powered_scores(people, models, scale="unit", ranks=True)
    assert scores.signature["lambda"] > 0

    judged = people.canonical
    predictor = utilities(models, "best-worst-logit").utility[models.canonical.origin]
    clusters = cluster_judgments(people, "both")
    powered = PoweredScores(judged, clusters, predict(judged, models.canonical, predictor))
    above, below = order_counts(
        powered.fitted, clusters, np.zeros(n, int), connected_labels(judged)
    )
    assert above.sum() > 0
    np.testing.assert_array_equal(scores.rank_low[judged.origin], 1 + above)
    np.testing.assert_array_equal(scores.rank_high[judged.origin], n - below)


def test_errors_of_mean_predictions_are_dependent():
    """Against loops over the tuples of models alone, of which one is also people's."""
    rng, n = np.random.default_rng(0), 7
    tuples = [*combinations(range(n), 3)][:-4]
    names = np.array([f"i{i}" for i in range(n)])
    records = [Judgment(tuple(names[[*t]]), names[t[0]], names[t[1]], "model:m@1") for t in tuples]
    people = judgments_from_records(
        [replace(records[0], annotator=f"w{a}") for a in range(3)]
        + [replace(record, annotator="w0") for record in records[1:9]]
    ).canonical
    models = judgments_from_records(records).canonical
    utility = rng.standard_normal(n)
    found = predict(people, models, utility)
    new = np.array([t for t in models.members.tolist() if t not in people.members.tolist()])
    values = expected_values(utility, new, best_worst_logit)
    expected = np.zeros((n, n))
    counts = np.bincount(new.ravel(), minlength=n)
    mean = np.bincount(new.ravel(), values.ravel(), n) / counts
    for members, row in zip(new, values, strict=True):
        for i, x in zip(members, row, strict=True):
            for j, y in zip(members, row, strict=True):
                expected[i, j] += (x - mean[i]) * (y - mean[j]) / (counts[i] * counts[j])
    correction = found.variance / np.diagonal(expected)
    expected *= np.sqrt(correction[:, None] * correction)
    assert found.is_predicted.all()
    np.testing.assert_allclose(found.covariance.toarray(), expected, atol=1e-15)
    assert (expected[~np.eye(n, dtype=bool)] < 0).any()


def test_files_of_scores_have_ranks_as_integers(tmp_path):
    scores = ranked(study(4 * TRUTH))
    scores.rank_low[0] = scores.rank_high[0] = np.nan
    write_scores(scores, tmp_path / "scores.csv")
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    assert lines[0].endswith(",low,high,rank_low,rank_high")
    assert lines[1].endswith(",,")
    assert lines[2].endswith(f",{scores.rank_low[1]:.0f},{scores.rank_high[1]:.0f}")
    again = read_scores(tmp_path / "scores.csv")
    np.testing.assert_array_equal(again.rank_low, scores.rank_low)
    np.testing.assert_array_equal(again.rank_high, scores.rank_high)
    assert scores.to_frame("polars")["rank_low"].dtype == pl.Int64
    assert scores.to_frame("polars")["rank_low"].null_count() == 1


@pytest.mark.parametrize("rank", ["0", "1.5", "first"])
def test_invalid_ranks_in_files_are_refused(tmp_path, rank):
    path = tmp_path / "scores.csv"
    path.write_text(f"item,score,rank_low,rank_high\na,1,1,1\nb,0,{rank},2\n")
    with pytest.raises(InputError, match=f"scores.csv:3: rank_low is '?{rank}"):
        read_scores(path)


def test_command(tmp_path):
    path = tmp_path / "judgments.csv"
    write_judgments(study(4 * TRUTH), path)
    result = CliRunner().invoke(score_command, [str(path), "--intervals", "--ranks", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    scores = ranked(study(4 * TRUTH))
    assert [(row["rank_low"], row["rank_high"]) for row in document["scores"]] == as_pairs(
        scores.rank_low, scores.rank_high
    )
    assert document["notes"][-1].startswith("ranks within all items, 1 for the highest score")
    table = CliRunner().invoke(
        score_command, [str(path), "--bootstrap", "20", "--ranks", "-o", str(tmp_path / "s.csv")]
    )
    assert "rank_low" in table.stdout
    for options, message in (
        (["--ranks"], "--ranks requires --intervals, --bootstrap or --model-judgments"),
        (
            ["--ranks", "--model-judgments", str(path), "--pool"],
            "--ranks cannot be combined with --pool",
        ),
    ):
        refused = CliRunner().invoke(score_command, [str(path), *options])
        assert refused.exit_code == 2
        assert message in refused.stderr
