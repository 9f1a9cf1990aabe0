"""The page "Overview", run by Streamlit's own app tester on real data."""

import json

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

import streamlit

from giccs.benchmark import read_benchmark, write_benchmark
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.study import load

N_STRIPS = 3
"""Number of charts of the verdict, which come first."""


def captions(app):
    return [caption.value for caption in app.caption]


def test_the_overview_has_its_charts_and_tables(seen):
    app = seen()
    headings = [heading.value for heading in app.subheader]
    assert headings[:5] == [
        text_of(f"overview.{key}", "en")
        for key in ("verdict", "distribution", "sizes", "ceiling", "consistency")
    ]
    specs = (json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart"))
    bins, sizes, *_ = list(specs)[N_STRIPS:]
    assert bins["encoding"]["y"]["title"] == "Items"
    assert sizes["encoding"]["color"]["scale"]["domain"] == [3, 5]
    reliability, agreement = (table.value for table in app.dataframe)
    assert list(reliability["source"][::2]) == ["all", "spoken", "spoken", "written", "written"]
    assert list(reliability["split"]) == ["annotation", "annotator"] * 5
    assert agreement["alpha_both"].between(0, 1).all()
    ceiling = [metric for metric in app.metric if metric.label in ("Pearson r", "Spearman ρ")]
    assert all(0.9 < float(metric.value) <= 1 for metric in ceiling)


def test_charts_are_titled_in_german(opened):
    bins = opened(lang="de").get("vega_lite_chart")[N_STRIPS]
    assert json.loads(bins.proto.spec)["encoding"]["x"]["title"] == "Ähnlichkeitswert"


def test_scores_are_shown_by_subset_and_ranked_with_intervals(opened, chart_rows):
    app = opened(scores_by="source")
    items = load().items
    rows = chart_rows(app, "rank of the item")
    assert [row["score"] for row in rows] == items["score"].sort(descending=True).to_list()
    limits = dict(zip(items["item_id"], items.select("low", "high").iter_rows(), strict=True))
    assert all((row["low"], row["high"]) == limits[row["item"]] for row in rows)
    spec = json.dumps(json.loads(app.get("vega_lite_chart")[N_STRIPS + 2].proto.spec))
    assert "share of the items" in spec
    assert text_of("overview.ranked_intervals", "en") in captions(app)


def test_of_many_items_some_are_drawn_and_the_page_says_so(opened, monkeypatch):
    from bws import study_charts

    monkeypatch.setattr(study_charts, "MAX_DRAWN_ITEMS", 100)
    streamlit.cache_resource.clear()
    app = opened(lang="de")
    streamlit.cache_resource.clear()
    text = text_of("overview.ranked_thinned", "de", n=100, total=300)
    assert text in captions(app)


def test_a_benchmark_without_judgments_has_no_intervals(seen, hostile):
    app = seen("--data", hostile / "benchmark.jsonl")
    assert text_of("overview.ranked_plain", "en") in captions(app)


def test_table_2_comes_when_it_is_asked_for(opened, tmp_path):
    pytest.importorskip("spacy", reason="the extra giccs[stats] is not installed")
    pytest.importorskip("simplemma", reason="the extra giccs[stats] is not installed")
    pytest.importorskip("lexicalrichness", reason="the extra giccs[stats] is not installed")
    sample = read_benchmark("giccs-sample")
    items = [item for item in sample.items if item.dialogue_id in sample.dialogue_ids[::10]]
    write_benchmark(items, tmp_path / "six.jsonl")
    app = opened("--data", tmp_path / "six.jsonl")
    assert not app.dataframe
    app.toggle(key="overview-description").set_value(True).run()
    assert app.query_params == {"overview-description": "yes"}
    table = app.dataframe[0].value
    assert len(table) > 2
    assert table["dialogues"].iloc[-1] == table["dialogues"].iloc[:-1].sum() == 6


def test_table_2_names_what_is_missing(opened, monkeypatch):
    from giccs_app.explorer.overview import page as overview

    monkeypatch.setattr(overview, "find_spec", lambda name: None)
    app = opened(**{"overview-description": "yes"})
    assert "pip install 'giccs[stats]'" in app.info[0].value


def test_much_is_broken_down_only_when_asked_for(opened, monkeypatch):
    from giccs_app.explorer.overview import page as overview

    monkeypatch.setattr(overview, "MAX_JUDGMENTS_AT_ONCE", 100)
    app = opened()
    assert not app.dataframe
    app.toggle(key="overview-consistency").set_value(True).run()
    assert len(app.dataframe) == 2


def test_judgments_of_other_scores_have_no_ceiling_but_say_why(opened, hostile):
    files = ("--data", hostile / "benchmark.jsonl", "--judgments", hostile / "judgments.csv")
    app = opened(*files)
    assert "noise ceiling" in app.error[0].value
    assert text_of("page.other_scores", "en") in captions(app)


def test_without_judgments_the_overview_says_how_to_name_them(seen, hostile):
    app = seen("--data", hostile / "benchmark.jsonl")
    assert any("--judgments" in caption for caption in captions(app))
    assert not app.dataframe


def test_an_item_by_score_opens_its_dialogue(opened):
    item = load().items.row(7, named=True)
    app = opened(item=item["item_id"])
    assert any(item["utterance"] in text.value for text in app.text)
    spec = next(
        json.loads(chart.proto.spec)
        for chart in app.get("vega_lite_chart")
        if "rank of the item" in chart.proto.spec
    )
    (selection,) = [each for each in spec["params"] if each["name"] == "selected"]
    assert selection["value"] == [{"item_id": item["item_id"]}]
    (button,) = [each for each in app.button if each.label == text_of("page.open_dialogue", "en")]
    button.click().run()
    assert app.query_params["dialogue"] in (item["dialogue_id"], [item["dialogue_id"]])


def test_a_broken_upload_leaves_the_other_data(opened, monkeypatch, tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{", "utf-8")
    uploads = "giccs_app.explorer.uploads.upload_files"
    monkeypatch.setattr(uploads, lambda: ({"benchmark": str(broken)}, []))
    app = opened()
    (error,) = app.error
    assert text_of("page.left_out", "en") in error.value
    assert "broken.jsonl" in error.value
    assert [metric.value for metric in app.metric][:2] == ["300", "60"]
