"""giccs-explore: start the score explorer."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from bws.command import Console, command

__all__ = ["explore"]


@command(
    "giccs-explore",
    example="""
    giccs-explore
    giccs-explore --data benchmark.jsonl --results results --port 8600
    """,
)
@click.option(
    "--data",
    default="giccs-sample",
    show_default=True,
    metavar="DATA",
    help="A benchmark JSONL file, a folder with the GiCCS release, a hub id, or giccs-sample.",
)
@click.option("--results", metavar="FOLDER", help="A folder that giccs-eval wrote.")
@click.option("--port", default=8501, show_default=True, help="Where the page is served.")
@click.option("--no-browser", is_flag=True, help="Only serve; open no browser.")
def explore(console: Console, data: str, results: str | None, port: int, no_browser: bool) -> None:
    """Open the score explorer: the distribution of scores, the dialogues, the models."""  # fmt: skip
    if find_spec("streamlit") is None:
        raise click.ClickException("needs Streamlit; install it with: pip install 'giccs[app]'")
    page = Path(__file__).with_name("explorer.py")
    streamlit = [sys.executable, "-m", "streamlit", "run", str(page), f"--server.port={port}"]
    settings = [
        f"--server.headless={str(no_browser).lower()}",
        "--server.address=127.0.0.1",
        "--browser.gatherUsageStats=false",
        "--client.toolbarMode=minimal",
    ]
    chosen = ["--data", data, *(["--results", results] if results else [])]
    console.note(f"http://127.0.0.1:{port}  (Ctrl-C ends it)")
    raise SystemExit(subprocess.call([*streamlit, *settings, "--", *chosen]))
