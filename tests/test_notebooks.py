"""The notebooks of the documentation run, and print what is stored in them."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
EVERY_RUN = "study-with-pandas"
"""The notebook that make test runs; it starts a kernel as the others do, and loads no framework."""
NUMBER = re.compile(r"-?\d+\.\d+")


def printed(notebook):
    """Return the texts below each cell of code, without warnings, which depend on what is installed."""
    return [
        "".join(
            out.get("text") or out["data"]["text/plain"]
            for out in cell.outputs
            if out.get("name") != "stderr"
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, marks=() if path.stem == EVERY_RUN else pytest.mark.nightly, id=path.stem
        )
        for path in NOTEBOOKS
    ],
)
def test_the_notebook_prints_what_is_stored(path, tmp_path, monkeypatch):
    """Word for word; numbers may differ in the last digit from machine to machine."""
    for module in ("ipykernel", "pandas", "pyarrow"):
        pytest.importorskip(module, reason="needs the extra docs")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra docs")
    import nbformat

    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    stored = nbformat.read(path, as_version=4)
    run = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": tmp_path}}
    nbclient.NotebookClient(run, timeout=600, kernel_name="python3", resources=place).execute()
    for now, then in zip(printed(run), printed(stored), strict=True):
        assert NUMBER.sub("#", now).split() == NUMBER.sub("#", then).split()
        for one, other in zip(NUMBER.findall(now), NUMBER.findall(then), strict=True):
            assert abs(float(one) - float(other)) < 0.0101


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 3
    assert EVERY_RUN in [path.stem for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_says_for_whom_it_is(path):
    first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
    assert first.startswith("# ")
    assert first.partition("\n\n")[2].startswith("*For ")
