"""A study of items without dialogues in the explorer."""

import numpy as np
import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

import bws
from bws.base.problems import InputError
from giccs_app.explorer.cli import check_sources
from giccs_app.explorer.dialogues.data import candidates
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.study import load
from tests import in_process

WORDS = ["love", "music", "paper", "rain", "pain", "fire", "moon", "door"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    items = [f"s{n}" for n in range(len(WORDS))]
    design = bws.make_tuples(items, 4, factor=2, seed=1)
    truth = dict(zip(items, np.linspace(1, 0, len(items)), strict=True))
    judged = bws.simulate(design, np.array([truth[item] for item in design.items]), 6)
    bws.write_judgments(judged, folder / "judgments.csv")
    rows = [f"{item},{word}\n" for item, word in zip(items, WORDS, strict=True)]
    (folder / "items.csv").write_text("item,text\n" + "".join(rows), "utf-8")
    bws.write_scores(bws.score(judged), folder / "scores.csv")
    return folder


def texts(app):
    kinds = ("markdown", "subheader", "caption", "info", "error", "warning")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind))


def test_items_have_their_texts_and_nothing_is_said_about_dialogues(opened, chart_rows, study):
    app = opened("--judgments", study / "judgments.csv", "--items", study / "items.csv")
    rows = chart_rows(app, "rank of the item")
    scores = bws.score(study / "judgments.csv", scale="unit").highest_first()
    assert [row["score"] for row in rows] == scores.score.tolist()
    by_item = dict(zip((f"s{n}" for n in range(8)), WORDS, strict=True))
    assert [row["item"] for row in rows] == [by_item[item] for item in scores.items]
    assert not app.error
    assert text_of("overview.verdict", "en") in texts(app)
    for key in ("sizes", "ceiling", "by_subset", "description"):
        assert text_of(f"overview.{key}", "en") not in texts(app)
    assert [metric.label for metric in app.metric] == ["Items", "Judgments", "Annotators"]
    assert "giccs eval" not in texts(app)


def test_a_click_on_an_item_selects_it_and_an_arc_opens_its_judgments(opened, select, study):
    app = opened("--judgments", study / "judgments.csv", "--items", study / "items.csv")
    charts = {each.key: each for each in app.get("vega_lite_chart") if each.key}
    select(app, charts["select items by score None"], {"item_id": "s2"})
    assert app.query_params["item"] == "s2"
    assert text_of("page.open_dialogue", "en") not in [button.label for button in app.button]
    assert "▶ s2: paper" in [each.value for each in app.text]
    (chart,) = [each for each in app.get("vega_lite_chart") if "never compared" in each.proto.spec
                or "less frequent order" in each.proto.spec]  # fmt: skip
    select(app, chart, {"pair": "A-H", "item_id": None})
    (table,) = [each.value for each in app.dataframe if "winner" in each.value.columns]
    judged = bws.read_judgments(study / "judgments.csv").canonical
    names = np.array(judged.items)
    pairs = [*zip(*(names[each].ravel() for each in judged.comparisons()), strict=True)]
    shown = load(judgments=str(study / "judgments.csv"), item_texts=str(study / "items.csv")).items
    first, last = shown["utterance_id"][0], shown["utterance_id"][-1]
    n_wins = (table["winner"] == "A").sum(), (table["winner"] == "H").sum()
    assert n_wins == (pairs.count((first, last)), pairs.count((last, first)))
    assert len(table) == sum(n_wins) > 0


def test_a_pair_too_far_apart_for_the_chart_is_ignored_and_reported(opened, tmp_path):
    """All arcs would be faded, as those of other pairs than the selected one."""
    items = [f"s{n:02d}" for n in range(30)]
    design = bws.make_tuples(items, 4, factor=2, seed=1)
    truth = np.array([items.index(item) for item in design.items]) / 30
    bws.write_judgments(bws.simulate(design, truth, 2), tmp_path / "judgments.csv")
    rows = [f"{item},{item}\n" for item in items]
    (tmp_path / "items.csv").write_text("item,text\n" + "".join(rows), "utf-8")
    paths = ("--judgments", tmp_path / "judgments.csv", "--items", tmp_path / "items.csv")
    shown = load(judgments=str(paths[1]), item_texts=str(paths[3])).items
    letters = dict(
        candidates(shown, shown["dialogue_id"][0]).select("item_id", "letter").iter_rows()
    )
    first, *_, last = letters.values()
    app = opened(*paths, pair=f"{first}-{last}")
    assert not app.error
    assert f"{first}-{last}" in texts(app)
    (chart,) = [each for each in app.get("vega_lite_chart") if "never compared" in each.proto.spec
                or "less frequent order" in each.proto.spec]  # fmt: skip
    assert "0.12" not in chart.proto.spec


def test_an_adaptive_study_has_the_scores_of_a_choice_model(opened, study, tmp_path):
    """Those of counting are refused for its judgments, which ended every page."""
    rows = pl.read_csv(study / "judgments.csv")
    is_late = pl.int_range(pl.len()) >= len(rows) // 2
    purpose = pl.when(is_late).then(pl.lit("adaptive")).otherwise(pl.lit("warmup"))
    path = tmp_path / "judgments.csv"
    rows.with_columns(round=is_late.cast(int) + 1, purpose=purpose).write_csv(path)
    shown = load(judgments=str(path), item_texts=str(study / "items.csv")).items
    expected = bws.score(path, "best-worst-logit", scale="counting")
    assert dict(shown.select("utterance_id", "score").iter_rows()) == pytest.approx(
        dict(zip(expected.items.tolist(), ((expected.score + 1) / 2).tolist(), strict=True))
    )
    for page in ("overview", "annotation"):
        app = opened("--judgments", path, "--items", study / "items.csv", page=page)
        assert not app.error


def test_annotation_has_no_dialogue_to_open(opened, study):
    app = opened("--judgments", study / "judgments.csv", "--items", study / "items.csv",
                 page="annotation", annotator="simulated-1", lang="de")  # fmt: skip
    assert not app.error
    assert text_of("page.open_dialogue", "de") not in [button.label for button in app.button]


def test_scores_of_a_file_are_shown_in_the_unit_interval(study):
    judgments = str(study / "judgments.csv")
    shown = load(judgments=judgments, scores=str(study / "scores.csv")).items
    expected = bws.score(judgments, scale="unit")
    assert dict(shown.select("utterance_id", "score").iter_rows()) == pytest.approx(
        dict(zip(expected.items.tolist(), expected.score.tolist(), strict=True))
    )
    with pytest.raises(InputError, match="texts of items"):
        load(judgments=judgments, item_texts=str(study / "scores.csv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--items", "items.csv"), "--items requires --judgments"),
        (
            ("--judgments", "judgments.csv", "--items", "items.csv", "--results", "."),
            "--items cannot be combined with --results",
        ),
    ],
)
def test_other_options_are_refused(study, options, message):
    done = in_process.run("giccs-explore", *options, "--no-browser", "--port", "1", cwd=study)
    assert done.returncode == 2
    assert message in done.stderr


def test_judgments_of_no_dialogue_name_the_option(study):
    with pytest.raises(InputError, match="--items FILE for items without dialogues"):
        check_sources("giccs-sample", str(study / "judgments.csv"), None, None, ())
