"""The PostgreSQL commands of docs/operations/service.md: create, dump during work, restore, serve."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import select

from mturk.service.api.protocol import Api
from mturk.service.clock import SystemClock
from mturk.service.rules.work import WorkerService
from mturk.service.site.links import worker_link
from mturk.service.store.database import Database
from mturk.service.store.schema import metadata

PAGE = (Path(__file__).parents[4] / "docs" / "operations" / "service.md").read_text("utf-8")
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
OURS = r"<!-- not run: tests/mturk/service/store/test_backup.py .*?-->\n```console\n(.*?)```"


def commands_of_page(cluster):
    """The commands of the page, with a test folder for /backup and without sudo."""
    lines = "".join(re.findall(OURS, PAGE, re.S)).splitlines()
    assert all(line.startswith("$ ") for line in lines)
    result = [line[2:].replace("/backup", cluster.folder) for line in lines]
    return [line.replace("sudo -u postgres ", "") for line in result]


def rows(database):
    with database.read() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(table)).all()))
            for name, table in metadata.tables.items()
        }


@pytest.fixture
def shell(cluster, monkeypatch):
    """Run a command of PostgreSQL as the owner of the server, whose socket is the usual one."""
    monkeypatch.setenv("PGHOST", cluster.folder)

    def run(line, user="giccs"):
        name, *arguments = line.split()
        cluster.run(name, *arguments, env=os.environ | {"PGUSER": user})

    return run


def study(database, examples):
    """Create a study with paid, submitted and accepted assignments."""
    api, work = Api(database, SystemClock(), {}), WorkerService(database, SystemClock())
    its_id = api.call("CreateHIT", examples.HIT | {"MaxAssignments": 5})["HIT"]["HITId"]
    taken = {}
    for worker in ("AONE", "ATWO", "ATHREE"):
        work.register(worker, country="DE")
        taken[worker] = work.accept(worker, its_id).assignment_id
    for worker in ("AONE", "ATWO"):
        work.submit(taken[worker], worker, [("q", "Grüße 🙂")])
    api.call("ApproveAssignment", {"AssignmentId": taken["AONE"]})
    return its_id, taken


def test_a_study_is_made_dumped_restored_and_served(
    cluster, shell, commands, examples, monkeypatch
):
    createuser, createdb, dump, create_again, restore, serve = commands_of_page(cluster)
    shell(f"{createuser}_doc")  # the cluster's own superuser has the name
    shell(createdb.replace("owner=giccs", "owner=giccs_doc"))
    monkeypatch.setenv("PGUSER", "giccs_doc")
    database = Database("postgresql+psycopg:///giccs")
    its_id, taken = study(database, examples)
    before = rows(database)
    shell(dump)
    WorkerService(database, SystemClock()).return_assignment(
        taken["ATHREE"], "ATHREE"
    )  # after the backup
    assert rows(database) != before
    database.close()

    shell(create_again)
    shell(restore)
    monkeypatch.setenv("PGUSER", "giccs")
    restored = Database(serve.split()[-1])
    assert rows(restored) == before
    secret = restored.secret()
    restored.close()
    goes_on(commands, serve, secret, its_id, examples)


def goes_on(commands, serve, secret, its_id, examples):
    """Serve the restored database as on the page; workers continue, and new HITs are created."""
    import boto3
    import urllib3

    with commands.start(*serve.split(), "--port", "0", "--json", "--quiet") as process:
        try:
            site = json.loads(process.stdout.readline())["api"]
            page = urllib3.request(
                "GET", worker_link(site, secret, "ATHREE"), redirect=False, timeout=300
            )
            assert page.status == 303
            client = boto3.client(
                "mturk", endpoint_url=site, region_name="us-east-1", aws_access_key_id="any",
                aws_secret_access_key="any",
            )  # fmt: skip
            hit = client.list_assignments_for_hit(HITId=its_id)["Assignments"]
            assert [result["WorkerId"] for result in hit] == ["AONE", "ATWO"]
            assert client.get_hit(HITId=its_id)["HIT"]["NumberOfAssignmentsPending"] == 1
            assert client.create_hit(**examples.HIT)["HIT"]["HITId"] != its_id
            balance = client.get_account_balance()
            # 10,000 less five at 0.30, one of them paid, and one more HIT at 0.30
            assert balance["AvailableBalance"] == "9998.20"
            assert balance["OnHoldBalance"] == "1.50"
        finally:
            process.terminate()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed (make system)")
def test_nginx_takes_the_upstreams_of_the_page(tmp_path):
    upstreams, servers = (
        re.search(rf"<!-- nginx: {which}.*?-->\n```nginx\n(.*?)```", PAGE, re.S)[1]
        for which in ("upstreams", "checked")
    )
    passing = servers.replace("127.0.0.1:8765", "work").replace("127.0.0.1:8766", "questions")
    assert (
        passing.count("proxy_pass http://work;")
        == passing.count("proxy_pass http://questions;")
        == 1
    )
    plain = re.sub(r"ssl_certificate.*;", "", passing).replace("443 ssl", "127.0.0.1:8080")
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/log; events {{}}\nhttp {{ {upstreams} {plain} }}\n"
    )
    result = subprocess.run(
        [NGINX, "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert (
        re.findall(r":(\d+);", upstreams)[:4] == re.search(r"for port in ([\d ]+)", PAGE)[1].split()
    )
