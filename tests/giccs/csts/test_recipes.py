"""A recipe of C-STS followed to the end: asked, trained, and held against published numbers.

The papers' own models and data cannot be had here. The recipe has the shape of theirs, with tiny random
models; what is "published" in it is made up.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from giccs.cli.evaluation import evaluate
from giccs.cli.reporting import report
from giccs.csts.cli.train import train
from giccs.csts.data import read_csts, write_csts
from giccs.evaluation.recipe import TRAINING, read_recipe

from ..causal_models import make_model
from . import tiny_bert

ROOT = Path(__file__).parents[3]
PUBLISHED = 'published = [{ metric = "spearman", value = 0.4%s }]'
AT_VALIDATION = PUBLISHED % ', by = { split = "validation" }'
RECIPE = f"""
title = "Made up"
data = "c-sts"

[[model]]
name = "tiny-bert"
task = "csts"
ask = {{ encoding = "bi" }}
{PUBLISHED % ""}

[[model]]
name = "tiny-bert"
task = "csts"
ask = {{ answers = "answers.csv" }}
{PUBLISHED % ""}

[[model]]
name = "tiny-gpt"
task = "csts-prompt"
ask = {{ instruction = "none", shots = 2 }}
published = [{{ metric = "invalid", value = 0.9 }}, {{ metric = "pearson", value = 0.1 }}]

[[model]]
name = "tiny-bert"
task = "csts-train"
ask = {{ encoding = "tri", objective = "quad+mse", epochs = 1 }}
{AT_VALIDATION}

[[model]]
name = "tiny-bert"
task = "csts-train"
ask = {{ texts = "answers", epochs = 1 }}
{AT_VALIDATION}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of C-STS data, answers to every row, two models and a recipe."""
    place = tmp_path_factory.mktemp("recipe")
    splits = {split: read_csts("csts-sample", split).instances for split in ("train", "validation")}
    kept = {"train": splits["train"][:32], "validation": splits["validation"][:16]}
    (place / "c-sts").mkdir()
    for split, rows in kept.items():
        write_csts(rows, place / "c-sts" / f"csts_{split}.csv")
    lines = [
        f'{split}:{row.uid},"{row.sentence1}","{row.sentence2}"'
        for split, rows in kept.items()
        for row in rows
    ]
    (place / "answers.csv").write_text("\n".join(["uid,answer1,answer2", *lines]), "utf-8")
    (place / "recipe.toml").write_text(RECIPE, "utf-8")
    tiny_bert.make(place / "tiny-bert")
    make_model(place / "tiny-gpt", n_positions=1024)
    return place


def call(command, *arguments):
    done = CliRunner().invoke(
        command, [*arguments, "-o", "results"] if command is not report else arguments
    )
    assert done.exit_code == 0, f"{done.output}\n{done.exception}"
    return done


def test_what_is_asked_and_what_is_trained_stand_beside_the_published_numbers(place, monkeypatch):
    monkeypatch.chdir(place)
    asked = call(evaluate, "--recipe", "recipe.toml", "--json")
    assert len(json.loads(asked.stdout)["results"]) == 3
    assert "2 runs of recipe.toml are trainings" in asked.stderr
    without = call(train, "c-sts", "--recipe", "recipe.toml")
    assert "1 trainings are skipped: they require --answers FILE" in without.stderr
    both = call(train, "c-sts", "--recipe", "recipe.toml", "--answers", "answers.csv")
    assert "existing result" in both.stderr
    assert not (place / "results" / "models").exists()
    result = json.loads(call(report, "results", "--against", "recipe.toml", "--json").stdout)
    lines = [
        (one["model"], one["task"], one["metric"], one["ours"] is not None, one["verdict"])
        for one in result["against"]
    ]
    assert [line[:4] for line in lines] == [
        ("tiny-bert", "csts", "spearman", True),
        ("tiny-bert", "csts", "spearman", True),
        ("tiny-gpt", "csts-prompt", "invalid", True),
        ("tiny-gpt", "csts-prompt", "pearson", True),
        ("tiny-bert", "csts-train", "spearman", True),
        ("tiny-bert", "csts-train", "spearman", True),
    ]
    assert {verdict for *_, verdict in lines} <= {"inside", "outside", "not computed"}
    table = call(report, "results", "--against", "recipe.toml").stdout
    for shown in (
        "tiny-bert (bi)",
        "tiny-bert (bi, QA answers)",
        "tiny-bert (tri (hadamard), quad+mse",
    ):
        assert shown in table


def test_a_recipe_goes_with_no_sweep_and_needs_trainings(place, monkeypatch):
    monkeypatch.chdir(place)
    both = ["c-sts", "--recipe", "recipe.toml", "--curve", "4,8"]
    done = CliRunner().invoke(train, both)
    assert done.exit_code == 2
    assert "mutually exclusive" in done.output
    done = CliRunner().invoke(train, ["c-sts", "--recipe", "recipe.toml", "--model", "other"])
    assert done.exit_code == 2
    assert "does not contain other" in done.output


@pytest.mark.parametrize("name", ["c-sts-paper", "c-sts-stsb-paper", "l-csts-paper"])
def test_recipes_of_papers_keep_the_last_epoch(name):
    runs = read_recipe(name).runs
    trainings = [run for run in runs if run.task == TRAINING]
    assert trainings
    assert {run.options.get("select") for run in trainings} == {"last"}


def test_a_score_that_selected_the_epoch_is_marked_beside_published_ones(place, monkeypatch):
    monkeypatch.chdir(place)
    text = RECIPE.replace("epochs = 1", 'epochs = 1, select = "best"')
    (place / "best.toml").write_text(text, "utf-8")
    call(train, "c-sts", "--recipe", "best.toml")
    table = call(report, "results", "--against", "best.toml").stdout
    assert "]*" in table
    assert "* selected by this score: optimistic for new data" in table


NAMED = """
[[model]]
name = "tiny-bert"
task = "csts-train"
answers = "other.csv"
ask = { texts = "answers", epochs = 1 }
published = [{ metric = "spearman", value = 0.7, by = { split = "validation" } }]
"""


def test_trainings_with_answers_of_several_models_have_their_own_numbers(place, monkeypatch):
    """As in Table 6 of L-CSTS: the trainings are the same but for the file of answers."""
    monkeypatch.chdir(place)
    (place / "named.toml").write_text(RECIPE + NAMED, "utf-8")
    answers = (place / "answers.csv").read_text("utf-8")
    (place / "other.csv").write_text(answers.replace(" a ", " one ").replace("A ", "One "), "utf-8")
    one = call(train, "c-sts", "--recipe", "named.toml", "--answers", "answers.csv")
    assert "1 trainings are skipped: they require --answers other.csv" in one.stderr
    other = call(train, "c-sts", "--recipe", "named.toml", "--answers", "other.csv")
    assert "1 trainings use other.csv; 2 others are skipped" in other.stderr
    result = json.loads(call(report, "results", "--against", "named.toml", "--json").stdout)
    compared = [
        (line["published"]["value"], line["ours"]["value"])
        for line in result["against"]
        if line["ask"].get("texts") == "answers"
    ]
    assert [published for published, _ in compared] == [0.4, 0.7]
    assert len({ours for _, ours in compared}) == 2


def test_table_6_of_l_csts_names_a_file_per_model():
    runs = [run for run in read_recipe("l-csts-paper").runs if run.answers]
    assert {run.answers: run.published[0].value for run in runs} == {
        "flan-t5-small.csv": 0.437,
        "flan-t5-base.csv": 0.539,
        "flan-t5-large.csv": 0.558,
        "flan-t5-xl.csv": 0.623,
    }
    (same,) = [
        run
        for run in read_recipe("l-csts-paper").runs
        if not run.answers and (run.model, run.options) == (runs[0].model, runs[0].options)
    ]
    assert same.published[0].value == 0.739  # Table 4; Table 6 has 66.1
