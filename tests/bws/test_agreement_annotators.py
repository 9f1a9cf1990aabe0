"""The report on annotators against a slow program, and annotators who are known to be careless."""

import math
import random
import statistics
from collections import defaultdict
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.annotators import annotator_report
from bws.base.problems import InputError, Problem
from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment, Judgments


def judged(judges, n_tuples=60, k=4, seed=0) -> Judgments:
    """Each judge (a function of the true scores shown and a generator) answers every tuple.

    A judge returns the screen positions of best and worst, where the order is random.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_tuples // 2)
    rows, orders = [], []
    for t in range(n_tuples):
        members = rng.choice(len(truth), k, replace=False)
        ids = [f"i{i}" for i in members]
        for name, judge in judges.items():
            order = rng.permutation(k)
            best, worst = judge(truth[members[order]], rng)
            chosen = ids[order[best]], ids[order[worst]]
            rows.append(Judgment(tuple(ids), *chosen, name, tuple_id=f"t{t}"))
            orders.append(order)
    return replace(judgments_from_records(rows), shown=np.array(orders, dtype=np.int8))


def careful(scores, rng):
    noisy = scores + 0.3 * rng.normal(size=len(scores))
    return noisy.argmax(), noisy.argmin()


def guessing(scores, rng):
    return rng.choice(len(scores), 2, replace=False)


def leaning(scores, rng):
    """Choose the first position as best half of the time."""
    best, worst = careful(scores, rng)
    return (0, worst) if worst != 0 and rng.random() < 0.5 else (best, worst)


def stubborn(scores, rng):
    return 0, len(scores) - 1


CROWD = {f"w{w}": careful for w in range(8)}


def report_of(judges, **options):
    return {
        result.annotator: result
        for result in annotator_report(judged(judges, **options)).annotators
    }


# Compliance ---------------------------------------------------------------------------------------


def slow_compliance(rows, annotator) -> float:
    balance, seen = defaultdict(int), defaultdict(int)
    for row in rows:
        if row.annotator != annotator:
            for item in row.items:
                seen[item] += 1
            balance[row.best] += 1
            balance[row.worst] -= 1
    agreeing = []
    for row in rows:
        if row.annotator == annotator:
            middle = [item for item in row.items if item not in (row.best, row.worst)]
            pairs = [(row.best, row.worst)]
            pairs += [(row.best, item) for item in middle] + [(item, row.worst) for item in middle]
            for upper, lower in pairs:
                if seen[upper] and seen[lower]:
                    one, two = balance[upper] / seen[upper], balance[lower] / seen[lower]
                    agreeing.append(0.5 if one == two else float(one > two))
    return statistics.mean(agreeing) if agreeing else math.nan


@settings(deadline=None)
@given(st.integers(2, 4), st.data())
def test_compliance_is_that_of_a_slow_program(k, data):
    items = [f"i{i}" for i in range(5)]
    rows = {}
    for _ in range(data.draw(st.integers(1, 12))):
        order = data.draw(st.permutations(items))[:k]
        who = data.draw(st.sampled_from(["", "w1", "w2", "w3"]))
        best, worst = data.draw(st.permutations(order))[:2]
        rows[who or len(rows), frozenset(order)] = Judgment(tuple(order), best, worst, who)
    rows = [*rows.values(), Judgment(tuple(items[:k]), items[0], items[1], "w4")]
    for result in annotator_report(judgments_from_records(rows)).annotators:
        assert result.compliance == pytest.approx(
            slow_compliance(rows, result.annotator), nan_ok=True
        )
        assert result.judgments == sum(row.annotator == result.annotator for row in rows)


def test_compliance_of_guessing_is_a_half_and_of_agreeing_is_1():
    result = report_of({**CROWD, "guesser": guessing}, n_tuples=400)
    assert result["guesser"].compliance == pytest.approx(0.5, abs=0.05)
    assert result["w0"].compliance > 0.85
    # One tuple a set of items: what the others say of it is what everybody says.
    same = [Judgment(("a", "b", "c"), "a", "c", w) for w in ("w1", "w2", "w3")]
    assert [a.compliance for a in annotator_report(judgments_from_records(same)).annotators] == [
        1,
        1,
        1,
    ]


def test_compliance_is_unknown_where_nobody_else_judged():
    rows = [Judgment(("a", "b"), "a", "b", "w1"), Judgment(("c", "d"), "c", "d", "w2")]
    report = annotator_report(judgments_from_records(rows))
    assert all(math.isnan(result.compliance) for result in report.annotators)
    assert report.flagged == ()


# Times and positions ------------------------------------------------------------------------------


def test_seconds_are_medians_of_the_numbers():
    rows = [
        Judgment((f"a{t}", f"b{t}"), f"a{t}", f"b{t}", w)
        for w in ("w1", "w2", "w3")
        for t in range(4)
    ]
    seconds = ["4", "1.5", " 3 ", "9", "2", "", "x", "-1", "", "nan", "inf", "?"]
    judgments = replace(
        judgments_from_records(rows), columns={"seconds": np.array(seconds, dtype=object)}
    )
    report = annotator_report(judgments)
    assert [result.seconds for result in report.annotators[:2]] == [3.5, 2.0]  # (3 + 4) / 2; 2
    assert math.isnan(report.annotators[2].seconds)
    assert "2 judgments have no time (column seconds)" in report.notes
    assert (
        "5 judgments have a time (column seconds) that is no number from 0, such as 'x'; they count as "
        "without time"
    ) in report.notes


def test_positions_are_those_on_the_screen():
    # Items a, b, c shown as c, a, b: best b is at position 3, worst c at position 1.
    rows = [
        Judgment(("a", "b", "c"), "b", "c", "w1", tuple_id="1"),
        Judgment(("a", "b", "c"), "a", "b", "w1", tuple_id="2"),
    ]
    judgments = replace(
        judgments_from_records(rows), shown=np.array([[2, 0, 1], [0, 1, 2]], dtype=np.int8)
    )
    result = annotator_report(judgments).annotators[0]
    assert result.best_at == (0.5, 0.0, 0.5)
    assert result.same_answer == 0.5
    assert math.isnan(result.place_p)  # 2 judgments are too few for a test


def test_position_p_is_that_of_the_chi_square_test():
    for result in report_of({**CROWD, "leaning": leaning}).values():
        counts = np.array(result.best_at) * result.judgments
        assert result.place_p == pytest.approx(scipy.stats.chisquare(counts).pvalue, rel=1e-9)


def test_without_screen_order_there_are_no_position_statistics():
    judgments = replace(judged({**CROWD, "stubborn": stubborn}), shown=None)
    report = annotator_report(judgments)
    result = report.annotators[0]
    assert all(map(math.isnan, (*result.best_at, result.place_p, result.same_answer)))
    assert "no position effects: the order on the screen is unknown" in report.notes


# Flags for review ---------------------------------------------------------------------------------


def test_careful_annotators_are_not_flagged():
    for seed in range(5):
        report = annotator_report(judged(CROWD, seed=seed))
        assert report.flagged == ()


@pytest.mark.parametrize(
    ("judge", "flag", "words"),
    [
        (guessing, "random", "answers close to random: scale "),
        (leaning, "positions", "best answers per screen position"),
        (stubborn, "same_answer", "same two screen positions in all 60 judgments"),
    ],
)
def test_careless_annotators_are_flagged(judge, flag, words):
    report = annotator_report(judged({**CROWD, "odd": judge}))
    assert [result.annotator for result in report.flagged] == ["odd"]
    reasons = dict(zip(report.flagged[0].flags, report.flagged[0].reasons, strict=True))
    assert reasons[flag].startswith(words)
    assert len(report.annotators) == 9  # nobody is removed
    assert report.document()["to_look_at"] == ["odd"]
    assert "review odd: " in report.table()


def test_fast_annotators_are_flagged():
    judgments = judged(CROWD)
    seconds = np.where(judgments.annotator_of == 3, "3", "10").astype(object)
    report = annotator_report(replace(judgments, columns={"seconds": seconds}))
    assert [(a.annotator, a.flags, a.reasons) for a in report.flagged] == [
        (judgments.annotators[3], ("fast",), ("3 seconds per judgment (median 10)",))
    ]


def test_annotators_with_few_judgments_are_not_flagged():
    judgments = judged({**CROWD, "odd": stubborn})
    odd = judgments.annotators.tolist().index("odd")
    rows = np.flatnonzero(judgments.annotator_of == odd)[4:]
    few = judgments.select(np.setdiff1d(np.arange(len(judgments)), rows))
    assert annotator_report(few).flagged == ()


def test_rare_errors_among_perfect_annotators_are_not_flagged():
    def perfect(scores, rng):
        return scores.argmax(), scores.argmin()

    def slips(scores, rng):
        return (scores.argmax(), scores.argmin()) if rng.random() < 0.95 else guessing(scores, rng)

    result = report_of({"w1": perfect, "w2": perfect, "w3": perfect, "slips": slips})
    assert result["slips"].compliance < result["w1"].compliance
    assert result["slips"].reasons == ()


# Missing information -----------------------------------------------------------------------------


def test_judgments_without_annotator_count_among_the_others():
    rows = [Judgment(("a", "b", "c"), "a", "c", "w1"), Judgment(("a", "b", "c"), "a", "c")]
    report = annotator_report(judgments_from_records(rows))
    assert [(a.annotator, a.judgments, a.compliance) for a in report.annotators] == [("w1", 1, 1.0)]
    assert report.notes[0].startswith("1 judgments without annotator; they count only among")


def judgments_of_tired_annotator(order, n_tuples=40):
    """Return judgments of which `tired` gives the first half like the others, the second half at random."""
    random_answer = random.Random(0)
    design = make_tuples([f"i{n:02}" for n in range(20)], 4, count=n_tuples)
    rows = []
    for annotator in ("a", "b", "c", "tired"):
        for n, members in enumerate(design.members):
            items = [str(item) for item in design.items[members]]
            best, worst = max(items), min(items)
            is_late = annotator == "tired" and n >= n_tuples / 2
            if is_late or random_answer.random() < 0.2:
                best, worst = random_answer.sample(items, 2)
            rows.append(Judgment(tuple(items), best, worst, annotator=annotator, tuple_id=f"t{n}"))
    return judgments_from_records(sorted(rows, key=order))


def test_less_exact_second_half_is_flagged():
    report = annotator_report(judgments_of_tired_annotator(lambda row: row.annotator))
    flagged = {each.annotator: each.flags for each in report.annotators if "worse" in each.flags}
    assert set(flagged) == {"tired"}
    (tired,) = (each for each in report.annotators if each.annotator == "tired")
    assert tired.scale_first > tired.scale > tired.scale_second
    assert any("second half of the judgments" in reason for reason in tired.reasons)


def test_rows_sorted_by_tuple_have_no_halves():
    report = annotator_report(judgments_of_tired_annotator(lambda row: row.tuple_id))
    assert all(math.isnan(each.worse_p) and "worse" not in each.flags for each in report.annotators)


def test_halves_with_other_items_are_not_compared():
    """Each half has the dialogues of its own, and a random first half of `tired` spoils their utilities."""
    rng = random.Random(1)
    design = make_tuples(
        [f"i{n}" for n in range(5)] * 20,
        3,
        count=10,
        groups=[f"d{n:02}" for n in range(20) for _ in range(5)],
    )
    rows = []
    for annotator in ("a", "b", "c", "tired"):
        for n, members in enumerate(design.members):
            items = [str(item) for item in design.items[members]]
            best, worst = max(items), min(items)
            if (annotator == "tired" and n < 100) or rng.random() < 0.1:
                best, worst = rng.sample(items, 2)
            group = str(design.groups[design.group_of_tuple[n]])
            rows.append(
                Judgment(
                    tuple(items), best, worst, annotator=annotator, tuple_id=f"t{n}", group=group
                )
            )
    report = annotator_report(judgments_from_records(rows))
    assert all(math.isnan(each.worse_p) for each in report.annotators)


def test_halves_are_compared_by_the_efficient_score():
    """The p-value is that of derivatives by small differences, at a coefficient from a general optimiser."""
    judgments = judgments_of_tired_annotator(lambda row: row.annotator, n_tuples=120)
    (tired,) = (a for a in annotator_report(judgments).annotators if a.annotator == "tired")
    is_own = judgments.annotator_of == judgments.annotators.tolist().index("tired")
    own, others = judgments.select(is_own), judgments.select(~is_own)
    counts = others.canonical.counts
    balance = dict(zip(others.canonical.items, counts.best - counts.worst, strict=True))
    n = dict(zip(others.canonical.items, counts.appearances, strict=True))
    utility = np.array(
        [
            math.log((n[item] + balance[item] + 1) / (n[item] - balance[item] + 1))
            for item in own.tuples.items
        ]
    )

    def log_likelihood(coefficient, row):
        u = coefficient * utility[own.tuples.members[own.tuple_of[row]]]
        rest = [position for position in range(4) if position != own.best[row]]
        best = u[own.best[row]] - scipy.special.logsumexp(u)
        return best - u[own.worst[row]] - scipy.special.logsumexp(-u[rest])

    rows = range(len(own))
    common = scipy.optimize.minimize_scalar(
        lambda x: -sum(log_likelihood(x, row) for row in rows), bounds=(0, 5), method="bounded"
    ).x
    values = np.array([[log_likelihood(common + d, row) for row in rows] for d in (-1e-4, 0, 1e-4)])
    slope, curvature = (
        (values[2] - values[0]) / 2e-4,
        -(values[2] - 2 * values[1] + values[0]) / 1e-8,
    )
    first, second = np.split(np.stack((slope, curvature)), 2, axis=1)
    information = first[1].sum(), second[1].sum()
    variance = [
        max(half[1].sum(), len(half[0]) / (len(half[0]) - 1) * (half[0] ** 2).sum())
        for half in (first, second)
    ]
    weight = information[1] / sum(information), information[0] / sum(information)
    score = weight[1] * second[0].sum() - weight[0] * first[0].sum()
    z = score / math.sqrt(weight[0] ** 2 * variance[0] + weight[1] ** 2 * variance[1])
    assert scipy.stats.norm.isf(tired.worse_p) == pytest.approx(-z, rel=0.03)


def test_skipped_rows_are_reported():
    faults = (Problem("f.csv", 3, "best is empty"), Problem("f.csv", 3, "worst is empty"))
    judgments = replace(judged(CROWD), left_out=faults)
    assert "1 skipped rows count for no annotator" in annotator_report(judgments).notes


def test_no_annotators_is_an_input_error():
    with pytest.raises(InputError, match="no judgment names its annotator"):
        annotator_report(judgments_from_records([Judgment(("a", "b"), "a", "b")]))


@cache
def crowd_report():
    judgments = judged({**CROWD, "odd": leaning}, n_tuples=24)
    return judgments, without_halves(annotator_report(judgments))


def without_halves(report):
    """Return the table of a report without the halves of the judgments, which follow the rows."""
    unknown = dict.fromkeys(("scale_first", "scale_second", "worse_p"), math.nan)
    annotators = tuple(replace(each, **unknown) for each in report.annotators)
    assert not any("worse" in each.flags for each in annotators)
    return str(replace(report, annotators=annotators))


@settings(deadline=None)
@given(draw=st.builds(random.Random, st.integers(0, 2**32)))
def test_order_of_rows_and_items_changes_nothing(draw):
    judgments, expected = crowd_report()
    rows = list(zip(judgments.records(), judgments.shown, strict=True))
    shuffled = [
        (replace(row, items=tuple(draw.sample(row.items, 4))), row.items)
        for row, _ in draw.sample(rows, len(rows))
    ]
    again = judgments_from_records(row for row, _ in shuffled)
    members = again.tuples.items[again.tuples.members[again.tuple_of]].tolist()
    shown = [
        [ids.index(item) for item in on_screen]
        for ids, (_, on_screen) in zip(members, shuffled, strict=True)
    ]
    again = replace(again, shown=np.array(shown, dtype=np.int8))
    assert without_halves(annotator_report(again)) == expected
