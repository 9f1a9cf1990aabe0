"""Scales and position effects of annotators: against a slow program, and planted ones."""

import json
import math
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from click.testing import CliRunner
from scipy.special import ndtri

from benchmarks.annotators import Setting, annotators_by_kind, simulated_study
from bws.annotators import annotator_report, taste_test
from bws.cli import agreement
from bws.design import make_tuples
from bws.files import judgments_from_records, write_judgments
from bws.records import Judgment, Judgments
from bws.simulation import simulate

CARELESS_SHARES = (0.5, 0.75, 1.0)


def study(
    seed, careless=(), n_items=100, annotators=20, fewest=60, most=100, **options
) -> Judgments:
    """Annotators with tastes, each of whom judges some tuples; the first have careless answers."""
    rng = np.random.default_rng(seed)
    design = make_tuples([f"i{n}" for n in range(n_items)], 4, factor=2, seed=seed)
    truth = rng.normal(0, 1.5, n_items)
    options = {"noise": 1.0, "disagreement": 0.5, "seed": seed} | options
    judgments = simulate(design, truth, annotators, **options)
    best, worst = judgments.best.copy(), judgments.worst.copy()
    for annotator, share in enumerate(careless):
        guessing = simulate(design, truth, annotators, careless=share, **options)
        rows = judgments.annotator_of == annotator
        best[rows], worst[rows] = guessing.best[rows], guessing.worst[rows]
    judged = [
        rng.choice(rows, min(len(rows), rng.integers(fewest, most + 1)), replace=False)
        for rows in (np.flatnonzero(judgments.annotator_of == a) for a in range(annotators))
    ]
    return replace(judgments, best=best, worst=worst).select(np.sort(np.concatenate(judged)))


def by_name(report) -> dict:
    return {annotator.annotator: annotator for annotator in report.annotators}


def auc(low, high) -> float:
    """Return the share of pairs in which the number of `low` is the lower one."""
    return float(np.mean([(x < y) + (x == y) / 2 for x in low for y in high]))


# Scales -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [3, pytest.param(10, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("shares", [CARELESS_SHARES, (0.35,) * 3], ids=["half to all", "third"])
def test_careless_annotators_are_found_by_their_scale(shares, seeds):
    by_scale, by_compliance = [], []
    names = [f"simulated-{n}" for n in range(1, 21)]
    for seed in range(seeds):
        result = by_name(annotator_report(study(seed, shares)))
        for values, aucs in (
            ([result[name].scale for name in names], by_scale),
            ([result[name].compliance for name in names], by_compliance),
        ):
            aucs.append(auc(values[:3], values[3:]))
    print(f"\nAUC {shares}: scale {np.mean(by_scale):.4f}, compliance {np.mean(by_compliance):.4f}")
    assert np.mean(by_scale) >= 0.95


def slow_log_likelihoods(rows, annotator, unit):
    """Return the log-likelihood of each judgment of an annotator as functions of the scale."""
    terms = []
    for row in rows:
        if annotator in ("", row.annotator):
            others = [r for r in rows if r.annotator != row.annotator]
            u = {}
            for item in row.items:
                n = sum(item in r.items for r in others)
                balance = sum((item == r.best) - (item == r.worst) for r in others)
                u[item] = (unit or 1) * math.log((n + balance + 1) / (n - balance + 1))
            rest = [item for item in row.items if item != row.best]
            terms.append(
                lambda scale, u=u, row=row, rest=rest: (
                    scale * (u[row.best] - u[row.worst])
                    - math.log(sum(math.exp(scale * u[item]) for item in row.items))
                    - math.log(sum(math.exp(-scale * u[item]) for item in rest))
                )
            )
    return terms


def slow_estimate(rows, annotator, unit):
    """Return scale, standard error and limits by numerical derivatives and a root finder."""
    terms = slow_log_likelihoods(rows, annotator, unit)
    mean, sd = (1, 1) if unit else (0, 10)
    target = lambda scale: sum(term(scale) for term in terms) - ((scale - mean) / sd) ** 2 / 2  # noqa: E731
    mode = scipy.optimize.minimize_scalar(lambda scale: -target(scale), options={"xtol": 1e-10}).x
    h = 1e-3
    curvature = (2 * target(mode) - target(mode + h) - target(mode - h)) / h**2
    slopes = [(term(mode + h) - term(mode - h)) / (2 * h) for term in terms]
    between = sum(slope**2 for slope in slopes) * len(slopes) / (len(slopes) - 1)
    ratio = max(1, between / curvature)
    drop = lambda scale: target(scale) - target(mode) + ratio * 3.841458820694124 / 2  # noqa: E731
    low, high = (scipy.optimize.brentq(drop, mode, mode + end) for end in (-50, 50))
    return mode, math.sqrt(ratio / curvature), low, high


def test_scales_are_those_of_a_slow_program():
    judgments = study(3, n_items=10, annotators=4, fewest=10, most=20)
    rows = list(judgments.records())
    unit = slow_estimate(rows, "", 0)[0]
    for result in annotator_report(judgments).annotators:
        mode, stderr, low, high = slow_estimate(rows, result.annotator, unit)
        assert result.scale == pytest.approx(mode, abs=1e-5)
        assert result.scale_stderr == pytest.approx(stderr, rel=1e-3)
        assert (result.scale_low, result.scale_high) == pytest.approx((low, high), abs=1e-3)


def test_the_scale_of_reversed_answers_among_equal_ones_is_that_of_a_slow_program():
    """The log posterior is flat where utilities are extreme, so that Newton's steps alone do not converge."""
    rows = [
        Judgment(("a", "b", "c"), *answer, who, tuple_id=str(t))
        for who, answer in [*((f"w{n}", ("a", "c")) for n in range(10)), ("odd", ("c", "a"))]
        for t in range(20)
    ]
    unit = slow_estimate([row for row in rows if row.annotator != "odd"], "", 0)[0]
    result = by_name(annotator_report(judgments_from_records(rows)))["odd"]
    mode, _, low, high = slow_estimate(rows, "odd", unit)
    assert (result.scale, result.scale_low, result.scale_high) == pytest.approx(
        (mode, low, high), abs=1e-3
    )
    assert result.flags[0] == "reversed"


@pytest.mark.parametrize(
    ("seeds", "lowest", "highest"),
    [(5, 0.9, 1), pytest.param(20, 0.93, 0.97, marks=pytest.mark.nightly)],
)
def test_scales_of_equal_annotators_are_1_within_their_intervals(seeds, lowest, highest):
    covered = []
    for seed in range(seeds):
        for result in annotator_report(study(seed, disagreement=0.0)).annotators:
            covered.append(result.scale_low < 1 < result.scale_high)
    assert len(covered) == 20 * seeds
    assert lowest <= np.mean(covered) <= highest


def test_a_guesser_has_scale_0_and_few_judgments_pull_to_1():
    judgments = study(1, (1.0,), fewest=100, most=100)
    guesser = by_name(annotator_report(judgments))["simulated-1"]
    assert guesser.scale_low < 0 < guesser.scale_high
    few = np.flatnonzero(judgments.annotator_of == 0)[3:]
    rest = judgments.select(np.setdiff1d(np.arange(len(judgments)), few))
    with_few = by_name(annotator_report(rest))["simulated-1"]
    assert with_few.scale_stderr > 3 * guesser.scale_stderr
    assert 0 < with_few.scale_stderr < 1  # that of the prior


def test_without_judgments_of_others_there_is_no_scale():
    rows = [
        Judgment((f"a{t}", f"b{t}", f"c{t}"), f"a{t}", f"c{t}", w)
        for t in range(5)
        for w in ("w1", "w2", "w3")
    ]
    rows.append(Judgment(("x", "y", "z"), "x", "z", "alone"))
    result = by_name(annotator_report(judgments_from_records(rows)))
    assert math.isnan(result["alone"].scale)
    assert math.isnan(result["alone"].scale_stderr)
    assert result["w1"].scale == result["w2"].scale > 0


def test_where_all_guess_there_are_no_scales_and_a_note_says_so():
    report = annotator_report(study(0, careless=(1.0,) * 20))
    assert all(math.isnan(annotator.scale) for annotator in report.annotators)
    assert report.notes[0].startswith("no scales: ")


# Flags --------------------------------------------------------------------------------------------


def of_kind(kind, setting, seeds):
    return [each for seed in seeds for each in annotators_by_kind(setting, seed)[kind]]


def share(annotators, *flags) -> float:
    return float(np.mean([bool({*flags} & {*each.flags}) for each in annotators]))


def test_30_judgments_find_random_answers_with_few_false_alarms():
    seeds = range(20)
    setting = Setting(k=4, judgments=30, annotators=16, random_share=0.2)
    assert share(of_kind("random", setting, seeds), "random") >= 0.9  # of 60
    assert share(of_kind("reversed", setting, seeds), "reversed") >= 0.9
    assert share(of_kind("careful", setting, seeds), "random", "reversed") <= 0.01  # of 240


def test_a_large_study_finds_random_answers_with_few_false_alarms():
    by_kind = annotators_by_kind(Setting(k=4, judgments=30, annotators=300, random_share=0.05), 0)
    assert share(by_kind["random"], "random") >= 0.9
    assert share(by_kind["careful"], "random", "reversed") <= 0.01


def test_random_answers_are_found_if_half_of_the_annotators_give_them():
    setting = Setting(k=4, judgments=60, annotators=16, random_share=0.5)
    assert share(of_kind("random", setting, range(10)), "random") >= 0.8
    assert share(of_kind("careful", setting, range(10)), "random", "reversed") <= 0.02


def test_reversed_answers_are_not_called_random():
    judgments = study(1, fewest=60, most=60)
    rows = judgments.annotator_of == 2
    best, worst = judgments.best, judgments.worst
    judgments = replace(
        judgments, best=np.where(rows, worst, best), worst=np.where(rows, best, worst)
    )
    report = annotator_report(judgments)
    assert [(each.annotator, each.flags) for each in report.flagged] == [
        ("simulated-3", ("reversed",))
    ]
    (flagged,) = report.flagged
    assert flagged.scale_high < 0
    assert flagged.reasons[0].startswith("best and worst exchanged: scale -")


def test_the_bound_of_random_answers_is_half_of_the_upper_quartile():
    report = annotator_report(simulated_study(Setting(judgments=30), 1)[0])
    scales = sorted(each.scale for each in report.annotators)
    bound = (scales[11] + 0.25 * (scales[12] - scales[11])) / 2  # quantile 0.75 of 16
    for each in report.annotators:
        expected = ("reversed",) if each.scale_high < 0 else ("random",)
        assert each.flags == (expected if each.scale_high < bound else ())


@pytest.mark.parametrize("judgments", [10, 60])
def test_a_note_counts_the_annotators_without_power(judgments):
    """Random answers of the annotators who do not count are found in 90 % of studies."""
    found, n_few = [], 0
    for seed in range(10):
        study_of_all, _ = simulated_study(Setting(judgments=judgments), seed)
        report = annotator_report(study_of_all)
        n_few += report.too_few
        assert any(note.startswith(f"{report.too_few} of 16 ") for note in report.notes) == (
            report.too_few > 0
        )
        if not report.too_few:
            found += annotators_by_kind(Setting(judgments=judgments), seed)["random"]
    assert (n_few > 0) == (judgments == 10)
    assert not found or share(found, "random") >= 0.9


# Positions ----------------------------------------------------------------------------------------


def test_position_effects_of_the_simulation_are_recovered():
    # The first item seems better by 0.6, at noise 1: log odds +0.6 of best and -0.6 of worst.
    report = annotator_report(study(2, position_bias=0.6, disagreement=0.0))
    assert report.positions.best.low < 0.6 < report.positions.best.high
    assert report.positions.worst.low < -0.6 < report.positions.worst.high
    assert report.positions.best.p < 1e-4
    assert report.positions.worst.p < 1e-4


@pytest.mark.parametrize(
    ("seeds", "most"), [(5, 2), pytest.param(20, 4, marks=pytest.mark.nightly)]
)
def test_false_alarms_of_positions_are_rare_over_all_annotators(seeds, most):
    alarms, together = 0, 0
    for seed in range(seeds):
        report = annotator_report(study(seed))
        effects = [e for a in report.annotators for e in (a.positions.best, a.positions.worst)]
        alarms += any(effect.p < 0.05 for effect in effects)
        together += min(report.positions.best.p, report.positions.worst.p) < 0.05
    assert alarms <= most
    assert together <= most  # 1 of 20 on average


def test_one_annotator_who_prefers_the_first_item_is_marked():
    judgments = study(4)
    rows = np.flatnonzero(judgments.annotator_of == 7)[::2]
    best = judgments.best.copy()
    first = judgments.shown[rows, 0]
    best[rows] = np.where(first == judgments.worst[rows], best[rows], first)
    report = annotator_report(replace(judgments, best=best))
    marked = [a.annotator for a in report.annotators if a.positions.best.p < 0.05]
    assert marked == ["simulated-8"]
    line = next(line for line in report.table().splitlines() if line.startswith("simulated-8 "))
    assert line.split()[-2].endswith("*")
    effect = by_name(report)["simulated-8"].positions.best
    assert effect.low > 0


def test_position_effects_need_the_order_and_enough_judgments():
    judgments = study(0)
    report = annotator_report(replace(judgments, shown=None))
    assert math.isnan(report.positions.best.p)
    assert "no position effects: the order on the screen is unknown" in report.notes
    rows = np.flatnonzero(judgments.annotator_of == 0)
    fewer = judgments.select(np.setdiff1d(np.arange(len(judgments)), rows[19:]))
    result = by_name(annotator_report(fewer))
    assert math.isnan(result["simulated-1"].positions.best.log_odds)
    assert not math.isnan(result["simulated-2"].positions.best.log_odds)


def test_a_pair_has_no_effect_on_the_worst():
    rows = [Judgment(("a", "b"), "a", "b", w, tuple_id=str(n)) for n in range(10) for w in "xy"]
    shown = np.tile(np.array([0, 1], np.int8), (20, 1))
    report = annotator_report(replace(judgments_from_records(rows), shown=shown))
    assert report.positions.best.log_odds > 0
    assert math.isnan(report.positions.worst.log_odds)


# The command --------------------------------------------------------------------------------------


def test_the_command_adds_scales_and_positions(tmp_path):
    write_judgments(study(5, n_items=20, annotators=4), tmp_path / "j.csv")
    call = CliRunner().invoke(agreement, [str(tmp_path / "j.csv"), "--annotators", "--json"])
    document = json.loads(call.stdout)["annotators"]
    first = document["annotators"][0]
    assert {"compliance", "place_p", "scale", "scale_stderr", "positions"} <= set(first)
    assert {"scale_low", "scale_high", "flags", "reasons"} <= set(first)
    assert set(document["positions"]["best"]) == {"log_odds", "low", "high", "p"}
    text = CliRunner().invoke(agreement, [str(tmp_path / "j.csv"), "--annotators"]).stdout
    assert "scale [95 %]" in text
    assert "shown first rather than last: log odds of best" in text


# Annotators who oppose the others ------------------------------------------------------------------


def exchanged(judgments, annotators=(), random=()):
    """Return judgments in which some annotators exchange best and worst, and others answer at random."""
    rng = np.random.default_rng(1)
    best, worst = judgments.best.copy(), judgments.worst.copy()
    is_exchanged = np.isin(judgments.annotator_of, annotators)
    best[is_exchanged], worst[is_exchanged] = (
        judgments.worst[is_exchanged],
        judgments.best[is_exchanged],
    )
    for row in np.flatnonzero(np.isin(judgments.annotator_of, random)):
        best[row], worst[row] = rng.permutation(judgments.tuples.k)[:2]
    return replace(judgments, best=best, worst=worst)


def small_study(annotators, seed=0, n_items=30):
    tuples = make_tuples([f"i{n:02}" for n in range(n_items)], 4, factor=2, seed=seed)
    return simulate(tuples, np.linspace(-1, 1, n_items), annotators, seed=seed)


@pytest.mark.parametrize(
    ("annotators", "opposed", "random"),
    [
        (3, (2,), ()),
        (4, (3,), ()),
        (4, (3,), (2,)),
        (5, (3, 4), ()),
        (5, (4,), (3,)),
        (6, (5,), (4,)),
    ],
)
def test_an_annotator_who_exchanges_the_answers_is_found_in_a_small_study(
    annotators, opposed, random
):
    report = annotator_report(exchanged(small_study(annotators), opposed, random))
    expected = [
        ("reversed",) if n in opposed else ("random",) if n in random else ()
        for n in range(annotators)
    ]
    assert [annotator.flags for annotator in report.annotators] == expected


def test_the_scales_of_the_others_are_those_without_an_opposed_annotator():
    judgments = small_study(5)
    report = annotator_report(exchanged(judgments, (4,)))
    without = annotator_report(judgments.select(judgments.annotator_of != 4))
    for one, other in zip(report.annotators, without.annotators, strict=False):
        assert one.scale == pytest.approx(other.scale, rel=1e-6)
    assert report.annotators[4].scale < -0.5


@pytest.mark.parametrize(("annotators", "opposed"), [(2, (1,)), (4, (2, 3)), (6, (3, 4, 5))])
def test_without_a_majority_nobody_is_flagged_and_a_note_says_so(annotators, opposed):
    report = annotator_report(exchanged(small_study(annotators), opposed))
    assert not report.flagged
    assert all(math.isnan(annotator.scale) for annotator in report.annotators)
    assert any("contradict" in note for note in report.notes)
    assert not any("too few judgments for random" in note for note in report.notes)


def test_an_annotator_with_more_noise_is_inexact_and_not_random():
    tuples = make_tuples([f"i{n:02}" for n in range(40)], 4, factor=3, seed=1)
    truth = np.linspace(-1, 1, 40)
    judgments, noisy = (simulate(tuples, truth, 6, noise=noise, seed=1) for noise in (0.2, 1.0))
    rows = judgments.annotator_of == 5
    best, worst = (
        np.where(rows, noisy.best, judgments.best),
        np.where(rows, noisy.worst, judgments.worst),
    )
    report = annotator_report(replace(judgments, best=best, worst=worst, shown=None))
    assert [annotator.flags for annotator in report.annotators] == [()] * 5 + [("inexact",)]
    assert report.annotators[5].scale_low > 0


@pytest.mark.parametrize("judgments", [10, 20])
def test_the_power_of_the_flag_is_stated(judgments):
    """By simulation: the share of random annotators that are flagged is the median power."""
    powers, random = [], []
    setting = Setting(k=4, judgments=judgments, annotators=16, random_share=0.2)
    for seed in range(12):
        report = annotator_report(simulated_study(setting, seed)[0])
        (note,) = [note for note in report.notes if note.startswith("power: random answers")]
        powers.append(float(re.search(r"([0-9]+)% for the median", note)[1]) / 100)
        random += annotators_by_kind(setting, seed)["random"]
    assert share(random, "random", "reversed") == pytest.approx(np.mean(powers), abs=0.25)


def pairs_of_tuples(values, annotator_of, judged):
    """Sum of products of an annotator's residuals for an item, over pairs of judgments, by loops."""
    by_cell = {}
    for residuals, annotator, items in zip(values, annotator_of, judged, strict=True):
        for residual, item in zip(residuals, items, strict=True):
            by_cell.setdefault((annotator, item), []).append(residual)
    return sum(
        2 * first * second for cell in by_cell.values() for first, second in combinations(cell, 2)
    )


def test_the_test_of_tastes_is_that_of_exchanged_annotators_of_a_tuple():
    """The mean over permutations is 0 without tastes; with tastes z is large."""
    tuples = make_tuples([f"i{n}" for n in range(12)], 4, factor=4, seed=1)
    truth = np.linspace(-2, 2, 12)
    random = np.random.default_rng(0)
    for tastes in (0.0, 1.5):
        judgments = simulate(tuples, truth, 6, noise=1, disagreement=tastes, seed=5)
        canonical = judgments.canonical
        mean = np.array(
            [canonical.values[canonical.tuple_of == t].mean(axis=0) for t in range(len(tuples))]
        )
        residual = canonical.values - mean[canonical.tuple_of]
        arguments = canonical.annotator_of, canonical.judged_items
        exchanged = []
        for _ in range(200):
            order = np.lexsort((random.random(len(residual)), canonical.tuple_of))
            rows = np.empty(len(residual), dtype=int)
            rows[np.argsort(canonical.tuple_of, kind="stable")] = order
            exchanged.append(pairs_of_tuples(residual[rows], *arguments))
        observed = pairs_of_tuples(residual, *arguments)
        z = (observed - np.mean(exchanged)) / np.std(exchanged)
        assert -ndtri(taste_test(canonical)) == pytest.approx(z, rel=0.25, abs=0.3)
        assert (z > 5) == (tastes > 0)
        notes = " ".join(annotator_report(judgments).notes)
        assert ("preferences of their own" in notes) == (tastes > 0)


def test_tuples_of_one_annotator_have_no_test_of_tastes():
    tuples = make_tuples(list("abcdef"), 3, factor=2, seed=1)
    judgments = simulate(tuples, np.arange(6.0), 1, noise=1, seed=1)
    assert math.isnan(taste_test(judgments.canonical))
    first = judgments.annotator_of.copy()
    first[0] = -1  # a tuple without a named annotator
    assert math.isnan(taste_test(replace(judgments, annotator_of=first).canonical))
