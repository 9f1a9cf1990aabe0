"""The pairs of candidates: comparisons counted by hand, their chart, and the judgments of a selected pair."""

import json

import numpy as np
import polars as pl
import pytest

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")

from bws.files import judgments_from_records
from bws.records import Judgment
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs_app.explorer.dialogues.data import candidates
from giccs_app.explorer.dialogues.pairs import around, pair_frame, pair_judgments, win_counts
from giccs_app.explorer.dialogues.pairs_chart import pairs_chart, spread
from giccs_app.explorer.study import Study, items_of

SCORES = {"a": 0.9, "b": 0.6, "c": 0.6, "d": 0.1, "e": 0.0}
PREDICTIONS = {"a": 0.2, "b": 0.4, "c": 0.3, "d": 0.3, "e": float("nan")}
JUDGMENTS = [
    Judgment(("a", "b", "c", "d"), "a", "d", "w1", "x", "t1"),
    Judgment(("a", "b", "c", "d"), "b", "d", "w2", "x", "t1"),
    Judgment(("d", "c", "b", "z"), "d", "z", "w1", "x", "t2"),
    Judgment(("a", "b", "c", "d"), "a", "d", "w1", "y", "t3"),  # another dialogue with the same ids
]
"""Of the dialogue x. The item z is not in the benchmark."""
WINS = {
    "a-b": (1, 1), "a-c": (1, 0), "a-d": (2, 0), "a-e": (0, 0), "b-c": (1, 0), "b-d": (2, 1), "b-e": (0, 0),
    "c-d": (2, 1), "c-e": (0, 0), "d-e": (0, 0),
}  # fmt: skip
"""1: a > b, a > c, a > d, b > d, c > d. 2: b > a, b > c, b > d, a > d, c > d. 3: d > c, d > b, all > z."""


@pytest.fixture
def study():
    turns = (Turn("user", "u"), Turn("user", "v"))
    items = [
        Item(f"{dialogue}-{name}", dialogue, "", "", turns, name, f"text {name}", score)
        for dialogue in "xy"
        for name, score in SCORES.items()
    ]
    benchmark = Benchmark("b", tuple(items))
    return Study(benchmark, items_of(benchmark), judgments_from_records(JUDGMENTS))


@pytest.fixture
def pairs(study):
    predictions = pl.DataFrame(
        {"item_id": [f"x-{name}" for name in PREDICTIONS], "prediction": [*PREDICTIONS.values()]}
    )
    return pair_frame(study, candidates(study.items, "x"), predictions)


def test_the_comparisons_of_judgments_are_counted_by_pair_in_both_orders(pairs):
    counts = {
        row["pair"].lower(): (row["first_wins"], row["second_wins"]) for row in pairs.to_dicts()
    }
    assert counts == WINS
    state = dict(pairs.select("pair", "state").iter_rows())
    assert [pair for pair in state if state[pair] == "contradicted"] == ["A-B", "B-D", "C-D"]
    assert [pair for pair in state if state[pair] == "missing"] == ["A-E", "B-E", "C-E", "D-E"]
    assert pairs["comparisons"].sum() == 5 + 5 + 2


def test_a_judgment_of_k_items_has_two_k_minus_three_comparisons(study):
    (x,) = judgments_from_records(JUDGMENTS[:1]).canonical.comparisons()[0]
    assert len(x) == 2 * 4 - 3
    judgments = study.judgments
    everything = win_counts(judgments, np.arange(len(judgments.tuples.items)))
    assert everything.sum() == 4 * (2 * 4 - 3)
    assert not win_counts(judgments, np.array([-1, -1])).any()


def test_a_model_reverses_pairs_with_different_scores_and_predictions(pairs):
    # a 0.9 over b and c 0.6 and d 0.1, but 0.2 below 0.4, 0.3 and 0.3; b and c have the same score,
    # c and d the same prediction, and e has none.
    assert pairs.filter("is_reversed")["pair"].to_list() == ["A-B", "A-C", "A-D"]
    assert pairs.row(3, named=True)["second_prediction"] is None


@pytest.mark.parametrize("pair", [*WINS])
def test_the_judgments_of_a_pair_are_those_that_compare_it(study, pair):
    rows = pair_judgments(study, "x", pair.upper())
    winners = rows["winner"].to_list() if len(rows) else []
    assert tuple(winners.count(letter) for letter in pair.upper().split("-")) == WINS[pair]
    assert len(winners) == sum(WINS[pair])


def test_the_judgments_of_a_pair_name_annotator_tuple_and_answers(study):
    assert pair_judgments(study, "x", "A-B").rows(named=True) == [
        {"winner": "A", "tuple": "t1", "annotator": "w1", "items": "A B C D", "best": "A", "worst": "D"},
        {"winner": "B", "tuple": "t1", "annotator": "w2", "items": "A B C D", "best": "B", "worst": "D"},
    ]  # fmt: skip


def test_of_many_candidates_the_neighbours_of_the_selected_one_are_shown():
    frame = pl.DataFrame(
        {"item_id": [f"i{n}" for n in range(40)], "letter": [f"L{n}" for n in range(40)]}
    )
    assert around(frame, None, None)["item_id"].to_list() == [f"i{n}" for n in range(12)]
    assert around(frame, "i20", None)["item_id"].to_list() == [f"i{n}" for n in range(14, 26)]
    assert around(frame, None, "L38-L39")["item_id"].to_list() == [f"i{n}" for n in range(28, 40)]
    assert around(frame, "i0", "L30-L33")["item_id"].to_list() == [f"i{n}" for n in range(24, 36)]
    assert around(frame.head(3), "i2", None)["item_id"].to_list() == ["i0", "i1", "i2"]


def test_letters_of_equal_scores_are_spread_around_them():
    assert spread([0.0, 1.0], 0.5) == [0.0, 1.0]
    assert spread([3.0, 1.0, 1.0], 1.0) == pytest.approx([3.0, 0.5, 1.5])
    assert spread([0.0, 0.0, 0.0], 0.1) == pytest.approx([-0.1, 0.0, 0.1])


def rows_of_layers(chart):
    document = chart.to_dict()
    return [document["datasets"][layer["data"]["name"]] for layer in document["layer"]]


def test_arcs_have_widths_by_comparisons_and_dashes_without_any(study, pairs):
    chart = pairs_chart(pairs, candidates(study.items, "x"))
    arcs, _, _, points, _ = rows_of_layers(chart)
    widths = {(arc["pair"], arc["kind"]): arc["width"] for arc in arcs}
    assert widths["B-D", "comparisons"] == 7  # three comparisons, the maximum
    assert widths["B-D", "comparisons in the less frequent order"] == pytest.approx(7 / 3)
    assert widths["A-C", "comparisons"] == pytest.approx(7 / 3)
    assert ("A-C", "comparisons in the less frequent order") not in widths
    assert widths["A-E", "never compared"] == widths["A-B", "model orders against the scores"]
    lines = chart.to_dict()["layer"][0]["encoding"]["strokeDash"]["scale"]
    assert lines["range"][lines["domain"].index("never compared")] == [4, 4]
    heights = {arc["side"]: arc["height"] for arc in arcs}
    assert heights["people"] > 0 > heights["model"]
    below = {point["letter"]: point["x"] for point in points if point["side"] == "model"}
    # predictions from 0.2 to 0.4 are stretched to scores from 0 to 0.9; e has no prediction
    assert below == pytest.approx({"A": 0.0, "B": 0.9, "C": 0.45, "D": 0.45})


def test_an_arc_spans_its_candidates_and_has_one_apex_per_side(study, pairs):
    arcs = rows_of_layers(pairs_chart(pairs, candidates(study.items, "x")))[0]
    (arc,) = [arc for arc in arcs if (arc["pair"], arc["side"]) == ("A-D", "people")]
    assert (arc["middle"] - arc["half"], arc["middle"] + arc["half"]) == pytest.approx((0.1, 0.9))
    apices = [(arc["pair"], arc["side"]) for arc in arcs if arc["has_apex"]]
    assert len(apices) == len(set(apices)) == len(pairs) + 3
    (equal,) = [arc for arc in arcs if arc["pair"] == "B-C"]
    assert equal["half"] > 0


def test_the_tooltip_of_an_arc_has_the_texts_and_the_comparisons(study, pairs):
    chart = pairs_chart(pairs, candidates(study.items, "x"))
    tooltip = chart.to_dict()["layer"][0]["encoding"]["tooltip"]
    (arc,) = [
        arc
        for arc in rows_of_layers(chart)[0]
        if arc["pair"] == "B-D" and arc["kind"] == "comparisons"
    ]
    assert {each["title"]: arc[each["field"]] for each in tooltip} == {
        "higher score": "B · text b",
        "lower score": "D · text d",
        "comparisons won": "B 2, D 1",
        "pair": "both orders occur",
        "predictions": "B 0.4; D 0.3",
    }


def test_without_predictions_there_is_one_line_and_other_pairs_are_faded(study):
    own = candidates(study.items, "x")
    arcs, _, _, points, _ = rows_of_layers(pairs_chart(pair_frame(study, own), own, selected="A-B"))
    assert {row["side"] for row in (*arcs, *points)} == {"people"}
    opacity = {arc["pair"]: arc["opacity"] for arc in arcs}
    assert opacity.pop("A-B") > 0.5 > max(opacity.values())


@pytest.mark.parametrize("n", [2, 3, 5])
def test_vega_draws_it(study, n):
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    own = candidates(study.items, "x").head(n)
    svg = vl_convert.vegalite_to_svg(pairs_chart(pair_frame(study, own), own).to_dict())
    n_pairs = n * (n - 1) // 2
    assert svg.count('aria-roledescription="point"') == n_pairs + n
    assert "NaN" not in svg


@pytest.fixture
def results(tmp_path_factory):
    from giccs.benchmark import read_benchmark
    from giccs.evaluation.run import run
    from giccs.measures.results import Store
    from giccs.models import open_model
    from giccs.tasks.pairwise import PairwiseSTS

    store = Store(tmp_path_factory.mktemp("results"))
    models = [open_model("baseline:char-ngram")]
    list(run(models, [PairwiseSTS(resamples=0)], read_benchmark("giccs-sample"), store))
    return store


def charts(app, text="less frequent order"):
    return [each for each in app.get("vega_lite_chart") if text in each.proto.spec]


def tables(app):
    return [table.value for table in app.dataframe if "winner" in table.value.columns]


def test_a_selected_arc_opens_the_judgments_of_its_pair_and_the_link_restores_it(
    opened, select, results
):
    pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")
    link = {"page": "dialogues", "dialogue": "restaurant-02"}
    app = opened("--results", results.folder, **link)
    assert not tables(app)
    (chart,) = charts(app)
    assert "model orders against the scores" in chart.proto.spec
    select(app, chart, {"pair": "D-B", "item_id": None})
    assert app.query_params["pair"] in ("D-B", ["D-B"])
    assert "item" not in app.query_params
    for page in (app, opened(**link, pair="D-B")):
        (table,) = tables(page)
        assert len(table) > 0
        assert set(table["winner"]) <= {"B", "D"}
        is_compared = table["best"].isin(["B", "D"]) | table["worst"].isin(["B", "D"])
        assert is_compared.all()
        (chart,) = charts(page)
        assert '"value": [{"item_id": null, "pair": "' in json.dumps(
            json.loads(chart.proto.spec), sort_keys=True
        )


def test_a_selected_candidate_and_the_next_dialogue_end_the_selection_of_a_pair(opened, select):
    pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")
    app = opened(page="dialogues", dialogue="restaurant-02", pair="A-B")
    select(app, charts(app)[0], {"pair": None, "item_id": "restaurant-02-c"})
    assert (app.query_params["item"], "pair" in app.query_params) == ("restaurant-02-c", False)
    select(app, charts(app)[0], {"pair": "A-B", "item_id": None})
    app.button(key="next").click().run()
    assert "pair" not in app.query_params
    assert not tables(app)


@pytest.mark.parametrize("pair", ["A-Z", "A-A", "A", "<b>"])
def test_an_unknown_pair_is_ignored_and_reported(opened, pair):
    pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")
    app = opened(page="dialogues", dialogue="restaurant-02", pair=pair)
    assert len(app.warning) == 1
    assert not tables(app)
