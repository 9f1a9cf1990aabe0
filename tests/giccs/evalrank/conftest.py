"""Vectors that one test's model gave are not for another's."""

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path_factory.mktemp("cache")))
