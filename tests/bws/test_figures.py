"""Charts of scores, reliability and agreement: what they show, and the files of --figure."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws import cli
from bws.figures import MAX_NAMED_ITEMS, agreement_chart, reliability_chart, score_chart

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")
pytest.importorskip("vl_convert", reason="the extra giccs[charts] is not installed")


def simulated(count=12):
    design = bws.make_tuples([f"w{n:03}" for n in range(count)], 4, factor=2)
    return bws.simulate(design, np.linspace(-1, 1, count), 5, noise=0.5)


def layers(chart):
    specification = chart.to_dict()
    values = specification.get("datasets")
    data = specification.get("data") or specification["layer"][0]["data"]
    return specification, data["values"] if "values" in data else values[data["name"]]


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
    assert specification["title"]["subtitle"][0].startswith("Simulated judgments: 400 of 80 tuples")


def test_many_items_are_shown_by_rank():
    judgments = simulated(MAX_NAMED_ITEMS + 4)
    specification, _ = layers(score_chart(bws.score(judgments), judgments))
    assert specification["height"] == 640
    assert '"item"' not in json.dumps([layer["encoding"] for layer in specification["layer"]])


def test_reliability_has_a_point_per_number_of_annotations():
    judgments = simulated()
    curve = bws.reliability_curve(judgments, trials=20)
    _, rows = layers(reliability_chart(curve, judgments))
    values = [point.pearson.spearman_brown for point in curve.points]
    assert [row["value"] for row in rows if row["correlation"] == "Pearson"] == values
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows if "low" in row)


def test_agreement_has_intervals_only_if_they_were_computed():
    judgments = simulated()
    plain, rows = layers(agreement_chart(bws.agreement(judgments)))
    assert plain["title"]["text"] == "Agreement of annotators"
    assert not any("low" in row for row in rows)
    result = bws.agreement(judgments, intervals=True)
    _, rows = layers(agreement_chart(result))
    both = result.groups[0].alpha["both"]
    assert rows[0] == {
        "part": "all", "answer": "both", "alpha": both.value, "low": both.low, "high": both.high,
    }  # fmt: skip


@pytest.mark.parametrize("command", ["score", "reliability", "agreement"])
@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("json", b"{")]
)
def test_commands_write_charts(tmp_path, command, suffix, start):
    path, figure = tmp_path / "judgments.csv", tmp_path / f"figure.{suffix}"
    bws.write_judgments(simulated(), path)
    result = CliRunner().invoke(getattr(cli, command), [str(path), "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    assert figure.read_bytes().startswith(start)


@pytest.mark.parametrize("command", ["score", "reliability", "agreement"])
def test_other_file_types_are_refused_before_the_judgments_are_read(command):
    result = CliRunner().invoke(getattr(cli, command), ["missing.csv", "--figure", "figure.gif"])
    assert result.exit_code == 2
    assert (
        "figure.gif: unsupported file type; expected a name that ends in one of .svg"
        in result.output
    )
