"""Uploaded files: kept under harmless names, checked, told about."""

import io
import json

import polars as pl
import pytest

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer import uploads
from giccs_app.explorer.uploads import Upload, store_file, store_results


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Return the two files of a result, as giccs eval wrote them."""
    folder = tmp_path_factory.mktemp("results")
    benchmark = read_benchmark("giccs-sample").first(3)
    list(
        run(
            [open_model("baseline:char-ngram")],
            [PairwiseSTS(resamples=0)],
            benchmark,
            Store(folder),
        )
    )
    return [Upload(f"r{path.suffix}", path.read_bytes()) for path in sorted(folder.iterdir())]


def problems_of(call, *arguments):
    with pytest.raises(InputError) as caught:
        call(*arguments)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("mine.jsonl", "mine.jsonl"),
        ("../../etc/passwd.jsonl", "passwd.jsonl"),
        ("C:\\data\\Meine Sätze.JSONL", "Meine-Sätze.jsonl"),
        (".jsonl", "upload.jsonl"),
        ("..jsonl", "upload.jsonl"),
        ("a\0b$(x);`y`.jsonl", "a-b-x-y.jsonl"),
        ("x" * 300 + ".jsonl", "x" * 80 + ".jsonl"),
    ],
)
def test_a_file_is_kept_in_its_folder_under_a_harmless_name(tmp_path, name, kept):
    path = store_file(Upload(name, b"{}"), "benchmark", tmp_path)
    assert path == tmp_path / kept
    assert path.read_bytes() == b"{}"


@pytest.mark.parametrize("name", ["x.pkl", "x.jsonl.gz", "x.parquet", "jsonl", "x.jsonl.exe", ""])
def test_other_endings_are_refused(tmp_path, name):
    (problem,) = problems_of(store_file, Upload(name, b""), "benchmark", tmp_path)
    assert "expected one of: jsonl" in problem
    assert not list(tmp_path.iterdir())


def test_what_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UPLOAD_MEGABYTES", 1)
    (problem,) = problems_of(store_file, Upload("x.jsonl", b"x" * 2_000_000), "benchmark", tmp_path)
    assert "2 MB; expected at most 1 MB" in problem
    monkeypatch.setattr(uploads, "MAX_UPLOAD_ROWS", 3)
    (problem,) = problems_of(store_file, Upload("x.csv", b"\n" * 4), "judgments", tmp_path)
    assert "4 lines; expected at most 3" in problem
    assert not list(tmp_path.iterdir())


def test_a_result_is_found_by_the_store_with_its_predictions(tmp_path, result):
    assert store_results(result, tmp_path) == []
    store = Store(tmp_path)
    (found,) = store.results()
    assert store.predictions(found).height == 15


def test_a_result_without_predictions_is_kept(tmp_path, result):
    assert store_results([one for one in result if one.ending == "json"], tmp_path) == []
    assert len(list(Store(tmp_path).results())) == 1


def test_predictions_alone_are_told(tmp_path, result):
    (problem,) = store_results([one for one in result if one.ending == "parquet"], tmp_path)
    assert "is missing the result of the same name" in problem.message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe", b"\x80\x04]q\x00."]
)
def test_what_is_no_result_is_told_and_not_kept(tmp_path, content):
    (problem,) = store_results([Upload("r.json", content)], tmp_path)
    assert (problem.file, problem.message) == ("r.json", "is not a result of giccs eval")
    assert not list(tmp_path.iterdir())


def test_a_broken_table_is_told_and_the_result_kept(tmp_path, result):
    broken = [one for one in result if one.ending == "json"] + [Upload("r.parquet", b"PAR1")]
    (problem,) = store_results(broken, tmp_path)
    assert "not a valid Parquet file" in problem.message
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_a_table_of_too_many_rows_is_told(tmp_path, result, monkeypatch):
    table = io.BytesIO()
    pl.DataFrame({"item_id": ["x"] * 9}).write_parquet(table)
    monkeypatch.setattr(uploads, "MAX_UPLOAD_ROWS", 8)
    files = [one for one in result if one.ending == "json"] + [
        Upload("r.parquet", table.getvalue())
    ]
    (problem,) = store_results(files, tmp_path)
    assert "9 rows; expected at most 8" in problem.message


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("model", "../../evil", 1),
        ("task", "../evil", 1),
        ("task", "/evil", 1),
        ("signature", [], 0),
    ],
)
def test_a_result_cannot_choose_where_it_is_kept(tmp_path, result, field, value, kept):
    folder = tmp_path / "in"
    folder.mkdir()
    document = json.loads(next(one.content for one in result if one.ending == "json"))
    del document["sha256"]  # as a stranger would, or it is seen to be damaged
    content = json.dumps(document | {field: value}).encode()
    assert len(store_results([Upload("r.json", content)], folder)) == 1 - kept
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == kept
    assert len(list(folder.iterdir())) == kept
