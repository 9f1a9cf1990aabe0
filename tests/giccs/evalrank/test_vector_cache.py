"""Vectors that were kept are those that the model gave, or are asked for again."""

import numpy as np

from giccs.evalrank.vector_cache import cached_vectors
from giccs.progress import silent

TEXTS = ["ja", "nein", "ja", "vielleicht"]


class Counting:
    """A model that counts how often it is asked."""

    name, identity = "counting", {"kind": "test"}

    def __init__(self):
        self.asked = 0

    def vectors(self, texts, progress):
        self.asked += 1
        return np.array([[len(text), text.count("e") / 3] for text in texts])


def test_a_damaged_file_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path))
    model = Counting()
    vectors = cached_vectors(model, TEXTS, silent)
    (path,) = (tmp_path / "vectors").iterdir()
    whole = path.read_bytes()
    flipped = [
        whole[:n] + bytes([whole[n] ^ 1 << n % 8]) + whole[n + 1 :] for n in range(len(whole))
    ]
    for damaged in [*flipped, b"", whole[:-1], whole[: len(whole) // 2]]:
        path.write_bytes(damaged)
        assert np.array_equal(cached_vectors(model, TEXTS, silent), vectors)
    assert model.asked > len(flipped) // 2  # some bytes, such as the date, mean nothing
    asked = model.asked
    assert np.array_equal(cached_vectors(model, TEXTS, silent), vectors)
    assert model.asked == asked
