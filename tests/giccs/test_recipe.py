"""Recipes: what the paper's says, what is wrong with others, and that giccs-eval follows them."""

import re
from pathlib import Path

import pytest

from bws.problems import InputError
from giccs.comparison import wilson
from giccs.models import ModelOptions
from giccs.recipe import read_recipe
from giccs.run import follow
from giccs.tasks import TaskOptions

PAPER = Path(__file__).parents[2] / "recipes" / "giccs-paper.toml"


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
    assert (table_6.model, table_6.task, table_6.history) == (
        "ai-forever/mGPT", "multiple-choice-sts", "both",
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


def test_every_fault_is_told_with_its_key(tmp_path):
    path = recipe_file(
        tmp_path,
        """
        titel = "x"
        data = 3
        [[model]]
        task = "sing"
        history = "often"
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
        "titel is not known; title, source, data, model are",
        "model 1: name is missing; it must be a text",
        "model 1: task is 'sing'; it must be one of pairwise-sts, multiple-choice-sts",
        "model 1: history is 'often'; it must be one of with, without, both",
        "model 1: published 1: value is 'high'; it must be a number",
        "model 1: published 2: n is True; it must be a number",
        "model 1: published 2: metric is missing; it must be a text",
        "model 1: published 2: by is 3; it must be a table",
        "model 2: published must be a list of tables",
        "data is 3; it must be a text",
    ]
    assert {problem.file for problem in caught.value.problems} == {str(path)}


def test_broken_toml_is_told_with_its_line(tmp_path):
    path = recipe_file(tmp_path, 'title = "x"\ndata = \n')
    with pytest.raises(InputError, match=r"recipe\.toml:2: is not TOML"):
        read_recipe(path)


def test_a_recipe_without_models_is_none(tmp_path):
    with pytest.raises(InputError, match=r"needs at least one \[\[model\]\]"):
        read_recipe(recipe_file(tmp_path, 'data = "giccs-sample"'))


def test_models_and_tasks_can_be_picked(tmp_path):
    recipe = read_recipe(PAPER)
    assert [run.model for run in recipe.only(["deepset/gbert-large"]).runs] == [
        "deepset/gbert-large"
    ]
    assert len(recipe.only(tasks=["pairwise-sts"]).runs) == 7
    assert recipe.only() == recipe
    with pytest.raises(InputError, match="says nothing of gbert; ai-forever/mGPT, deepset"):
        recipe.only(["gbert"], ["pairwise-sts"])


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
        follow(read_recipe(path), ModelOptions(), TaskOptions())
    first, second = map(str, caught.value.problems)
    assert first.startswith("baseline:x: no such baseline")
    assert second.startswith("baseline:chance: gives no likelihoods")


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
    jobs = follow(read_recipe(path), ModelOptions(), TaskOptions(seed=3))
    assert [[task.history for task in tasks] for _, tasks in jobs] == [
        ["without", "with"],
        ["without"],
    ]
    assert {task.seed for _, tasks in jobs for task in tasks} == {3}
