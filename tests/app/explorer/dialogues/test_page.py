"""The page "Dialogues", run by Streamlit's own app tester on real data."""

import re
import shutil
from dataclasses import replace

import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Turn
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.display import MAX_TURN_LENGTH
from giccs_app.explorer.errors.data import residuals
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.models.data import key
from giccs_app.explorer.study import load


def captions(app):
    return [caption.value for caption in app.caption]


def counter(app):
    return next(text.value for text in app.markdown if " of " in text.value).strip("*")


def test_a_dialogue_is_a_chat_with_its_last_turn_marked(seen):
    app = seen(page="dialogues", dialogue="restaurant-01")
    turns = [text.value for message in app.chat_message for text in message.text]
    assert len(turns) == 3
    assert turns[0] == "Guten Tag, womit kann ich Ihnen helfen?"
    marked = [message for message in app.chat_message if message.caption]
    assert [message.text[0].value for message in marked] == [turns[-1]]


def test_candidates_and_judgments_are_shown(seen, text_table):
    app = seen(page="dialogues", dialogue="restaurant-01")
    (judgments,) = (table.value for table in app.dataframe)
    _, *candidates = text_table(app)
    assert [row[0] for row in candidates] == ["D", "E", "A", "B", "C"]
    best, worst, appearances = ([int(row[n]) for row in candidates] for n in (6, 7, 8))
    assert appearances == [30] * 5
    assert sum(best) == sum(worst) == len(judgments) == 50
    candidates_chart, pairs_chart = app.get("vega_lite_chart")
    assert "less frequent order" in pairs_chart.proto.spec
    assert "less frequent order" not in candidates_chart.proto.spec


def test_next_and_previous_lead_through_what_is_found(opened):
    app = opened(page="dialogues")
    assert counter(app) == "1 of 60"
    assert app.button(key="previous").disabled
    app.button(key="next").click().run()
    app.button(key="next").click().run()
    assert (counter(app), app.query_params["dialogue"]) == ("3 of 60", "restaurant-03")
    app.button(key="previous").click().run()
    assert counter(app) == "2 of 60"
    last = opened(page="dialogues", dialogue="tv-08")
    assert (counter(last), last.button(key="next").disabled) == ("60 of 60", True)


def test_filters_narrow_what_is_found_and_the_link_restores_them(opened):
    app = opened(page="dialogues")
    app.multiselect(key="domain").select("find_hotel").run()
    app.multiselect(key="n_turns").select(5).run()
    app.slider(key="disagreement").set_value((0.1, 1.0)).run()
    app.selectbox(key="order").select("disagreement").run()
    app.selectbox(key="dialogue").select(app.selectbox(key="dialogue").options[1][:8]).run()
    again = opened(**app.query_params)
    assert again.query_params == app.query_params
    assert again.selectbox(key="dialogue").value == app.selectbox(key="dialogue").value
    assert counter(again) == counter(app) == "2 of 3"


def test_search_finds_turns_and_candidates(opened):
    app = opened(page="dialogues")
    app.text_input(key="words").set_value("ROLLSTUHL").run()
    assert 0 < len(app.selectbox(key="dialogue").options) < 60
    app.text_input(key="words").set_value("no such words anywhere").run()
    assert app.info[0].value == text_of("dialogues.none", "en")
    app.button(key="show all").click().run()
    assert (counter(app), app.query_params) == ("1 of 60", {"page": "dialogues"})


def test_a_dialogue_that_the_filters_leave_out_gives_way_to_the_first(opened):
    app = opened(page="dialogues", dialogue="tv-08", domain="find_hotel")
    assert app.selectbox(key="dialogue").value.startswith("hotel-")
    assert not app.warning


@pytest.mark.parametrize(
    "asked", [{"dialogue": "nowhere"}, {"domain": "<b>"}, {"score": "nan..1"}, {"order": "x"}]
)
def test_what_is_not_there_is_ignored_with_a_word(opened, asked):
    app = opened(page="dialogues", **asked)
    assert counter(app) == "1 of 60"
    assert len(app.warning) == 1


def test_why_intervals_are_approximate_or_missing_is_below_the_scores(seen, hostile, text_table):
    app = seen(page="dialogues", dialogue="restaurant-01")
    assert all(re.fullmatch(r"\d\.\d\d", row[3]) for row in text_table(app)[1:])
    assert any("5 annotators: the interval is approximate" in text for text in captions(app))
    files = ("--data", hostile / "benchmark.jsonl", "--judgments", hostile / "judgments.csv")
    app = seen(*files, page="dialogues")
    assert any("all judgments are of one annotator" in text for text in captions(app))


def test_many_dialogues_are_leafed_through_and_not_listed(opened, monkeypatch):
    from giccs_app.explorer.dialogues import page as dialogues

    monkeypatch.setattr(dialogues, "MAX_OPTIONS", 10)
    app = opened(page="dialogues")
    assert "dialogue" not in [box.key for box in app.selectbox]
    assert any("More than 10" in caption for caption in captions(app))
    app.button(key="next").click().run()
    assert counter(app) == "2 of 60"


def test_without_judgments_there_are_candidates_only(opened, hostile, text_table):
    app = opened("--data", hostile / "benchmark.jsonl", page="dialogues")
    assert text_table(app)[0] == ["", text_of("dialogues.candidate", "en"), "Score"]
    assert not app.dataframe
    assert "disagreement" not in [slider.key for slider in app.slider]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    models = [open_model("baseline:char-ngram"), open_model("baseline:chance")]
    list(run(models, [PairwiseSTS(resamples=0)], read_benchmark("giccs-sample"), Store(folder)))
    return folder


@pytest.mark.parametrize("model", ["baseline:char-ngram", "baseline:chance"])
def test_candidates_have_ranks_by_people_and_by_the_selected_model(
    opened, chart_rows, results, model
):
    store = Store(results)
    (stored,) = [result for result in store.results() if result.model == model]
    app = opened("--results", results, page="dialogues", dialogue="hotel-02", model=key(stored))
    predictions = store.predictions(stored).filter(pl.col("dialogue_id") == "hotel-02")
    expected = {}
    for n, row in enumerate(predictions.iter_rows(named=True)):
        values = predictions["score"], predictions["prediction"]
        expected["ABCDE"[n]] = tuple(
            (column > value).sum() + ((column == value).sum() + 1) / 2
            for column, value in zip(values, (row["score"], row["prediction"]), strict=True)
        )
    rows = chart_rows(app, "the model ranks it")
    assert {row["item"]: (row["rank_score"], row["rank_prediction"]) for row in rows} == expected


def test_without_results_there_are_no_ranks(seen):
    app = seen(page="dialogues")
    assert text_of("dialogues.ranks", "en") not in [each.value for each in app.subheader]


def marks(app):
    """The marked hits of the page."""
    return re.findall("<mark>(.*?)</mark>", "".join(each.proto.body for each in app.get("html")))


def test_hits_are_marked_and_counted(opened):
    app = opened(page="dialogues", words="HOTEL")
    texts = {}
    for item in read_benchmark("giccs-sample").items:
        texts.setdefault(item.dialogue_id, [turn.text for turn in item.turns]).append(
            item.utterance
        )
    n_hits = {name: "\n".join(parts).lower().count("hotel") for name, parts in texts.items()}
    n_hits = {name: n for name, n in n_hits.items() if n}
    first, n_first = next(iter(n_hits.items()))
    total = sum(n_hits.values())
    said = f"{n_first} hits in this dialogue, {total} in {len(n_hits)} dialogues."
    assert said in captions(app)
    assert counter(app) == f"1 of {len(n_hits)}"
    assert app.selectbox(key="dialogue").value == first
    assert [hit.lower() for hit in marks(app)] == ["hotel"] * n_first
    without = opened(page="dialogues", dialogue=first)
    assert not marks(without)
    assert not any("hits" in caption for caption in captions(without))


def test_hits_in_hostile_texts_are_escaped(opened, hostile):
    app = opened("--data", hostile / "benchmark.jsonl", page="dialogues", words="<SCRIPT>")
    assert marks(app) == ["&lt;script&gt;"] * 2  # in a turn and a candidate
    blocks = [block.proto.body for block in app.get("html") if "<mark>" in block.proto.body]
    assert not any("<script" in block for block in blocks)


def test_the_reading_mode_shows_a_dialogue_and_its_candidates_as_texts(opened, text_table):
    app = opened(page="dialogues", reading="yes", dialogue="restaurant-02", item="restaurant-02-c")
    assert not app.dataframe
    assert not app.get("vega_lite_chart")
    assert counter(app) == "2 of 60"
    _, *rows = text_table(app)
    items = {i.item_id: i for i in read_benchmark("giccs-sample").items}
    assert [row[1:3] for row in rows if row[0]] == [["C", items["restaurant-02-c"].utterance]]
    scores = [float(row[3]) for row in rows]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    app.button(key="next").click().run()
    assert (counter(app), len(text_table(app)[1])) == ("3 of 60", 3)


def test_the_largest_errors_of_a_model_come_first(opened, results, text_table):
    store = Store(results)
    by_name = {result.model: result for result in store.results()}
    for model in ("baseline:chance", "baseline:char-ngram"):
        link = {"order": "errors", "model": key(by_name[model])}
        app = opened("--results", results, page="dialogues", **link)
        errors = residuals(load().items, store.predictions(by_name[model]))
        size = pl.col("residual").abs().mean()
        sizes = errors.group_by("dialogue_id").agg(size).sort("residual", descending=True)
        largest = sizes["residual"][0]
        options = [option.split(" · ")[0] for option in app.selectbox(key="dialogue").options]
        by_dialogue = dict(sizes.iter_rows())
        assert [by_dialogue[name] for name in options] == sizes["residual"].to_list()
        assert app.selectbox(key="dialogue").value == options[0]
        assert any(f"this dialogue: {largest:.2f}" in caption for caption in captions(app))
        own = errors.filter(pl.col("dialogue_id") == options[0])["residual"]
        assert sorted(row[-1] for row in text_table(app)[1:]) == sorted(f"{r:+.2f}" for r in own)
    assert "errors" not in opened(page="dialogues").selectbox(key="order").options


def test_a_dialogue_without_predictions_is_last_with_the_reason(opened, results, tmp_path):
    store = Store(shutil.copytree(results, tmp_path / "results"))
    (result,) = [one for one in store.results() if one.model == "baseline:chance"]
    path = store.path(result.model, result.task, result.signature).with_suffix(".parquet")
    table = pl.read_parquet(path)
    table.filter(~pl.col("item_id").str.starts_with("restaurant-01")).write_parquet(path)
    link = {"order": "errors", "model": key(result), "dialogue": "restaurant-01"}
    app = opened("--results", store.folder, page="dialogues", **link)
    assert counter(app) == "60 of 60"
    assert text_of("dialogues.no_error", "en") in captions(app)
    path.write_bytes(b"no table")
    app.run()
    assert path.name in app.error[0].value
    assert counter(app) == "1 of 60"


def test_the_rest_of_a_long_turn_is_shown_on_request(opened, tmp_path):
    words = " ".join(f"word{n}" for n in range(1000))
    unbroken = "x" * 5000
    sample = read_benchmark("giccs-sample").items[0]
    turns = (Turn("user", words), Turn("system", unbroken), Turn("user", "short"))
    path = tmp_path / "b.jsonl"
    write_benchmark([replace(sample, turns=turns)], path)
    app = opened("--data", path, page="dialogues", dialogue=sample.dialogue_id, lang="en")
    parts = [text.value for text in app.text]
    for turn in (words, unbroken):
        first = next(
            n
            for n, part in enumerate(parts)
            if part.endswith(" …") and turn.startswith(part[:1400])
        )
        assert len(parts[first]) <= MAX_TURN_LENGTH + 2
        said = parts[first].removesuffix(" …") + parts[first + 1]
        assert said.replace(" ", "") == turn.replace(" ", "")
    rest = len(words) - words.rfind(" ", 0, MAX_TURN_LENGTH)
    assert f"{rest:,} more characters" in [each.label for each in app.expander]
    assert "short" in parts
