"""Sweeps: every combination, what is wrong in the file, and giccs eval --sweep."""

import json

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.evaluation.recipe import Run
from giccs.evaluation.sweep import read_sweep


def sweep_file(folder, text):
    path = folder / "sweep.toml"
    path.write_text(text, "utf-8")
    return path


def called(*arguments):
    done = CliRunner().invoke(
        evaluate, [str(argument) for argument in arguments], prog_name="giccs-eval"
    )
    return done.exit_code, done.stdout, done.stderr


def test_a_sweep_is_a_recipe_for_each_data_set(tmp_path):
    path = sweep_file(
        tmp_path,
        """
        title = "Two and two"
        [[grid]]
        models = ["baseline:chance", { name = "org/model", revision = "abc" }]
        tasks = ["pairwise-sts"]
        data = ["giccs-sample", "other.jsonl"]
        options = { history = ["with", "without"], seed = 3 }
        [[grid]]
        models = ["chat:m"]
        tasks = ["csts-prompt", "csts"]
        """,
    )
    first, second, third = read_sweep(path)
    assert [one.data for one in (first, second, third)] == ["giccs-sample", "other.jsonl", ""]
    assert {one.title for one in (first, second, third)} == {"Two and two"}
    assert first.runs == second.runs
    assert first.runs == tuple(
        Run(model, revision, "pairwise-sts", {"history": history, "seed": 3}, ())
        for model, revision in (("baseline:chance", None), ("org/model", "abc"))
        for history in ("with", "without")
    )
    assert [(run.model, run.task) for run in third.runs] == [
        ("chat:m", "csts-prompt"),
        ("chat:m", "csts"),
    ]


def test_everything_wrong_is_told_with_its_key(tmp_path):
    path = sweep_file(
        tmp_path,
        """
        titel = "x"
        title = 3
        [[grid]]
        models = ["baseline:chance", 3, { name = "m", commit = "c" }, "baseline:chance"]
        tasks = ["pairwise"]
        data = []
        options = { history = ["never"], shots = "2", batch = 3, seed = [], permutations = [0, 27, 3] }
        [[grid]]
        model = ["m"]
        [[grid]]
        models = ["m", { name = "m" }]
        tasks = ["csts"]
        options = { seed = [-1, 4, 4], split = "dev", similarity = "dots" }
        """,
    )
    with pytest.raises(InputError) as caught:
        read_sweep(path)
    said = [problem.message for problem in caught.value.problems]
    begins = [
        "titel is unknown; expected one of title, source, grid",
        "title is 3; expected text",
        "grid 1: models has 3; expected text, or a table of name and revision",
        "grid 1: models has {'name': 'm', 'commit': 'c'}; expected",
        "grid 1: models has a repeated value",
        "grid 1: tasks has 'pairwise'; expected one of pairwise-sts, ",
        "grid 1: data is []; expected a list of names",
        "grid 1: options: history is 'never'; expected one of without, with, both",
        "grid 1: options: shots is '2'; expected an integer from 0 to 1000",
        "grid 1: options: unknown option batch; expected one of history, seed, ",
        "grid 1: options has seed = []; expected a value or a nonempty list",
        "grid 1: options: permutations is 0; expected an integer from 1 to 26",
        "grid 1: options: permutations is 27; expected an integer from 1 to 26",
        "grid 2: model is unknown; expected one of models, tasks, data, options",
        "grid 2: models is missing; expected a list of names",
        "grid 2: tasks is missing; expected a list of names",
        "grid 3: models has a repeated value",
        "grid 3: options: seed is -1; expected an integer from 0 to 4294967295",
        "grid 3: options has a repeated value for seed",
        "grid 3: options: split is 'dev'; expected one of train, validation, test",
        "grid 3: options: similarity is 'dots'; expected one of cos, cos-centred, dot, l2",
    ]
    for message, begin in zip(said, begins, strict=True):
        assert message.startswith(begin)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid = [", "sweep.toml:"),
        ("", "no [[grid]]"),
        ("grid = 3", "no [[grid]]"),
        ("[[grid]]\nmodels = ['m']\ntasks = ['csts']\noptions = 3", "options is 3"),
    ],
)
def test_what_is_no_sweep(tmp_path, text, message):
    code, _, problems = called("--sweep", sweep_file(tmp_path, text))
    assert code == 2
    assert message in problems


def test_a_sweep_runs_what_each_model_can_do_and_goes_on_where_it_stopped(
    tmp_path, benchmark_file, static_encoder
):
    path = sweep_file(
        tmp_path,
        f"""
        [[grid]]
        models = ["baseline:chance", "{static_encoder}"]
        tasks = ["pairwise-sts", "multiple-choice-sts"]
        data = ["{benchmark_file}", "giccs-sample"]
        options = {{ shots = [0, 2] }}  # of no influence here: asked once all the same
        """,
    )
    arguments = ["--sweep", path, "--limit", 4, "--json", "-o", tmp_path / "r"]
    code, out, said = called(*arguments)
    assert code == 0, said
    results = json.loads(out)["results"]
    assert [(result["model"], result["environment"]["data"]) for result in results] == [
        (model, data)
        for model in ("baseline:chance", str(static_encoder))
        for data in (str(benchmark_file), "giccs-sample")
    ]
    assert "skipped: baseline:chance: returns no likelihoods" in said
    assert len(list((tmp_path / "r").glob("*.parquet"))) == 4
    again = called(*arguments)
    assert json.loads(again[1]) == json.loads(out)
    assert again[2].count("existing result") == 4


def test_a_model_that_fails_when_it_is_asked_does_not_stop_the_rest(tmp_path, static_encoder):
    """Each text is another vector, but there are fewer texts than dimensions: seen when they are there."""
    path = sweep_file(
        tmp_path,
        f"""
        [[grid]]
        models = ["{static_encoder}+whitening:999", "baseline:chance"]
        tasks = ["pairwise-sts"]
        options = {{ history = ["with", "without"] }}
        """,
    )
    code, out, said = called("--sweep", path, "--limit", 2, "-o", tmp_path / "r", "--quiet")
    assert code == 2
    assert "whitening:999" in said
    assert len(said.splitlines()) == 1
    assert out.count("\nbaseline:chance ") == 2
    assert len(list((tmp_path / "r").glob("*.json"))) == 2


def test_all_models_that_cannot_be_had_are_told_at_once(tmp_path):
    path = sweep_file(
        tmp_path,
        """
        [[grid]]
        models = ["baseline:x", "baseline:y"]
        tasks = ["pairwise-sts", "multiple-choice-sts"]
        [[grid]]
        models = ["baseline:z"]
        tasks = ["pairwise-sts"]
        """,
    )
    code, out, said = called("--sweep", path)
    assert (code, out) == (2, "")
    assert [line.split()[0] for line in said.splitlines()] == [
        "baseline:x:",
        "baseline:y:",
        "baseline:z:",
    ]


@pytest.mark.parametrize(
    ("more", "option"),
    [
        (["m"], "MODEL..."),
        (["--task", "csts"], "--task"),
        (["--data", "d"], "--data"),
        (["--history", "with"], "--history"),
        (["--recipe", "r.toml"], "--recipe"),
    ],
)
def test_what_a_sweep_says_itself_is_not_said_beside_it(more, option):
    code, _, said = called("--sweep", "s.toml", *more)
    assert code == 2
    assert f"{option} is set by the sweep; omit it with --sweep" in said


def test_a_sweep_that_leaves_everything_out_is_no_success(tmp_path):
    path = sweep_file(
        tmp_path,
        """
        [[grid]]
        models = ["baseline:chance"]
        tasks = ["multiple-choice-sts"]
        """,
    )
    code, out, said = called("--sweep", path, "-o", tmp_path / "r")
    assert (code, out) == (2, "")
    assert "baseline:chance: returns no likelihoods" in said


def test_a_sweep_over_settings_of_encoders(tmp_path, plain_encoder, monkeypatch):
    from giccs.models.sentence import SentenceModel

    loads = []
    load = SentenceModel._load_weights
    monkeypatch.setattr(SentenceModel, "_load_weights", lambda self: loads.append(1) or load(self))
    path = sweep_file(
        tmp_path,
        f"""
        [[grid]]
        models = ["{plain_encoder}", "baseline:chance"]
        tasks = ["pairwise-sts"]
        [grid.options]
        prompt = ["none", "e5=query: "]
        dimensions = [8, 16]
        """,
    )
    code, said, noted = called("--sweep", path, "--limit", 2, "--json", "-o", tmp_path / "r")
    assert code == 0, noted
    signatures = [result["signature"] for result in json.loads(said)["results"]]
    assert [(one.get("prompt", {}).get("name"), one["dimensions"]) for one in signatures] == [
        (None, 8),
        (None, 16),
        ("e5", 8),
        ("e5", 16),
    ]
    assert loads == [1]
    assert "skipped: baseline:chance: supports no prompts; omit --prompt" in noted
    path.write_text(path.read_text().replace("[8, 16]", '[0, "8"]').replace('"none"', '"a||b||c"'))
    with pytest.raises(InputError) as caught:
        read_sweep(path)
    assert [problem.message.partition(";")[0] for problem in caught.value.problems] == [
        "grid 1: options: prompt is ['a||b||c']",
        "grid 1: options: dimensions is 0",
        "grid 1: options: dimensions is '8'",
    ]
