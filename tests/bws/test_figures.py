"""Charts of scores, reliability and agreement: what they show, and the files of --figure."""

import dataclasses
import json
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws import cli
from bws.analysis import pictures
from bws.analysis.analysis import Answers, MissingPictureError
from bws.analysis.judgments import (
    AGREEMENT,
    COMPONENTS,
    PLAN,
    RELIABILITY,
    AgreementSettings,
    ReliabilitySettings,
)
from bws.components import generalisability
from bws.planning import Planner
from bws.raw_agreement import annotator_pairs
from bws.stats.estimates import Estimate
from bws.study_charts import (
    MAX_ANNOTATORS_WITH_TEXT,
    MAX_DRAWN_ITEMS,
    MAX_NAMED_ITEMS,
    pairs_chart,
    ranked_rows,
)
from tests.nightly import others_nightly

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")
pytest.importorskip("vl_convert", reason="the extra giccs[charts] is not installed")


def simulated(count=12):
    design = bws.make_tuples([f"w{n:03}" for n in range(count)], 4, factor=2)
    return bws.simulate(design, np.linspace(-1, 1, count), 5, noise=0.5)


def drawn(name, judgments, settings, results=()):
    """Return the chart of a file."""
    answers = Answers(judgments, settings)
    answers._results |= results
    analysis = AGREEMENT if isinstance(settings, AgreementSettings) else RELIABILITY
    (picture,) = (each for each in analysis.pictures if each.name == name)
    return pictures.finished(answers.drawing(analysis, picture), judgments)


def score_chart(scores, judgments):
    return pictures.finished(pictures.scores(scores), judgments)


def reliability_chart(judgments, results=(), **settings):
    return drawn("reliability", judgments, ReliabilitySettings(**settings), results)


def layers(chart):
    specification = chart.to_dict()
    values = specification.get("datasets")
    data = specification.get("data") or specification["layer"][0]["data"]
    return specification, data["values"] if "values" in data else values[data["name"]]


def all_rows(specification):
    """The rows of all layers of a chart."""
    rows = [row for rows in specification.get("datasets", {}).values() for row in rows]
    for layer in (specification, *specification.get("layer", [])):
        rows += layer.get("data", {}).get("values", [])
    return rows


def test_scores_are_in_descending_order_with_their_intervals():
    judgments = simulated(40)
    scores = bws.score(judgments, interval="model")
    specification, rows = layers(score_chart(scores, judgments))
    assert [row["score"] for row in rows] == sorted(scores.score.tolist(), reverse=True)
    limits = zip(scores.items, scores.low, scores.high, strict=True)
    expected = {item: (low, high) for item, low, high in limits if not np.isnan(low)}
    assert len(expected) > 30
    assert {row["item"]: (row["low"], row["high"]) for row in rows if "low" in row} == expected
    assert specification["title"]["text"] == "Scores of 40 items with 95 % intervals"
    axis = specification["config"]["axis"]  # a title is beside the longest labels
    assert axis["maxExtent"] > axis["labelLimit"]
    assert specification["title"]["subtitle"][0].startswith("Simulated judgments: 400 of 80 tuples")


def test_the_names_of_items_have_their_ranks():
    judgments = simulated(40)
    scores = bws.score(judgments, interval="model", ranks=True)
    scores.rank_low[0] = scores.rank_high[0] = np.nan
    scores.rank_low[1] = scores.rank_high[1] = 7
    specification, rows = layers(score_chart(scores, judgments))
    names = {row["item"] for row in rows}
    assert {f"{scores.items[0]} (–)", f"{scores.items[1]} (7)"} <= names
    low, high = int(scores.rank_low[2]), int(scores.rank_high[2])
    assert f"{scores.items[2]} ({low}–{high})" in names
    assert specification["title"]["subtitle"][1].startswith("In parentheses: the ranks")


def test_many_items_are_shown_by_rank():
    judgments = simulated(MAX_NAMED_ITEMS + 4)
    specification, _ = layers(score_chart(bws.score(judgments), judgments))
    assert specification["height"] == 640
    assert {layer["encoding"]["y"]["field"] for layer in specification["layer"]} == {"rank"}


def test_of_thousands_of_items_some_are_drawn_and_the_band_contains_the_intervals_of_all():
    rng = np.random.default_rng(0)
    score = rng.random(3 * MAX_DRAWN_ITEMS)
    low, high = score - rng.random(len(score)), score + rng.random(len(score))
    low[5] = high[5] = np.nan
    rows, bands = ranked_rows([str(n) for n in range(len(score))], score, low, high)
    assert len(rows) == MAX_DRAWN_ITEMS
    assert (rows[0]["rank"], rows[-1]["rank"]) == (1, len(score))
    ranked = sorted(range(len(score)), key=lambda n: -score[n])
    assert [ranked[row["rank"] - 1] for row in rows] == [int(row["item"]) for row in rows]
    covered = set()
    for band in bands:
        members = [n for n in ranked[band["from"] - 1 : band["to"]] if n != 5]
        assert band["low"] == min(low[members])
        assert band["high"] == max(high[members])
        covered |= set(members)
    assert covered == set(range(len(score))) - {5}


def test_only_a_picture_of_some_items_says_how_many_are_drawn():
    scores = bws.score(simulated())
    assert not any(pictures.scores(scores).remarks)
    n = 2 * MAX_DRAWN_ITEMS
    judged = bws.simulate(
        bws.make_tuples([f"i{i}" for i in range(n)], 4, factor=2), np.arange(n), 1
    )
    assert "Drawn: 400 items" in pictures.scores(bws.score(judged)).remarks[0]


def test_scores_without_any_judged_item_are_refused():
    judgments = simulated()
    scores = bws.score(judgments)
    empty = dataclasses.replace(scores, score=np.full(len(scores.score), np.nan))
    with pytest.raises(MissingPictureError, match="no item has a score"):
        score_chart(empty, judgments)


def test_reliability_has_a_point_per_number_of_annotations():
    judgments = simulated()
    curve = bws.reliability_curve(judgments, trials=20)
    _, rows = layers(reliability_chart(judgments, trials=20))
    values = [point.pearson.spearman_brown for point in curve.points]
    assert [row["value"] for row in rows if row["correlation"] == "Pearson"] == values
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows if "low" in row)


def test_the_chart_of_reliability_names_the_tuples_of_a_part():
    judgments = simulated()
    fewer = judgments.select((judgments.tuple_of > 0) | (judgments.annotator_of < 2))
    complete, part = (
        str(reliability_chart(each, trials=5).to_dict()) for each in (judgments, fewer)
    )
    assert "All points rest on the 23 of 24 tuples with at least 5" in part
    assert "points rest on the" not in complete


def test_a_plan_adds_the_prediction_and_the_annotations_for_the_target():
    judgments = simulated(40)
    answers = judgments.canonical
    planner = Planner.from_study(answers, generalisability(answers))
    target = planner.reliability(planner.tuples_per_item, 7, planner.judgments_per_annotator)
    rows = all_rows(reliability_chart(judgments, trials=5, target=target).to_dict())
    predicted = [row for row in rows if str(row.get("correlation")).startswith("predicted")]
    assert predicted[0]["annotations"] == 1
    curve_rows = [row["value"] for row in predicted if row["value"] != target]
    assert curve_rows == sorted(curve_rows)
    (mark,) = [row for row in predicted if row["value"] == target]
    assert mark["annotations"] == pytest.approx(7)


def test_a_target_that_the_tuples_cannot_reach_is_a_line_without_a_mark():
    judgments = simulated(40)
    chart = reliability_chart(judgments, trials=5, target=0.99999)
    rows = [row for row in all_rows(chart.to_dict()) if row.get("value") == 0.99999]
    assert rows == [{"value": 0.99999, "correlation": "target 0.99999"}]


@pytest.mark.parametrize("count", [3, 60])
def test_pairs_of_annotators_are_those_of_a_plain_loop(count):
    rng = np.random.default_rng(1)
    design = bws.make_tuples([f"w{n:03}" for n in range(40)], 4, factor=2)
    judgments = bws.simulate(design, np.linspace(-1, 1, 40), count, noise=0.5)
    judgments = judgments.select(rng.random(len(judgments)) < 0.2)
    pairs = annotator_pairs(judgments)
    answers = {}
    for record in judgments.records():
        answers.setdefault(record.annotator, {})[frozenset(record.items)] = (
            record.best,
            record.worst,
        )
    means = []
    for a, first in enumerate(pairs.annotators):
        total = [0, 0]
        for b, second in enumerate(pairs.annotators):
            common = answers[first].keys() & answers[second].keys() if a != b else set()
            same = sum(
                x == y
                for key in common
                for x, y in zip(answers[first][key], answers[second][key], strict=True)
            )
            assert pairs.tuples[a, b] == len(common)
            assert pairs.is_few[a, b] == (0 < len(common) < 10)
            if common:
                assert pairs.agreement[a, b] == same / len(common) / 2
            else:
                assert np.isnan(pairs.agreement[a, b])
            total = [total[0] + same, total[1] + 2 * len(common)]
        means.append(total[0] / total[1])
    assert means == sorted(means, reverse=True)
    text = json.dumps(pairs_chart(pairs).to_dict())
    assert ("format(datum.agreement" in text) == (count <= MAX_ANNOTATORS_WITH_TEXT)
    assert "is_few" in text


def test_annotators_without_common_tuples_are_refused_with_the_reason(tmp_path):
    path, figure = tmp_path / "judgments.csv", tmp_path / "pairs.svg"
    judgments = simulated().select(np.arange(1))
    bws.write_judgments(judgments, path)
    done = CliRunner().invoke(cli.agreement, [str(path), "--figure", f"annotators={figure}"])
    assert done.exit_code == 2
    reason = "no figure annotators: no two named annotators judged the same tuple"
    assert done.stderr.splitlines()[-1] == f"{path}: {reason}"
    assert "alpha" in done.stdout
    assert not figure.exists()


def test_components_are_those_of_the_table(tmp_path):
    path, figure = tmp_path / "judgments.csv", tmp_path / "components.json"
    judgments = simulated(40)
    bws.write_judgments(judgments, path)
    arguments = [str(path), "--figure", f"components={figure}", "--json", "--components"]
    done = CliRunner().invoke(cli.reliability, arguments)
    assert done.exit_code == 0, done.output
    variances = json.loads(done.stdout)["components"]["variances"]
    rows = all_rows(json.loads(figure.read_text("utf-8")))
    assert [row["value"] for row in rows] == [each["value"] for each in variances.values()]


def test_undefined_components_are_named_and_not_drawn():
    design = bws.make_tuples([f"w{n}" for n in range(4)], 4, count=1)
    judgments = bws.simulate(design, np.linspace(-1, 1, 4), 3, noise=0.5)
    study = generalisability(judgments.canonical)
    specification = drawn("components", judgments, ReliabilitySettings()).to_dict()
    assert "Not defined: design" in specification["title"]["subtitle"]
    assert len(all_rows(specification)) == 3
    undefined = dataclasses.replace(
        study, variances={name: Estimate(np.nan) for name in study.variances}
    )
    with pytest.raises(MissingPictureError, match="no item is in two tuples"):
        drawn("components", judgments, ReliabilitySettings(), {COMPONENTS.name: undefined})


def test_without_a_plan_the_curve_says_why_there_is_no_prediction():
    judgments = simulated()
    chart = reliability_chart(judgments, {PLAN.name: None}, trials=5)
    specification = chart.to_dict()
    assert {row["correlation"] for row in all_rows(specification)} == {"Pearson", "Spearman"}
    assert "No plan: reliability cannot be" in " ".join(specification["title"]["subtitle"])


@pytest.mark.parametrize(
    ("command", "value", "message"),
    [
        ("agreement", "annotator=x.svg", "unknown figure 'annotator'; did you mean 'annotators'"),
        ("reliability", "plan=x.svg", "expected one of reliability, components"),
        ("reliability", "components=x.gif", "unsupported file type"),
    ],
)
def test_unknown_figures_are_refused(command, value, message):
    done = CliRunner().invoke(getattr(cli, command), ["missing.csv", "--figure", value])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_agreement_has_intervals_only_if_they_were_computed():
    judgments = simulated()
    plain, rows = layers(drawn("agreement", judgments, AgreementSettings()))
    assert plain["title"]["text"] == "Agreement of annotators"
    assert not any("low" in row for row in rows)
    result = bws.agreement(judgments, intervals=True)
    _, rows = layers(drawn("agreement", judgments, AgreementSettings(intervals=True)))
    both = result.groups[0].alpha["both"]
    assert rows[0] == {
        "part": "all", "answer": "both", "alpha": both.value, "low": both.low, "high": both.high,
    }  # fmt: skip


START = {"svg": b"<svg", "png": b"\x89PNG", "json": b"{"}


@pytest.mark.parametrize(
    ("command", "suffix"),
    others_nightly(
        product(["score", "reliability", "agreement"], START),
        ("score", "svg"), ("reliability", "png"), ("agreement", "json"),
    ),
)  # fmt: skip
def test_commands_write_charts(tmp_path, command, suffix):
    path, figure = tmp_path / "judgments.csv", tmp_path / f"figure.{suffix}"
    bws.write_judgments(simulated(), path)
    result = CliRunner().invoke(getattr(cli, command), [str(path), "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    assert figure.read_bytes().startswith(START[suffix])


@pytest.mark.parametrize("command", ["score", "reliability", "agreement"])
def test_other_file_types_are_refused_before_the_judgments_are_read(command):
    result = CliRunner().invoke(getattr(cli, command), ["missing.csv", "--figure", "figure.gif"])
    assert result.exit_code == 2
    assert (
        "figure.gif: unsupported file type; expected a name that ends in one of .svg"
        in result.output
    )
