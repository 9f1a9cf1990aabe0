"""Scores of the counting method, and what holds for the scores of every method."""

import csv
import hashlib
import json
import os
import struct
import unicodedata
from ast import literal_eval
from collections import Counter
from fractions import Fraction
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.base.problems import InputError, Problem
from bws.files import judgments_from_records
from bws.records import Judgment, Judgments, Tuples
from bws.scoring import METHODS, score, utilities
from tests.nightly import examples

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[3] / "shared"))
FEW_PASSES = {name: {"passes": 3} if "passes" in METHODS[name].options else {} for name in METHODS}
FIXED = {name: {"prior": 3.0} if "prior" in METHODS[name].options else {} for name in METHODS}
"""Options with which no estimate from all judgments enters the scores."""


def scored(records, method="counting", **options):
    """Return {(group, item): score}."""
    return by_item(score(judgments_from_records(records), method, **options))


def by_item(scores):
    return dict(zip(zip(scores.groups, scores.items, strict=True), scores.score, strict=True))


@st.composite
def judgment_lists(draw, smallest=1, groups=("g", "h", "i"), k=None):
    """Judgments of a few items, all with the same K; the groups hold items of the same names."""
    k, rng = k or draw(st.integers(2, 4)), np.random.default_rng(draw(st.integers(0, 10**6)))
    records = {}
    for _ in range(draw(st.integers(smallest, 15))):
        items = tuple(rng.permutation(list("abcde"))[:k].tolist())
        best, worst = rng.permutation(items)[:2].tolist()
        annotator, group = f"w{rng.integers(3)}", str(rng.choice(groups))
        key = annotator, group, frozenset(items)  # nobody judges a tuple twice
        records[key] = Judgment(items, best, worst, annotator, group)
    return list(records.values())


def swapped(records):
    return [Judgment(r.items, r.worst, r.best, r.annotator, r.group) for r in records]


def counted_slowly(records):
    shown, balance = Counter(), Counter()
    for record in records:
        for item in record.items:
            shown[record.group, item] += 1
        balance[record.group, record.best] += 1
        balance[record.group, record.worst] -= 1
    return {key: balance[key] / shown[key] for key in shown}


def test_counting_by_hand():
    result = score(
        judgments_from_records(
            [
                Judgment(("a", "b", "c", "d"), "a", "d"),
                Judgment(("d", "b", "a", "c"), "a", "b"),
                Judgment(("a", "b", "e", "f"), "b", "a"),
            ]
        )
    )
    # a: best twice, worst once, shown three times: (2 - 1) / 3. b: (1 - 1) / 3.
    # c: 0 / 2. d: -1 / 2. e and f: 0 / 1.
    expected = {"a": 1 / 3, "b": 0, "c": 0, "d": -1 / 2, "e": 0, "f": 0}
    assert dict(zip(result.items, result.score, strict=True)) == expected
    assert dict(zip(result.items, result.appearances, strict=True)) == {
        "a": 3, "b": 3, "c": 2, "d": 2, "e": 1, "f": 1,
    }  # fmt: skip
    assert dict(zip(result.items, result.best, strict=True))["a"] == 2
    assert dict(zip(result.items, result.worst, strict=True))["a"] == 1


@given(judgment_lists())
def test_counting_is_the_slow_count(records):
    assert scored(records) == counted_slowly(records)


@settings(deadline=None)
@given(judgment_lists())
def test_unit_scale_is_the_signed_one_halved_and_moved(records):
    signed = scored(records)
    expected = {key: pytest.approx((s + 1) / 2, abs=1e-15) for key, s in signed.items()}
    assert scored(records, scale="unit") == expected


@pytest.mark.parametrize("method", ["counting", "abw", "analytical"])
def test_unit_scores_are_the_nearest_numbers_to_their_fractions(method):
    """Of ten judgments, with b best and w worst: (10 + b - w) / 20; -0.8 is 0.1, no 0.09999999999999998."""
    for best, worst in [(0, 8), (1, 9), (2, 3), (3, 4), (1, 3)]:
        answers = [("a", "b")] * best + [("b", "a")] * worst + [("b", "c")] * (10 - best - worst)
        records = [Judgment(("a", "b", "c"), *answer) for answer in answers]
        result = scored(records, method, scale="unit")["", "a"]
        assert result == float(Fraction(10 + best - worst, 20))
    thirds = [Judgment(("a", "b", "c"), "b", "a"), *[Judgment(("a", "b", "c"), "b", "c")] * 2]
    assert repr(scored(thirds, scale="unit")["", "a"].item()) == "0.3333333333333333"


def test_ends_of_unit_intervals_have_no_noise():
    records = [
        Judgment(("a", "b", "c"), *answer, annotator=f"w{n}")
        for n, answer in enumerate([("a", "b")] + [("b", "a")] * 9)
    ]
    result = score(judgments_from_records(records), scale="unit", bootstrap=50)
    for value in (*result.low.tolist(), *result.high.tolist()):
        assert len(repr(value)) <= len("0.123456789012345")


@examples(7)
@given(records=judgment_lists(), data=st.data())
@pytest.mark.parametrize("method", METHODS)
def test_order_of_rows_items_and_annotators_changes_nothing(method, records, data):
    judged = judgments_from_records(records)
    other = shuffled(judged, np.random.default_rng(data.draw(st.integers(0, 999))))
    ask = {"bootstrap": 3, "cluster": "tuple"} if len(set(judged.tuple_of)) > 1 else {}
    first, again = (score(j, method, **ask, **FEW_PASSES[method]) for j in (judged, other))
    assert by_item(first) == by_item(again)
    assert first.signature == again.signature
    if ask:
        order = np.lexsort((first.items, first.groups)), np.lexsort((again.items, again.groups))
        np.testing.assert_array_equal(first.low[order[0]], again.low[order[1]])


def shuffled(judged, rng):
    """Return the same judgments with every index of every array permuted."""
    tuples = judged.tuples
    item, row, place, group, annotator, answer = (
        rng.permutation(size)
        for size in (
            len(tuples.items), len(tuples), tuples.k, len(tuples.groups),
            len(judged.annotators), len(judged),
        )
    )  # fmt: skip
    same = Tuples(
        tuples.ids[row],
        tuples.items[item],
        np.argsort(group)[tuples.group_of_item[item]].astype(np.int32),
        tuples.groups[group],
        np.argsort(item)[tuples.members[row][:, place]].astype(np.int32),
    )
    return Judgments(
        same,
        np.argsort(row)[judged.tuple_of[answer]].astype(np.int32),
        np.argsort(place)[judged.best[answer]].astype(np.int8),
        np.argsort(place)[judged.worst[answer]].astype(np.int8),
        np.argsort(annotator)[judged.annotator_of[answer]].astype(np.int32),
        judged.annotators[annotator],
    )


@examples(10)
@given(records=judgment_lists())
@pytest.mark.parametrize("method", ["counting", "analytical", "abw", "bradley-terry", "maxdiff"])
def test_swapping_best_and_worst_changes_the_sign(method, records):
    straight, turned = scored(records, method), scored(swapped(records), method)
    for key, value in straight.items():
        assert turned[key] == pytest.approx(-value, abs=1e-8)


@examples(7)
@given(records=judgment_lists())
@pytest.mark.parametrize("method", METHODS)
def test_scores_lie_inside_their_scale(method, records):
    for value in scored(records, method, **FEW_PASSES[method]).values():
        assert -1 <= value <= 1


@examples(7)
@given(data=st.data(), k=st.integers(2, 4))
@pytest.mark.parametrize("method", [m for m in METHODS if "passes" not in METHODS[m].options])
def test_groups_do_not_touch_each_other(method, data, k):
    first, second = (data.draw(judgment_lists(groups=(group,), k=k)) for group in ("g", "h"))
    together, alone = (scored(r, method, **FIXED[method]) for r in (first + second, first))
    for key, value in alone.items():
        assert together[key] == pytest.approx(value, abs=1e-8)


def test_whole_five_item_design_gives_sixtieths_that_sum_to_two_and_a_half():
    # As in GiCCS: all 10 triples of 5 utterances, 5 annotators each. An item stands in 6 triples, so
    # it appears 30 times; best minus worst answers cancel over a dialogue.
    rng = np.random.default_rng(0)
    records = [
        Judgment(triple, *rng.permutation(triple)[:2].tolist(), annotator=f"w{w}", group=f"d{d}")
        for d in range(4)
        for triple in combinations("abcde", 3)
        for w in range(5)
    ]
    signed, unit = scored(records), scored(records, scale="unit")
    assert len(signed) == 20
    for d in range(4):
        thirtieths = [30 * signed[f"d{d}", item] for item in "abcde"]
        np.testing.assert_allclose(thirtieths, np.round(thirtieths), atol=1e-12)
        assert sum(unit[f"d{d}", item] for item in "abcde") == pytest.approx(2.5)


@pytest.mark.parametrize("method", METHODS)
def test_items_that_nobody_judged_score_nan_and_are_named(method):
    judged = judgments_from_records(
        [Judgment(("a", "b"), "a", "b", "w"), Judgment(("c", "d"), "c", "d", "w", "g")]
    )
    result = score(judged.select(np.array([0])), method, **FEW_PASSES[method], **FIXED[method])
    assert np.isnan(result.score).tolist() == [False, False, True, True]
    assert result.score[0] > 0 > result.score[1]
    assert result.appearances.tolist() == [1, 1, 0, 0]
    assert "2 of 4 items were never judged and have no score: c, d" in result.notes


@pytest.mark.parametrize("method", METHODS)
def test_no_judgments_at_all(method):
    judged = judgments_from_records([Judgment(("a", "b", "c"), "a", "b", "w")])
    result = score(judged.select(np.array([], dtype=np.int64)), method, bootstrap=5)
    assert np.isnan([result.score, result.low, result.high]).all()
    assert result.notes == ["3 of 3 items were never judged and have no score: a, b, c"]


def test_rows_left_out_by_the_reader_are_said():
    judged = judgments_from_records([Judgment(("a", "b", "c"), "a", "b", "w")])
    object.__setattr__(judged, "left_out", (Problem("j.csv", 3, "best is empty"),))
    assert score(judged).notes == ["1 rows of the judgments were skipped"]


def test_signature_says_all_that_produced_the_scores():
    judged = judgments_from_records(
        [Judgment(("a", "b"), "a", "b", w) for w in ("w1", "w2")],
    )
    result = score(judged, "maxdiff", scale="unit", bootstrap=10, seed=3, prior=2.0)
    assert result.signature == {
        "method": "maxdiff",
        "prior": 2.0,
        "prior_estimated": False,
        "scale": "unit",
        "seed": 3,
        "interval": "bootstrap",
        "bootstrap": 10,
        "cluster": "annotator",
        "standard_error": None,
        "judgments": 2,
        "sha256": result.signature["sha256"],
        "version": version("giccs"),
    }
    assert score(judged).signature["cluster"] is None


def test_digest_is_what_its_documentation_says():
    judged = judgments_from_records(
        [
            Judgment(("ü", "a", "b"), "ü", "b", "w2", group="g"),
            Judgment(("b", "a", "ü"), "a", "b", "w1", group="g"),
        ]
    )
    # Items in order: a, b, ü; one tuple (0, 1, 2). Answers (tuple, best, worst, annotator), in
    # order: (0, 0, 1, 0) by w1, (0, 2, 1, 1) by w2.
    texts = json.dumps([3, ["g"], ["a", "b", "ü"], ["w1", "w2"]])
    numbers = [0, 0, 0, *(0, 1, 2), *(0, 0), *(0, 2), *(1, 1), *(0, 1)]
    content = texts.encode() + struct.pack("<14i", *numbers)
    assert score(judged).signature["sha256"] == hashlib.sha256(content).hexdigest()


@settings(deadline=None)
@given(judgment_lists(smallest=2), st.data())
def test_digest_changes_with_any_answer(records, data):
    place = data.draw(st.integers(0, len(records) - 1))
    other = swapped([records[place]])
    changed = [*records[:place], *other, *records[place + 1 :]]
    same = Counter(records) == Counter(changed)
    first, second = (score(judgments_from_records(r)).signature for r in (records, changed))
    assert (first["sha256"] == second["sha256"]) == same


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "borda"}, "method is 'borda'; expected one of: counting, analytical"),
        ({"scale": "percent"}, "scale is 'percent'; expected one of: signed, unit, counting"),
        ({"scale": "counting"}, "method counting lacks; expected one of: bradley-terry,"),
        (
            {"method": "elo", "scale": "counting"},
            "scale 'counting' needs the probabilities of a choice model",
        ),
        (
            {"method": "maxdiff", "scale": "counting", "interval": "model"},
            "scale 'counting' has no intervals",
        ),
        ({"method": "maxdiff", "scale": "counting", "bootstrap": 5}, "scale 'counting' has no"),
        ({"cluster": "group"}, "cluster is 'group'; expected one of: both, annotator, tuple"),
        ({"interval": "exact"}, "interval is 'exact'; expected one of: bootstrap, model"),
        ({"prior": 1.0}, "method counting has no option 'prior'; available options: none"),
        (
            {"method": "elo", "prior": 1.0},
            "method elo has no option 'prior'; available options: passes",
        ),
        ({"method": "elo", "passes": 0}, "passes is 0; expected an integer, at least 1"),
        ({"method": "maxdiff", "prior": 0.0}, "prior is 0.0; expected a standard deviation"),
        ({"bootstrap": -1}, "bootstrap is -1; expected a number of resamples"),
        (
            {"method": "elo", "interval": "model"},
            "method elo has no standard errors; use the bootstrap or one of: counting",
        ),
        ({"method": "maxdiff", "interval": "model", "bootstrap": 9}, "choose one of them"),
    ],
)
def test_wrong_arguments_say_what_is_allowed(arguments, message):
    judged = judgments_from_records([Judgment(("a", "b"), "a", "b", w) for w in ("w1", "w2")])
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        score(judged, **arguments)


@pytest.mark.parametrize(
    ("annotators", "message"),
    [
        (["w", ""], "2 of 4 judgments have no annotator, .* cluster by tuple"),
        (["w"], "all judgments are of one annotator, .* cluster by tuple"),
    ],
)
def test_annotators_that_are_not_there_cannot_be_clusters(annotators, message):
    judged = judgments_from_records([Judgment(("a", "b"), "a", "b", w) for w in annotators])
    judged = judged.select(np.arange(4) % len(annotators))
    with pytest.raises(InputError, match=message):
        score(judged, bootstrap=10, cluster="annotator")
    with pytest.raises(InputError, match=message):
        utilities(judged, "maxdiff", cluster="annotator")


def test_published_scores_of_semrel_hindi():
    folder = SHARED / "data" / "semrel2024"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; set GICCS_SHARED")
    result = scored(semrel_records(folder / "hi_dev.csv"), scale="unit")
    matched = differing = 0
    with open(folder / "hin_dev_with_labels.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            value = result.get(("", plain(row["Text"].split("\n"))))
            matched += value is not None
            differing += value is not None and abs(value - float(row["Score"])) > 0.005 + 1e-9
    assert matched >= 260
    assert differing == 0


def semrel_records(path):
    with open(path, encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            items = tuple(plain(literal_eval(row[f"pair_{i}"])) for i in range(1, 5))
            best, worst = (items[int(row[f"{end}_Related"]) - 1] for end in ("Most", "Least"))
            yield Judgment(items, best, worst, annotator=f"row {number}")


def plain(sentences):
    return "\n".join(
        " ".join(unicodedata.normalize("NFC", sentence).split()).strip("\"' ")
        for sentence in sentences
    )
