"""Simulated annotators err as often as they should, and the same on every machine."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bws.base.problems import InputError
from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment, Scores
from bws.simulation import read_truth, simulate


def design(*sets):
    """Tuples with these items."""
    return judgments_from_records([Judgment(tuple(s), s[0], s[1]) for s in sets]).tuples


def many(k, count=20_000):
    """Judgments of one tuple of items a, b, c, ... by many people."""
    return design("abcdefgh"[:k]), count


def test_without_noise_all_answers_are_the_truth():
    tuples = design("abc", "bcd", "acd")
    said = simulate(tuples, np.array([0.1, 0.4, -0.2, 0.3]), 3, noise=0)
    assert tuples.items[said.best_item].tolist() == ["b"] * 6 + ["d"] * 3
    assert tuples.items[said.worst_item].tolist() == ["c"] * 9
    assert said.tuple_of.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert said.annotator_of.tolist() == [0, 1, 2] * 3
    assert said.annotators.tolist() == ["simulated-1", "simulated-2", "simulated-3"]


def test_gumbel_noise_gives_the_best_worst_logit():
    tuples, count = many(3)
    noise, value = 0.5, np.array([0.5, 0.0, -0.25])
    said = simulate(tuples, value, count, noise=noise)
    weight = np.exp(value / noise)
    for best in range(3):
        chosen = weight[best] / weight.sum()
        share = np.mean(said.best == best)
        # four standard errors of a share from 20,000 draws: below 0.015
        assert share == pytest.approx(chosen, abs=0.015)
        for worst in {0, 1, 2} - {best}:
            others = [place for place in range(3) if place != best]
            expected = chosen * (1 / weight[worst]) / sum(1 / weight[place] for place in others)
            both = np.mean((said.best == best) & (said.worst == worst))
            assert both == pytest.approx(expected, abs=0.015)


def test_thurstone_noise_orders_a_pair_as_the_normal_distribution_says():
    from scipy.stats import norm

    tuples, count = many(2)
    said = simulate(tuples, np.array([0.3, 0.0]), count, noise=0.4, model="thurstone")
    # a beats b where 0.3 + e > f, e and f normal with sd 0.4: their difference has sd 0.4 sqrt 2
    assert np.mean(said.best == 0) == pytest.approx(norm.cdf(0.3 / (0.4 * 2**0.5)), abs=0.015)


def test_tastes_are_normal_and_the_same_in_all_tuples_of_an_annotator():
    from scipy.stats import norm

    design = judgments_from_records(
        [Judgment(("a", "b"), "a", "b"), Judgment(("a", "c"), "a", "c")]
    ).tuples
    judged = simulate(design, np.array([1.0, 0.0, 0.0]), 20_000, noise=0, disagreement=1.0)
    first, second = ((judged.best == 0).reshape(2, -1)).tolist()
    # a beats b where 1 + e > f, e and f normal: their difference has sd sqrt 2
    assert np.mean(first) == pytest.approx(norm.cdf(1 / 2**0.5), abs=0.015)
    # both comparisons share the taste for a: correlated 1/2 as normal differences
    assert np.corrcoef(first, second)[0, 1] > 0.2
    assert np.corrcoef(first[1:], second[:-1])[0, 1] == pytest.approx(0, abs=0.03)


def test_without_tastes_the_random_numbers_are_as_with_them():
    tuples, count = many(3)
    value = np.array([1.0, 0.0, -1.0])
    plain, slight = (simulate(tuples, value, count, disagreement=sd) for sd in (0, 1e-9))
    np.testing.assert_array_equal(plain.best, slight.best)
    np.testing.assert_array_equal(plain.shown, slight.shown)


@pytest.mark.parametrize("model", ["gumbel", "thurstone"])
def test_careless_answers_are_random(model):
    tuples, count = many(4)
    value = np.array([3.0, 2.0, 1.0, 0.0])
    said = simulate(tuples, value, count, noise=0, model=model, careless=0.5)
    # half of the answers are right, of the other half 1 in 4 by chance: 1/2 + 1/8
    assert np.mean(said.best == 0) == pytest.approx(0.625, abs=0.015)
    assert np.mean(said.worst == 3) == pytest.approx(0.625, abs=0.015)


def test_position_bias_favours_what_is_shown_first():
    tuples, count = many(3)
    said = simulate(tuples, np.zeros(3), count, noise=0.25, position_bias=0.5)
    place_of_best = (said.shown == said.best[:, None]).argmax(axis=1)
    # merits 0.5, 0.25, 0 by place; weights e^2, e^1, e^0 with noise 0.25
    weight = np.exp([2.0, 1.0, 0.0])
    shares = np.bincount(place_of_best) / len(said)
    np.testing.assert_allclose(shares, weight / weight.sum(), atol=0.015)


@pytest.mark.parametrize("model", ["gumbel", "thurstone"])
def test_equal_items_without_noise_go_by_the_order_shown(model):
    tuples, count = many(3, 50)
    said = simulate(tuples, np.zeros(3), count, noise=0, model=model)
    assert (said.best == said.shown[:, 0]).all()
    assert (said.worst == said.shown[:, -1]).all()


def test_every_order_is_shown_equally_often():
    tuples, count = many(3)
    shown = simulate(tuples, np.zeros(3), count).shown
    _, counts = np.unique(shown, axis=0, return_counts=True)
    assert len(counts) == 6
    np.testing.assert_allclose(counts / count, 1 / 6, atol=0.012)


@given(
    st.integers(2, 8),
    st.integers(1, 5),
    st.floats(0, 3),
    st.sampled_from(["gumbel", "thurstone"]),
    st.floats(0, 1),
    st.integers(0, 2**31),
)
def test_all_judgments_are_valid(k, annotators, noise, model, careless, seed):
    tuples, _ = many(k)
    value = np.linspace(-1, 1, k)
    options = {"noise": noise, "model": model, "careless": careless, "seed": seed}
    said = simulate(tuples, value, annotators, **options)
    assert len(said) == annotators
    assert (said.best != said.worst).all()
    assert (np.sort(said.shown, axis=1) == np.arange(k)).all()
    again = simulate(tuples, value, annotators, **options)
    np.testing.assert_array_equal(said.best, again.best)


def test_the_answers_of_a_seed_never_change():
    tuples = design("abcd", "bcde", "cdea", "deab")
    said = simulate(tuples, np.linspace(-1, 1, 5), 2, noise=0.5, careless=0.1, seed=3)
    answers = list(zip(said.best.tolist(), said.worst.tolist(), strict=True))
    assert answers == GOLDEN


GOLDEN = [(1, 0), (3, 0), (3, 1), (2, 0), (0, 3), (2, 0), (1, 2), (1, 2)]


def test_truth_from_scores_goes_by_group_and_item():
    rows = [Judgment(("a", "b"), "a", "b", group="g"), Judgment(("b", "a"), "a", "b", group="h")]
    tuples = judgments_from_records(rows).tuples
    none = np.zeros(4, int)
    truth = Scores(
        np.array(["a", "b", "a", "b"], dtype=object),
        np.array(["g", "g", "h", "h"], dtype=object),
        np.array([0.0, 1.0, 1.0, 0.0]), none, none, none,
    )  # fmt: skip
    said = simulate(tuples, truth, 1, noise=0)
    assert tuples.items[said.best_item].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"annotators": 0}, "annotators is 0; it must be 1 or more"),
        ({"per_tuple": 6}, "per_tuple is 6; it must be from 1 to annotators, 5"),
        ({"per_tuple": 0}, "per_tuple is 0"),
        ({"noise": -1.0}, "noise is -1.0; it must be 0 or more"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"model": "probit"}, "model is 'probit'; expected gumbel or thurstone"),
        ({"disagreement": -1.0}, "disagreement is -1.0; it must be 0 or more"),
        ({"careless": 1.5}, "careless is 1.5; it must be a share from 0 to 1"),
        ({"position_bias": float("inf")}, "position_bias is inf; it must be a number"),
        ({"truth": np.zeros(3)}, r"truth has the shape \(3,\); it must be \(2,\)"),
        (
            {"truth": np.array([0, np.nan])},
            "1 items have no true score: 'b'; expected one for every item",
        ),
    ],
)
def test_arguments_out_of_range_are_named(wrong, message):
    arguments = {"tuples": design("ab"), "truth": np.zeros(2)} | wrong
    with pytest.raises(ValueError, match=message):
        simulate(**arguments)


def test_truth_of_dialogues_is_the_intended_level(tmp_path):
    tuples = judgments_from_records([Judgment(("a", "b", "c"), "a", "b", group="d")]).tuples
    levels = {"a": 1, "b": 4, "c": 5, "x": 3}
    candidates = [{"utterance_id": u, "text": u, "intended": v} for u, v in levels.items()]
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"dialogue_id": "d", "turns": [], "candidates": candidates}) + "\n")
    # 1 -> -1, 4 -> 0.5, 5 -> 1
    assert read_truth(path, tuples).tolist() == [-1.0, 0.5, 1.0]


@pytest.mark.parametrize("level", [0, 6, "3", True, None, 2.5])
def test_levels_that_are_none_are_named(tmp_path, level):
    tuples = design("ab")
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"candidates": [{"utterance_id": "a", "intended": level}]}))
    with pytest.raises(InputError, match=r"intended is .*; expected an integer from 1 to 5"):
        read_truth(path, tuples)


def test_items_without_a_truth_are_named_with_the_file(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("item,score\na,1\n")
    with pytest.raises(InputError, match=r"s\.csv: 1 items have no true score: 'b'"):
        read_truth(path, design("ab"))


@pytest.mark.parametrize(("annotators", "per_tuple"), [(7, 1), (5, 2), (3, 3)])
def test_annotators_take_turns(annotators, per_tuple):
    tuples = make_tuples([f"i{n}" for n in range(30)], 4)
    judgments = simulate(tuples, np.zeros(30), annotators, per_tuple=per_tuple, seed=3)
    assert set(np.bincount(judgments.tuple_of)) == {per_tuple}
    pairs = np.stack([judgments.tuple_of, judgments.annotator_of])
    assert len(np.unique(pairs, axis=1).T) == len(judgments)
    counts = np.bincount(judgments.annotator_of, minlength=annotators)
    assert counts.max() - counts.min() <= 1
    again = simulate(tuples, np.zeros(30), annotators, per_tuple=per_tuple, seed=3)
    assert (judgments.annotator_of == again.annotator_of).all()


def test_all_annotators_are_the_default():
    tuples = design("abc", "bcd")
    truth = np.arange(4.0)
    one, other = simulate(tuples, truth, 3), simulate(tuples, truth, 3, per_tuple=3)
    assert (one.annotator_of == other.annotator_of).all()
    assert (one.best == other.best).all()
