"""Tables of what history and prompts change."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.stats import spearmanr

from giccs.cli.evaluation import evaluate
from giccs.cli.reporting import report
from giccs.measures.comparison import paired_correlations
from giccs.measures.metrics import correlations
from giccs.measures.results import Result
from giccs.report.setting_effects import (
    history_table,
    prompt_table,
)

RANDOM = np.random.default_rng(0)
DIALOGUE = np.repeat(np.arange(12), 5)
SCORE = RANDOM.random(60)


def result(model, noise, **signature):
    """A result whose predictions are the scores with noise."""
    prediction = SCORE + noise * np.random.default_rng(round(1000 * noise)).random(60)
    frame = pl.DataFrame(
        {
            "item_id": [f"i{n:02}" for n in range(60)],
            "dialogue_id": [f"d{n:02}" for n in DIALOGUE],
            "prediction": prediction,
            "score": SCORE,
        }
    )
    said = {"task": "pairwise-sts", "model": model, "history": "without", "data": "x"}
    metrics = correlations(prediction, SCORE, DIALOGUE)
    return Result(model, "pairwise-sts", metrics, (), said | signature, {}, 1.0, frame)


def prompted(model, name, noise, **signature):
    prompt = {"prompt": {"name": name, "target": name, "candidate": name}} if name else {}
    return result(model, noise, **prompt, **signature)


def rho(one):
    return spearmanr(one.predictions["prediction"], one.predictions["score"]).statistic


def test_the_effect_of_history_is_paired():
    without, joined = result("m", 1.0), result("m", 0.5, history="with")
    mean = result("m", 2.0, history="with", history_encoding="mean")
    alone = result("n", 1.0)
    shuffled = without.predictions.sample(fraction=1.0, shuffle=True, seed=1)
    object.__setattr__(without, "predictions", shuffled)  # Joined by id, not by position.
    table = history_table([mean, alone, joined, without])
    assert [row[:2] for row in table.rows] == [["m", "with"], ["m", "with (mean)"]]
    for row, one in zip(table.rows, (joined, mean), strict=True):
        expected = paired_correlations(
            one.predictions["prediction"].to_numpy(),
            result("m", 1.0).predictions["prediction"].to_numpy(),
            SCORE,
            DIALOGUE,
        )
        assert row[4] == expected["spearman"]
        assert row[5] == expected["rank_spearman"]
        assert row[4].value == pytest.approx(rho(one) - rho(without))
        assert row[4].low < row[4].value < row[4].high
    assert history_table([alone, joined]) is None


def test_a_difference_without_an_interval_is_a_note():
    without, joined = result("m", 1.0), result("m", 0.5, history="with")
    mean = result("m", 2.0, history="with", history_encoding="mean")
    object.__setattr__(joined, "predictions", None)
    table = history_table([without, joined, mean])
    assert [row[1] for row in table.rows] == ["with (mean)"]
    assert table.notes[1:] == ["m, with: no difference: predictions are missing"]
    few = [without.predictions.head(20), mean.predictions.head(20)]
    for one, predictions in zip((without, mean), few, strict=True):
        object.__setattr__(one, "predictions", predictions)
    assert history_table([without, mean]) is None  # 4 dialogues


def test_minimum_median_and_maximum_over_prompts():
    noises = {"": 1.0, "a": 0.5, "b": 2.0, "c": 1.5}
    results = [prompted("m", name, noise) for name, noise in noises.items()]
    values = sorted(map(rho, results))
    (row,) = prompt_table(results).rows
    assert row[:3] == ["m", "without", 4]
    assert row[3:6] == pytest.approx([values[0], np.median(values), values[-1]])
    assert (row[7], row[8], row[9]) == ("b", "a", "1")
    assert row[6].value == pytest.approx(values[-1] - values[0])
    assert prompt_table([result("m", 1.0), result("n", 2.0)]) is None


def test_prompts_that_change_the_order_of_models():
    results = [
        prompted("best", "a", 0.2), prompted("best", "b", 0.3),
        prompted("middle", "a", 0.8), prompted("middle", "b", 2.5),
        prompted("other", "a", 1.2),
        prompted("last", "", 9.0), prompted("last", "b", 8.0),
    ]  # fmt: skip
    table = prompt_table(results)
    assert [(row[0], row[9]) for row in table.rows] == [
        ("best", "1"),
        ("other", "2–3"),
        ("middle", "2–3"),
        ("last", "4"),
    ]
    assert table.notes[1:] == [
        "without history: prompts change the order of 1 of 6 pairs of models (other and middle)",
        "without history: the first place is that of best",
        "without history: a model's rank changes by up to 1 of 3",
    ]
    stable = [one for one in results if one.model != "other"]
    assert prompt_table(stable).notes[1:] == [
        "without history: prompts change the order of none of 3 pairs of models; the first is best"
    ]
    first = prompt_table([*results, prompted("other", "b", 0.25)]).notes
    assert "without history: the first place is that of best or other, by prompt" in first


def test_an_undefined_correlation_is_not_part_of_the_tables():
    results = [prompted("m", name, noise) for name, noise in (("a", 1.0), ("b", 2.0))]
    undefined = prompted("m", "c", 1.0)
    constant = correlations(np.zeros(60), SCORE, DIALOGUE)
    undefined = Result(**{
        name: getattr(undefined, name) for name in Result.__dataclass_fields__
    } | {"metrics": constant})  # fmt: skip
    (row,) = prompt_table([undefined, *results]).rows
    assert row[2] == 2
    assert history_table([result("m", 1.0, history="with"), undefined]) is None


def test_giccs_eval_and_giccs_report_show_both_tables(tmp_path, benchmark_file, static_encoder):
    folder = tmp_path / "r"
    arguments = [str(static_encoder), "--data", benchmark_file, "-o", folder]
    arguments += ["--prompt", "none", "--prompt", "e5=query: ", "--prompt", "x=query: ||passage: "]
    arguments += ["--history-encoding", "joined", "--history-encoding", "mean"]
    done = CliRunner().invoke(evaluate, [*map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    assert "Effect of the history" in done.stdout
    assert "Sensitivity to prompts" in done.stdout
    again = CliRunner().invoke(report, [str(folder), "--json"])
    document = json.loads(again.stdout)
    effects, prompts = document["history_effects"], document["prompts"]
    assert [row["history"] for row in effects].count("with (mean)") == 3
    assert all(row["difference"].keys() >= {"value", "low", "high", "n"} for row in effects)
    assert [(row["prompts"], row["history"]) for row in prompts] == [
        (3, history) for history in ("without", "with", "with (mean)")
    ]
    names = {name for row in prompts for name in (row["lowest"], row["highest"])}
    assert names <= {"none", "e5", "x"}
    model = str(static_encoder)
    assert {row["model"] for row in effects} == {
        f"{model}{end}" for end in ("", ", prompt e5", ", prompt x")
    }
