"""Every mark that has an id opens it: charts of all pages, and what a click on a mark selects."""

import json

import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.models.data import key

FIGURES = {"page": "models", "view": "figures"}
PAGES = [
    {"page": "overview"},
    {"page": "dialogues", "dialogue": "restaurant-02"},
    {"page": "annotation", "excluded": "simulated-2"},
    {"page": "errors"},
    {"page": "models"},
    {"page": "models", "view": "predictions"},
    {"page": "models", "view": "histories"},
    *({**FIGURES, "figure": name} for name in ("leaderboard", "differences", "subsets")),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("results"))
    models = [open_model("baseline:char-ngram"), open_model("baseline:chance")]
    tasks = [PairwiseSTS(resamples=5), PairwiseSTS(resamples=5, history="with")]
    list(run(models, tasks, read_benchmark("giccs-sample"), store))
    return store


@pytest.fixture
def keys(results):
    return {
        (result.model, str(result.signature["history"])): key(result)
        for result in results.results()
    }


def rows_of(chart):
    """All rows of a chart, of its data sets and inline."""
    rows = [
        row
        for each in chart.proto.datasets
        for row in pl.read_ipc_stream(each.data.data).to_dicts()
    ]

    def search(node):
        if isinstance(node, dict):
            values = (
                node.get("data", {}).get("values") if isinstance(node.get("data"), dict) else None
            )
            rows.extend(values if isinstance(values, list) else [])
            for name, part in node.items():
                if name == "datasets":
                    rows.extend(row for part_rows in part.values() for row in part_rows)
                search(part)
        elif isinstance(node, list):
            for part in node:
                search(part)

    search(json.loads(chart.proto.spec))
    return rows


def selection_fields(chart):
    document = json.loads(chart.proto.spec)
    return [
        each["select"]["fields"]
        for each in document.get("params", [])
        if each["name"] == "selected"
    ]


def chart_with(app, name):
    (chart,) = [
        each for each in app.get("vega_lite_chart") if (each.key or "").startswith(f"select {name}")
    ]
    return chart


@pytest.mark.parametrize("link", PAGES, ids=lambda link: "-".join(link.values()))
def test_the_fields_of_a_selection_are_in_the_rows_of_its_chart(opened, results, link):
    """A click can select what its mark has; a missing field would select nothing."""
    app = opened("--results", results.folder, **link)
    charts = [each for each in app.get("vega_lite_chart") if selection_fields(each)]
    assert charts
    for chart in charts:
        (fields,) = selection_fields(chart)
        rows = rows_of(chart)
        for field in fields:
            assert any(row.get(field) is not None for row in rows), (chart.key, field)


def value_of(app, name):
    value = app.query_params.get(name)
    return value[-1] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ({"page": "errors"}, "failures"),
        ({"page": "dialogues", "dialogue": "restaurant-02"}, "ranks restaurant-02"),
        ({"page": "overview"}, "items by score"),
        ({"page": "annotation", "excluded": "simulated-2"}, "scores-without"),
        ({"page": "annotation"}, "scores-after"),
    ],
    ids=["failures", "slopes", "caterpillar", "exclusion", "history"],
)
def test_a_click_on_an_item_selects_it(opened, results, select, link, name):
    app = opened("--results", results.folder, **link)
    chart = chart_with(app, name)
    item = next(row["item_id"] for row in rows_of(chart) if row.get("item_id"))
    select(app, chart, {"item_id": item})
    assert value_of(app, "item") == item
    texts = {each.item_id: each.utterance for each in read_benchmark("giccs-sample").items}
    tables = "".join(each.proto.body for each in app.get("html"))
    assert texts[item] in tables + "".join(each.value for each in app.text)


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ({**FIGURES, "figure": "leaderboard"}, "leaderboard"),
        ({**FIGURES, "figure": "subsets"}, "subsets"),
        ({"page": "models", "view": "histories"}, "histories"),
        ({"page": "models", "view": "histories"}, "changes"),
    ],
    ids=["ranks", "subset map", "histories", "changes"],
)
def test_a_click_on_a_model_selects_it_and_offers_its_views(
    opened, results, keys, select, link, name
):
    app = opened("--results", results.folder, **link)
    assert "models.view_predictions" not in [button.key for button in app.button]
    chart = chart_with(app, name)
    found = {row["key"] for row in rows_of(chart) if row.get("key")}
    assert found <= {*keys.values()}
    chosen = next(
        key for (model, _), key in keys.items() if model == "baseline:chance" and key in found
    )
    select(app, chart, {"key": chosen})
    assert value_of(app, "model") == chosen
    app.button(key="models.view_predictions").click().run()
    assert app.selectbox(key="model").value == chosen


def test_a_click_on_a_difference_selects_both_models_and_offers_their_comparison(
    opened, results, keys, select
):
    app = opened("--results", results.folder, **FIGURES, figure="differences")
    chart = chart_with(app, "differences")
    (row,) = [row for row in rows_of(chart) if row.get("first_key")]
    assert row["first"].startswith("baseline:char-ngram")
    selected = {name: row[name] for name in ("first_key", "second_key")}
    select(app, chart, selected)
    app.button(key="models.view_against").click().run()
    assert (value_of(app, "view"), app.selectbox(key="first").value) == (
        "against",
        row["first_key"],
    )
    assert app.selectbox(key="second").value == row["second_key"]
    assert {row["first_key"], row["second_key"]} <= {*keys.values()}


def test_a_click_on_a_mark_of_the_verdict_selects_the_annotator_or_the_model(
    opened, results, keys, select
):
    app = opened("--results", results.folder, page="overview")
    chart = chart_with(app, "verdict annotators")
    select(app, chart, {"annotator": "simulated-2"})
    app.button(key="overview.evidence annotators").click().run()
    assert (value_of(app, "page"), value_of(app, "annotator")) == ("annotation", "simulated-2")
    assert text_of("annotation.judgments_of", "en") in "".join(each.value for each in app.markdown)
    app = opened("--results", results.folder, page="overview")
    chart = chart_with(app, "verdict models")
    chosen = [row["key"] for row in rows_of(chart) if row.get("key")][-1]
    assert chosen in keys.values()
    select(app, chart, {"key": chosen})
    assert value_of(app, "model") == chosen
