"""giccs-explore: what it starts, and what it refuses."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from giccs_app.explorer import cli


def free_port():
    with socket.socket() as probe:
        probe.bind((cli.HOST, 0))
        return probe.getsockname()[1]


@pytest.fixture
def served(monkeypatch):
    """Return what would be served: Streamlit's settings, and the page's arguments."""
    calls = []
    monkeypatch.setattr(cli, "_serve", lambda *given: calls.append(given))
    return calls


def test_what_is_named_is_passed_on_and_nothing_else(served):
    port = str(free_port())
    files = ["--data", "b.jsonl", "--judgments", "j.csv", "--results", "r", "--ledger", "l.db"]
    files += ["--notes", "n.csv", "--model-judgments", "m.csv", "--model-judgments", "o.csv"]
    result = CliRunner().invoke(cli.explore, [*files, "--port", port, "--no-browser"])
    assert result.exit_code == 0
    settings, asked = served[0]
    assert asked[:4] == ["--data=b.jsonl", "--judgments=j.csv", "--results=r", "--ledger=l.db"]
    assert asked[4:] == ["--notes=n.csv", "--model-judgments=m.csv", "--model-judgments=o.csv"]
    assert {"--server.headless=true", f"--server.port={port}"} <= set(settings)
    assert f"http://127.0.0.1:{port}" in result.output


def test_without_arguments_it_is_the_sample_and_a_browser_opens(served):
    assert CliRunner().invoke(cli.explore, ["--port", str(free_port())]).exit_code == 0
    settings, asked = served[0]
    assert asked == ["--data=giccs-sample"]
    assert "--server.headless=false" in settings


def test_it_listens_on_this_machine_only_and_tells_nobody(served):
    CliRunner().invoke(cli.explore, ["--port", str(free_port())])
    assert {
        "--server.address=127.0.0.1",
        "--browser.gatherUsageStats=false",
        "--client.showErrorDetails=none",
        "--server.maxUploadSize=200",
    } <= set(served[0][0])


def test_a_port_that_is_taken_is_one_line(served):
    with socket.socket() as taken:
        taken.bind((cli.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli.explore, ["--port", str(port)])
    assert (result.exit_code, served) == (1, [])
    assert (
        result.output
        == f"Error: port {port} is in use; stop the program that uses it, or choose another --port\n"
    )


@pytest.mark.parametrize(
    ("option", "name"), [("--notes", "notes"), ("--model-judgments", "judgments of models")]
)
def test_notes_and_judgments_of_models_are_not_published(served, tmp_path, option, name):
    arguments = [option, "n.csv", "--export-space", str(tmp_path / "space")]
    result = CliRunner().invoke(cli.explore, arguments)
    assert result.exit_code == 2
    assert f"{name} are not published" in result.output
    assert not (tmp_path / "space").exists()


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_what_is_no_port_is_refused(served, port):
    assert CliRunner().invoke(cli.explore, ["--port", port]).exit_code == 2


def test_without_streamlit_it_says_what_to_install(served, monkeypatch):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    result = CliRunner().invoke(cli.explore, [])
    assert (
        result.output
        == "Error: giccs-explore needs Streamlit; install it with: pip install 'giccs[app]'\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM on Windows")
def test_it_serves_until_it_is_told_to_end(tmp_path):
    pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")
    port = free_port()
    command = [sys.executable, "-c", "from giccs_app.explorer.cli import explore; explore()"]
    with subprocess.Popen(
        [*command, "--no-browser", "--port", str(port)],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    ) as server:
        try:
            assert any(f"http://127.0.0.1:{port}" in line for line in server.stdout)
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/_stcore/health", timeout=30
            ) as answer:
                assert answer.read() == b"ok"
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=300) == 0


def test_pages_are_prepared_for_every_study(tmp_path):
    """The figures of Annotation and the dialogues are in the caches; unreadable data are left to the page."""
    from giccs_app.explorer.annotation import page as annotation
    from giccs_app.explorer.caching import study_of
    from giccs_app.explorer.cli import prepare_pages

    prepare_pages("giccs-sample", None, None, None)
    study = study_of("giccs-sample", None, None, None)
    assert "index_in_judgments" in vars(study)
    computed = annotation._figures(study.key, study.judgments)
    prepare_pages("giccs-sample", None, None, None)
    assert annotation._figures(study.key, study.judgments) is computed
    prepare_pages(str(tmp_path / "missing.jsonl"), None, None, None)
