"""Starting, stopping and reaching the service as a process and over its sockets."""

import json
import os
import signal
import socket
import sqlite3
import stat
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from mturk.cli import main
from mturk.service.monitoring import logs

KEYS = '{"lab": "a secret of the laboratory"}'


@pytest.fixture
def start(commands, tmp_path):
    """Return a function that starts a service in a process."""

    def started(*arguments, **environment):
        words = ("mturk-hits", "serve", "--db", tmp_path / "hits.db", *arguments)
        return commands.start(*words, env=os.environ | environment)

    return started


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Return a function that returns the message of a failing start in this process."""
    monkeypatch.setattr(logs, "configure", lambda form, level: None)

    def message(*arguments, **environment):
        words = ["serve", "--db", str(tmp_path / "hits.db"), *arguments]
        result = CliRunner().invoke(main, words, env=environment)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        return result.stderr

    return message


def get(url, headers=None, data=None):
    request = urllib.request.Request(url, data=data, headers=headers or {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_one_line_tells_that_it_is_ready_and_a_signal_ends_it(tmp_path, start):
    for number in (signal.SIGTERM, signal.SIGINT):
        process = start("--port", "0")
        line = process.stdout.readline()
        api, site = (word for word in line.split() if word.startswith("http://"))
        assert site == f"{api}/work/"
        assert get(site)[0] == 200
        process.send_signal(number)
        remainder, _ = process.communicate(timeout=300)
        assert (process.returncode, remainder) == (0, "")
    assert stat.S_IMODE((tmp_path / "hits.db").stat().st_mode) == 0o600


def test_recruiting_links_are_told_and_not_logged(tmp_path, start):
    """Standard error is the log, with one JSON object per line if requested."""
    (tmp_path / "studies.toml").write_text('[pilot]\ncompletion_code = "C1"\n')
    studies = str(tmp_path / "studies.toml")
    call = ("--port", "0", "--studies", studies, "--log", "json", "--verbose")
    process = start(*call)
    lines = [process.stdout.readline() for _ in range(2)]
    link = lines[1].removeprefix("recruiting link of pilot: ").strip()
    participant = "5f3c1a2b4d5e6f708192a3b4"
    assert get(f"{link}?PROLIFIC_PID={participant}")[0] == 200
    process.terminate()
    _, log = process.communicate(timeout=300)
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events[0].startswith("giccs ")
    assert "answered" in events
    for private in (link.rpartition("/")[2], participant):
        assert private.lower() not in log.lower()


def test_json_names_all_addresses_and_numbers_are_told_on_a_port_of_their_own(tmp_path, start):
    (tmp_path / "studies.toml").write_text('[pilot]\ncompletion_code = "C1"\n')
    studies = ("--studies", str(tmp_path / "studies.toml"))
    process = start("--port", "0", "--json", "--metrics", "127.0.0.1:0", *studies)
    addresses = json.loads(process.stdout.readline())
    assert addresses.keys() == {"api", "site", "frames", "metrics", "studies"}
    assert len({addresses["api"], addresses["frames"], addresses["metrics"]}) == 3
    assert addresses["studies"]["pilot"].startswith(f"{addresses['api']}/join/")
    status, page = get(addresses["metrics"])
    assert status == 200
    assert "giccs_database_up 1.0" in page
    assert get(f"{addresses['api']}/metrics")[0] == 404
    assert get(addresses["metrics"], {"Host": "elsewhere.example"})[0] == 400
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == 0


def test_beyond_this_machine_keys_are_needed(start, refused):
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        assert "requires keys" in refused("--host", host, "--port", "0")
    public = ("--host", "0.0.0.0", "--port", "0")
    urls = ("--site-url", "http://work.example.org", "--frame-url", "https://questions.example.org")
    output = refused(*public, GICCS_KEYS=KEYS)
    assert "--site-url: is required with --host 0.0.0.0" in output
    assert "--frame-url: is required" in output
    process = start(*public, *urls, GICCS_KEYS=KEYS)
    assert "http://work.example.org" in process.stdout.readline()
    process.terminate()
    _, log = process.communicate(timeout=300)
    assert "http://work.example.org is not encrypted" in log
    assert "questions.example.org is not" not in log


def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path, start, refused):
    taken = socket.create_server(("127.0.0.1", 0))
    port = str(taken.getsockname()[1])
    process = start("--port", port)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (2, ""), err
    assert "cannot listen" in err
    assert "Traceback" not in err
    output = refused("--port", "0", "--metrics", f"127.0.0.1:{port}")
    assert "choose another --metrics" in output
    taken.close()
    (tmp_path / "text.db").write_text("no database")
    (tmp_path / "keys.toml").write_text('lab = "a secret of the laboratory"')
    (tmp_path / "keys.toml").chmod(0o644)
    for arguments, output in (
        (["--db", str(tmp_path / "text.db")], "cannot be used as a database"),
        (["--db", str(tmp_path)], "cannot be used as a database"),
        (["--keys", str(tmp_path / "keys.toml")], "readable by other users"),
        (["--keys", str(tmp_path / "none.toml")], "none.toml"),
        (["--balance", "much"], "US dollars such as"),
        (["--site-url", "http://localhost/path"], "without a path"),
        (["--metrics", "9464"], "such as 127.0.0.1:9464"),
        (["--metrics", "127.0.0.1:65536"], "such as 127.0.0.1:9464"),
    ):
        assert output in refused("--port", "0", *arguments), arguments


@pytest.mark.parametrize("keys", ["", "{}", '{"a": "short"}', "[1]"])
def test_keys_that_protect_nothing_are_refused(refused, keys):
    output = refused("--port", "0", GICCS_KEYS=keys)
    assert "GICCS_KEYS" in output
    assert "short" not in output.replace("must be a string of", "")


def test_without_keys_only_names_of_this_machine_are_answered(service):
    port = service.api.rsplit(":", 1)[1]
    assert get(service.site + "/work/", {"Host": f"localhost:{port}"})[0] == 200
    assert get(service.site + "/work/", {"Host": "elsewhere.example"})[0] == 400


def test_what_a_browser_can_send_from_another_page_does_nothing(service):
    """Without the header that requires a preflight request, no operation is executed."""
    status, body = get(service.api + "/", {"Content-Type": "text/plain"}, b'{"HITId": "3A"}')
    assert (status, json.loads(body)["TurkErrorCode"]) == (400, "UnknownOperationException")


def test_the_frame_origin_answers_no_requester(service):
    target = {"X-Amz-Target": "MTurkRequesterServiceV20170117.GetAccountBalance"}
    assert get(service.addresses.frames + "/", target, b"{}")[0] in (404, 405)


def test_a_body_without_end_is_refused(requester):
    status, _, body = requester.post("GetHIT", b'{"HITId": "' + b"3" * 1_000_001 + b'"}')
    assert (status, json.loads(body)["TurkErrorCode"]) == (400, "RequestEntityTooLarge")


def test_the_database_is_one_that_sqlite_calls_whole(service):
    service.client().create_hit_type(
        Title="t", Description="d", Reward="0.01", AssignmentDurationInSeconds=60
    )
    with sqlite3.connect(service.database.url.database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
