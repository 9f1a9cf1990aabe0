"""The explorer, run by Streamlit's own app tester on real data, and its charts."""

import sys
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from streamlit.testing.v1 import AppTest

from app.views import BINS, candidates_chart, histogram, models_chart
from giccs.benchmark import read_benchmark
from giccs.models import open_model
from giccs.results import Store
from giccs.run import run
from giccs.tasks.pairwise import PairwiseSTS

PAGE = str(Path(__file__).parents[2] / "app" / "explorer.py")


def opened(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [PAGE, *map(str, arguments)])
    app = AppTest.from_file(PAGE, default_timeout=60).run()
    assert not app.exception
    return app


def test_it_opens_on_the_sample_and_shows_another_domain(monkeypatch):
    app = opened(monkeypatch)
    assert "simulated annotators" in app.caption[0].value
    assert app.dataframe[0].value["items"].sum() == 300
    app.selectbox[0].select("find_hotel").run()
    assert not app.exception
    assert all(option.startswith("hotel-") for option in app.selectbox[1].options)


def test_results_of_the_benchmark_are_shown(monkeypatch, tmp_path):
    sample = read_benchmark("giccs-sample")
    store = Store(tmp_path)
    list(run([open_model("baseline:char-ngram")], [PairwiseSTS(resamples=5)], sample, store))
    app = opened(monkeypatch, "--results", tmp_path)
    assert app.selectbox[2].options == ["baseline:char-ngram (without history)"]


@pytest.mark.parametrize("arguments", [["--data", "nowhere.jsonl"], ["--results", "nowhere"]])
def test_what_is_missing_is_a_sentence(monkeypatch, arguments):
    app = opened(monkeypatch, *arguments)
    assert "nowhere" in app.error[0].value


def test_histogram_counts_every_score_once():
    chart = histogram(pl.Series([0.0, 0.2, 0.39, 0.8, 1.0])).to_dict()
    (rows,) = chart["datasets"].values()
    # 0.2 and 0.8 lie on a boundary and count above it
    assert [row["items"] for row in rows] == [1, 2, 0, 0, 2]
    assert [row["score"] for row in rows] == list(BINS)


def test_charts_keep_the_field_names_of_their_data():
    frame = pl.DataFrame({"utterance": ["a"], "score": [0.5]})
    assert candidates_chart(frame).to_dict()["encoding"]["x"]["field"] == "score"
    frame = pl.DataFrame({"model": ["m"], "value": [0.5], "low": [0.4], "high": [0.6]})
    assert {layer["mark"]["type"] for layer in models_chart(frame).to_dict()["layer"]} == {
        "rule",
        "circle",
    }
