"""The programs for experiment trackers on docs/how-to/continuous-integration.md."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "continuous-integration.md"
PROGRAMS = dict(
    re.findall(r"```python\n# track_(\w+)\.py\n(.*?)```", PAGE.read_text("utf-8"), re.S)
)
RESULTS = {
    "results": [
        {
            "model": "baseline:chance",
            "task": "pairwise-sts",
            "metrics": {"spearman": {"value": 0.25}, "pearson": {"value": None}},
            "signature": {"data": "9acc"},
        }
    ]
}


@pytest.fixture
def track(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(RESULTS), "utf-8")

    def run(name):
        uri = f"sqlite:///{tmp_path}/mlflow.db"
        environment = os.environ | {"MLFLOW_TRACKING_URI": uri, "WANDB_MODE": "offline"}
        subprocess.run(
            [sys.executable, "-c", PROGRAMS[name]], cwd=tmp_path, env=environment, check=True
        )
        return tmp_path

    return run


def test_the_programs_have_ten_lines():
    assert {name: text.count("\n") <= 10 for name, text in PROGRAMS.items()} == {
        "mlflow": True, "tensorboard": True, "wandb": True,
    }  # fmt: skip
    for text in PROGRAMS.values():
        compile(text, "program", "exec")


def test_the_results_have_these_fields(tmp_path):
    from click.testing import CliRunner

    from giccs_app.cli import main

    call = "eval baseline:chance --task pairwise-sts --history without --limit 6 --json -o"
    document = json.loads(CliRunner().invoke(main, [*call.split(), str(tmp_path)]).stdout)
    result = document["results"][0]
    assert RESULTS["results"][0].keys() <= result.keys()
    assert "data" in result["signature"]
    assert {"spearman", "pearson"} <= result["metrics"].keys()


def test_mlflow_has_the_metrics(track):
    mlflow = pytest.importorskip("mlflow")
    folder = track("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.metrics == {"pairwise-sts.spearman": 0.25}
    assert run.info.run_name == "baseline:chance"


def test_wandb_stores_a_run_offline(track):
    pytest.importorskip("wandb")
    assert [*track("wandb").glob("wandb/offline-run-*/run-*.wandb")]


def test_tensorboard_has_the_metrics(track):
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    folder = track("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "runs" / "baseline_chance"))
    events.Reload()
    assert events.Tags()["scalars"] == ["pairwise-sts/spearman"]
    assert events.Scalars("pairwise-sts/spearman")[0].value == 0.25
