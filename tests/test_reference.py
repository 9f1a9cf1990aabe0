"""The reference of the Python interface: its examples run after the imports that the page shows."""

import doctest
import inspect
import re
from pathlib import Path

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


def test_the_examples_run_after_the_imports_of_the_page(monkeypatch):
    imported = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1], imported)
    examples = {name: text for name, text in documented() if text and ">>>" in text}
    assert len(examples) > 25
    output = []
    for name, text in examples.items():
        monkeypatch.setattr(tasks, "_REGISTERED", {})  # examples register tasks
        example = doctest.DocTestParser().get_doctest(
            inspect.cleandoc(text), dict(imported), name, None, 0
        )
        doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
            example, out=output.append
        )
    assert not output, "".join(output)
