"""The noise ceiling that is stored with results: computed once, never used for other data."""

import json

import pytest

from giccs.benchmark import Benchmark, read_benchmark
from giccs.measures import ceiling as stored_ceiling
from giccs.measures.ceiling import (
    cached_ceiling,
    ceiling_path,
    judgments_digest,
    load_judgments,
    read_ceiling,
)


@pytest.fixture(scope="module")
def sample():
    return read_benchmark("giccs-sample").first(8)


@pytest.fixture(scope="module")
def judgments(sample):
    return load_judgments(sample)


@pytest.fixture
def notes():
    return []


def stored(folder, sample, judgments, notes):
    return cached_ceiling(folder, judgments, sample, notes.append)


def test_it_is_computed_once(tmp_path, sample, judgments, notes, monkeypatch):
    first = stored(tmp_path, sample, judgments, notes)
    monkeypatch.setattr(stored_ceiling, "noise_ceiling", None)  # a second call fails
    assert stored(tmp_path, sample, judgments, notes) == first
    assert read_ceiling(tmp_path, sample.fingerprint, None, notes.append) == first
    assert not notes
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [tmp_path / "ceiling" / f"{sample.fingerprint[:12]}.json"]


def test_it_is_not_used_for_other_data_or_judgments(tmp_path, sample, judgments, notes):
    first = stored(tmp_path, sample, judgments, notes)
    part = Benchmark("part", sample.items[:35])
    path = ceiling_path(tmp_path, sample.fingerprint)
    assert read_ceiling(tmp_path, part.fingerprint, None, notes.append) is None
    assert not notes
    path.rename(ceiling_path(tmp_path, part.fingerprint))
    assert read_ceiling(tmp_path, part.fingerprint, None, notes.append) is None
    assert "different data" in notes.pop()
    assert stored(tmp_path, sample, judgments, notes) == first
    assert read_ceiling(tmp_path, sample.fingerprint, "0" * 64, notes.append) is None
    assert "different judgments" in notes.pop()
    judged = judgments_digest(judgments)
    assert read_ceiling(tmp_path, sample.fingerprint, judged, notes.append) == first


@pytest.mark.parametrize("damage", ["{", "[]", "null", '{"signature": {}, "ceiling": {}}'])
def test_a_damaged_file_is_ignored_and_written_anew(tmp_path, sample, judgments, notes, damage):
    first = stored(tmp_path, sample, judgments, notes)
    path = ceiling_path(tmp_path, sample.fingerprint)
    path.write_text(damage, "utf-8")
    assert stored(tmp_path, sample, judgments, notes) == first
    assert notes == [f"{path} is damaged and ignored"]
    assert read_ceiling(tmp_path, sample.fingerprint, None, notes.append) == first


def test_a_changed_number_and_an_older_method_are_ignored(
    tmp_path, sample, judgments, notes, monkeypatch
):
    stored(tmp_path, sample, judgments, notes)
    path = ceiling_path(tmp_path, sample.fingerprint)
    monkeypatch.setattr(stored_ceiling, "METHOD", "a later one")
    assert read_ceiling(tmp_path, sample.fingerprint, None, notes.append) is None
    assert "different method" in notes.pop()
    monkeypatch.undo()
    document = json.loads(path.read_text("utf-8"))
    document["ceiling"]["pearson"]["value"] = 0.5
    path.write_text(json.dumps(document), "utf-8")
    assert read_ceiling(tmp_path, sample.fingerprint, None, notes.append) is None
    assert "is damaged and ignored" in notes.pop()


def test_a_folder_that_cannot_be_written_to_is_noted(
    tmp_path, sample, judgments, notes, monkeypatch
):
    def full(path, content):
        raise OSError("no space left on device")

    monkeypatch.setattr(stored_ceiling, "write_atomic", full)
    assert stored(tmp_path, sample, judgments, notes)["pearson"].value > 0.5
    assert notes == ["the noise ceiling is not stored: no space left on device"]
