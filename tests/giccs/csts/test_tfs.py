"""Typed feature structures: the paper's Figure 6, what N/A does, what a file may hold, what is printed."""

import copy
import csv
import io
import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from bws.base.problems import InputError
from giccs.csts.cli.tfs import EXAMPLE, tfs
from giccs.csts.tfs import Comparison, Feature, read_tfs, score, summary, value_text

FIGURE_6 = Comparison(
    "figure-6",
    "Animal",
    "A dog sits.",
    "A dog leaps.",
    (
        Feature("type", "dog", "dog", 5.0, 0.6),
        Feature("color", None, None, None, None),
        Feature("count", 1, 1, 5.0, 0.2),
        Feature("position", "sitting", "in the air", 1.0, 0.2),
    ),
)


def weighted(*numbers, label=None, uid="a", sentence="x"):
    """A comparison of features with these (similarity, weight)."""
    features = tuple(
        Feature(f"f{place}", "v", None if similarity is None else "w", similarity, weight)
        for place, (similarity, weight) in enumerate(numbers)
    )
    return Comparison(uid, "C", sentence, "y", features, label)


def written(path, *objects):
    path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    return path


def changed(place=None, **values):
    """The second example with other values, of the object or of one of its features."""
    one = copy.deepcopy(EXAMPLE[1])
    target = one if place is None else one["features"][place]
    target.update(values)
    return one


def problems_of(path):
    with pytest.raises(InputError) as caught:
        read_tfs(path)
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def call(*arguments, stdin=None):
    return CliRunner().invoke(tfs, list(map(str, arguments)), input=stdin)


# --- the score


def test_figure_6():
    # (5 × 0.6) + (5 × 0.2) + (1 × 0.2)
    #  = 3.0    +  1.0      +  0.2       = 4.2; the weights that count: 0.6 + 0.2 + 0.2 = 1
    result = score(FIGURE_6)
    assert result.value == 4.2
    assert [part.value for part in result.contributions if part.feature.applies] == [3.0, 1.0, 0.2]
    assert math.isnan(result.contributions[1].share)
    assert not result.reason


def test_an_na_feature_with_a_weight_shares_it_out():
    # color, N/A, takes 0.2 of the weight: 0.5 + 0.2 + 0.1 + 0.2 = 1
    type_, color, count, position = FIGURE_6.features
    one = replace(
        FIGURE_6,
        features=(
            replace(type_, weight=0.5),
            replace(color, weight=0.2),
            replace(count, weight=0.1),
            replace(position, weight=0.2),
        ),
    )
    # (5 × 0.5 + 5 × 0.1 + 1 × 0.2) / (0.5 + 0.1 + 0.2) = 3.2 / 0.8
    assert score(one).value == 4.0


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ([(None, 1.0), (None, None)], "no feature applies"),
        ([(None, 1.0)], "no feature applies"),
        ([(3.0, 0.0), (5.0, 0.0)], "the weights that count sum to 0"),
        ([(4.0, 0.0), (None, 1.0)], "the weights that count sum to 0"),
    ],
)
def test_nan_with_a_reason(numbers, reason):
    result = score(weighted(*numbers))
    assert math.isnan(result.value)
    assert result.reason == reason
    assert all(math.isnan(part.value) for part in result.contributions)


similarities = st.floats(1, 5)
weights = st.floats(0, allow_infinity=False, allow_nan=False)
applicable = st.tuples(similarities, weights)
inapplicable = st.tuples(st.none(), weights)
features = st.lists(applicable | inapplicable, min_size=1, max_size=8)


@given(features)
def test_scores_are_within_the_scale(numbers):
    result = score(weighted(*numbers))
    if result.reason:
        assert math.isnan(result.value)
        return
    labels = [similarity for similarity, weight in numbers if similarity is not None and weight]
    assert min(labels) <= result.value <= max(labels)


@given(
    st.lists(st.tuples(st.none() | similarities, st.just(0.0) | st.floats(1e-6, 1e3)), min_size=1),
    st.integers(-30, 30),
)
def test_the_unit_of_the_weights_does_not_matter(numbers, power):
    scaled = [(similarity, weight * 2.0**power) for similarity, weight in numbers]
    one, other = score(weighted(*numbers)), score(weighted(*scaled))
    assert one.reason == other.reason
    assert other.value == pytest.approx(one.value, rel=1e-12, nan_ok=True)


@given(features, st.none() | weights, st.integers(0, 8))
def test_an_na_feature_more_changes_nothing(numbers, weight, place):
    more = [*numbers[:place], (None, weight), *numbers[place:]]
    one, other = score(weighted(*numbers)), score(weighted(*more))
    assert one.reason == other.reason
    assert repr(other.value) == repr(one.value)


@given(features)
def test_the_contributions_sum_to_the_score(numbers):
    result = score(weighted(*numbers))
    if not result.reason:
        parts = [part for part in result.contributions if not math.isnan(part.share)]
        assert math.fsum(part.value for part in parts) == pytest.approx(result.value)
        assert math.fsum(part.share for part in parts) == pytest.approx(1)


def test_arithmetic_is_exact_in_what_is_written():
    # Seven features at 4.1 with weight 0.1 each: the mean is 4.1; in binary sums it is 4.1000000000000005
    assert sum([4.1 * 0.1] * 7) / sum([0.1] * 7) != 4.1
    assert score(weighted(*[(4.1, 0.1)] * 7)).value == float(Fraction(41, 10))


# --- many scores


def test_summary_counts_what_has_a_score_and_what_has_not():
    many = [
        weighted((5.0, 1.0), (1.0, 1.0), label=3.0),
        weighted((None, 1.0), (2.0, 3.0), label=-1.0),
        weighted((None, 1.0), (None, 3.0), label=4.0),
    ]
    result = summary([score(one) for one in many])
    assert (result.comparisons, result.scored) == (3, 2)
    assert result.undefined == {"no feature applies": 1}
    assert (result.mean, result.lowest, result.highest) == (2.5, 2.0, 3.0)
    assert (result.labelled, result.invalid, result.one_sided) == (2, 1, 3)
    f0, f1 = result.features
    # f0: 5 and twice N/A, with the share 1/2; f1: 1, 2 and once N/A, with the shares 1/2 and 1
    assert (f0.applies, f0.not_applicable, f0.similarity, f0.share) == (1, 2, 5.0, 0.5)
    assert (f1.applies, f1.not_applicable, f1.similarity, f1.share) == (2, 1, 1.5, 0.75)


def test_features_of_one_name_are_kept_apart_by_condition():
    one = weighted((5.0, 1.0))
    result = summary([score(one), score(replace(one, condition="D"))])
    assert [(use.condition, use.name, use.applies) for use in result.features] == [
        ("C", "f0", 1),
        ("D", "f0", 1),
    ]


def test_agreement_is_scipys_over_what_has_score_and_label():
    values = [4.2, 1.5, 3.3, 2.0, 5.0, 2.0]
    labels = [5.0, 1.0, 2.0, 2.0, 4.0, 3.0]
    many = [
        weighted((value, 1.0), label=label, uid=str(place), sentence=str(place))
        for place, (value, label) in enumerate(zip(values, labels, strict=True))
    ]
    apart = [
        weighted((1.0, 1.0), label=-1.0),
        weighted((1.0, 1.0)),
        weighted((None, 1.0), label=5.0),
    ]
    result = summary([score(one) for one in [*apart, *many]]).agreement
    assert result["pearson"].n == result["spearman"].n == 6
    assert result["pearson"].value == pytest.approx(pearsonr(values, labels).statistic)
    assert result["spearman"].value == pytest.approx(spearmanr(values, labels).statistic)
    assert result["pearson"].low < result["pearson"].value < result["pearson"].high


def test_no_labels_no_agreement():
    assert summary([score(FIGURE_6)]).agreement == {}
    assert summary([]).agreement == {}
    assert math.isnan(summary([]).mean)


# --- the file


def test_the_example_is_read_as_it_is_meant(tmp_path):
    (first, second), warnings = read_tfs(written(tmp_path / "e.jsonl", *EXAMPLE))
    assert warnings == []
    assert first.features == FIGURE_6.features
    assert second.label == 3.0
    container, side = second.features[3:]
    assert value_text(container.value1) == "[type=cup, color=blue]"
    assert side.one_sided
    assert not side.applies
    # (5 × 4 + 2 × 3 + 3 × 1 + 2 × 2) / (4 + 3 + 1 + 2) = 33 / 10
    assert score(second).value == 3.3


BY_HAND = """
{"uid": "figure-6", "condition": "Animal",
 "sentence1": "A dog sits.", "sentence2": "A dog leaps.",
 "features": [
   {"feature": "type", "value1": "dog", "value2": "dog", "similarity": 5, "weight": 0.6},
   {"feature": "position", "value1": "sitting", "value2": "in the air", "similarity": 1, "weight": 0.4}
 ]
}
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (json.dumps(EXAMPLE[0]), 4.2),
        (json.dumps(EXAMPLE[0], indent=2), 4.2),
        # 5 × 0.6 + 1 × 0.4; its last feature is an object on a line of its own
        (BY_HAND, 3.4),
    ],
)
def test_a_file_may_be_one_object_on_one_or_many_lines(tmp_path, text, value):
    path = tmp_path / "one.json"
    path.write_text(text, encoding="utf-8")
    (one,), _ = read_tfs(path)
    assert score(one).value == value


def test_a_fault_of_an_object_on_many_lines_is_one_problem(tmp_path):
    path = tmp_path / "one.json"
    path.write_text(BY_HAND.replace("0.6},", "0.6}"), encoding="utf-8")
    (problem,) = problems_of(path)
    assert problem.startswith("6: not a JSON object (Expecting ',' delimiter at character 4)")


def test_lines_are_lines_where_the_first_is_broken(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{{'uid'}}\n{json.dumps(changed(uid=None))}", encoding="utf-8")
    assert [problem[:3] for problem in problems_of(path)] == ["1: ", "2: "]


def test_na_may_be_written_as_in_the_figure(tmp_path):
    one = changed(4, value2="N/A", similarity="N/A", weight="N/A")
    (read,), _ = read_tfs(written(tmp_path / "a.jsonl", one))
    assert read.features[4] == Feature("side dish", "toast", None, None, None)


def test_a_feature_of_one_sentence_may_be_judged(tmp_path):
    (read,), _ = read_tfs(written(tmp_path / "a.jsonl", changed(4, similarity=2)))
    # (33 + 2 × 1) / (10 + 1)
    assert score(read).value == pytest.approx(35 / 11)


def test_unknown_keys_are_told_not_read(tmp_path):
    path = written(tmp_path / "a.jsonl", changed(4, similarty=2), changed(uid="b", note="?"))
    _, warnings = read_tfs(path)
    assert [str(warning).removeprefix(f"{path}:") for warning in warnings] == [
        "1: feature 5 (side dish): unknown keys are ignored: similarty",
        "2: unknown keys are ignored: note",
    ]


NUMBER = "expected a number from 1 to 5, or null"
VALUE = "expected text, a number, true, false, null, or an object of features and values"


@pytest.mark.parametrize(
    ("one", "fault"),
    [
        (changed(uid=None), "uid is missing"),
        (changed(condition=" "), "condition is empty; expected text"),
        (changed(sentence1=7), "sentence1 is 7; it must be a string"),
        (
            changed(label=6),
            "label is 6; expected a number from 1 to 5, -1 for invalid, or null",
        ),
        (changed(features=None), "features is missing"),
        (changed(features=[]), "features is empty; expected a list of one or more objects"),
        (changed(features=[3]), "features is [3]; expected a list of objects"),
        (changed(0, feature=""), "feature 1 has no name; expected text in the key feature"),
        (
            changed(1, feature="type"),
            "feature 2 (type) is repeated; each feature must be unique",
        ),
        (changed(0, similarity=0), f"feature 1 (type): similarity is 0; {NUMBER}"),
        (changed(0, similarity=5.5), f"feature 1 (type): similarity is 5.5; {NUMBER}"),
        (changed(0, similarity="high"), f"feature 1 (type): similarity is 'high'; {NUMBER}"),
        (changed(0, similarity=True), f"feature 1 (type): similarity is true; {NUMBER}"),
        (changed(0, weight=-1), "feature 1 (type): weight is -1; expected a number, 0 or more"),
        (
            changed(0, weight=10**400),
            f"feature 1 (type): weight is 1{'0' * 56}...; expected a number, 0 or more",
        ),
        (
            changed(0, weight=None),
            "feature 1 (type): weight is missing; expected 0 or more for a feature with a similarity",
        ),
        (
            changed(0, similarity=None),
            "feature 1 (type): similarity is missing, but both sentences have a value; expected 1 to 5",
        ),
        (
            changed(4, value1=None, similarity=3),
            "feature 5 (side dish): similarity is given, but neither sentence has a value; expected null",
        ),
        (changed(0, value1=["a"]), f'feature 1 (type): value1 is ["a"]; {VALUE}'),
        (changed(0, value2={}), f"feature 1 (type): value2 is {{}}; {VALUE}"),
        (changed(0, value2=" "), f"feature 1 (type): value2 is empty; {VALUE}"),
        (changed(3, value2={"a": []}), f'feature 4 (container): value2 is {{"a": []}}; {VALUE}'),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path, one, fault):
    path = written(tmp_path / "a.jsonl", EXAMPLE[0], one)
    assert problems_of(path) == [f"2: {fault}"]


def test_all_faults_are_told_at_once(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [
        json.dumps(EXAMPLE[0]),
        json.dumps(changed(0, weight=-1, similarity=9) | {"label": 0}),
        "{",
        json.dumps(EXAMPLE[0]),
        '{"uid": "x", "uid": "y"}',
        json.dumps(changed(uid="z")).replace('"weight": 4', '"weight": NaN'),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    kind = "expected one per file or one per line"
    assert problems_of(path) == [
        "2: label is 0; expected a number from 1 to 5, -1 for invalid, or null",
        f"2: feature 1 (type): similarity is 9; {NUMBER}",
        "2: feature 1 (type): weight is -1; expected a number, 0 or more",
        "3: not a JSON object (Expecting property name enclosed in double quotes at character 2); "
        + kind,
        "4: repeats the uid 'figure-6' of line 1; each must be unique",
        f"5: not a JSON object (repeated key 'uid' in one object); {kind}",
        f"6: not a JSON object (NaN is not a JSON number); {kind}",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", ": no JSON object; expected one or more"),
        ("[]", ":1: not a JSON object (it is []); expected one per file or one per line"),
        (
            '{\n "uid": "a",\n "label" 3\n}',
            ":3: not a JSON object (Expecting ':' delimiter at character 10); expected one per file or "
            "one per line",
        ),
        (
            '{"uid": "\\ud83d"}',
            ":1: not a JSON object (it contains an unpaired surrogate escape); expected one per file or "
            "one per line",
        ),
    ],
)
def test_a_file_that_is_no_object(tmp_path, text, fault):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_tfs(path)
    assert str(caught.value) == f"{path}{fault}"


def test_structures_too_deep_are_refused(tmp_path):
    value = "x"
    for _ in range(22):
        value = {"in": value}
    (problem,) = problems_of(written(tmp_path / "a.jsonl", changed(3, value1=value)))
    assert problem.endswith("structures are nested more than 20 deep")


# --- the command


def test_the_command_shows_figure_6(tmp_path):
    done = call(written(tmp_path / "e.jsonl", EXAMPLE[0]))
    assert done.exit_code == 0
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["type", "dog", "dog", "5", "0.6", "0.6", "3"] in rows
    assert ["color", "N/A", "N/A", "N/A", "–", "–", "–"] in rows
    assert ["position", "sitting", "in", "the", "air", "1", "0.2", "0.2", "0.2"] in rows
    assert "similarity = (5 × 0.6) + (5 × 0.2) + (1 × 0.2) = 4.2\n" in done.stdout


def test_what_the_example_prints_can_be_read(tmp_path):
    printed = call("--example")
    assert printed.exit_code == 0
    done = call("-", stdin=printed.stdout)
    assert done.exit_code == 0
    # (20 + 6 + 3 + 4) / 10 = 33 / 10
    assert "((5 × 4) + (2 × 3) + (3 × 1) + (2 × 2)) / 10 = 3.3; label 3" in done.stdout
    assert "comparisons with a score: 2 of 2" in done.stdout


def test_json_has_everything(tmp_path):
    undefined = changed(uid="none", features=[{"feature": "type"}])
    done = call(written(tmp_path / "e.jsonl", undefined, EXAMPLE[1]), "--json")
    document = json.loads(done.stdout)
    first, second = document["scores"]
    assert first["score"] is None
    assert first["reason"] == "no feature applies"
    assert (second["score"], second["label"]) == (3.3, 3.0)
    assert second["features"][3] == {
        "feature": "container",
        "value1": {"type": "cup", "color": "blue"},
        "value2": {"type": "plate", "color": None},
        "similarity": 2.0,
        "weight": 2.0,
        "share": 0.2,
        "contribution": 0.4,
    }
    assert document["summary"]["scored"] == 1
    assert document["summary"]["agreement"]["pearson"]["n"] == 1


def test_csv_has_all_digits_and_the_summary_goes_elsewhere(tmp_path):
    done = call(written(tmp_path / "e.jsonl", *EXAMPLE), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 4 + 5
    assert rows[0]["score"] == "4.2"
    assert (rows[1]["value1"], rows[1]["similarity"], rows[1]["share"]) == ("", "", "")
    assert json.loads(rows[7]["value1"]) == {"type": "cup", "color": "blue"}
    assert "comparisons with a score: 2 of 2" in done.stderr


def test_a_cell_of_markdown_and_of_latex_stays_one(tmp_path, typeset):
    path = written(tmp_path / "a.jsonl", changed(0, value1="egg | hen\nand 5 %"))
    markdown = call(path, "--format", "markdown").stdout
    assert "| egg \\| hen and 5 % " in markdown
    latex = call(path, "--format", "latex").stdout
    assert "egg $|$ hen and 5 \\%" in latex
    assert "\n% similarity = " in latex
    assert "egg|henand5%" in typeset(latex)
    selected = call(path, "--columns", "share,feature").stdout.splitlines()
    assert next(line for line in selected if "feature" in line).split() == ["share", "feature"]


def test_labels_are_compared_with_the_scores(tmp_path):
    many = [changed(uid=str(n), sentence1=str(n), label=n) for n in (1, 2, 3, 4, 5)]
    for n, one in enumerate(many, start=1):
        one["features"][0]["similarity"] = n
    done = call(written(tmp_path / "a.jsonl", *many))
    assert "pearson with the labels, n = 5: 1.000 [–] (0 sentence pairs that differ" in done.stdout
    done = call(written(tmp_path / "a.jsonl", *many[:4]))
    few = "4 sentence pairs: no interval, which needs 5"
    assert f"pearson with the labels, n = 4: 1.000 [–] ({few})" in done.stdout


def test_a_faulty_file_ends_with_2(tmp_path):
    done = call(written(tmp_path / "a.jsonl", changed(0, similarity=9)))
    assert done.exit_code == 2
    assert "a.jsonl:1: feature 1 (type): similarity is 9" in done.stderr
