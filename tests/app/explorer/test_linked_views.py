"""Selected rows and points: stored in the link, shared by views, opened as dialogues; in the app tester."""

import json

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.models.data import key


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("results"))
    models = [open_model("baseline:char-ngram"), open_model("baseline:chance")]
    list(run(models, [PairwiseSTS(resamples=5)], read_benchmark("giccs-sample"), store))
    return store


def table(app, *columns):
    """The first table with these columns."""
    return next(one for one in app.dataframe if set(columns) <= set(one.value.columns))


def chart(app):
    return app.get("vega_lite_chart")[0]


def turns(app):
    return [text.value for message in app.chat_message for text in message.text]


def turns_of(dialogue):
    items = read_benchmark("giccs-sample").items
    return next([turn.text for turn in i.turns] for i in items if i.dialogue_id == dialogue)


def link_of(app):
    """The link as plain values; the tester gives lists where it was set from outside."""
    return {k: v if isinstance(v, str) else v[-1] for k, v in app.query_params.items()}


def test_a_row_of_errors_opens_its_dialogue_and_the_button_the_page_of_dialogues(
    opened, results, select, text_table
):
    app = opened("--results", results.folder, page="errors")
    errors = table(app, "item_id", "residual")
    item = errors.value["item_id"][3]
    select(app, errors, 3)
    assert link_of(app) == {"page": "errors", "item": item}
    assert turns(app) == turns_of(item[:-2])
    assert app.selectbox(key="item").value == item
    assert [row[1] for row in text_table(app) if row[0]] == [errors.value["utterance"][3]]
    app.button(key="page.open_dialogue").click().run()
    assert link_of(app) == {"page": "dialogues", "item": item, "dialogue": item[:-2]}
    assert turns(app) == turns_of(item[:-2])
    assert [row[1] for row in text_table(app) if row[0] == "▶"] == [item[-1].upper()]


def test_a_row_that_is_selected_again_is_no_longer_selected(opened, results, select, selected):
    app = opened("--results", results.folder, page="models", view="predictions")
    select(app, table(app, "prediction"), 7)
    assert turns(app) == turns_of("restaurant-02")
    select(app, table(app, "prediction"), None)
    assert "item" not in app.query_params
    assert not app.chat_message


def test_a_point_selects_the_row_and_the_link_restores_both(opened, results, select, selected):
    app = opened("--results", results.folder, page="models", view="predictions")
    assert not app.chat_message
    select(app, chart(app), {"item_id": "restaurant-02-c"})
    assert link_of(app)["item"] == "restaurant-02-c"
    again = opened("--results", results.folder, **app.query_params)
    for page in (app, again):
        assert turns(page) == turns_of("restaurant-02")
        assert selected(page, table(page, "prediction", "domain")) == 7
        assert '"value": [{"item_id": "restaurant-02-c"}]' in json.dumps(
            json.loads(chart(page).proto.spec)
        )
    select(app, chart(app), None)
    assert "item" not in app.query_params


def test_a_click_beside_the_points_selects_nothing(opened, results, select):
    app = opened("--results", results.folder, page="models", view="predictions", item="tv-01-a")
    select(app, chart(app), {"item_id": None})  # for example on an interval or a line
    assert "item" not in app.query_params


def test_back_in_the_browser_undoes_a_selection_and_it_does_not_come_back(
    opened, results, select, selected
):
    app = opened("--results", results.folder, page="models", view="predictions")
    select(app, table(app, "prediction"), 7)
    select(app, table(app, "prediction"), 9)
    app.query_params = {"page": "models", "view": "predictions", "item": "restaurant-02-c"}
    app.run()
    assert selected(app, table(app, "prediction")) == 7
    app.query_params = {"page": "models", "view": "predictions"}
    app.run()
    app.run()
    assert selected(app, table(app, "prediction")) is None
    assert "item" not in app.query_params


def test_a_navigation_with_an_outdated_selection_is_a_navigation(opened, results, select):
    app = opened("--results", results.folder, page="models", view="predictions")
    select(app, table(app, "prediction"), 7)
    app.query_params = {"page": "models", "view": "predictions"}
    select(
        app, table(app, "prediction"), 9
    )  # sent with the address, by a browser that is a run behind
    assert "item" not in app.query_params
    assert not app.chat_message


def test_two_models_share_the_selected_item(opened, results, select):
    app = opened("--results", results.folder, page="models", view="against")
    difference = table(app, "difference")
    item = difference.value["item_id"][0]
    select(app, difference, 0)
    assert link_of(app)["item"] == item
    assert turns(app) == turns_of(item[:-2])


def test_a_model_of_the_leaderboard_is_that_of_the_other_views(opened, results, select, selected):
    by_name = {result.model: key(result) for result in results.results()}
    app = opened("--results", results.folder, page="models")
    assert "page.errors" not in [button.key for button in app.button]
    leaderboard = table(app, "model", "value")
    assert "key" not in leaderboard.value.columns
    select(app, leaderboard, leaderboard.value["model"].tolist().index("baseline:chance"))
    assert link_of(app)["model"] == by_name["baseline:chance"]
    app.button(key="models.view_predictions").click().run()
    assert app.selectbox(key="model").value == by_name["baseline:chance"]
    app.button_group(key="view").set_value("leaderboard").run()
    assert selected(app, table(app, "model", "value")) is not None
    select(app, chart(app), {"key": by_name["baseline:char-ngram"]})
    assert link_of(app)["model"] == by_name["baseline:char-ngram"]


def test_the_next_dialogue_has_no_selected_candidate(opened, select, text_table):
    app = opened(page="dialogues")
    select(app, chart(app), {"item_id": "restaurant-01-b"})
    assert [row[1] for row in text_table(app) if row[0] == "▶"] == ["B"]
    app.button(key="next").click().run()
    assert link_of(app) == {"page": "dialogues", "dialogue": "restaurant-02"}
    assert {row[0] for row in text_table(app)} == {"", *"ABCDE"}


def judgments_table(app):
    return table(app, "tuple", "best", "worst")


def test_a_judgment_leads_to_its_annotator_and_back(opened, select, selected):
    app = opened(page="dialogues", dialogue="restaurant-02")
    assert "page.open_annotator" not in [button.key for button in app.button]
    rows = judgments_table(app)
    select(app, rows, 4)
    judgment = rows.value.iloc[4]
    assert (link_of(app)["tuple"], link_of(app)["annotator"]) == (
        judgment["tuple"],
        judgment["annotator"],
    )
    app.button(key="page.open_annotator").click().run()
    annotators = table(app, "annotator", "compliance")
    assert annotators.value["annotator"][selected(app, annotators)] == judgment["annotator"]
    own = table(app, "tuple", "dialogue")
    row = own.value.iloc[selected(app, own)]
    assert (row["tuple"], row["dialogue"]) == (judgment["tuple"], "restaurant-02")
    first = own.value.iloc[0]
    select(app, own, 0)
    app.button(key="page.open_dialogue annotator").click().run()
    assert link_of(app)["dialogue"] == first["dialogue"]
    again = judgments_table(app)
    judgment = again.value.iloc[selected(app, again)]
    assert (judgment["tuple"], judgment["annotator"]) == (first["tuple"], link_of(app)["annotator"])


def test_a_point_of_an_annotator_selects_the_row(opened, select, selected):
    app = opened(page="annotation")
    assert not [one for one in app.dataframe if "dialogue" in one.value.columns]
    points = next(c for c in app.get("vega_lite_chart") if '"compliance"' in c.proto.spec)
    name = table(app, "annotator", "compliance").value["annotator"][1]
    select(app, points, {"annotator": name})
    assert link_of(app)["annotator"] == name
    assert selected(app, table(app, "annotator", "compliance")) == 1
    assert len(table(app, "tuple", "dialogue").value) > 10


def test_an_open_dialogue_is_not_hidden_by_filters(opened, select):
    filters = {"domain": "find_hotel", "words": "xyz", "source": "written"}
    app = opened(page="annotation", annotator="simulated-1", tuple="t011", **filters)
    app.button(key="page.open_dialogue annotator").click().run()
    assert link_of(app)["page"] == "dialogues"
    assert not filters.keys() & link_of(app).keys()
    assert turns(app) == turns_of(link_of(app)["dialogue"])


def test_judgments_have_the_texts_and_the_dialogue_of_the_benchmark():
    import numpy as np
    import polars as pl

    from bws.files import judgments_from_records
    from bws.records import Judgment
    from giccs_app.explorer.annotation.data import judgment_frame

    first = Judgment(("u1", "u2", "x"), "u2", "x", annotator="a", tuple_id="t1", group="d")
    other = Judgment(("x", "y", "z"), "x", "z", annotator="", tuple_id="t2", group="e")
    judgments = judgments_from_records([first, other])
    items = pl.DataFrame({"dialogue_id": ["c", "d", "d"], "utterance": ["no", "eins", "zwei"]})
    names = [str(name) for name in judgments.tuples.items]
    index = np.array([-1, names.index("u1"), names.index("u2")])
    assert judgment_frame(judgments, items, index).drop("seconds").rows() == [
        ("t1", "a", "d", "zwei", "x"),
        ("t2", None, None, "x", "z"),
    ]
