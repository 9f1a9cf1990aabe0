"""Modules that tests import on first use, so that collecting the tests imports no framework."""

from importlib import import_module
from importlib.util import find_spec

import pytest


class Deferred:
    """Stands for a module until an attribute is needed; the test is skipped if a library is missing."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith(("__", "_mock", "pytest_")) and attribute != "__version__":
            raise AttributeError(attribute)  # pytest asks every global variable for some
        is_own = self._name.startswith("giccs")
        return getattr((import_module if is_own else pytest.importorskip)(self._name), attribute)


def requires(*names):
    """Return the mark that skips tests where one of these libraries is not installed; none is imported."""
    missing = [name for name in names if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")
