"""Fixtures of the service over real sockets."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra giccs[study] is not installed")


def _module(name, folder=Path(__file__).parent):
    """Import a module from a folder that is not a package."""
    spec = importlib.util.spec_from_file_location(f"endpoint_{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNING, REQUESTING = _module("running"), _module("requesting")
POSTGRESQL = _module("postgresql", Path(__file__).parents[3] / "benchmarks")


@pytest.fixture
def service(tmp_path):
    """A service on free ports with .api, .site, .database, .clock, .work and .client()."""
    folder = tmp_path / "service"
    folder.mkdir()
    with RUNNING.running(folder) as result:
        yield result


@pytest.fixture
def requester(service):
    """A requester with a separate service."""
    return REQUESTING.Requester(service)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A requester with a service shared by all tests of a module, including objects of other tests."""
    with RUNNING.running(tmp_path_factory.mktemp("service")) as result:
        yield REQUESTING.Requester(result)


@pytest.fixture(scope="session")
def examples():
    """Example parameters: HIT, KIND, QUESTION, QUALIFICATION, SCHEMAS, and service_model()."""
    return REQUESTING


@pytest.fixture(scope="session")
def endpoint_running():
    """Return `running`, a context manager of a service with custom options."""
    return RUNNING.running


@pytest.fixture(scope="session")
def cluster():
    """A PostgreSQL server of the tests: .create(name) creates an empty database."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        with POSTGRESQL.cluster(durable=False) as result:
            yield result
    except POSTGRESQL.NoServerError as error:
        pytest.skip(str(error))
