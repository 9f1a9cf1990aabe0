"""giccs card --push, against a local HTTP server that speaks as much of the hub as uploading needs."""

import base64
import http.server
import json
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.cli.card import card as card_command
from giccs.description.card import folder as folder_module
from giccs.description.card.eval_yaml import eval_yaml
from giccs.description.card.folder import check_may_be_public
from giccs.description.card.stated import Stated
from giccs.description.card.tables import items_table

from ..benchmark.test_hub import Hub, hub_settings, run
from ..conftest import rows, write

LICENSED = 'language = ["de"]\nlicense = "cc-by-4.0"\n'


class WritableHub(Hub):
    """A hub that also creates data sets and takes commits; `private` has their names."""

    folders: dict = {}  # noqa: RUF012
    private: set = set()  # noqa: RUF012
    replacement: Path | None = None

    def do_POST(self):  # noqa: N802 - the name that the server calls
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[:3] == ["api", "repos", "create"]:
            return self._create(json.loads(body))
        if parts[1] == "validate-yaml":
            return self._json({"errors": [], "warnings": []})
        name, action = "/".join(parts[2:4]), parts[4]
        if action == "preupload":
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            return self._json({"files": [file | modes for file in json.loads(body)["files"]]})
        assert action == "commit"
        for line in body.splitlines():
            self._apply(self.root / name, json.loads(line))
        url = f"http://{self.headers['Host']}/datasets/{name}/commit/{self.commit}"
        return self._json({"commitUrl": url, "commitOid": self.commit, "success": True})

    commit = "0123456789abcdef0123456789abcdef01234567"

    def _create(self, wanted):
        name = f"{wanted['organization']}/{wanted['name']}"
        answer = {"url": f"http://{self.headers['Host']}/datasets/{name}"}
        if ("datasets", name) in self.folders:
            return self._send(409, json.dumps(answer).encode(), {}, True)
        (self.root / name).mkdir(parents=True)
        self.folders["datasets", name] = self.root / name
        self.private |= {name} if wanted["visibility"] == "private" else set()
        return self._json(answer)

    def _apply(self, folder, line):
        if line["key"] == "file":
            content = base64.b64decode(line["value"]["content"])
            path = folder / line["value"]["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if self.replacement and path.name.startswith("test-"):
                shutil.copy(self.replacement, path)
        elif line["key"] == "deletedFile":
            (folder / line["value"]["path"]).unlink()

    def _json(self, document):
        self._send(200, json.dumps(document).encode(), {"Content-Type": "application/json"}, True)

    def _send(self, status, content, headers, body):
        if content.startswith(b'{"id"'):  # the description of a data set
            document = json.loads(content)
            content = json.dumps(document | {"private": document["id"] in self.private}).encode()
        super()._send(status, content, headers, body)


@pytest.fixture
def hub(tmp_path):
    WritableHub.folders, WritableHub.private = {}, set()
    WritableHub.root, WritableHub.replacement = tmp_path / "hub", None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), WritableHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def push_cli(tmp_path, hub, *more):
    (tmp_path / "card.toml").write_text(LICENSED)
    arguments = [
        "giccs-card",
        "b.jsonl",
        "--config",
        "card.toml",
        "-o",
        "out",
        "--push",
        "lab/sample",
    ]
    return run(tmp_path, hub, *arguments, *more)


def push(tmp_path, hub, *, private=False):
    """Push the folder ``out`` without the command around it; return the commit."""
    card = SimpleNamespace(fingerprint=read_benchmark(tmp_path / "b.jsonl").fingerprint)
    with hub_settings(tmp_path, hub):
        return folder_module.push(card, tmp_path / "out", "lab/sample", private=private)


def refusal(*arguments, **options):
    with pytest.raises(InputError) as caught:
        push(*arguments, **options)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    """What giccs card writes for two dialogues, with short texts around the data."""
    write(tmp_path / "b.jsonl", rows(dialogues=2))
    table = items_table(read_benchmark(tmp_path / "b.jsonl").items)
    (tmp_path / "out" / "data").mkdir(parents=True)
    (tmp_path / "out" / table.path).write_bytes(table.content)
    (tmp_path / "out" / "README.md").write_text("---\nlicense: cc-by-4.0\n---\ncard\n")
    (tmp_path / "out" / "croissant.json").write_text("{}")
    return tmp_path / "out"


def pushed(tmp_path, name="lab/sample"):
    folder = tmp_path / "hub" / name
    files = folder.rglob("*") if folder.is_dir() else ()
    return sorted(str(path.relative_to(folder)) for path in files if path.is_file())


FILES = ["README.md", "croissant.json", "data/test-00000-of-00001.parquet"]


def test_the_folder_of_the_command_comes_back_with_the_same_fingerprint(tmp_path, hub):
    write(tmp_path / "b.jsonl", rows(dialogues=2))
    done = push_cli(tmp_path, hub, "--json", "--private")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["fingerprint"] == read_benchmark(tmp_path / "b.jsonl").fingerprint
    assert document["commit"] == WritableHub.commit
    assert document["url"].endswith("/datasets/lab/sample")
    assert WritableHub.private == {"lab/sample"}
    assert pushed(tmp_path) == FILES
    for name in FILES:
        assert (tmp_path / "hub/lab/sample" / name).read_bytes() == (
            tmp_path / "out" / name
        ).read_bytes()


def test_a_second_push_removes_the_table_that_is_no_longer_published(tmp_path, hub, folder):
    assert push(tmp_path, hub) == WritableHub.commit
    (tmp_path / "hub/lab/sample/data/soft_targets-00000-of-00001.parquet").write_bytes(b"old")
    (tmp_path / "hub/lab/sample/.gitattributes").write_text("of the hub")
    assert push(tmp_path, hub) == WritableHub.commit
    assert pushed(tmp_path) == [".gitattributes", *FILES]


def test_eval_yaml_is_pushed_and_another_push_leaves_it(tmp_path, hub, folder):
    text = eval_yaml("b", "about", ["pairwise_with_history"])
    (folder / "eval.yaml").write_text(text)
    assert push(tmp_path, hub) == WritableHub.commit
    assert pushed(tmp_path) == sorted([*FILES, "eval.yaml"])
    (folder / "eval.yaml").unlink()
    assert push(tmp_path, hub) == WritableHub.commit
    assert (tmp_path / "hub/lab/sample/eval.yaml").read_text() == text


@pytest.mark.parametrize(
    ("license_id", "message"),
    [
        ("", "license is not stated in card.toml; without one nobody may use the data"),
        ("cc-by-nc-nd-4.0", "permits no derivatives; a benchmark is one"),
    ],
)
def test_data_that_may_not_be_distributed_are_not_public(license_id, message):
    stated = Stated({"license": license_id} if license_id else {})
    with pytest.raises(InputError, match=message):
        check_may_be_public(stated, "lab/sample")
    check_may_be_public(Stated({"license": "cc-by-4.0"}), "lab/sample")


def test_the_command_checks_the_licence_before_it_writes(tmp_path, hub):
    write(tmp_path / "b.jsonl", rows(dialogues=2))
    arguments = ["giccs-card", "b.jsonl", "--language", "de", "-o", "out", "--push", "lab/sample"]
    done = run(tmp_path, hub, *arguments)
    assert done.returncode == 2
    assert "lab/sample: license is not stated" in done.stderr
    assert not WritableHub.folders
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("private", [True, False])
def test_nothing_is_pushed_to_a_data_set_of_another_visibility(tmp_path, hub, folder, private):
    assert push(tmp_path, hub, private=not private) == WritableHub.commit
    (tmp_path / "hub/lab/sample/README.md").write_text("as it was")
    message = refusal(tmp_path, hub, private=private)
    wanted, is_now = ("private", "public") if private else ("public", "private")
    assert f"lab/sample: is {is_now} on the hub; expected a {wanted} data set" in message
    assert (tmp_path / "hub/lab/sample/README.md").read_text() == "as it was"


def test_a_data_set_of_others_is_left_alone(tmp_path, hub, folder):
    other = tmp_path / "hub" / "lab" / "sample"
    other.mkdir(parents=True)
    (other / "train.csv").write_text("a,b\n")
    WritableHub.folders["datasets", "lab/sample"] = other
    message = refusal(tmp_path, hub)
    assert "contains train.csv, not written by giccs card; choose another name" in message
    assert pushed(tmp_path) == ["train.csv"]


def test_what_comes_back_different_is_an_error(tmp_path, hub, folder):
    table = tmp_path / "fewer.parquet"
    pl.read_parquet(folder / "data/test-00000-of-00001.parquet").head(5).write_parquet(table)
    WritableHub.replacement = table
    assert "has the fingerprint" in refusal(tmp_path, hub)


def test_an_unreachable_hub_is_told_as_such(tmp_path, folder):
    assert "lab/sample: the hub cannot be reached" in refusal(tmp_path, "http://127.0.0.1:9")


@pytest.mark.parametrize(
    "arguments", [["--private", "-o", "out"], ["--push", "a/b", "--init", "c.toml"]]
)
def test_options_that_need_each_other(arguments):
    done = CliRunner().invoke(card_command, ["b.jsonl", *arguments])
    assert done.exit_code == 2
    assert "--push requires -o FOLDER, and --private requires --push" in done.output
