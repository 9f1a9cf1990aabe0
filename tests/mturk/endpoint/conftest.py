"""The service over real sockets, for the tests of its protocol."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra giccs[study] is not installed")

SPEC = importlib.util.spec_from_file_location(
    "running_service", Path(__file__).with_name("running.py")
)
RUNNING = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(RUNNING)


@pytest.fixture
def service(tmp_path):
    """A service on free ports with .api, .site, .database, .clock, .work and .client()."""
    folder = tmp_path / "service"
    folder.mkdir()
    with RUNNING.running(folder) as found:
        yield found
