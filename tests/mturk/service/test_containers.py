"""The command and the health check of the containers, run here as the compose file has them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[3] / "containers"
SERVICE = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))["services"]["service"]
VALUES = {"SITE_HOST": "work.example.org", "FRAME_HOST": "questions.example.org"}
CODE = "from mturk.cli import main; main()"


def command(db, folder):
    """The command of the compose file, with files and a database of the test, on free ports."""
    arguments = [
        re.sub(r"\$\{(\w+)[^}]*\}", lambda name: VALUES[name[1]], one) for one in SERVICE["command"]
    ]
    replaced = {"--db": db, "--keys": folder / "keys.toml", "--studies": folder / "studies.toml"}
    parts = [part.partition("=") for part in arguments]
    result = [f"{name}{sign}{replaced.get(name, value)}" for name, sign, value in parts]
    return [sys.executable, "-c", CODE, *result, "--port=0", "--json"]


def health_check(port):
    """The health check of the image, as a command."""
    text = (FOLDER / "service" / "Dockerfile").read_text("utf-8")
    program, *arguments = json.loads(re.search(r"CMD (\[.*?urlopen.*\])", text)[1])
    assert program == "python"
    return [sys.executable, *(one.replace("8765", port) for one in arguments)]


def test_the_service_starts_and_becomes_healthy(cluster, tmp_path):
    (tmp_path / "keys.toml").write_text('lab = "a secret of the laboratory"\n')
    (tmp_path / "keys.toml").chmod(0o600)
    (tmp_path / "studies.toml").write_text("")
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command(cluster.create("contained"), tmp_path),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            addresses = json.loads(process.stdout.readline())
            assert addresses["api"] == "https://work.example.org"
            assert addresses["frames"] == "https://questions.example.org"
            port = listening_port(process.pid)
            assert subprocess.run(health_check(port), timeout=120).returncode == 0
        finally:
            process.terminate()
    assert all(json.loads(line)["level"] == "info" for line in log.read_text().splitlines())
    assert subprocess.run(health_check(port), capture_output=True, timeout=120).returncode == 1


def listening_port(process_id):
    """The first port on which a process listens: that of API and site."""
    import psutil

    connections = psutil.Process(process_id).net_connections("tcp4")
    return str(min((one.fd, one.laddr.port) for one in connections if one.status == "LISTEN")[1])
