"""Figure 1 as numbers and as a file."""

import json
import xml.etree.ElementTree as ET

import pytest

from bws.base.charts import write_chart
from bws.base.problems import InputError
from giccs.description.distribution import distribution, score_distribution


def test_a_boundary_belongs_to_the_upper_bin_and_one_to_the_last():
    bins = distribution([0, 0.19, 0.2, 0.4, 0.6, 0.8, 0.99, 1])
    assert [(score_bin.low, score_bin.high, score_bin.items) for score_bin in bins] == [
        (0.0, 0.2, 2),
        (0.2, 0.4, 1),
        (0.4, 0.6, 1),
        (0.6, 0.8, 1),
        (0.8, 1.0, 3),
    ]
    assert [score_bin.label for score_bin in bins] == [
        "0–0.2",
        "0.2–0.4",
        "0.4–0.6",
        "0.6–0.8",
        "0.8–1",
    ]


@pytest.mark.parametrize("bins", [3, 5, 6, 10, 12])
def test_every_score_that_counting_can_give_is_in_the_bin_of_its_fraction(bins):
    # 30 appearances: best - worst = b is the score (b / 30 + 1) / 2 = (b + 30) / 60
    for b in range(-30, 31):
        place = min((b + 30) * bins // 60, bins - 1)
        counts = [one.items for one in distribution([(b / 30 + 1) / 2], bins)]
        assert counts == [int(k == place) for k in range(bins)]


@pytest.mark.parametrize("score", [-0.01, 1.01, float("nan")])
def test_what_is_no_score_is_refused(score):
    with pytest.raises(ValueError, match=r"expected scores in \[0, 1\]"):
        distribution([0.5, score])


def test_there_is_at_least_one_bin():
    with pytest.raises(ValueError, match="bins is 0"):
        distribution([0.5], bins=0)


@pytest.fixture
def chart():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    return score_distribution(distribution([0.1, 0.5, 0.9, 0.95]))


def test_the_svg_has_a_bar_for_each_bin_and_their_labels(chart, tmp_path):
    write_chart(chart, tmp_path / "scores.svg")
    root = ET.parse(tmp_path / "scores.svg").getroot()
    bars = [
        one.get("aria-label") for one in root.iter() if one.get("aria-roledescription") == "bar"
    ]
    assert bars == [
        "score: 0–0.2; items: 1",
        "score: 0.2–0.4; items: 0",
        "score: 0.4–0.6; items: 1",
        "score: 0.6–0.8; items: 0",
        "score: 0.8–1; items: 2",
    ]
    assert {"0–0.2", "0.8–1", "score", "items"} <= {one.text for one in root.iter()}


def test_the_png_has_twice_the_size_of_the_svg(chart, tmp_path):
    write_chart(chart, tmp_path / "scores.PNG")
    write_chart(chart, tmp_path / "scores.svg")
    data = (tmp_path / "scores.PNG").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    root = ET.parse(tmp_path / "scores.svg").getroot()
    size = [int.from_bytes(data[16:20]), int.from_bytes(data[20:24])]  # of the IHDR chunk
    assert size == [2 * int(root.get(name)) for name in ("width", "height")]


def test_json_is_vega_lite_with_the_numbers_in_it(chart, tmp_path):
    write_chart(chart, tmp_path / "scores.json")
    document = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert "vega-lite" in document["$schema"]
    [rows] = document["datasets"].values()
    assert rows[4] == {"score": "0.8–1", "items": 2}


def test_another_ending_is_refused_and_nothing_written(chart, tmp_path):
    with pytest.raises(
        InputError, match=r"scores\.gif: unsupported file type; .* \.svg, \.png, \.json"
    ):
        write_chart(chart, tmp_path / "scores.gif")
    assert [*tmp_path.iterdir()] == []
