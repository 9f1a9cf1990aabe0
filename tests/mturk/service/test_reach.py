"""Reachability of the service: addresses, ports, host names and open connections."""

import http.client
import json
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from bws.base.problems import InputError
from mturk.service import connections, server
from mturk.service.clock import ManualClock
from mturk.service.server import ServerOptions, serve
from tests.mturk.new_database import new_database

TARGET = "MTurkRequesterServiceV20170117."


def status(address, path="/work/", name=None):
    """Return the status of a page requested with a Host header."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=300)
    connection.request("GET", path, headers={"Host": name or f"{host}:{port}"})
    result = connection.getresponse().status
    connection.close()
    return result


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.2",
        "localhost",
        pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    ],
)
def test_every_address_of_this_machine_serves_under_its_own_name(endpoint_running, tmp_path, host):
    with endpoint_running(tmp_path, ServerOptions(host=host, port=0)) as service:
        assert status(service.site) == 200
        assert status(service.site, name="elsewhere.example") == 400
        assert service.client().get_account_balance()["AvailableBalance"] == "10000.00"


@pytest.mark.parametrize(
    "options",
    [
        {"host": "0.0.0.0"},
        {"host": "elsewhere.example"},
        {"site_url": "https://work.example.org"},
        {"frame_url": "https://questions.example.org"},
    ],
)
def test_nobody_else_reaches_it_without_keys_through_a_proxy_neither(tmp_path, options):
    database = new_database(tmp_path / "hits.db")
    with pytest.raises(InputError, match="requires keys"):
        serve(database, ManualClock(0.0), ServerOptions(port=0, **options), lambda _, stop: stop())
    database.close()


def test_the_last_port_has_no_next_one():
    """Tests the function, because the port may be used by another program."""
    assert server._frame_port(ServerOptions(port=65_535)) == 0
    assert server._frame_port(ServerOptions(port=8765)) == 8766
    assert server._frame_port(ServerOptions(port=0)) == 0
    assert server._frame_port(ServerOptions(port=8765, frame_port=9000)) == 9000


def test_a_connection_is_kept_for_many_requests_after_a_refusal_too(service):
    connection = http.client.HTTPConnection(service.api.removeprefix("http://"), timeout=300)
    connection.connect()
    first, answers = connection.sock, []
    for operation in ("GetAccountBalance", "NoSuchThing", "GetAccountBalance"):
        connection.request("POST", "/", b"{}", {"X-Amz-Target": TARGET + operation})
        answer = connection.getresponse()
        answers.append((answer.status, sorted(json.loads(answer.read()))))
        assert connection.sock is first
    connection.close()
    assert [code for code, _ in answers] == [200, 400, 200]
    assert answers[0] == answers[2]


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"POST / HTTP/1.1\r\nHo",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{",
    ],
)
def test_a_connection_without_a_complete_request_is_closed(
    endpoint_running, tmp_path, monkeypatch, begin
):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    with endpoint_running(tmp_path) as service:
        host, _, port = service.site.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as idle:
            began = time.monotonic()
            try:
                idle.sendall(begin)
                assert idle.recv(1) == b""
            except ConnectionResetError:
                pass
            assert time.monotonic() - began < 30
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        for _ in range(3):  # a connection with complete requests is kept
            connection.request("POST", "/", b"{}", {"X-Amz-Target": TARGET + "GetAccountBalance"})
            assert connection.getresponse().read()
            time.sleep(0.3)
        connection.close()


def test_many_half_open_connections_of_a_client_keep_nobody_out(
    endpoint_running, tmp_path, monkeypatch
):
    """The oldest of the client with the most are closed; another client has time for its request."""
    monkeypatch.setattr(connections, "MAX_WAITING", 20)
    head = b"GET /healthz HTTP/1.1\r\n"
    with endpoint_running(tmp_path) as service, ExitStack() as stack:
        address = urlsplit(service.site)
        place = (address.hostname, address.port)

        def connect(source):
            made = socket.create_connection(place, timeout=60, source_address=(source, 0))
            made.sendall(head)
            return stack.enter_context(made)

        slow = connect("127.0.0.3")
        many = [connect("127.0.0.2") for _ in range(60)]
        assert status(service.site) == 200
        for closed in many[:40]:
            assert closed.recv(1) == b""
        for one in (slow, many[-1]):
            one.sendall(f"Host: {address.netloc}\r\n\r\n".encode())
            assert one.recv(12) == b"HTTP/1.1 200"
        stack.close()
        deadline = time.monotonic() + 60
        while connections._waiting and time.monotonic() < deadline:
            time.sleep(0.05)
        assert connections._waiting == {}


@pytest.mark.parametrize(
    "begin",
    [
        b"GET / HTTP/1.1\r\nX-Endless: ",
        b"GET /",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    ],
)
def test_headers_without_end_are_refused(service, begin):
    host, _, port = service.site.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as endless:
        try:
            endless.sendall(begin + b"a" * 200_000)
            answer = endless.recv(12)
        except ConnectionError:
            answer = b""  # the connection was closed with the response in it
        assert answer in (b"HTTP/1.1 400", b"")
