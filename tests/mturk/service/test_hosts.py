"""Requests to other hosts are refused, also after accepted ones."""

import pytest

pytest.importorskip("starlette", reason="the extra giccs[study] is not installed")

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from mturk.service.hosts import MAX_ACCEPTED, TrustedHosts


def client():
    routes = [Route("/", lambda request: PlainTextResponse("yes"))]
    guard = Middleware(TrustedHosts, hosts=["localhost", "*.example.org"])
    return TestClient(Starlette(routes=routes, middleware=[guard]))


def test_hosts_are_checked_before_and_after_they_are_remembered():
    asking = client()
    for _ in range(3):
        for host in ("localhost", "localhost:8765", "a.example.org"):
            assert asking.get("/", headers={"Host": host}).text == "yes"
        for host in ("elsewhere", "localhost.elsewhere", ""):
            assert asking.get("/", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("second", ["elsewhere", "localhost"])
def test_several_headers_are_not_taken_for_the_first(second):
    asking = client()
    assert asking.get("/", headers={"Host": "localhost"}).status_code == 200
    several = [("Host", second), ("Host", "localhost")]
    expected = client().get("/", headers=several).status_code
    assert asking.get("/", headers=several).status_code == expected


def test_few_hosts_are_remembered():
    asking = client()
    for number in range(2 * MAX_ACCEPTED):
        assert asking.get("/", headers={"Host": f"h{number}.example.org"}).status_code == 200
    assert len(asking.app.middleware_stack.app._accepted) == MAX_ACCEPTED
