"""Figures of results: their numbers against plain loops, what is drawn, and the option of giccs report."""

import json
import math
import re

import altair as alt
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from bws.base.charts import chart_bytes
from bws.stats.estimates import Estimate
from giccs.cli.reporting import report as report_command
from giccs.measures.comparison import paired_correlations, wilson
from giccs.measures.metrics import correlations
from giccs.measures.results import Group, Result, Store
from giccs.report import report
from giccs.report.comparison_tables import comparison_tables
from giccs.report.figures import FIGURES, MissingFigureError, differences, draw
from giccs.report.figures.calibration import (
    N_BINS,
    calibration,
    calibration_panels,
    chosen_options,
)
from giccs.report.figures.differences import (
    MAX_LISTED_PAIRS,
    difference_chart,
    difference_frame,
    difference_matrix,
    difference_panels,
)
from giccs.report.figures.leaderboard import leaderboard_panels
from giccs.report.figures.panels import model_labels
from giccs.report.figures.subsets import RAMP, TEXT_SWITCH, subset_frame, subset_panels
from giccs.report.model_comparison import ModelComparison, compare
from giccs.report.model_names import MAX_LINE_CHARACTERS

DIALOGUE = np.repeat(np.arange(20), 5)
SCORE = np.random.default_rng(0).random(100)
NONE = Estimate(math.nan, math.nan, math.nan, 4, "constant")
DRAWN = 30
"""Number of models of a matrix in these tests."""


def pairwise(model, noise, subsets=None, history="without"):
    """A result whose predictions are the scores with noise."""
    seed = [round(1000 * noise), *model.encode()]
    prediction = SCORE + noise * np.random.default_rng(seed).random(100)
    frame = pl.DataFrame(
        {
            "item_id": [f"i{n:02}" for n in range(100)],
            "dialogue_id": [f"d{n:02}" for n in DIALOGUE],
            "prediction": prediction,
            "score": SCORE,
        }
    )
    metrics = correlations(prediction, SCORE, DIALOGUE, resamples=0)
    groups = tuple(
        Group({"domain": name}, {"spearman": estimate})
        for name, estimate in (subsets or {}).items()
    )
    signature = {"task": "pairwise-sts", "model": model, "history": history, "data": "x"}
    return Result(
        model, "pairwise-sts", metrics, groups, signature, {"data": "made-up"}, 1.0, frame
    )


def choices(model="m", logprob=None, questions=40, options=4, orders=2):
    """A result of multiple choice with random log-likelihoods; `logprob` replaces them."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "history": history,
            "dialogue_id": f"d{question:02}",
            "utterance_id": f"u{option}",
            "order": order,
            "logprob": rng.normal() * 2 if logprob is None else logprob,
            "gold": option == question % options,
            "score": 0.5,
        }
        for history in ("with", "without")
        for question in range(questions)
        for order in range(orders)
        for option in rng.permutation(options)
    ]
    predictions = pl.DataFrame(rows, schema_overrides={"logprob": pl.Float64})
    accuracy = {"accuracy": Estimate(0.3, 0.2, 0.4, questions)}
    groups = tuple(Group({"history": name}, accuracy) for name in ("with", "without"))
    signature = {"model": model, "history": "both", "data": "x"}
    return Result(
        model, "multiple-choice-sts", accuracy, groups, signature, {"data": "made-up"}, 1.0, predictions,
    )  # fmt: skip


def naive_answers(result, history):
    """The confidence and correctness of each question by a plain loop."""
    sums, gold = {}, {}
    for row in result.predictions.filter(pl.col("history") == history).iter_rows(named=True):
        question = sums.setdefault(row["dialogue_id"], {})
        question.setdefault(row["utterance_id"], []).append(row["logprob"])
        gold[row["dialogue_id"], row["utterance_id"]] = row["gold"]
    answers = []
    for dialogue, options in sums.items():
        weights = {name: math.exp(sum(each) / len(each)) for name, each in options.items()}
        best = max(weights, key=weights.get)
        answers.append((weights[best] / sum(weights.values()), gold[dialogue, best]))
    return answers


def test_differences_are_those_of_two_models_at_a_time():
    results = [pairwise(name, noise) for name, noise in (("a", 0.5), ("b", 2.0), ("c", 4.0))]
    spearman, within = difference_panels(results)
    by_name = {result.model: result.predictions["prediction"].to_numpy() for result in results}
    for panel, metric in ((spearman, "spearman"), (within, "rank_spearman")):
        assert len(panel.frame) == 3
        for row in panel.frame.iter_rows(named=True):
            first, second = (by_name[row[name][0]] for name in ("first", "second"))
            expected = paired_correlations(first, second, SCORE, DIALOGUE, resamples=0)[metric]
            assert row["value"] == pytest.approx(expected.value)
            assert row["low"] < row["value"] < row["high"]
            assert (row["verdict"] == "significant") == (row["p_holm"] < 0.05)


def test_marks_are_those_after_the_adjustment():
    """Among ten models of equal quality some pairs are below 5 % by chance; Holm keeps few of them."""
    results = [pairwise(f"m{n}", 2.0 + n / 7) for n in range(10)]
    frame = difference_frame(compare(results).leaderboards[0])
    p, n = frame["p"].sort().to_list(), len(frame)
    holm = [min(1.0, (n - rank) * value) for rank, value in enumerate(p)]
    expected = [max(holm[: rank + 1]) for rank in range(n)]
    assert frame.sort("p")["p_holm"].to_list() == pytest.approx(expected)
    marked = frame.filter(pl.col("verdict") == "significant")
    assert len(marked) == sum(value < 0.05 for value in expected)


def test_bars_of_ranks_are_those_of_the_leaderboard():
    results = [pairwise(f"m{n:02}", 0.5 + n / 6) for n in range(23)]
    board = compare(results).leaderboards[0]
    panel = leaderboard_panels(results)[0]
    numbers = [
        (each.model, each.estimate.value, each.rank_low, each.rank_high, each.ties_first)
        for each in board.models
    ]
    columns = ("label", "value", "rank_low", "rank_high", "ties")
    assert panel.frame.select(columns).rows() == numbers
    assert panel.frame["ties"][1]
    assert not panel.frame["ties"][-1]
    assert "Drawn: the best 20 of 23 models." in panel.notes
    chart = json.loads(chart_bytes(panel.chart, ".json"))
    ticks = chart["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert ticks == list(range(1, max(board.models[19].rank_high, 20) + 1))
    (drawn, *_) = chart["datasets"].values()
    assert [(row["start"], row["end"]) for row in drawn] == [
        (each.rank_low - 0.5, each.rank_high + 0.5) for each in board.models[:20]
    ]


def test_the_table_of_many_pairs_has_neighbours_and_ties_of_the_best():
    board, *_ = compare([pairwise(f"m{n:02}", 0.5 + n / 6) for n in range(23)]).leaderboards
    comparison = ModelComparison((board,), ())
    listed = re.findall(r"^(\d+)–(\d+) ", comparison_tables(comparison), re.M)
    expected = {(n, n + 1) for n in range(1, 23)} | {(1, tied + 1) for tied in board.tied}
    assert {(int(a), int(b)) for a, b in listed} == expected
    assert f"pairs: {len(expected)} of 253" in comparison_tables(comparison)
    every = re.findall(r"^\d+–\d+ ", comparison_tables(comparison, all_pairs=True), re.M)
    assert len(every) == 253
    few, *_ = compare([pairwise(f"m{n}", 1.0 + n) for n in range(8)]).leaderboards
    assert len(re.findall(r"^\d+–\d+ ", comparison_tables(ModelComparison((few,), ())), re.M)) == 28


@pytest.mark.parametrize("n_models", [4, 115])
def test_tables_of_few_and_many_models_fit_a_page_and_the_terminal(
    n_models, overfull_lines, monkeypatch
):
    names = [f"an-organisation/multilingual-encoder-{n:03}" for n in range(n_models)]
    subsets = {f"find_touristAttraction_{n}": Estimate(0.31, -0.17, 0.68, 40) for n in range(6)}
    results = [pairwise(name, 0.5 + n / 9, subsets) for n, name in enumerate(names)]
    comparison = compare(results[:30])
    tables = [report(results, "latex"), comparison_tables(comparison, "latex")]
    assert overfull_lines("\n\n".join(tables)) == []
    monkeypatch.setenv("COLUMNS", "100")
    assert max(map(len, report(results).splitlines())) <= 100


def test_many_models_are_a_matrix_in_which_undefined_pairs_are_visible():
    results = [pairwise(f"m{n}", 1.0 + n) for n in range(9)]
    assert math.comb(9, 2) > MAX_LISTED_PAIRS
    panel = difference_panels(results)[0]
    assert '"rect"' in json.dumps(panel.chart.to_dict())
    undefined = panel.frame.with_columns(
        value=pl.when(pl.int_range(pl.len()) > 0).then("value"), reason=pl.lit("constant")
    )
    text = json.dumps(difference_matrix(undefined).to_dict())
    assert '"cross"' in text
    assert '"value": null' in text


def test_a_matrix_for_a_page_has_short_unique_labels_and_no_empty_layers():
    stem = "an-organisation/a-multilingual-model-with-a-name-of-many-words"
    frame = difference_panels([pairwise(f"{stem}-v{n}", 1.0 + 2 * n) for n in range(9)])[0].frame
    assert frame["verdict"].n_unique() == 2
    for table, marks in ((frame, ["rect", "text", "circle"]), (frame.clear(), ["rect", "text"])):
        chart = difference_matrix(table, is_stretched=True)
        assert [layer.mark.type for layer in chart.layer] == marks
    rows = difference_matrix(frame, is_stretched=True).layer[0].data
    for column, characters in (("first_label", 2 * 28 + 1), ("second_label", 40)):
        assert rows[column].n_unique() == 8
        assert max(map(len, rows[column])) <= characters
    assert max(label.count("\n") for label in rows["first_label"]) == 1


def test_labels_of_pairs_on_a_page_are_wrapped():
    frame = difference_panels([pairwise(f"{'long-' * 6}{n}", 1.0 + n) for n in range(3)])[0].frame
    for is_stretched, lines in ((False, 2), (True, 4)):
        chart = difference_chart(frame, is_stretched=is_stretched)
        labels = chart.layer[1].data["pair"]
        assert {label.count("\n") + 1 for label in labels} == {lines}
        assert chart.height.step == 14 * lines + 8


def test_equal_models_have_a_question_mark_and_not_a_zero_without_interval():
    twin = pairwise("a", 1.0)
    other = Result(**{**vars(pairwise("b", 9.0)), "predictions": twin.predictions})
    frame = difference_panels([twin, other, pairwise("c", 3.0)])[0].frame
    row = frame.filter((pl.col("first") + pl.col("second")).str.contains("a .*b |b .*a "))
    assert row["verdict"].to_list() == ["untested"]
    assert row["reason"].item()


def test_a_single_model_has_no_differences_and_the_reason_is_told():
    with pytest.raises(MissingFigureError, match="no other result of this task"):
        draw("differences", [pairwise("a", 1.0)])


def test_subsets_have_the_values_of_the_results_and_missing_cells():
    first = pairwise("a", 0.5, {"x": Estimate(0.7, 0.6, 0.8, 9), "y": NONE})
    second = pairwise("b", 3.0, {"x": Estimate(0.2, 0.1, 0.3, 9), "z": Estimate(0.1, 0, 0.2, 5)})
    frame = subset_frame([second, first], "spearman")
    assert frame.select("label", "subset", "value", "reason").rows() == [
        ("a", "domain=x", 0.7, ""),
        ("a", "domain=z", None, "not computed"),
        ("a", "domain=y", None, "constant"),
        ("b", "domain=x", 0.2, ""),
        ("b", "domain=z", 0.1, ""),
        ("b", "domain=y", None, "not computed"),
    ]
    (panel,) = subset_panels([first, second])
    assert "Grey cells have no value: 3." in panel.notes
    assert "–" in json.dumps(panel.chart.to_dict(), ensure_ascii=False)


def test_multiple_choice_has_a_row_per_history():
    result = choices()
    values = {"with": 0.4, "without": 0.2}
    groups = [
        Group({"history": name, "domain": "x"}, {"accuracy": Estimate(value, 0, 1, 9)})
        for name, value in values.items()
    ]
    changed = Result(**{**vars(result), "groups": (*result.groups, *groups)})
    frame = subset_frame([changed], "accuracy")
    assert frame.select("label", "value").rows() == [
        ("m (with history)", 0.4),
        ("m (without history)", 0.2),
    ]


def luminance(colour):
    linear = [
        value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in colour
    ]
    return sum(
        weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )


def test_numbers_in_cells_have_the_contrast_of_wcag():
    low, high = ([int(text[n : n + 2], 16) / 255 for n in (1, 3, 5)] for text in RAMP)
    for position in np.linspace(0, 1, 1001):
        background = luminance([a + (b - a) * position for a, b in zip(low, high, strict=True)])
        dark, light = (background + 0.05) / 0.05, 1.05 / (background + 0.05)
        assert (light if position > TEXT_SWITCH else dark) >= 4.5


@pytest.mark.parametrize("history", ["with", "without"])
def test_confidence_and_correctness_are_those_of_a_plain_loop(history):
    result = choices()
    answers = chosen_options(result.predictions).filter(pl.col("history") == history)
    expected = naive_answers(result, history)
    assert answers["confidence"].to_list() == pytest.approx([each[0] for each in expected])
    assert answers["correct"].to_list() == [each[1] for each in expected]


def test_the_expected_calibration_error_is_that_of_a_plain_loop():
    expected = naive_answers(choices(), "with")
    confidence, correct = (np.array(column) for column in zip(*expected, strict=True))
    result = calibration(confidence, correct)
    error, counts = 0.0, []
    for number in range(N_BINS):
        low, high = number / N_BINS, (number + 1) / N_BINS
        members = [each for each in expected if low <= each[0] < high]
        if members:
            accuracy = sum(right for _, right in members) / len(members)
            mean = sum(value for value, _ in members) / len(members)
            error += len(members) / len(expected) * abs(accuracy - mean)
            counts.append(len(members))
            row = result.bins.filter(pl.col("bin_low").is_close(low)).row(0, named=True)
            assert (row["accuracy"], row["confidence"]) == pytest.approx((accuracy, mean))
            assert (row["low"], row["high"]) == wilson(accuracy * len(members), len(members))
    assert result.error == pytest.approx(error)
    assert result.bins["n"].to_list() == counts


def test_confidence_on_a_boundary_is_in_the_upper_bin_and_1_in_the_last():
    result = calibration(np.array([0.3, 0.7, 1.0]), np.array([True, True, False]))
    assert result.bins["bin_low"].to_list() == [0.3, 0.7, 0.9]


def test_questions_without_a_log_probability_are_counted():
    result = choices()
    missing = pl.when(pl.int_range(pl.len()) > 0).then("logprob").alias("logprob")
    changed = Result(**{**vars(result), "predictions": result.predictions.with_columns(missing)})
    first, second = calibration_panels([changed])
    assert first.frame["n"].sum() == 39
    assert "Skipped, without a log-probability of an option: 1." in first.notes
    assert second.frame["n"].sum() == 40


def test_generated_answers_have_no_calibration_and_the_reason_is_told():
    generated = choices("g")
    silent = generated.predictions.with_columns(logprob=pl.lit(None, pl.Float64))
    generated = Result(**{**vars(generated), "predictions": silent})
    with pytest.raises(MissingFigureError, match="g: its answers were generated, without log-prob"):
        calibration_panels([generated])
    panels = calibration_panels([generated, choices("m")])
    assert any(note.startswith("Not shown: g: its answers") for note in panels[0].notes)


def test_short_labels_are_unique():
    first, second = (f"org/{'x' * 20}{middle}{'y' * 20}" for middle in "ab")
    labels = model_labels([(first, "without"), (second, "without"), ("org/mini", "without")])
    assert len(set(labels)) == 3
    assert labels[2] == "mini"
    (label,) = model_labels([(first, "without")])
    assert len(label) == MAX_LINE_CHARACTERS


@pytest.fixture
def folder(tmp_path):
    store = Store(tmp_path / "results")
    x = {"x": Estimate(0.7, 0.6, 0.8, 9)}
    for result in (pairwise("org/a", 0.5, x), pairwise("b", 3.0, x)):
        store.add(result)
    return tmp_path / "results"


def run(*arguments):
    return CliRunner().invoke(report_command, [str(argument) for argument in arguments])


def test_the_command_writes_figures(folder, tmp_path):
    pytest.importorskip("vl_convert", reason="the extra giccs[charts] is not installed")
    files = [tmp_path / "d.svg", tmp_path / "s.json"]
    done = run(folder, "--figure", f"differences={files[0]}", "--figure", f"subsets={files[1]}")
    assert done.exit_code == 0, done.output
    assert f"figure differences written to {files[0]}" in done.output
    assert "pairwise differences of Spearman ρ" in files[0].read_text("utf-8")
    (panel,) = [json.loads(files[1].read_text("utf-8"))]
    assert panel["title"]["text"] == ["pairwise-sts on made-up: Spearman ρ by subset"]


def test_model_names_are_in_the_figures(folder, tmp_path):
    file = tmp_path / "d.json"
    done = run(folder, "--figure", f"differences={file}", "--model-name", "org/a=Ours")
    assert done.exit_code == 0, done.output
    assert "Ours" in file.read_text("utf-8")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("heat=x.svg", "unknown figure 'heat'"),
        ("subset=x.svg", "did you mean 'subsets'"),
        ("subsets", "must be NAME=FILE"),
        ("subsets=x.pdf", "unsupported file type"),
        ("calibration=x.svg", "no figure calibration: no results of multiple choice"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_with_the_reason(
    folder, tmp_path, monkeypatch, value, message
):
    monkeypatch.chdir(tmp_path)
    done = run(folder, "--figure", value)
    assert done.exit_code == 2
    assert message in done.output
    assert not (tmp_path / "x.svg").exists()


def test_many_models_have_a_matrix_of_all_pairs_of_the_best(monkeypatch):
    monkeypatch.setattr(differences, "MAX_MATRIX_MODELS", DRAWN)
    noises = np.random.default_rng(0).permutation(DRAWN + 3)
    results = [pairwise(f"m{n:03}", 0.2 + noise / 30) for n, noise in enumerate(noises)]
    specification = json.loads(chart_bytes(draw("differences", results), ".json"))
    sizes = sorted(map(len, specification["datasets"].values()))
    assert sizes[-2:] == [math.comb(DRAWN, 2)] * 2
    for panel, metric in zip(specification["concat"], ("spearman", "rank_spearman"), strict=True):
        values = {result.model: result.metrics[metric].value for result in results}
        best = sorted(values, key=lambda model: (-values[model], model))[:DRAWN]
        (axis,) = {tuple(layer["encoding"]["x"]["sort"]) for layer in panel["layer"]}
        assert list(axis) == best[1:]
        assert "Drawn: the best 30 of 33 models." in panel["title"]["subtitle"]


def test_more_rows_than_the_default_limit_are_drawn_in_every_format():
    pytest.importorskip("vl_convert", reason="the extra giccs[charts] is not installed")
    chart = alt.Chart(pl.DataFrame({"x": range(5001)})).mark_point().encode(x="x:Q")
    with pytest.raises(alt.MaxRowsError):
        chart.to_dict()
    (rows,) = json.loads(chart_bytes(chart, ".json"))["datasets"].values()
    assert len(rows) == 5001
    assert chart_bytes(chart, ".svg").count(b'aria-roledescription="point"') == 5001
    assert chart_bytes(chart, ".png").startswith(b"\x89PNG")


def test_a_figure_that_fails_leaves_all_other_output(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figures = ["calibration=x.json", "differences=d.json"]
    done = run(folder, *(option for figure in figures for option in ("--figure", figure)))
    assert done.exit_code == 2
    assert "org/a" in done.stdout
    assert json.loads((tmp_path / "d.json").read_text("utf-8"))
    assert done.stderr.splitlines()[-1:] == [
        f"{folder}: no figure calibration: no results of multiple choice"
    ]


def test_a_file_that_cannot_be_written_leaves_all_other_output(folder, tmp_path):
    (tmp_path / "d.svg").mkdir()
    files = [tmp_path / "d.svg", tmp_path / "s.json"]
    done = run(folder, "--figure", f"differences={files[0]}", "--figure", f"subsets={files[1]}")
    assert (done.exit_code, files[1].exists()) == (2, True)
    assert "org/a" in done.stdout
    assert f"{folder}: no figure differences: " in done.stderr


def test_the_help_lists_all_figures():
    text = " ".join(run("--help").output.split())
    assert all(name in text for name in FIGURES)


def test_numbers_are_in_the_cells_of_several_panels():
    """The scale of a panel has another name beside other panels, which a text size must not refer to."""
    vl_convert = pytest.importorskip(
        "vl_convert", reason="the extra giccs[charts] is not installed"
    )
    values = {"x": Estimate(0.731, 0.6, 0.8, 9)}
    first, second = pairwise("a", 0.5, values), pairwise("b", 3.0, values)
    second = Result(**{**vars(second), "signature": {**second.signature, "data": "y"}})
    svg = vl_convert.vegalite_to_svg(draw("subsets", [first, second]).to_dict())
    assert svg.count(">0.73<") == 2
    assert 'font-size="0' not in svg
    assert "(content x)" in svg
