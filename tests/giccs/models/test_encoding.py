"""Batch size: grows while it gains, shrinks where memory ends, and changes no result."""

import numpy as np
import pytest

from giccs.models.encoding import LARGEST, BatchSize, encode_in_batches

TEXTS = [f"{'x' * (n % 37)}{n}" for n in range(500)]


def encode(texts):
    return np.array([[len(text), text.count("x")] for text in texts], dtype=np.float32)


def encoded(encode, size, texts=TEXTS):
    vectors = np.full((len(texts), 2), np.nan, dtype=np.float32)
    for places, batch in encode_in_batches(encode, texts, size):
        vectors[places] = batch
    return vectors


@pytest.mark.parametrize("size", [None, 1, 7, 500, 9999])
def test_every_text_gets_its_own_vector_whatever_the_size(size):
    assert (encoded(encode, BatchSize(size)) == encode(TEXTS)).all()


def small_memory(limit, error):
    seen = []

    def encode_or_fail(texts):
        seen.append(len(texts))
        if len(texts) > limit:
            raise error
        return encode(texts)

    return encode_or_fail, seen


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")]
)
def test_it_shrinks_on_out_of_memory_and_goes_on(error):
    encode_or_fail, seen = small_memory(10, error)
    assert (encoded(encode_or_fail, BatchSize(64)) == encode(TEXTS)).all()
    assert seen[:4] == [64, 32, 16, 8]  # and never more again
    assert set(seen[3:-1]) == {8}


def test_one_text_that_does_not_fit_is_an_error():
    encode_or_fail, _ = small_memory(0, MemoryError())
    with pytest.raises(MemoryError, match="a single text does not fit"):
        encoded(encode_or_fail, BatchSize(4))


def test_other_faults_are_not_taken_for_a_lack_of_memory():
    encode_or_fail, _ = small_memory(10, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        encoded(encode_or_fail, BatchSize(64))


def test_it_grows_while_a_larger_batch_is_faster():
    size = BatchSize()
    seconds_a_call = 1.0  # the same for any batch: doubling always gains
    while size.growing:
        size.took(size.size, size.size, seconds_a_call)
    assert size.size == LARGEST


def test_it_steps_back_when_a_larger_batch_gains_nothing():
    size = BatchSize()
    first = size.size
    size.took(first, 100, 1.0)
    size.took(2 * first, 200, 2.0)  # the same speed
    assert (size.size, size.growing) == (2 * first, True)
    size.took(2 * first, 200, 2.0)
    assert (size.size, size.growing) == (first, False)


def test_a_slow_first_batch_of_a_size_does_not_stop_the_growth():
    size, sizes = BatchSize(), set()
    while size.growing:
        seconds = 1.0 if size.size in sizes else 10.0
        sizes.add(size.size)
        size.took(size.size, size.size, seconds)
    assert size.size == LARGEST


def test_a_batch_that_was_not_full_teaches_nothing():
    size = BatchSize()
    first = size.size
    size.took(first - 1, 10, 0.001)
    assert size.size == first
