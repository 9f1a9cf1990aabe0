"""The nginx configurations of the page and the containers, with TLS in front of a service with keys."""

import http.cookiejar
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from tests.free_ports import free_ports

pytest.importorskip("uvicorn", reason="the extra giccs[study] is not installed")

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "operations" / "service.md"
CONTAINERS = ROOT / "containers" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
KEYS = {"lab": "a secret of the laboratory"}

pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed (make system)"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]


def certificate(folder):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:questions.localhost",
         "-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


def replaced(text, values):
    for old, new in values:
        assert old in text, old
        text = text.replace(old, str(new))
    return text


def documented(folder, port, site, frames):
    """The servers of the page, in a configuration that needs no rights."""
    page = PAGE.read_text("utf-8")
    servers = replaced(
        re.search(r"<!-- nginx: .*?-->\n```nginx\n(.*?)```", page, re.S)[1],
        [("443", f"127.0.0.1:{port}"), ("/etc/ssl/giccs", folder), ("work.example.org", "localhost"),
         ("questions.example.org", "questions.localhost"), ("8765", site), ("8766", frames)],
    )  # fmt: skip
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary}\n{servers} }}\n"
    )


def contained(folder, port, site, frames):
    """The complete configuration of the containers, with ports and folders of the test."""
    (plain,) = free_ports(1)
    (folder / "plain").write_text(str(plain))
    return replaced(
        CONTAINERS.read_text("utf-8"),
        [("8443", f"127.0.0.1:{port}"), ("8080", f"127.0.0.1:{plain}"), ("/tmp/", f"{folder}/"),
         ("/etc/ssl/giccs", folder), ("${SITE_HOST}", "localhost"), ("${FRAME_HOST}", "questions.localhost"),
         ("service:8765", f"127.0.0.1:{site}"), ("service:8766", f"127.0.0.1:{frames}")],
    )  # fmt: skip


@pytest.fixture(params=[documented, contained], ids=lambda configuration: configuration.__name__)
def behind_nginx(tmp_path, request):
    from mturk.service.clock import SystemClock
    from mturk.service.server import ServerOptions, serve
    from tests.mturk.new_database import new_database

    port, site, frames = free_ports(3)
    certificate(tmp_path)
    url = f"https://localhost:{port}"
    options = ServerOptions(
        port=site, frame_port=frames, keys=KEYS, trust_proxy="127.0.0.1", site_url=url,
        frame_url=f"https://questions.localhost:{port}",
    )  # fmt: skip
    told, up = {}, threading.Event()
    database = new_database(tmp_path / "hits.db")

    def ready(addresses, stop):
        told["stop"] = stop
        up.set()

    thread = threading.Thread(target=serve, args=(database, SystemClock(), options, ready))
    thread.start()
    assert up.wait(120)
    (tmp_path / "nginx.conf").write_text(request.param(tmp_path, port, site, frames))
    command = [NGINX, "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-g", "daemon off;"]
    proxy = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        wait_for(port, proxy)
        yield url, tmp_path / "fullchain.pem", database
    finally:
        proxy.terminate()
        proxy.communicate(timeout=300)
        told["stop"]()
        thread.join(120)
        database.close()


def wait_for(port, proxy):
    end = time.monotonic() + 120
    while time.monotonic() < end and proxy.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"nginx did not start: {proxy.stderr.read().decode()}")


def client(url, authority, secret):
    import boto3

    return boto3.client(
        "mturk", endpoint_url=url, region_name="us-east-1", verify=str(authority),
        aws_access_key_id="lab", aws_secret_access_key=secret,
    )  # fmt: skip


def test_requesters_and_workers_pass_through_nginx(behind_nginx):
    from botocore.exceptions import ClientError

    from mturk.service.site.links import worker_link

    url, authority, database = behind_nginx
    balance = client(url, authority, KEYS["lab"]).get_account_balance()
    assert balance["AvailableBalance"] == "10000.00"
    with pytest.raises(ClientError, match="InvalidSignatureException"):
        client(url, authority, "a secret of somebody else").get_account_balance()

    trust = ssl.create_default_context(cafile=authority)
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=trust), urllib.request.HTTPCookieProcessor(jar)
    )
    page = opener.open(worker_link(url, database.secret(), "AONE"))
    assert page.status == 200
    assert page.url.startswith(f"{url}/work")
    assert [cookie.secure for cookie in jar] == [True]


@pytest.mark.parametrize("behind_nginx", [contained], indirect=True)
def test_http_is_redirected_to_the_same_page(behind_nginx, tmp_path):
    import urllib3

    plain = (tmp_path / "plain").read_text()
    answer = urllib3.request(
        "GET", f"http://localhost:{plain}/work/?a=b", redirect=False, timeout=300
    )
    assert (answer.status, answer.headers["Location"]) == (308, "https://localhost/work/?a=b")
