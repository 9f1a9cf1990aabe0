"""giccs annotate invite: personal links accepted by the service."""

import json
import re
import sqlite3
import stat
import time
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3
from click.testing import CliRunner

from mturk.cli import main
from mturk.service.server import ServerOptions
from mturk.service.site.links import LinkError, read_worker_token
from mturk.service.store.database import Database
from tests.mturk.new_database import new_database


def invite(*arguments, code=0):
    done = CliRunner().invoke(main, ["invite", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.stderr if code else done.stdout


@pytest.fixture
def path(tmp_path):
    database = new_database(tmp_path / "hits.db")
    database.close()
    return tmp_path / "hits.db"


def token(link):
    return parse_qs(urlsplit(link).query)["token"][0]


def secret(path):
    database = Database(path)
    secret_key = database.secret()
    database.close()
    return secret_key


def test_each_name_has_a_link_of_its_own(path):
    lines = invite("AONE", "ATWO", "AONE", "--db", path).splitlines()
    links = dict(line.split("\t") for line in lines)
    assert list(links) == ["AONE", "ATWO"]
    for worker, link in links.items():
        assert link.startswith("http://127.0.0.1:8765/enter?")
        assert read_worker_token(secret(path), token(link), time.time() + 89 * 86_400) == worker
        with pytest.raises(LinkError, match="expired"):
            read_worker_token(secret(path), token(link), time.time() + 91 * 86_400)


def test_workers_that_are_made_are_all_different(path):
    document = json.loads(invite("--workers", 50, "--db", path, "--json"))
    rows = document["links"]
    assert len({row["worker"] for row in rows}) == len({row["link"] for row in rows}) == 50
    assert all(re.fullmatch("A[A-Z0-9]{14}", row["worker"]) for row in rows)


def test_a_link_ends_when_it_was_said_to(path):
    link = invite("AONE", "--days", 2, "--db", path).split("\t")[1].strip()
    assert read_worker_token(secret(path), token(link), time.time() + 86_400) == "AONE"
    with pytest.raises(LinkError, match="expired"):
        read_worker_token(secret(path), token(link), time.time() + 2 * 86_400 + 60)


def test_the_service_takes_the_link_and_no_changed_one(endpoint_running, tmp_path):
    options = ServerOptions(port=0, keys={"LABORATORY": "a secret of the laboratory"})
    with endpoint_running(tmp_path, options) as service:
        line = invite("AONE", "--db", tmp_path / "hits.db", "--site-url", f"{service.site}/")
        link = line.split("\t")[1].strip()
        assert link.startswith(f"{service.site}/enter?")
        entered = urllib3.request("GET", link, redirect=False, timeout=300)
        changed = urllib3.request("GET", link[:-2], redirect=False, timeout=300)
    assert (entered.status < 400, changed.status >= 400) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of"),
        (["AONE", "--workers", 2], "exactly one of"),
        (["4nna", "AONE", "2B"], "4nna, 2B: a worker id must be"),
        (["APROLIFIC1"], "reserved for recruited participants"),
        (["AONE", "--site-url", "http://a.example/path"], "without a path"),
        (["AONE", "--site-url", "a.example"], "without a path"),
        (["AONE", "--site-url", "javascript://a"], "without a path"),
    ],
)
def test_what_cannot_be_a_link_is_said(path, arguments, message):
    assert message in invite(*arguments, "--db", path, code=2)


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    assert "start `giccs annotate serve` first" in invite(
        "AONE", "--db", tmp_path / "no.db", code=2
    )
    assert list(tmp_path.iterdir()) == []


def test_a_restored_database_is_its_owners_alone_again(path, tmp_path):
    restored = tmp_path / "restored.db"
    with sqlite3.connect(path) as source, sqlite3.connect(restored) as target:
        source.backup(target)
    restored.chmod(0o644)
    invite("AONE", "--db", restored)
    assert stat.S_IMODE(restored.stat().st_mode) == 0o600
    other = tmp_path / "notes.txt"
    other.write_text("not a database")
    other.chmod(0o644)
    invite("AONE", "--db", other, code=2)
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
