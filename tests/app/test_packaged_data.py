"""giccs data: what the package contains is listed, and copied without loss."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bws.base import text
from giccs.benchmark import SAMPLES, read_benchmark
from giccs.csts.task_data import read_task_data
from giccs.evaluation.recipe import read_recipe
from giccs_app.cli import main
from mturk.study.settings_file import read_settings

ROOT = Path(__file__).parents[2]
RECIPES = [
    "c-sts-paper",
    "c-sts-stsb-paper",
    "c-sts-sweep",
    "evalrank-paper",
    "giccs-paper",
    "l-csts-paper",
]


def data(*arguments):
    return CliRunner().invoke(main, ["data", *map(str, arguments)], prog_name="giccs")


def test_everything_is_listed():
    listed = json.loads(data("list", "--json").stdout)["data"]
    kinds = {kind: [entry["name"] for entry in listed if entry["kind"] == kind]
             for kind in ("sample", "recipe", "settings")}  # fmt: skip
    assert kinds["sample"] == ["giccs-sample", "giccs-sample-en", "csts-sample"] == [*text.SAMPLES]
    assert kinds["recipe"] == RECIPES
    assert {"hits-tuples", "hits-conditions", "hits-verification"} <= {*kinds["settings"]}
    table = data("list").stdout
    assert all(f"\n{entry['name']} " in table for entry in listed)
    assert "60 German dialogues" in table
    assert "60 English dialogues" in table
    assert max(map(len, table.splitlines())) <= 100


def test_copies_of_samples_are_the_samples(tmp_path):
    for name, folder in SAMPLES.items():
        assert data("copy", name, tmp_path).exit_code == 0
        copied = read_benchmark(tmp_path / name / "benchmark.jsonl")
        assert copied.fingerprint == read_benchmark(name).fingerprint
        originals = {file.name: file for file in (ROOT / "giccs" / "data" / folder).glob("*.[!p]*")}
        assert {file.name for file in (tmp_path / name).iterdir()} == originals.keys()
        for name_of_file, original in originals.items():
            assert (tmp_path / name / name_of_file).read_bytes() == original.read_bytes()
    assert data("copy", "csts-sample", tmp_path / "pairs").exit_code == 0
    copied = read_task_data(tmp_path / "pairs")
    assert copied.fingerprint == read_task_data("csts-sample").fingerprint


def test_every_file_can_be_used(tmp_path):
    for name in RECIPES:
        assert data("copy", name, tmp_path).exit_code == 0
    assert read_recipe(tmp_path / "giccs-paper.toml").runs == read_recipe("giccs-paper").runs
    assert data("copy", "hits-conditions", tmp_path / "hits.toml").exit_code == 0
    assert read_settings(tmp_path / "hits.toml", "en").kind == "conditions"


def test_a_copy_overwrites_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, target in (("giccs-paper", "giccs-paper.toml"), ("csts-sample", "csts-sample")):
        assert data("copy", name).output.startswith(target)
        before = sorted(path.name for path in tmp_path.rglob("*"))
        result = data("copy", name)
        assert result.exit_code == 2
        assert f"{target}: exists and is not overwritten" in result.stderr
        assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("name", "guess"), [("giccs-smaple", "giccs-sample"), ("paper", "")])
def test_a_misspelt_name_gets_a_suggestion(name, guess):
    result = data("copy", name)
    assert result.exit_code == 2
    assert (
        f"no data '{name}'; expected one of giccs-sample, giccs-sample-en, csts-sample, "
        in result.stderr
    )
    assert (f"did you mean '{guess}'?" in result.stderr) == bool(guess)
