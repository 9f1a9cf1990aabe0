"""Names and predictions of results."""

import polars as pl
import pytest

from bws.base.problems import InputError
from bws.stats.estimates import Estimate
from giccs.measures.results import Result
from giccs_app.explorer.models import data


def result(model="m", history="without", value=0.5, groups=(), **signature):
    metrics = {"spearman": Estimate(value, value - 0.1, value + 0.1, 10)}
    said = {"task": "pairwise-sts", "model": model, "history": history, "template": history}
    return Result(model, "pairwise-sts", metrics, groups, {**said, **signature}, {}, 1.0)


def test_names_tell_twins_apart_by_what_differs_and_only_them():
    one = result("m", dtype="float32", revision="a")
    two = result("m", dtype="bfloat16", revision="a")
    with_history = result("m", "with", dtype="float32", revision="a")
    named = data.names([one, two, with_history])
    assert named[data.key(one)] == "m (dtype float32)"
    assert named[data.key(two)] == "m (dtype bfloat16)"
    assert named[data.key(with_history)] == "m"


def test_keys_are_those_of_the_store(tmp_path):
    from giccs.measures.results import Store

    one = result()
    assert Store(tmp_path).add(one).stem.endswith(f"--{data.key(one)}")


def test_two_prompts_of_one_model_have_two_names():
    one, two = (
        Result(
            "m",
            "multiple-choice-sts",
            {},
            (),
            {"history": "both", "template": {"name": name}},
            {},
            1,
        )
        for name in ("figure2-de-1", "figure2-en-1")
    )
    assert sorted(data.names([one, two]).values()) == [
        "m (template figure2-de-1)",
        "m (template figure2-en-1)",
    ]


def test_what_cannot_be_read_is_named(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 no table")
    other = tmp_path / "other.parquet"
    pl.DataFrame({"item_id": ["a"]}).write_parquet(other)
    words = tmp_path / "words.parquet"
    pl.DataFrame({"item_id": ["a"], "prediction": ["much"]}).write_parquet(words)
    for path, message in (
        (tmp_path / "none.parquet", "missing"), (broken, "read"), (other, "read"), (words, "read")
    ):  # fmt: skip
        with pytest.raises(InputError, match=message) as error:
            data.read_predictions(path, "pairs")
        assert str(path) in str(error.value)
        with pytest.raises(InputError, match=path.name):
            data.read_prompts(path, "x")
