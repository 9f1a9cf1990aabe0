"""What giccs demo says of the best model beside shared characters is the verdict of the paired test."""

import pytest

from bws.stats.estimates import Estimate
from giccs.measures.all_pairs import PairDifference
from giccs.report.model_comparison import Leaderboard, RankedModel
from giccs_app.demo.cli import summarize_leaderboard


def leaderboard(names, p_holm=0.5):
    models = tuple(
        RankedModel(name, "without", Estimate(0.4 - 0.1 * i, 0.1, 0.6, 300), 1, 2, True)
        for i, name in enumerate(names)
    )
    pair = PairDifference(0, 1, 0.1, 60, 0.02, 0.18, p_holm=p_holm)
    return Leaderboard(
        *("pairwise-sts", "made-up", "", "spearman", 300, 60, 0.02, "dialogues", "", ()),
        models,
        (pair,),
    )


@pytest.mark.parametrize(("p", "verdict"), [(0.012, "significant"), (0.05, "not significant")])
def test_intervals_that_overlap_do_not_decide(p, verdict):
    sentence = summarize_leaderboard(leaderboard(["m", "baseline:char-ngram"], p))
    assert sentence.startswith("m has the highest correlation (Spearman's ρ 0.40)")
    assert (
        f"The difference is {verdict} (0.10 [0.02, 0.18]; p = {p:.3f}, paired test over 60"
        in sentence
    )


def test_the_baseline_itself_may_be_the_best():
    sentence = summarize_leaderboard(leaderboard(["baseline:char-ngram", "m"]))
    assert "no model is better than character overlap" in sentence
