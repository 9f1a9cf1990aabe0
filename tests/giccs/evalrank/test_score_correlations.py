"""Correlations of scores over models, against SciPy; the results are made up here, as their names say."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import rankdata, spearmanr

from bws.stats.estimates import Estimate
from giccs.evalrank.cli.correlate import correlate as command
from giccs.evalrank.rank_chart import rank_rows
from giccs.evalrank.score_correlations import correlate, drop_postprocessed, keep_complete_models
from giccs.evalrank.scores import ScoreSelector, collect_scores, parse_selector
from giccs.measures.results import Group, Result, Store
from giccs.models.postprocess.steps import family_of, is_postprocessed


def estimate(value, n=300):
    return Estimate(value, math.nan, math.nan, n, "made up" if math.isnan(value) else "")


def result(model, task, metrics=None, sets=None, *, setting="", data="d" * 64, when="2026-01-01"):
    metric = "accuracy" if task == "classification" else "spearman"
    return Result(
        model,
        task,
        {name: estimate(value) for name, value in (metrics or {}).items()},
        tuple(Group({"set": name}, {metric: estimate(v)}) for name, v in (sets or {}).items()),
        {"task": task, "model": model, "setting": setting, "data": data},
        {"when": when, "data": f"made-up-{data[:2]}"},
        0.0,
    )


@pytest.fixture
def models():
    plain = [f"made-up:{n}" for n in range(8)]
    return [*plain, *(f"{name}+whitening" for name in plain[:4])]


@pytest.fixture
def results(models):
    """Accuracy follows MRR closely, STS-B not at all."""
    draw = np.random.default_rng(5)
    found = []
    for n, model in enumerate(models):
        mrr = n / 20 + draw.normal(scale=0.03)
        found += [
            result(model, "evalrank-sentence", {"mrr": mrr, "hits@1": mrr / 2, "hits@3": draw.random()}),
            result(model, "sentence-similarity", {"spearman": 0.5}, {"STS-B": draw.random(), "STR": -n}),
            result(model, "uniformity", {"alignment": 1 - mrr, "uniformity": draw.normal()}),
            result(model, "classification", {"accuracy": 0.5}, {"SST2": mrr + 0.1, "MR": mrr**3}),
        ]  # fmt: skip
    return found


@pytest.fixture
def folder(tmp_path, results):
    store = Store(tmp_path / "results")
    for result in results:
        store.add(result)
    return tmp_path / "results"


def columns(results):
    tasks = ("evalrank-sentence", "sentence-similarity", "uniformity")
    intrinsic = collect_scores(results, [ScoreSelector(task) for task in tasks]).columns
    downstream = collect_scores(
        results, [ScoreSelector("classification", "accuracy", s) for s in ("MR", "SST2")]
    )
    return intrinsic, downstream.columns


def test_every_correlation_is_scipys(results):
    intrinsic, downstream = columns(results)
    result = correlate(intrinsic, downstream, resamples=50)
    assert len(result.cells) == len(intrinsic) * len(downstream) == 7 * 2
    for cell in result.cells:
        x = [cell.intrinsic.scores[model] for model in cell.downstream.scores]
        y = list(cell.downstream.scores.values())
        assert cell.rho.value == pytest.approx(spearmanr(x, y).statistic)
        assert (cell.rho.n, cell.rho.extra["families"]) == (12, 8)


def test_sets_are_columns_and_metrics_of_which_less_is_better_are_turned(results, models):
    intrinsic, _ = columns(results)
    assert [one.label for one in intrinsic] == [
        "mrr", "hits@1", "hits@3", "STS-B", "STR", "-alignment", "-uniformity",
    ]  # fmt: skip
    alignment = intrinsic[5]
    of = {r.model: r.metrics["alignment"].value for r in results if r.task == "uniformity"}
    assert alignment.scores == {model: -of[model] for model in models}


def test_intervals_draw_families(results):
    """Copies of a model under other names of its family tell nothing new: the interval stays as it was."""
    intrinsic, downstream = columns(results)
    plain = drop_postprocessed([intrinsic[3], downstream[0]])
    once = correlate(plain[:1], plain[1:], resamples=400).cells[0].rho
    for column in plain:
        for model in list(column.scores):
            for step in ("+abtt", "+abtt:2", "+flow"):
                column.scores[model + step] = column.scores[model]
    copied = correlate(plain[:1], plain[1:], resamples=400).cells[0].rho
    assert (copied.n, copied.extra["families"]) == (32, 8)
    assert (copied.value, copied.low, copied.high) == pytest.approx(
        (once.value, once.low, once.high), abs=1e-9
    )


def test_the_best_and_the_second_are_placed_and_the_rest_set_against_the_best(results):
    intrinsic, downstream = columns(results)
    result = correlate(intrinsic, downstream, resamples=200)
    of_mr = [cell for cell in result.cells if cell.downstream.label == "MR"]
    values = sorted({cell.rho.value for cell in of_mr}, reverse=True)
    for cell in of_mr:
        assert cell.rank == {values[0]: 1, values[1]: 2}.get(cell.rho.value, 0)
        assert (cell.difference is None) == (cell.rank == 1)
        if cell.difference:
            assert cell.difference.value == pytest.approx(values[0] - cell.rho.value)
            assert cell.difference.low <= cell.difference.value <= cell.difference.high
    worst = min(of_mr, key=lambda cell: cell.rho.value)
    assert worst.difference.low > 0  # STR goes down where accuracy goes up


def test_too_few_models_and_equal_scores_are_not_defined(results):
    intrinsic, downstream = columns(results)
    few = [result for result in results if result.model in ("made-up:1", "made-up:2", "made-up:3")]
    cells = correlate(*columns(few), resamples=10).cells
    assert {cell.rho.reason for cell in cells} == {"3 models; a rank correlation needs 4"}
    assert all(math.isnan(cell.rho.value) and cell.rank == 0 for cell in cells)
    for model in intrinsic[0].scores:
        intrinsic[0].scores[model] = 0.5
    (cell,) = correlate(intrinsic[:1], downstream[:1]).cells
    assert cell.rho.reason == "all models have the same score"


def test_few_families_have_no_interval(results):
    two = [result for result in results if family_of(result.model) in ("made-up:0", "made-up:1")]
    cell = correlate(*columns(two), resamples=10).cells[0]
    assert cell.rho.n == 4
    assert not math.isnan(cell.rho.value)
    assert math.isnan(cell.rho.low)
    assert cell.rho.reason == "2 families of models: no interval, which needs 5"
    behind = [
        cell.difference for cell in correlate(*columns(two), resamples=10).cells if cell.difference
    ]
    assert all(not math.isnan(one.value) and math.isnan(one.low) for one in behind)
    assert {one.reason for one in behind} == {cell.rho.reason}


def test_correlations_are_over_models_that_have_both_and_the_others_are_named(results):
    kept = [r for r in results if not (r.model == "made-up:3" and r.task == "evalrank-sentence")]
    intrinsic, downstream = columns(kept)
    result = correlate(intrinsic, downstream, resamples=10)
    sizes = {cell.intrinsic.label: cell.rho.n for cell in result.cells}
    assert (sizes["mrr"], sizes["STS-B"]) == (11, 12)
    assert result.document()["missing"][0] == (
        "evalrank-sentence mrr: missing for 1 of 12 models: made-up:3"
    )
    assert {
        len(keep_complete_model.scores)
        for keep_complete_model in keep_complete_models([*intrinsic, *downstream])
    } == {11}
    behind = [cell.difference for cell in result.cells if cell.difference]
    assert {one.n for one in behind} == {11}  # the best is mrr, which one model lacks


def test_settings_and_other_data_are_columns_of_their_own(results):
    cos, l2 = (
        [
            result(f"m{n}", "evalrank-sentence", {"mrr": n * sign}, setting=s, data=d * 64)
            for n in range(5)
        ]
        for s, d, sign in (("cos", "a", 1), ("l2", "a", -1))
    )
    how = {"setting": "cos", "data": "b" * 64}
    other = [result(f"m{n}", "evalrank-sentence", {"mrr": 0.1}, **how) for n in range(5)]
    table = collect_scores([*cos, *l2], [parse_selector("evalrank-sentence:mrr")])
    assert {column.label: column.scores["m3"] for column in table.columns} == {
        "mrr (cos)": 3,
        "mrr (l2)": -3,
    }
    table = collect_scores([*cos, *other], [parse_selector("evalrank-sentence:mrr")])
    assert [column.label for column in table.columns] == ["mrr (made-up-aa)", "mrr (made-up-bb)"]
    assert collect_scores(cos, [parse_selector("evalrank-sentence:mrr")]).columns[0].label == "mrr"


def test_of_equal_questions_the_newest_result_counts():
    old = result("m", "evalrank-word", {"mrr": 0.1}, when="2026-01-01T00:00:00+00:00")
    new = result("m", "evalrank-word", {"mrr": 0.2}, when="2026-02-01T00:00:00+00:00")
    for order in ([old, new], [new, old]):
        table = collect_scores(order, [parse_selector("evalrank-word")])
        assert table.columns[0].scores == {"m": 0.2}
        assert table.n_superseded == 1


def test_a_result_on_one_set_alone_gives_that_set():
    """Without groups the whole is the set; an empty group asks for the whole in any case."""
    alone = result("m", "word-similarity", {"spearman": 0.3})
    both = replace(
        result("m", "word-similarity", {"spearman": 0.4}, {"A": 0.3, "B": 0.5}),
        signature={"data": "d", "mean": "sets of at least 200 known pairs"},
    )

    def found(one, text):
        columns = collect_scores([one], [parse_selector(text)]).columns
        return [column.scores["m"] for column in columns]

    assert found(alone, "word-similarity") == [0.3]
    assert found(both, "word-similarity") == [0.3, 0.5]
    assert found(both, "word-similarity:spearman:") == [0.4]
    assert found(both, "word-similarity:spearman:B") == [0.5]


def word_similarity(model, **sets):
    """Return a result of sets of so many known pairs, rho 0.5 and less from set to set."""
    groups = tuple(
        Group({"set": name}, {"spearman": estimate(0.5 - place / 10, n)})
        for place, (name, n) in enumerate(sets.items())
    )
    made = result(model, "word-similarity", {"spearman": 0.4})
    return replace(
        made,
        groups=groups,
        signature={**made.signature, "mean": "sets of at least 200 known pairs"},
    )


def test_word_similarity_sets_with_fewer_than_200_known_pairs_do_not_count():
    one, other = word_similarity("a", A=200, B=199, C=30), word_similarity("b", A=199, B=200, C=30)
    table = collect_scores([one, other], [parse_selector("word-similarity")])
    assert [(column.label, column.scores) for column in table.columns] == [
        ("A", {"a": 0.5}), ("B", {"b": 0.4}),
    ]  # fmt: skip
    assert table.undefined == (
        "word-similarity spearman B: fewer than 200 known pairs: a",
        "word-similarity spearman C: fewer than 200 known pairs: a, b",
        "word-similarity spearman A: fewer than 200 known pairs: b",
    )
    (named,) = collect_scores([one, other], [parse_selector("word-similarity:spearman:C")]).columns
    assert named.scores == pytest.approx({"a": 0.3, "b": 0.3})
    small = collect_scores([word_similarity("a", C=30)], [parse_selector("word-similarity")])
    assert (small.columns, [str(one) for one in small.unmatched]) == ((), ["word-similarity"])


def test_a_mean_over_all_sets_is_not_mixed_with_one_over_large_sets():
    new = word_similarity("new", A=300, B=300)
    old = replace(new, model="old", signature={**result("old", "word-similarity").signature})
    table = collect_scores([new, old], [parse_selector("word-similarity:spearman:")])
    assert [column.scores for column in table.columns] == [{"new": 0.4}]
    assert table.undefined == (
        "word-similarity spearman: mean over all sets by an earlier version; evaluate again: old",
    )
    columns = collect_scores([new, old], [parse_selector("word-similarity")]).columns
    assert [set(column.scores) for column in columns] == [{"new", "old"}, {"new", "old"}]


def test_correlate_states_which_sets_are_left_out(folder):
    for n in range(8):
        Store(folder).add(word_similarity(f"made-up:{n}", large=250, small=65))
    line = "word-similarity spearman small: fewer than 200 known pairs: made-up:0, made-up:1, made-up:2, "
    done = run(folder, "--intrinsic", "word-similarity")
    assert f"Excluded: {line}... (8 models)." in done.stdout
    assert "word-similarity  large" in done.stdout
    document = json.loads(run(folder, "--intrinsic", "word-similarity", "--json").stdout)
    assert document["left_out"] == [f"{line}... (8 models)"]


def test_the_family_is_the_model_before_its_steps():
    assert family_of("encoder:a+b/model+first-last+whitening:256") == "encoder:a+b/model"
    assert not is_postprocessed("encoder:a+b/model+first-last")
    assert is_postprocessed("static:x.txt+words+abtt")


def test_scores_that_are_nan_are_left_out_with_their_reason():
    table = collect_scores(
        [result("m", "evalrank-word", {"mrr": math.nan})], [parse_selector("evalrank-word:mrr")]
    )
    assert table.columns[0].scores == {}
    assert table.undefined == ("evalrank-word mrr: made up: m",)
    lost = result("m", "word-similarity", {}, {"MC-30": math.nan})
    table = collect_scores([lost], [parse_selector("word-similarity")])
    assert table.undefined == ("word-similarity spearman MC-30: made up: m",)


def run(*arguments, code=0):
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def test_the_command_prints_tables(folder):
    done = run(
        folder, "--intrinsic", "evalrank-sentence", "--downstream", "MR", "--downstream", "SST2"
    )
    assert "over 12 models" in done.stdout
    (mrr,) = [line for line in done.stdout.splitlines() if line.split()[1:2] == ["mrr"]][:1]
    assert mrr.split()[:3] == ["evalrank-sentence", "mrr", "«100.00»"]  # MR is a power of it
    assert "Difference to the best" in done.stdout
    assert "STS-B" not in done.stdout


@pytest.mark.parametrize(
    ("form", "bold", "line"),
    [("markdown", "**100.00**", "| evalrank-sentence"), ("latex", r"\textbf{100.00}", r"\toprule")],
)
def test_the_best_is_bold(folder, form, bold, line, typeset):
    text = run(folder, "--format", form, "--intrinsic", "evalrank-sentence").stdout
    assert bold in text
    assert line in text
    assert "«" not in text.split("95 % intervals", 1)[0]
    explained = [line for line in text.splitlines() if "jackknife over families" in line]
    assert explained[0].startswith("%") == (form == "latex")
    if form == "latex":
        assert "100.00" in typeset(text)


def test_csv_and_json_hold_the_same_numbers(folder):
    rows = list(csv.DictReader(io.StringIO(run(folder, "--format", "csv").stdout)))
    document = json.loads(run(folder, "--json").stdout)
    assert len(rows) == len(document["correlations"]) == 7 * 2
    assert (len(document["models"]), document["families"]) == (12, 8)
    for row, cell in zip(rows, document["correlations"], strict=True):
        assert row["intrinsic"] == cell["intrinsic"]["name"]
        assert float(row["spearman"]) == cell["spearman"]["value"]
        assert row["families"] == "8"
        assert bool(row["behind_best"]) == (cell["behind_best"] is not None)
    assert [row["downstream"] for row in rows[::7]] == [  # in the paper's order
        "classification:accuracy:MR", "classification:accuracy:SST2",
    ]  # fmt: skip


def test_models_can_be_chosen(folder):
    document = json.loads(run(folder, "--without-postprocessed", "--json").stdout)
    assert document["models"] == [f"made-up:{n}" for n in range(8)]


def test_models_without_a_score_are_said(folder, results):
    Store(folder).add(result("made-up:new", "classification", {"accuracy": 0.5}, {"MR": 0.7}))
    done = run(folder, "--intrinsic", "evalrank-sentence:mrr")
    assert "evalrank-sentence mrr: missing for 1 of 13 models: made-up:new" in done.stderr
    assert "classification SST2: missing for 1 of 13 models: made-up:new" in done.stderr
    assert "n=12" in done.stdout
    only = json.loads(
        run(folder, "--intrinsic", "evalrank-sentence:mrr", "--complete", "--json").stdout
    )
    assert len(only["models"]) == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--intrinsic", "evalrank-word"], "no score evalrank-word"),
        (["--intrinsic", "csts"], "no score csts; expected a metric: csts:METRIC"),
        (["--downstream", "TREC"], "no score classification:accuracy:TREC"),
        (["--intrinsic", "sentence-similarity:spearman:SICK"], "sentence-similarity:spearman:SICK"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said(folder, arguments, message):
    assert message in run(folder, *arguments, code=2).stderr


def test_a_folder_without_classification_says_so(tmp_path, results):
    store = Store(tmp_path)
    for result in results:
        if result.task == "evalrank-sentence":
            store.add(result)
    assert "no downstream accuracy" in run(tmp_path, code=2).stderr
    assert "no such folder" in run(tmp_path / "nothing", code=2).stderr


def test_scores_that_no_model_shares_are_undefined(tmp_path):
    store = Store(tmp_path)
    store.add(result("made-up:1", "evalrank-word", {"mrr": 0.5}))
    store.add(result("made-up:2", "classification", {"accuracy": 0.5}, {"MR": 0.5}))
    done = run(tmp_path)
    assert "undefined" in done.stdout
    assert "0 models; a rank correlation needs 4" in done.stdout
    assert "95 % intervals" not in done.stdout


def test_ranks_of_the_chart_are_those_of_scipy(results):
    selectors = (
        ScoreSelector("classification", "accuracy", "MR"),
        ScoreSelector("sentence-similarity", "spearman", "STS-B"),
    )
    columns = [collect_scores(results, [selector]).columns[0] for selector in selectors]
    rows = rank_rows(columns)
    first, second = rows[:12], rows[12:]
    assert [row["rank"] for row in first] == list(range(1, 13))
    assert [row["model"] for row in first] == [row["model"] for row in second]
    scores = columns[1].scores
    expected = dict(zip(scores, rankdata([-score for score in scores.values()]), strict=True))
    assert {row["model"]: row["rank"] for row in second} == expected


def test_the_chart_of_ranks_is_drawn(folder, tmp_path):
    path = tmp_path / "ranks.svg"
    done = run(folder, "--intrinsic", "evalrank-sentence:mrr", "--figure", path)
    assert f"Figure 4 written to {path}" in done.stderr
    svg = path.read_text("utf-8")
    assert "made-up:0" in svg
    assert "models, by rank on classification" in svg
    done = run(folder, "--figure", path, code=2)
    assert "9 scores; it shows at most 8" in done.stderr


def test_models_with_two_poolings_are_two_models_of_a_family(results):
    """As in the paper, where BERT is in Table 9 with its first token, and with the mean of its tokens."""
    pooled = [
        replace(one, signature={**one.signature, "pooling": "cls"})
        for one in results
        if one.model == "made-up:3+whitening"
    ]
    score, accuracy = (
        collect_scores([*results, *pooled], [selector]).columns[0]
        for selector in (
            ScoreSelector("evalrank-sentence", "mrr"),
            ScoreSelector("classification", "accuracy", "MR"),
        )
    )
    assert len(score.scores) == 13
    assert "made-up:3 (cls pooling)+whitening" in score.scores
    (cell,) = correlate([score], [accuracy]).cells
    assert (cell.rho.n, cell.rho.extra["families"]) == (13, 8)
    plain = drop_postprocessed([score])[0]
    assert len(plain.scores) == 8
