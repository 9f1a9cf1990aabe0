"""Fixtures of commands for studies."""

import pytest


@pytest.fixture(scope="session")
def killable_process():
    """A process for commands that are killed; see killable_process.py."""
    pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")
    from tests.mturk.study.killable_process import KillableProcess

    made = KillableProcess()
    yield made
    made.close()
