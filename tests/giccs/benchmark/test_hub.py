"""Hub ids, against a local HTTP server that speaks as much of the hub as downloading needs."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import in_process

from ..conftest import rows, write

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.BaseHTTPRequestHandler):
    """One repository a kind; ``gated/...`` answers 401 as the hub does, others 404."""

    folders: dict = {}  # noqa: RUF012

    def do_GET(self):
        self._answer(body=True)

    def do_HEAD(self):
        self._answer(body=False)

    def _answer(self, *, body):
        parts = self.path.split("?")[0].strip("/").split("/")
        api = parts[0] == "api"
        kind, rest = (parts[1], parts[2:]) if api else ("models", parts)
        if not api and parts[0] == "datasets":
            kind, rest = "datasets", parts[1:]
        name = "/".join(rest[:2])
        folder = self.folders.get((kind, name))
        if name.startswith("gated/"):
            return self._send(401, b"", {"X-Error-Code": "GatedRepo"}, body)
        if folder is None:
            return self._send(401, b"", {"X-Error-Code": "RepoNotFound"}, body)
        revision = rest[3] if len(rest) > 3 else "main"
        if revision not in ("main", COMMIT):
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"}, body)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        names = [path.relative_to(folder).as_posix() for path in files]
        if api and len(rest) > 2 and rest[2] == "tree":
            listing = [
                {
                    "type": "file",
                    "path": name,
                    "size": (folder / name).stat().st_size,
                    "oid": "0" * 40,
                }
                for name in names
            ]
            return self._send(200, json.dumps(listing).encode(), {}, body)
        if api:
            info = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            return self._send(200, json.dumps(info).encode(), {}, body)
        content = (folder / "/".join(rest[4:])).read_bytes()
        etag = hashlib.sha1(content).hexdigest()
        return self._send(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}, body)

    def _send(self, status, content, headers, body):
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub(tmp_path, static_encoder):
    data = tmp_path / "hub-data"
    data.mkdir()
    write(data / "benchmark.jsonl", rows(dialogues=2))
    Hub.folders = {("datasets", "lab/dialogues"): data, ("models", "lab/encoder"): static_encoder}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextmanager
def hub_settings(tmp_path, endpoint):
    """Set what hub libraries read from the environment when they are imported."""
    from huggingface_hub import constants

    form = "/{repo_id}/resolve/{revision}/{filename}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "0")
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
        patch.setattr(constants, "ENDPOINT", endpoint)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + form)
        yield


def run(tmp_path, endpoint, *arguments):
    """Call a command with the hub at an address."""
    with hub_settings(tmp_path, endpoint):
        return in_process.run(*arguments, cwd=tmp_path)


def process(tmp_path, endpoint, *arguments, offline="0"):
    """Run a command in a process of its own, with the settings in its environment."""
    home = {"HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": offline}
    command = [str(Path(sys.executable).parent / arguments[0]), *arguments[1:]]
    return subprocess.run(
        command, env=os.environ | home, cwd=tmp_path, capture_output=True, text=True
    )


def test_a_data_set_is_fetched_and_then_found_offline(tmp_path, hub):
    online = process(tmp_path, hub, "giccs-validate", "lab/dialogues", "--json")
    assert online.returncode == 0, online.stderr
    assert json.loads(online.stdout)["items"] == 10
    pinned = run(tmp_path, hub, "giccs-validate", f"lab/dialogues@{COMMIT}", "--json")
    offline = process(tmp_path, hub, "giccs-validate", "lab/dialogues", "--json", offline="1")
    assert online.stdout == pinned.stdout == offline.stdout


def test_a_model_is_fetched_and_its_commit_stands_in_the_signature(tmp_path, hub):
    arguments = ["giccs-eval", "lab/encoder", "--data", "lab/dialogues", "--json", "-o", "r"]
    done = run(tmp_path, hub, *arguments)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["signature"]["revision"] == COMMIT
    assert result["metrics"]["spearman"]["n"] == 10
    again = run(tmp_path, hub, *arguments, "--offline")
    assert again.returncode == 0, again.stderr
    assert "existing result" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lab/nothing"], "lab/nothing: no such model on the hub, and no such file or folder here"),
        (["gated/model"], "gated/model: is gated; accept its terms on the hub"),
        (["lab/encoder", "--revision", "v9"], "lab/encoder: has no revision 'v9'"),
        (["lab/encoder", "--offline"], "offline, and the model is not in the cache"),
        (["no such/../name"], "is not an existing file or folder, nor a valid hub id"),
        (["baseline:chance", "--data", "lab/nothing"], "lab/nothing: no such dataset on the hub"),
    ],
)
def test_what_cannot_be_had_gets_one_sentence(tmp_path, hub, arguments, message):
    done = run(tmp_path, hub, "giccs-eval", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_an_unreachable_hub_is_told_as_such(tmp_path):
    done = run(tmp_path, "http://127.0.0.1:9", "giccs-eval", "lab/encoder")
    assert done.returncode == 2
    assert "the hub cannot be reached, and the model is not in the cache" in done.stderr
