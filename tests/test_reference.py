"""The reference of the Python interface: its examples run after the imports that the page shows."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import bws
import giccs
from giccs import benchmark, tasks

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"


def documented():
    """Yield the names and docstrings of public objects and their public methods."""
    modules = {module: module.__all__ for module in (bws, giccs, benchmark)} | {tasks: ["Task"]}
    for module, names in modules.items():
        for name in names:
            entry = getattr(module, name)
            yield f"{module.__name__}.{name}", entry.__doc__
            if inspect.isclass(entry):
                for method in vars(entry):
                    if not method.startswith("_"):
                        yield f"{module.__name__}.{name}.{method}", getattr(entry, method).__doc__


EXAMPLES = {name: text for name, text in documented() if text and ">>>" in text}


@pytest.fixture(scope="module")
def imported():
    names = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1], names)
    return names


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_after_the_imports_of_the_page(name, imported, monkeypatch):
    monkeypatch.setattr(tasks, "_REGISTERED", {})  # examples register tasks
    text = inspect.cleandoc(EXAMPLES[name])
    example = doctest.DocTestParser().get_doctest(text, dict(imported), name, None, 0)
    output = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=output.append)
    assert not output, "".join(output)
