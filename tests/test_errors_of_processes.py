"""Errors of other processes, which are pickled, arrive with their problems."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from bws.base.file_uses import SameFileError
from bws.base.problems import InputError, Problem
from giccs.models.model_errors import ModelMemoryError, UnsupportedOptionError

ERRORS = [
    InputError([Problem("a.csv", 2, "no best"), Problem("a.csv", None, "empty")]),
    SameFileError(Problem("a.csv", None, "is an input")),
    UnsupportedOptionError("m", "returns no vectors", "dimensions"),
    ModelMemoryError("m", "too large"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_pickled_error_is_the_same(error):
    restored = pickle.loads(pickle.dumps(error))
    assert type(restored) is type(error)
    assert str(restored) == str(error)
    assert vars(restored) == vars(error)


def test_an_error_of_a_pool_is_raised():
    from bws.files import read_judgments

    with ProcessPoolExecutor(1, get_context("spawn")) as pool, pytest.raises(InputError) as caught:
        pool.submit(read_judgments, "missing.csv").result()
    assert [problem.file for problem in caught.value.problems] == ["missing.csv"]
