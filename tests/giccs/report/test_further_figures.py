"""Figures of ranks, failures, history, prompts and distributions against plain loops, and their refusals."""

import html
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.stats import rankdata

from giccs.benchmark import read_benchmark
from giccs.cli.reporting import report
from giccs.cli.statistics import stats
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.report.figures import MissingFigureError, draw, failures
from giccs.report.figures.distributions import (
    MAX_SUBSETS,
    distribution_frame,
    distribution_panels,
)
from giccs.report.figures.effects import history_panels, prompt_panels
from giccs.report.figures.failures import (
    MAX_DISAGREEMENT,
    MAX_POINTS,
    MIN_RANK_DIFFERENCE,
    failure_chart,
    failure_frame,
    failure_panels,
    with_groups,
)
from giccs.report.figures.ranks import (
    rank_chart,
    rank_frame,
    rank_panels,
    worst_ordered_dialogue,
)
from giccs.report.setting_effects import history_table, prompt_table
from giccs.tasks.pairwise import PairwiseSTS

from .test_figures import choices, pairwise


def prompted(model, noise, prompt, history="without"):
    result = pairwise(model, noise, history=history)
    return replace(result, signature={**result.signature, "prompt": {"name": prompt}})


def _labels(axis):
    return json.loads(axis["labelExpr"].removesuffix("[datum.value]")).values()


def drawn_rows(chart):
    """All rows of a chart."""
    specification = chart.to_dict()
    rows = [row for rows in specification.get("datasets", {}).values() for row in rows]
    for layer in (specification, *specification.get("layer", [])):
        rows += layer.get("data", {}).get("values", [])
    return rows


def test_ranks_are_those_within_the_dialogue_and_ties_share_their_mean():
    predictions = pl.DataFrame(
        {
            "item_id": ["a", "b", "c", "d", "x"],
            "dialogue_id": ["1", "1", "1", "1", "2"],
            "score": [0.9, 0.5, 0.5, 0.1, 1.0],
            "prediction": [3.0, 9.0, 2.0, 1.0, 99.0],
        }
    )
    frame = rank_frame(predictions, "1", {"a": "first"})
    assert frame.select("item", "rank_score", "rank_prediction", "direction").rows() == [
        ("first", 1.0, 2.0, "lower"),
        ("b", 2.5, 1.0, "higher"),
        ("c", 2.5, 3.0, "lower"),
        ("d", 4.0, 4.0, "same"),
    ]
    axis = rank_chart(frame).to_dict()["layer"][0]["encoding"]["y"]["axis"]
    assert axis["values"] == [1, 2.5, 4]
    assert list(_labels(axis)) == ["1 · first", "2.5 · b / c", "4 · d"]


def test_the_labels_of_ranks_are_drawn_whatever_they_contain():
    vl_convert = pytest.importorskip(
        "vl_convert", reason="the extra giccs[charts] is not installed"
    )
    predictions = pairwise("a", 1.0).predictions
    texts = {"i00": 'it\'s "x"', "i01": "back\\slash", "i02": "é 日本"}
    svg = vl_convert.vegalite_to_svg(rank_chart(rank_frame(predictions, "d00", texts)).to_dict())
    svg = html.unescape(svg)
    for text in ('it\'s "x"', "back\\slash", "é 日本", "i03"):
        assert f" · {text}<" in svg


def test_a_panel_per_model_with_ranks_the_best_first():
    results = [pairwise("b", 3.0), pairwise("a", 0.5), choices()]
    panels = rank_panels(results, "d03")
    assert [panel.title for panel in panels] == [
        f"pairwise-sts on made-up, d03: people and {name}" for name in "ab"
    ]
    assert len(panels[0].frame) == 5


@pytest.mark.parametrize(
    ("dialogue", "message"),
    [
        (None, "of one dialogue, which --dialogue specifies"),
        ("d3", "unknown dialogue 'd3'; did you mean 'd"),
    ],
)
def test_ranks_need_a_dialogue(dialogue, message):
    with pytest.raises(MissingFigureError, match=message):
        draw("ranks", [pairwise("a", 1.0)], dialogue=dialogue)


def test_results_without_predictions_are_named():
    lost = replace(pairwise("a", 1.0), predictions=None)
    panels = rank_panels([lost, pairwise("b", 1.0)], "d01")
    assert panels[0].notes == ["Not shown: a: its predictions are missing."]
    with pytest.raises(MissingFigureError, match="a: its predictions are missing"):
        rank_panels([lost], "d01")
    with pytest.raises(MissingFigureError, match="a: its predictions are missing"):
        failure_panels([lost], {"i01": 0.0})


def test_failures_are_items_with_agreement_and_a_large_difference_of_ranks():
    result = pairwise("a", 4.0)
    rng = np.random.default_rng(3)
    disagreement = {f"i{n:02}": float(rng.random() * 0.5) for n in range(99)}
    disagreement["i05"] = float("nan")
    frame = failure_frame(result.predictions, disagreement)
    assert len(frame) == 98
    prediction, score = (result.predictions[name].to_list() for name in ("prediction", "score"))
    failures = []
    for n, item in enumerate(result.predictions["item_id"]):
        ranks = [sum(other < values[n] for other in values) / 99 for values in (prediction, score)]
        residual = ranks[0] - ranks[1]
        if item in disagreement and item != "i05":
            row = frame.row(by_predicate=pl.col("item_id") == item, named=True)
            assert row["residual"] == pytest.approx(residual)
            if disagreement[item] <= MAX_DISAGREEMENT and abs(residual) >= MIN_RANK_DIFFERENCE:
                failures.append((abs(residual), item))
    expected = [item for _, item in sorted(failures, reverse=True)]
    assert expected
    assert frame.filter(pl.col("group") == "failure")["item_id"].to_list() == expected


def test_of_many_items_all_failures_are_drawn():
    n = 3 * MAX_POINTS
    items = pl.DataFrame(
        {
            "item_id": [str(each) for each in range(n)],
            "disagreement": [0.1] * n,
            "residual": [0.9 if each % 100 == 0 else 0.1 for each in range(n)],
        }
    )
    rows = [row for row in drawn_rows(failure_chart(with_groups(items))) if "group" in row]
    assert sum(row["residual"] == 0.9 for row in rows) == n // 100
    assert len(rows) <= MAX_POINTS + n // 100


def test_of_too_many_failures_a_part_is_drawn_and_said():
    items = pl.DataFrame(
        {"item_id": "i", "disagreement": 0.1, "residual": np.linspace(0.6, 0.9, 3 * MAX_POINTS)}
    )
    judged = with_groups(items)
    rows = [row for row in drawn_rows(failure_chart(judged)) if "group" in row]
    assert len(rows) == MAX_POINTS
    assert (
        failures._notes(judged)[-1] == "Of the 9000 failures, a part at equal distances is drawn."
    )


def test_failures_need_judgments():
    with pytest.raises(MissingFigureError, match="requires the judgments"):
        draw("failures", [pairwise("a", 1.0)])


def test_pairs_with_and_without_history_are_those_of_the_table():
    results = [
        pairwise("a", 1.0),
        pairwise("a", 0.2, history="with"),
        pairwise("b", 0.2),
        pairwise("b", 5.0, history="with"),
        pairwise("c", 1.0),
    ]
    first, second = history_panels(results)
    assert first.frame is second.frame
    rows = {row[0]: row for row in history_table(results).rows}
    for row in first.frame.iter_rows(named=True):
        _, _, without, joined, difference, _ = rows[row["model"]]
        assert (row["without"], row["with"], row["difference"]) == (
            without, joined, difference.value,
        )  # fmt: skip
        assert (row["low"], row["high"]) == (difference.low, difference.high)
    assert dict(first.frame.select("model", "verdict").iter_rows()) == {"a": "better", "b": "worse"}


def test_a_difference_without_interval_is_named_beside_the_others():
    lost = replace(pairwise("b", 1.0, history="with"), predictions=None)
    pairs = [pairwise("a", 1.0), pairwise("a", 0.2, history="with"), pairwise("b", 0.9), lost]
    first, _ = history_panels(pairs)
    assert "b, with: no difference: predictions are missing" in first.notes


def test_ranges_over_prompts_are_those_of_the_table():
    results = [prompted(model, noise, name) for model, name, noise in
               (("a", "q", 1.0), ("a", "p", 3.0), ("b", "q", 2.0))]  # fmt: skip
    (panel,) = prompt_panels(results)
    table = prompt_table(results)
    for row, expected in zip(panel.frame.iter_rows(named=True), table.rows, strict=True):
        assert [row[name] for name in ("minimum", "median", "maximum")] == expected[3:6]
    assert dict(panel.frame.select("label", "prompts").iter_rows()) == {
        "a (n = 2)": 2,
        "b (n = 1)": 1,
    }
    assert any("prompts change the order of" in note for note in panel.notes)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("prompts", "no model of pairs of utterances has results with several prompts"),
        ("histories", "no model has results with and without history"),
    ],
)
def test_effects_without_pairs_are_refused(name, message):
    with pytest.raises(MissingFigureError, match=message):
        draw(name, [pairwise("a", 1.0), choices()])


def test_distributions_are_shares_within_each_subset():
    frame = distribution_frame(["x", "y", "x", "x"], [0.0, 0.3, 1.0, 0.95])
    shares = {
        (row["subset"], row["score"]): row["share"]
        for row in frame.iter_rows(named=True)
        if row["items"]
    }
    assert shares == {
        ("x", "0–0.2"): pytest.approx(1 / 3),
        ("x", "0.8–1"): pytest.approx(2 / 3),
        ("y", "0.2–0.4"): 1.0,
    }
    assert len(frame) == 10


def test_the_largest_subsets_are_drawn_and_the_others_counted():
    values = [n for n in range(MAX_SUBSETS + 3) for _ in range(2 if n > 2 else 1)]
    (panel,) = distribution_panels({"domain": values}, [0.5] * len(values))
    assert panel.notes[-1] == f"Drawn: the {MAX_SUBSETS} largest of {MAX_SUBSETS + 3} subsets."
    subsets = {row["subset"] for row in drawn_rows(panel.chart)}
    assert subsets == {str(n) for n in range(3, MAX_SUBSETS + 3)}
    assert panel.frame["subset"].n_unique() == MAX_SUBSETS + 3


def test_a_single_subset_has_no_distribution_to_compare():
    with pytest.raises(MissingFigureError, match=r"no column has two values .*\(domain\)"):
        distribution_panels({"domain": ["x", "x"]}, [0.1, 0.2])


@pytest.fixture(scope="module")
def sample_results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    models = [open_model("baseline:char-ngram")]
    tasks = [PairwiseSTS(history, resamples=0) for history in ("without", "with")]
    list(run(models, tasks, read_benchmark("giccs-sample"), Store(folder)))
    return folder


def call(command, *arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_command_draws_the_texts_of_a_dialogue_and_failures(sample_results, tmp_path):
    item = read_benchmark("giccs-sample").items[0]
    files = {name: tmp_path / f"{name}.json" for name in ("ranks", "failures", "histories")}
    options = [each for name, path in files.items() for each in ("--figure", f"{name}={path}")]
    link = ["--dialogue", item.dialogue_id, "--data", "giccs-sample"]
    done = call(report, sample_results, *options, *link)
    assert done.exit_code == 0, done.output
    assert item.utterance in files["ranks"].read_text("utf-8")
    failures = json.loads(files["failures"].read_text("utf-8"))
    assert "baseline:char-ngram" in json.dumps(failures)
    assert len(json.loads(files["histories"].read_text("utf-8"))["concat"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dialogue", "x"], "--dialogue requires --figure ranks=FILE"),
        (["--figure", "ranks=x.svg"], "no figure ranks: it is of one dialogue, which --dialogue"),
        (["--figure", "ranks=x.svg", "--dialogue", "x"], "no figure ranks: unknown dialogue 'x'"),
        (["--figure", "prompts=x.svg"], "no figure prompts: no model of pairs"),
        (
            ["--figure", "failures=x.svg", "--compare"],
            "no figure failures: it requires the judgments",
        ),
    ],
)
def test_what_the_command_cannot_draw_has_a_reason(
    sample_results, tmp_path, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    done = call(report, sample_results, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "x.svg").exists()


def test_giccs_stats_draws_the_distribution_by_column(tmp_path):
    pytest.importorskip("spacy", reason="the extra giccs[stats] is not installed")
    path = tmp_path / "subsets.json"
    done = call(stats, "giccs-sample", "--by", "source,domain", "--figure", f"subsets={path}")
    assert done.exit_code == 0, done.output
    items = read_benchmark("giccs-sample").items
    spoken = [item.score for item in items if item.source == "spoken"]
    rows = [
        row for rows in json.loads(path.read_text("utf-8"))["datasets"].values() for row in rows
    ]
    (last,) = [row for row in rows if (row["subset"], row["score"]) == ("spoken", "0.8–1")]
    assert (last["items"], last["n"]) == (sum(score >= 0.8 for score in spoken), len(spoken))


def test_the_worst_ordered_dialogue_has_the_largest_differences_of_ranks():
    rng = np.random.default_rng(4)
    names = [name for name in "abc" for _ in range(4)]
    score, prediction = rng.integers(0, 4, (2, 12)).astype(float)
    frame = pl.DataFrame({"dialogue_id": names, "score": score, "prediction": prediction})
    squares = {}
    for name in "abc":
        rows = np.array(names) == name
        ranks = (rankdata(values[rows]) for values in (score, prediction))
        squares[name] = float(np.square(np.subtract(*ranks)).sum())
    assert len(set(squares.values())) == 3
    assert worst_ordered_dialogue(frame) == max(squares, key=squares.get)
    equal = frame.with_columns(prediction=pl.col("score"))
    assert worst_ordered_dialogue(equal) is None
    undefined = frame.with_columns(prediction=pl.lit(float("nan")))
    assert worst_ordered_dialogue(undefined) is None
