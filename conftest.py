"""What is not collected: modules without examples, and those of `tests/test_examples.py`."""

import gc
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"
LOADS_FRAMEWORKS = re.compile(
    rb"^(from|import) (torch|transformers|sentence_transformers|inspect_ai)\b|^def __getattr__",
    re.M,
)
"""Sources of modules that import a framework, or would when their attributes are listed."""


def pytest_ignore_collect(collection_path):
    """Do not import such modules of the packages; tests import most others anyway."""
    if collection_path.suffix != ".py" or collection_path.is_relative_to(TESTS):
        return None
    source = collection_path.read_bytes()
    return True if b">>>" not in source or LOADS_FRAMEWORKS.search(source) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without garbage collections, and let later ones ignore the objects of this time, which remain.

    Streamlit collects garbage after each run of a page.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
