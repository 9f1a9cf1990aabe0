"""Recipes: what the paper's says, what is wrong with others, and that giccs eval follows them."""

import os
import re
from pathlib import Path

import pytest

from bws.base.problems import InputError
from giccs.csts.encoders.settings import Settings, why_impossible
from giccs.evaluation.recipe import ACROSS_MODELS, TRAINING, read_recipe
from giccs.evaluation.run import open_recipe
from giccs.measures.comparison import wilson
from giccs.models import ModelOptions
from giccs.tasks import TaskOptions, task_names

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
RECIPES = Path(__file__).parents[3] / "giccs" / "recipes"
PAPER = RECIPES / "giccs-paper.toml"


def recipe_file(folder, text):
    path = folder / "recipe.toml"
    path.write_text(text, "utf-8")
    return path


def test_the_papers_recipe_holds_tables_5_and_6():
    recipe = read_recipe(PAPER)
    table_5 = {
        run.model.split("/")[-1]: [number.value for number in run.published]
        for run in recipe.runs
        if run.task == "pairwise-sts"
    }
    assert table_5 == {
        "distiluse-base-multilingual-cased-v2": [0.859, 0.855],
        "paraphrase-xlm-r-multilingual-v1": [0.849, 0.845],
        "paraphrase-multilingual-MiniLM-L12-v2": [0.842, 0.842],
        "paraphrase-multilingual-mpnet-base-v2": [0.830, 0.829],
        "distilbert-multilingual-nli-stsb-quora-ranking": [0.794, 0.814],
        "gbert-large": [0.666, 0.680],
        "gbert-large-sts": [0.622, 0.679],
    }
    table_6 = recipe.runs[-1]
    assert (table_6.model, table_6.task, table_6.options) == (
        "ai-forever/mGPT", "multiple-choice-sts", {"history": "both"},
    )  # fmt: skip
    assert recipe.data.startswith("sasaadi/GiCCS@")


def test_what_is_printed_in_table_6_follows_from_whole_questions():
    """k of 30 questions, ± sqrt(p(1-p)/(n-1)); some of the last digits are cut off, not rounded."""
    for number, right in zip(read_recipe(PAPER).runs[-1].published, (4, 5, 3, 2), strict=True):
        p = right / number.n
        assert number.value == pytest.approx(p, abs=0.001)
        assert number.stderr == pytest.approx((p * (1 - p) / (number.n - 1)) ** 0.5, abs=0.001)
        low, high = wilson(right, number.n)
        assert low < number.value < high


def test_every_model_of_the_paper_stands_at_a_commit_whose_place_is_named():
    text = PAPER.read_text("utf-8")
    for run in read_recipe(PAPER).runs:
        assert re.fullmatch(r"[0-9a-f]{40}", run.revision)
        above = text[: text.index(run.revision)].splitlines()[-2:]
        assert any(line.startswith("#") for line in above)


def numbers_of(recipe, task, metric="spearman"):
    return [
        (run.model.split("/")[-1], run.options, number.value)
        for run in recipe.runs
        if run.task == task
        for number in run.published
        if number.metric == metric
    ]


def test_the_recipe_of_c_sts_holds_its_validation_tables():
    recipe = read_recipe(RECIPES / "c-sts-paper.toml")
    assert [value for _, _, value in numbers_of(recipe, "csts")] == [
        0.009, -0.004, -0.018, 0.017, 0.019,
    ]  # fmt: skip
    trained = numbers_of(recipe, "csts-train")
    assert len(trained) == 15 + 2
    best = max(trained, key=lambda row: row[2])
    assert (best[0], best[1]["encoding"], best[2]) == ("sup-simcse-roberta-large", "bi", 0.477)
    assert [value for _, ask, value in trained if not ask.get("sentences", True)] == [0.2821]
    prompted = numbers_of(recipe, "csts-prompt")
    assert len(prompted) == 10 * 3 * 3
    assert ("gpt-4-0314", {"instruction": "short", "shots": 4}, 0.4205) in [
        (name.removeprefix("chat:"), ask, value) for name, ask, value in prompted
    ]
    invalid = numbers_of(recipe, "csts-prompt", "invalid")
    assert max(value for _, _, value in invalid) == 0.9869


def test_the_recipe_of_l_csts_holds_its_tables_4_to_6():
    recipe = read_recipe(RECIPES / "l-csts-paper.toml")
    trained = numbers_of(recipe, "csts-train")
    assert len(trained) == 12 + 4 + 4
    qa = [value for _, ask, value in trained if ask.get("texts") == "answers"]
    assert qa == [
        0.739, 0.759, 0.739, 0.734, 0.714, 0.729, 0.733, 0.735, 0.437, 0.539, 0.558, 0.623,
    ]  # fmt: skip
    assert [value for _, _, value in numbers_of(recipe, "csts")] == [0.012, 0.01, 0.494, 0.547]
    assert [value for _, _, value in numbers_of(recipe, "csts-prompt")] == [
        0.091, 0.661, 0.642, 0.644,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["c-sts-paper.toml", "c-sts-stsb-paper.toml", "l-csts-paper.toml"])
def test_every_training_of_a_recipe_can_be(name):
    runs = [run for run in read_recipe(RECIPES / name).runs if run.task == TRAINING]
    assert [why_impossible(Settings(run.model, **run.options)) for run in runs] == [""] * len(runs)


@pytest.mark.parametrize("name", ["c-sts", "l-csts"])
def test_the_numbers_stand_in_the_paper(name):
    paper = SHARED / "papers" / f"{name}.txt"
    if not paper.is_file():
        pytest.skip(f"{paper} is not there; set GICCS_SHARED")
    text = paper.read_text("utf-8")
    for run in read_recipe(RECIPES / f"{name}-paper.toml").runs:
        for number in run.published:
            percent = 100 * number.value
            assert any(f"{percent:.{digits}f}" in text for digits in (1, 2)), (run, number)


def test_every_fault_is_told_with_its_key(tmp_path):
    path = recipe_file(
        tmp_path,
        """
        titel = "x"
        data = 3
        [[model]]
        task = "sing"
        history = "often"
        ask = { shots = "two", colour = 1, seed = -1, answer = "x" }
        published = [{ metric = "pearson", value = "high" }, { value = 1, by = 3, n = true }]
        [[model]]
        name = "a"
        task = "pairwise-sts"
        published = "none"
        """,
    )
    with pytest.raises(InputError) as caught:
        read_recipe(path)
    assert [problem.message for problem in caught.value.problems] == [
        "titel is unknown; expected one of title, source, data, skip_missing, folders, model",
        f"model 1: task is 'sing'; expected one of {', '.join([*task_names(), TRAINING, ACROSS_MODELS])}",
        "model 1: name is missing; expected text",
        "model 1: ask: shots is 'two'; expected an integer from 0 to 1000",
        f"model 1: ask: unknown option colour; expected one of {', '.join(TaskOptions.__slots__)}",
        "model 1: ask: seed is -1; expected an integer from 0 to 4294967295",
        "model 1: ask: answer is 'x'; expected one of sentence, letter",
        "model 1: history is 'often'; expected one of without, with, both",
        "model 1: published 1: value is 'high'; expected a number",
        "model 1: published 2: n is True; expected a number",
        "model 1: published 2: metric is missing; expected text",
        "model 1: published 2: by is 3; expected a table",
        "model 2: published must be a list of tables",
        "data is 3; expected text",
    ]
    assert {problem.file for problem in caught.value.problems} == {str(path)}


def test_a_training_that_cannot_be_is_told(tmp_path):
    text = """
        data = "c-sts"
        [[model]]
        name = "m"
        task = "csts-train"
        ask = { encoding = "quad" }
        """
    with pytest.raises(
        InputError, match="model 1: ask: encoding is 'quad'; expected one of cross, bi, tri"
    ):
        read_recipe(recipe_file(tmp_path, text))


def test_broken_toml_is_told_with_its_line(tmp_path):
    path = recipe_file(tmp_path, 'title = "x"\ndata = \n')
    with pytest.raises(InputError, match=r"recipe\.toml:2: not valid TOML"):
        read_recipe(path)


def test_a_recipe_without_models_is_none(tmp_path):
    with pytest.raises(InputError, match=r"expected at least one \[\[model\]\]"):
        read_recipe(recipe_file(tmp_path, 'data = "giccs-sample"'))


def test_models_and_tasks_can_be_picked(tmp_path):
    recipe = read_recipe(PAPER)
    assert [run.model for run in recipe.select(["deepset/gbert-large"]).runs] == [
        "deepset/gbert-large"
    ]
    assert len(recipe.select(tasks=["pairwise-sts"]).runs) == 7
    assert recipe.select() == recipe
    with pytest.raises(
        InputError, match="does not contain gbert; expected one of ai-forever/mGPT, deepset"
    ):
        recipe.select(["gbert"], ["pairwise-sts"])


def test_all_models_that_cannot_be_had_or_cannot_do_it_are_told(tmp_path):
    path = recipe_file(
        tmp_path,
        """
        data = "giccs-sample"
        [[model]]
        name = "baseline:x"
        task = "pairwise-sts"
        [[model]]
        name = "baseline:chance"
        task = "multiple-choice-sts"
        """,
    )
    with pytest.raises(InputError) as caught:
        open_recipe(read_recipe(path), ModelOptions(), TaskOptions())
    first, second = map(str, caught.value.problems)
    assert first.startswith("baseline:x: no such baseline")
    assert second.startswith("baseline:chance: returns no likelihoods")


def test_each_model_gets_its_own_revision_and_history(tmp_path, plain_encoder):
    path = recipe_file(
        tmp_path,
        f"""
        data = "giccs-sample"
        [[model]]
        name = "{plain_encoder}"
        task = "pairwise-sts"
        history = "both"
        [[model]]
        name = "baseline:chance"
        task = "pairwise-sts"
        """,
    )
    jobs = open_recipe(read_recipe(path), ModelOptions(), TaskOptions(seed=3))
    assert [[task.history for task in tasks] for _, tasks in jobs] == [
        ["without", "with"],
        ["without"],
    ]
    assert {task.seed for _, tasks in jobs for task in tasks} == {3}


def test_a_recipe_of_the_package_has_a_name():
    assert read_recipe("giccs-paper").file == "giccs-paper"
    assert read_recipe("giccs-paper").runs == read_recipe(PAPER).runs


@pytest.mark.parametrize("name", ["giccs-papr", "recipes/giccs-paper.toml"])
def test_a_misspelt_recipe_gets_a_suggestion(name):
    with pytest.raises(
        InputError,
        match=f"{name}: no such file; expected a file or one of c-sts-paper, .*; "
        "did you mean 'giccs-paper'",
    ):
        read_recipe(name)
