"""The switch of scale: published or absolute scores, and what draws from the model of the anchors add."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

import bws
from bws.absolute.design import plan_anchors
from bws.absolute.files import Anchors, write_anchors
from bws.absolute.scores import absolute_scale
from bws.absolute.simulation import simulate_anchors
from bws.base.problems import InputError
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.cli import check_sources
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.results import results_of
from giccs_app.explorer.space import write_space
from giccs_app.explorer.study import load, with_absolute_scores

GROUPS = [f"d{n}" for n in range(8) for _ in "abcd"]
NAMES = [f"person {name}" for name in "ABCDE"]
TURNS = (Turn("user", "Hallo"), Turn("system", "Ja?"))


@pytest.fixture(scope="module")
def scale_and_files(tmp_path_factory):
    """The scale of a study with names of people, and its files: also results on both kinds of scores."""
    folder = tmp_path_factory.mktemp("study")
    tuples = bws.make_tuples([*"abcd"] * 8, 3, count=4, groups=GROUPS)
    truth = 3 * np.random.default_rng(1).standard_normal(len(tuples.items))
    judgments = bws.simulate(tuples, truth, len(NAMES), noise=1.0, seed=1)
    plan = plan_anchors(tuples, "rating:2")
    answers = simulate_anchors(judgments, truth, plan, noise=1.0, offset_sd=1.5)
    name_of = dict(zip(judgments.annotators, NAMES, strict=True))
    judgments = replace(judgments, annotators=np.array(NAMES, dtype=object))
    anchors = Anchors([replace(row, annotator=name_of[row.annotator]) for row in answers.rows])
    published = bws.score(judgments, scale="unit")
    scale = absolute_scale(judgments, anchors, published)
    scores = scale.added_to(published)
    values = zip(scores.item_keys, scores.score, scores.absolute_score, strict=True)
    items = [
        Item(f"{d}-{u}", d, "s", "x", TURNS, u, f"{u}?", float(score), absolute_score=float(absolute))
        for (d, u), score, absolute in values
    ]  # fmt: skip
    bws.write_judgments(judgments, folder / "judgments.csv")
    bws.write_scores(scores, folder / "scores.csv")
    write_anchors(anchors.rows, folder / "anchors.csv")
    write_benchmark(items, folder / "benchmark.jsonl")
    benchmark, model = read_benchmark(folder / "benchmark.jsonl"), open_model("baseline:char-ngram")
    for target in ("score", "absolute_score"):
        data = benchmark.with_target(target)
        list(run([model], [PairwiseSTS(resamples=5)], data, Store(folder / "results")))
    return scale, folder


@pytest.fixture
def files(scale_and_files):
    folder = scale_and_files[1]
    names = {"data": "benchmark.jsonl", "judgments": "judgments.csv", "absolute": "anchors.csv"}
    return {name: str(folder / file) for name, file in names.items()}


def arguments(files):
    return [part for name, path in files.items() for part in (f"--{name}", path)]


def test_scores_and_intervals_are_the_absolute_ones_and_counts_remain(scale_and_files, files):
    scale, _ = scale_and_files
    study = load(**files)
    assert study.has_absolute_scores
    absolute = with_absolute_scores(study, (scale, {}))
    in_scale = dict(
        zip(scale.keys, zip(scale.score, scale.low, scale.high, strict=True), strict=True)
    )
    columns = ["dialogue_id", "utterance_id", "score", "low", "high"]
    for dialogue, utterance, *values in absolute.items.select(columns).iter_rows():
        assert values == pytest.approx(in_scale[dialogue, utterance], abs=1e-4)
    for name in ("item_id", "appearances", "best", "worst", "disagreement", "rank_set"):
        assert absolute.items[name].equals(study.items[name])
    assert absolute.key != study.key
    assert absolute.judgments_key == study.judgments_key


def test_without_draws_there_are_no_intervals_of_the_other_scale(files):
    absolute = with_absolute_scores(load(**files))
    assert absolute.items["low"].null_count() == len(absolute.items)


def test_items_without_dialogues_have_the_limits_of_their_file(scale_and_files, files):
    _, folder = scale_and_files
    study = load(judgments=files["judgments"], scores=str(folder / "scores.csv"))
    absolute = with_absolute_scores(study)
    assert absolute.items["low"].null_count() == 0
    assert (absolute.items["low"] < absolute.items["score"]).all()
    assert (absolute.items["score"] < absolute.items["high"]).all()


def test_results_on_the_other_scale_are_no_other_version(scale_and_files, files):
    _, folder = scale_and_files
    study = load(**files, results=str(folder / "results"))
    for shown in (study, with_absolute_scores(study)):
        found = results_of(shown)
        assert len(found.results) == 1
        assert [each.reason for each in found.hidden] == ["other_scale"]


def test_a_space_has_the_results_on_both_scales(scale_and_files, files, tmp_path):
    _, folder = scale_and_files
    space = tmp_path / "space"
    notes = write_space(space, files["data"], files["judgments"], str(folder / "results"))
    assert "2 results" in notes
    assert not any("left out: " in note for note in notes if "results" in note)
    assert load(str(space / "data" / "benchmark.jsonl")).has_absolute_scores


def test_people_have_their_displayed_names_in_the_anchors(files):
    study = load(**files)
    assert {row.annotator for row in study.anchors.rows} == {*study.judgments.annotators}
    assert not {*study.judgments.annotators} & {*NAMES}


def test_anchors_of_other_people_and_without_absolute_scores_are_refused(files, tmp_path):
    sources = {"results": None, "ledger": None, "model_judgments": ()}
    check_sources(**files, **sources)
    benchmark = read_benchmark(files["data"])
    items = [replace(item, absolute_score=None) for item in benchmark.items]
    write_benchmark(items, tmp_path / "published.jsonl")
    with pytest.raises(InputError, match="no absolute_score"):
        check_sources(**files | {"data": str(tmp_path / "published.jsonl")}, **sources)
    text = (tmp_path.parent / files["absolute"]).read_text("utf-8").replace("person", "nobody")
    (tmp_path / "anchors.csv").write_text(text, "utf-8")
    with pytest.raises(InputError, match="no annotator of the judgments"):
        check_sources(**files | {"absolute": str(tmp_path / "anchors.csv")}, **sources)


def test_the_switch_changes_the_pages_and_draws_add_the_means(
    scale_and_files, files, opened, chart_rows
):
    scale, folder = scale_and_files
    app = opened(*arguments(files), "--results", folder / "results")
    assert text_of("overview.means", "en") not in [each.value for each in app.subheader]
    app.segmented_control(key="scale").set_value("absolute").run()
    app.toggle(key="draws").set_value(True).run()
    assert app.query_params == {"scale": "absolute", "draws": "yes"}
    assert not app.error
    rows = chart_rows(app, "Mean absolute score")
    assert [row["item"] for row in rows] == sorted(
        scale.groups, key=lambda name: -scale.groups[name].value
    )
    for row in rows:
        mean = scale.groups[row["item"]]
        assert (row["score"], row["low"], row["high"]) == pytest.approx(
            (mean.value, mean.low, mean.high), abs=0.01
        )
    assert f"{scale.ceiling.value:.3f}" in [metric.value for metric in app.metric]
    app.segmented_control(key="page").set_value("dialogues").run()
    (mean,) = [each.value for each in app.caption if each.value.startswith("Mean absolute score")]
    assert f"{scale.groups['d0'].value:.2f} [" in mean
    app.segmented_control(key="page").set_value("models").run()
    assert text_of("models.other_scale", "en").format(n=1) in [each.value for each in app.caption]
    assert not app.exception
