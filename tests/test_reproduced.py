"""Published values and their states: rules on small numbers, the committed page, and all values nightly."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import bws
from benchmarks.reproduced import judgments, similarity
from benchmarks.reproduced.__main__ import computed, main
from benchmarks.reproduced.annotators import wins_of_labels
from benchmarks.reproduced.examples import alpha
from benchmarks.reproduced.page import UNKNOWN_REASON, changes, parsed, summary, tables
from benchmarks.reproduced.recipes import RECIPES
from benchmarks.reproduced.values import Recipe, Row, State, outcome_of, state_of
from bws.alternative_annotator import alternative_annotator_test
from bws.stats.estimates import Estimate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/background/reproduced.md"
SHARED = Path(os.environ.get("GICCS_SHARED", ROOT.parent / "shared"))
DATA = Path(os.environ.get("GICCS_DATA", SHARED / "data"))
BLOCKS = "".join(
    f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n"
    for name in ("reproduced-result", "reproduced")
)


def recipe(values, published=None, name="made", **options):
    return Recipe(
        name,
        "[a paper](https://b.org)",
        "[a place](https://c.org)",
        "giccs score made.csv",
        published or {"mean": "0.50", "rows": "1,200", "rate": "0.9 to 1.0"},
        lambda folder: values,
        **options,
    )


VALUES = {"mean": 0.497, "rows": 1200, "rate": 0.86}


@pytest.mark.parametrize(
    ("published", "value", "state"),
    [
        # half a unit of the last digit: 0.375 is 0.37 or 0.38
        ("0.38", 0.375, State.EQUAL),
        ("0.37", 0.375, State.EQUAL),
        ("0.38", 0.3749, State.DIFFERS),
        ("0.380", 0.3806, State.DIFFERS),
        ("6,000", 6000, State.EQUAL),
        ("6,000", 5999, State.DIFFERS),
        ("-2", -2.0, State.EQUAL),
        ("0.953 to 0.954", 0.9538, State.EQUAL),
        ("0.953 to 0.954", 0.9544, State.EQUAL),
        ("0.953 to 0.954", 0.9546, State.DIFFERS),
        ("0.50", Estimate(0.52, 0.49, 0.55), State.INSIDE),
        ("0.50", Estimate(0.52, 0.51, 0.53), State.DIFFERS),
        ("0.50", Estimate(0.504, 0.503, 0.505), State.EQUAL),
        ("0.953 to 0.954", Estimate(0.96, 0.9535, 0.97), State.DIFFERS),
        ("0.953 to 0.954", Estimate(0.96, 0.953, 0.97), State.INSIDE),
        ("0.50", Estimate(0.52), State.DIFFERS),
        ("0.50", float("nan"), State.DIFFERS),
        ("0.50", None, State.MISSING),
    ],
)
def test_the_state_of_a_published_value(published, value, state):
    assert state_of(published, value) is state


@pytest.mark.parametrize(
    ("published", "value", "cells"),
    [
        ("0.38", 0.375, ("0.38", "-0.005", "equal")),
        ("0.50", 0.5, ("0.50", "0", "equal")),
        ("6,000", 5990, ("5990", "-10", "differs")),
        ("0.5", Estimate(0.62, 0.41, 0.83), ("0.6 [0.4, 0.8]", "+0.12", "inside the interval")),
        ("0.9 to 1.0", 0.86, ("0.9", "-0.04", "equal")),
        ("0.5", None, ("", "", "data not here")),
    ],
)
def test_values_have_the_digits_of_the_published_ones(published, value, cells):
    assert Row("mean", published, value).cells() == ("mean", published, *cells)


def test_a_page_is_read_as_it_was_written(tmp_path):
    estimates = {**VALUES, "mean": Estimate(0.52, 0.49, 0.55), "rate": 0.7}
    reasons = {"rate": "another rule", "mean": "rounding"}
    outcomes = computed(
        [
            recipe(estimates, reasons=reasons, remarks=["A remark."]),
            recipe(VALUES, {"n": "3"}, "absent", files=["a.csv", "b.csv"]),
            recipe(VALUES, lambda folder: {}, "unknown", files=["c.csv"]),
        ],
        tmp_path,
    )
    assert summary(outcomes) == (
        "Of 3 published values in 1 tables, 1 are equal to those of giccs to the last published digit, 1 "
        "differ but are inside its 95 % interval, and 1 differ; the reasons are stated below the tables. "
        "Those that differ are in: made (1). 1 further values need data that were not here (absent; unknown)."
    )
    text = tables(outcomes)
    assert parsed(text) == {
        ("made", "mean"): ("0.50", "0.52 [0.49, 0.55]", "+0.020", "inside the interval"),
        ("made", "rows"): ("1,200", "1200", "0", "equal"),
        ("made", "rate"): ("0.9 to 1.0", "0.7", "-0.20", "differs"),
        ("absent", "n"): ("3", "", "", "data not here"),
        ("unknown", "all values of the file"): ("", "", "", "data not here"),
    }
    assert "- mean: rounding.\n- rate: another rule.\n- A remark." in text
    assert "Expected as `a.csv`, `b.csv` in the folder of the data." in text
    assert "    giccs score made.csv\n" in text
    with pytest.raises(ValueError, match="no rows"):
        parsed("# Title\n")


def test_a_difference_without_a_reason_is_said(tmp_path):
    text = tables(computed([recipe({**VALUES, "rows": 1})], tmp_path))
    assert f"- rows: {UNKNOWN_REASON}." in text


def test_published_and_computed_values_have_the_same_names(tmp_path):
    with pytest.raises(
        ValueError, match=r"made: either published or computed, not both: \['rows'\]"
    ):
        outcome_of(recipe({"mean": 1.0, "rate": 1.0}), tmp_path)


def test_changes_of_digits_states_and_names(tmp_path):
    old = parsed(tables(computed([recipe(VALUES)], tmp_path)))
    published = {"mean": "0.50", "rate": "0.9 to 1.0", "new": "1"}
    new = computed([recipe({"mean": 0.498, "rate": 0.5, "new": 1.0}, published)], tmp_path)
    assert changes(old, new) == [
        "made: new: not on the page",
        "made: rows: only on the page",
        "made: mean: published 0.50, giccs 0.50, equal on the page, now published 0.50, giccs 0.50, equal",
        "made: rate: published 0.9 to 1.0, giccs 0.9, equal on the page, now published 0.9 to 1.0, "
        "giccs 0.5, differs",
    ]
    inexact = computed([recipe({**VALUES, "mean": 0.501}, is_exact=False)], tmp_path)
    assert changes(old, inexact) == []
    assert changes(old, computed([recipe({**VALUES, "mean": 0.6}, is_exact=False)], tmp_path)) != []
    assert changes(old, computed([recipe({}, files=["absent.csv"])], tmp_path)) == []


def test_the_command_writes_a_page_and_compares_it(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{BLOCKS}after\n")
    main([str(tmp_path), "-o", str(page)], [recipe(VALUES)])
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("# Title\n\n<!-- reproduced-result: begin -->\n\nOf 3 published values")
    assert "Output of `make reproduce`" in text
    main([str(tmp_path), "--check", str(page)], [recipe(VALUES)])
    assert "3 values as on the page" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path), "--check", str(page)], [recipe({**VALUES, "rows": 1201})])
    assert stopped.value.code == 1
    assert "made: rows: published 1,200, giccs 1200, equal on the page" in capsys.readouterr().out
    other = [recipe(VALUES), recipe(VALUES, name="other")]
    main([str(tmp_path), "--check", str(page), "--set", "made"], other)
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--check", str(page)], other[1:])
    assert "made: only on the page" in capsys.readouterr().out
    page.write_text(page.read_text().replace("Of 3 published", "Of 4 published"))
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--check", str(page)], [recipe(VALUES)])
    assert "another sentence, now: Of 3 published" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path), "--check", str(page), "--set", "maid"], [recipe(VALUES)])
    assert stopped.value.code == 2
    assert "no set contains 'maid'" in capsys.readouterr().err
    main([str(tmp_path), "--check", str(page)], [recipe({}, files=["a.csv"])])
    assert capsys.readouterr().out == "not compared, data not here: made\n0 values as on the page\n"
    for arguments in (["-o", str(page), "--set", "made"], []):
        with pytest.raises(SystemExit):
            main([str(tmp_path / "absent") if not arguments else str(tmp_path), *arguments], [])


# What recipes compute besides functions of giccs


def test_wins_of_labels_by_hand():
    people = {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 2}}
    compared = wins_of_labels(people, {"x": 1, "y": 2, "z": 1}, "accuracy")
    rows = {
        (compared.annotators[annotator], item): (model, own)
        for annotator, item, model, own in zip(
            compared.annotator_of,
            compared.cluster_of,
            compared.model,
            compared.annotator,
            strict=True,
        )
    }
    # x: against b and c, a and the model both agree with b: (1, 1); against a and b, c agrees with neither,
    # the model with both: (1, 0). y: a's only other is b, who said 3, as neither did.
    assert rows == {
        ("a", 0): (1, 1), ("a", 1): (1, 1), ("b", 0): (1, 1), ("b", 1): (1, 0), ("c", 0): (1, 0),
    }  # fmt: skip
    # y: the model says 2.5, closer to the 3 of b than a is, and to the 2 of a than b is
    by_error = wins_of_labels(people, {"y": 2.5}, "negative RMSE")
    assert (by_error.model.tolist(), by_error.annotator.tolist()) == ([1, 1], [0, 0])
    equal = wins_of_labels(people, {"y": 2.5}, "accuracy")
    assert (equal.model.tolist(), equal.annotator.tolist()) == ([1, 1], [1, 1])
    assert alternative_annotator_test(compared).may_replace is None


def test_compliance_by_hand():
    """Two annotators agree on a > b > c, one is reversed: none of the reversed pairs agree with all."""
    rows = [("a", "c", "w1"), ("a", "c", "w2"), ("c", "a", "w3")]
    judged = bws.judgments_from_records(
        bws.Judgment(("a", "b", "c"), best, worst, name) for best, worst, name in rows
    )
    assert judgments.compliances(judged) == pytest.approx([0, 1, 1])


def test_scores_are_equal_to_their_last_digit():
    scores = bws.score(
        [bws.Judgment(("a", "b", "c"), "a", "c")] * 2 + [bws.Judgment(("a", "b", "c"), "b", "c")]
    )
    # a is best in 2 of 3, b in 1 of 3, c worst in 3 of 3
    published = {"a": "0.67", "b": "0.34", "c": "-1.0", "d": "0.0"}
    assert judgments.equal_scores(scores, published) == 2


def test_alpha_of_two_coders_by_hand():
    """Of 4 units 3 agree: D_o = 1/4; 8 labels, 5 and 3: D_e = 2*5*3/(8*7) = 15/28; alpha = 1 - 7/15."""
    assert alpha([[1, 1, 2, 1], [1, 1, 2, 2]], 2) == pytest.approx(1 - 7 / 15)


def test_similarities_with_the_rules_of_the_program():
    vectors = {"a": np.array([3.0, 0.0]), "b": np.array([0.0, 4.0]), "ab": np.array([1.0, 1.0])}
    words, letters = (similarity.bag_of_words(vectors, split) for split in (str.split, list))
    # the mean of a and b is (1.5, 2): cosine with a 0.6, with b 0.8
    assert words(["A b", "a"], ["a", "x b"]).tolist() == pytest.approx([0.6, 0])
    # "ab" is a word, or the letters a and b
    assert words(["ab"], ["a"]).tolist() == pytest.approx([0.5**0.5])
    assert letters(["ab"], ["a"]).tolist() == pytest.approx([0.6])
    l2 = similarity.word_similarity(vectors, "l2")
    # distance 5; the unknown word has the mean (4/3, 5/3), at sqrt(25/9 + 25/9) from a
    assert l2(["a", "a"], ["b", "x"]).tolist() == pytest.approx([1 / 6, 1 / (1 + 5 * 2**0.5 / 3)])


# The committed page


@pytest.fixture(scope="module")
def rows():
    return parsed(PAGE.read_text("utf-8"))


def test_the_page_has_the_published_values_of_the_recipes(rows):
    for each in RECIPES:
        on_page = {
            name: cells[0] for (data_set, name), cells in rows.items() if data_set == each.data_set
        }
        assert on_page, each.data_set
        if not callable(each.published):
            assert on_page == dict(each.published)
    assert {data_set for data_set, _ in rows} == {each.data_set for each in RECIPES}


def test_the_page_has_many_values_and_a_reason_for_each_difference(rows):
    states = [cells[-1] for cells in rows.values()]
    compared = {data_set for (data_set, _), cells in rows.items() if cells[-1] != State.MISSING}
    assert len(states) - states.count(State.MISSING) >= 150
    assert len(compared) >= 12
    text = PAGE.read_text("utf-8")
    assert UNKNOWN_REASON not in text
    numbers = re.search(r"Of (\d+) published values in (\d+) tables", text).groups()
    assert tuple(map(int, numbers)) == (len(states) - states.count(State.MISSING), len(compared))


def test_states_on_the_page_follow_from_its_numbers(rows):
    for published, value, _, state in rows.values():
        if state != State.MISSING:
            number, *limits = map(float, re.findall(r"-?[\d.]+", value))
            assert (state == State.INSIDE) == bool(limits)
            assert state_of(published, Estimate(number, *limits)) == state


@pytest.mark.nightly
def test_all_values_are_those_of_the_page(capsys):
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is missing; set GICCS_DATA or GICCS_SHARED")
    try:
        main([str(DATA), "--check", str(PAGE)])
    except SystemExit:
        pytest.fail(capsys.readouterr().out)
