"""The section on the history of a study, run by Streamlit's own app tester."""

from dataclasses import replace

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

import numpy as np

import bws
from bws.history import study_history
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.study import load


@pytest.fixture(scope="module")
def history():
    return study_history(load().judgments)


def metric(app, key):
    (value,) = [each.value for each in app.metric if each.label == text_of(key, "en")]
    return value


def test_the_slider_shows_the_study_after_the_first_judgments(opened, chart_rows, history):
    app = opened(page="annotation")
    slider = app.select_slider(key="after")
    assert slider.options == [f"{frame.n:,}" for frame in history.frames]
    assert slider.value == history.frames[-1].n == 3000
    slider.set_value(history.frames[0].n).run()
    assert app.query_params["after"] in ("300", ["300"])
    assert metric(app, "annotation.history_scored") == "150"
    assert metric(app, "annotation.history_reliability") == "–"
    rows = [row for row in chart_rows(app, "Final rank") if "score" in row]
    first = history.frames[0].scores
    assert len(rows) == np.count_nonzero(~np.isnan(first.score)) == 150
    assert [row["rank"] for row in rows] == sorted(row["rank"] for row in rows)
    assert all(row["score"] == first.score[row["index"]] for row in rows)


def test_the_link_restores_the_frame_and_the_target_decides_the_sentence(opened, history):
    app = opened(page="annotation", after="900", target="0.95")
    assert app.select_slider(key="after").value == 900
    expected = f"{history.frames[2].reliability.value:.3f}"
    assert metric(app, "annotation.history_reliability") == expected
    sentence = "A reliability of 0.95 is reached after 900 of 3000 judgments, or before."
    assert sentence in [each.value for each in app.markdown]
    wrong = opened(page="annotation", after="901")
    assert wrong.select_slider(key="after").value == 3000
    assert len(wrong.warning) == 1


def test_a_point_of_the_curve_selects_a_frame_and_an_item_opens_its_dialogue(opened, select):
    app = opened(page="annotation")
    charts = {each.key: each for each in app.get("vega_lite_chart") if each.key}
    select(app, charts["select history-figure None"], {"judgments": 1200})
    assert app.select_slider(key="after").value == 1200
    charts = {each.key: each for each in app.get("vega_lite_chart") if each.key}
    select(app, charts["select scores-after-1200 None"], {"item_id": "restaurant-02-c"})
    app.button(key="page.open_dialogue").click().run()
    link = {key: np.atleast_1d(value)[-1] for key, value in app.query_params.items()}
    assert (link["page"], link["dialogue"]) == ("dialogues", "restaurant-02")


def test_an_adaptive_study_has_the_evidence_of_its_end_instead(opened, tmp_path):
    judgments = load().judgments
    columns = {"purpose": np.array(["adaptive"] * len(judgments), dtype=object)}
    columns |= {"round": np.array(["1"] * len(judgments), dtype=object)}
    bws.write_judgments(replace(judgments, columns=columns), tmp_path / "judgments.csv")
    assert bws.read_judgments(tmp_path / "judgments.csv").is_adaptive
    app = opened("--judgments", tmp_path / "judgments.csv", page="annotation")
    assert "after" not in [each.key for each in app.select_slider]


def test_frames_have_the_texts_of_the_items(opened, chart_rows):
    app = opened(page="annotation")
    texts = dict(load().items.select("item_id", "utterance").iter_rows())
    rows = [row for row in chart_rows(app, "Final rank") if "score" in row]
    assert len(rows) == len(texts)
    assert all(texts[row["item_id"]] == row["utterance"] for row in rows)
