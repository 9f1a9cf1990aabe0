"""Examples in docstrings of modules that load a framework, which `conftest.py` does not collect."""

import doctest
from importlib import import_module

import pytest

from conftest import LOADS_FRAMEWORKS, TESTS

ROOT = TESTS.parent
MODULES = [
    str(path.relative_to(ROOT))
    for folder in (ROOT / "bws", ROOT / "giccs", ROOT / "mturk", ROOT / "app" / "giccs_app")
    for path in sorted(folder.rglob("*.py"))
    if b">>>" in (source := path.read_bytes()) and LOADS_FRAMEWORKS.search(source)
]


@pytest.mark.parametrize("path", MODULES)
def test_examples_of_the_module_run(path):
    name = path.removeprefix("app/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert results.attempted
    assert not results.failed
