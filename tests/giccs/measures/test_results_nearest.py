"""Why a result is computed anew: --verbose names what differs from the most like one in the folder."""

import logging
from dataclasses import replace

import pytest

from giccs.measures.results import Result, Store

SIGNATURE = {
    "model": "m",
    "data": "d1",
    "dtype": "float32",
    "bootstrap": {"seed": 0, "resamples": 9},
}


@pytest.fixture
def store(tmp_path):
    """A folder with two results: one on the same data, one on other data with another seed."""
    made = Store(tmp_path / "results")
    near = Result("m", "t", {}, (), SIGNATURE, {}, 0.0)
    made.add(near)
    far = {"model": "m", "data": "d2", "bootstrap": {"seed": 1, "resamples": 9}}
    made.add(replace(near, signature=far))
    return made


def said(store, caplog, signature, model="m"):
    with caplog.at_level(logging.DEBUG, "giccs.measures.results"):
        result = store.find(model, "t", signature)
    assert result is None
    return caplog.messages[-1]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"dtype": "bfloat16"}, "dtype"),
        ({"dtype": None}, "dtype"),
        ({"quantised": None}, "quantised"),
        ({"bootstrap": {"seed": 3, "resamples": 9}}, "bootstrap.seed"),
        ({"dtype": "bfloat16", "data": "d3"}, "data, dtype"),
        ({"bootstrap": 3}, "bootstrap"),
    ],
)
def test_the_keys_that_differ_from_the_nearest_are_named(store, caplog, change, differs):
    near = store.path("m", "t", SIGNATURE)
    told = said(store, caplog, SIGNATURE | change)
    assert told.endswith(f"; the most similar is {near}, with different {differs}")
    assert told.startswith(f"not reused: {store.path('m', 't', SIGNATURE | change)}; ")


def test_what_is_known_is_told(store, caplog):
    with caplog.at_level(logging.DEBUG, "giccs.measures.results"):
        assert store.find("m", "t", SIGNATURE)
    assert caplog.messages[-1] == f"known: {store.path('m', 't', SIGNATURE)}"


def test_where_there_is_nothing_like_it_that_is_told(store, caplog, tmp_path):
    told = said(store, caplog, SIGNATURE, model="other")
    assert told.endswith("; no result of this model and task")
    assert said(Store(tmp_path / "none"), caplog, SIGNATURE).endswith(
        "no result of this model and task"
    )


def test_a_damaged_neighbour_is_passed_over_as_it_is_without_verbose(store, caplog):
    near = store.path("m", "t", SIGNATURE)
    near.write_text("{")
    told = said(store, caplog, SIGNATURE | {"dtype": "bfloat16"})
    assert str(near) not in told.partition("; ")[2]
    assert told.endswith("with different data, dtype, bootstrap.seed")
