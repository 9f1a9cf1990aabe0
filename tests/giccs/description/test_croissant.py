"""What giccs card writes is read by the libraries that it is written for."""

import hashlib
import json

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs.cli.card import card

SAMPLE = read_benchmark("giccs-sample")
CONFIG = """
title = "A benchmark"
license = "cc-by-4.0"
language = ["de"]
authors = ["A. B."]
citation = "A. B. (2026)"
version = "1.0.0"
published = "2026-01-31"
homepage = "https://example.org"
limits = "Few dialogues."
"""


@pytest.fixture(scope="module", params=["stated", "not stated"])
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("croissant")
    arguments = ["giccs-sample", "-o", str(folder / "out")]
    if request.param == "stated":
        (folder / "card.toml").write_text(CONFIG, "utf-8")
        arguments += ["--config", str(folder / "card.toml")]
    done = CliRunner().invoke(card, arguments)
    assert done.exit_code == 0, done.output
    return folder / "out"


@pytest.fixture(scope="module")
def croissant(folder):
    mlcroissant = pytest.importorskip("mlcroissant")
    return mlcroissant.Dataset(
        jsonld=str(folder / "croissant.json")
    )  # raises where it is not valid


def test_croissant_is_valid_and_says_what_is_stated(croissant, folder):
    metadata = croissant.metadata
    assert not metadata.ctx.issues.errors
    if "A benchmark" not in metadata.name:
        assert metadata.ctx.issues.warnings  # it asks for what is not stated
        return
    assert not metadata.ctx.issues.warnings
    assert metadata.name == "A benchmark (simulated annotations)"
    assert "simulated" in metadata.description.lower()
    assert metadata.version == "1.0.0"
    assert metadata.data_limitations == ["Few dialogues."]


def test_croissant_gives_every_item_with_its_turns(croissant):
    records = list(croissant.records("default"))
    assert len(records) == 300
    for record, item in zip(records, SAMPLE.items, strict=True):
        assert record["default/item_id"].decode() == item.item_id
        assert record["default/utterance"].decode() == item.utterance
        assert record["default/score"] == item.score
        assert record["default/n_turns"] == item.n_turns
        turns = [
            (turn["default/turns/speaker"].decode(), turn["default/turns/text"].decode())
            for turn in record["default/turns"]
        ]
        assert turns == [(turn.speaker, turn.text) for turn in item.turns]


def test_croissant_gives_every_judgment(croissant):
    records = list(croissant.records("judgments"))
    assert len(records) == 3000
    assert {record["judgments/annotator"].decode() for record in records} == {
        f"simulated-{number}" for number in range(1, 6)
    }


def test_files_are_told_by_their_digest(folder):
    document = json.loads((folder / "croissant.json").read_text("utf-8"))
    assert len(document["distribution"]) == 2
    for file in document["distribution"]:
        content = (folder / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"


def test_a_changed_file_is_noticed(folder, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with (copy / "data/test-00000-of-00001.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(mlcroissant.GenerationError) as caught:
        next(iter(mlcroissant.Dataset(jsonld=str(copy / "croissant.json")).records("default")))
    assert "hash" in str(caught.value.__cause__).lower()


def test_datasets_loads_both_configurations(folder, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    items = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path))
    assert len(items) == 300
    assert items[0]["turns"] == [
        {"speaker": turn.speaker, "text": turn.text} for turn in SAMPLE.items[0].turns
    ]
    assert items["score"][:] == [item.score for item in SAMPLE.items]
    judgments = datasets.load_dataset(
        str(folder), "judgments", split="test", cache_dir=str(tmp_path)
    )
    assert len(judgments) == 3000
    assert judgments.column_names[-4:] == ["best", "worst", "annotator", "shown"]
