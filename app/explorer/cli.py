"""giccs-explore: start the score explorer."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from app.explorer.theme import SKY
from bws.command import Console, command
from bws.problems import InputError
from giccs.cli.options import DATA_HELP

__all__ = ["explore", "warm_up"]

HOST = "127.0.0.1"
SETTINGS = {
    "server.address": HOST,
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "runner.magicEnabled": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",  # an error nobody foresaw is told in the terminal
    "theme.light.primaryColor": "#00609A",  # the blue of the charts, dark enough for its own tint
    "theme.light.textColor": "#000000",
    "theme.light.codeTextColor": "#000000",
    "theme.dark.primaryColor": SKY,
    "theme.dark.codeTextColor": "#ffffff",
}


@command(
    "giccs-explore",
    example="""
    giccs-explore
    giccs-explore --data benchmark.jsonl --judgments judgments.csv --results results
    giccs-explore --ledger ledger.db --port 8600 --no-browser
    """,
    kept="the files that were shown are unchanged",
)
@click.option(
    "--data",
    default="giccs-sample",
    show_default=True,
    metavar="DATA",
    help=DATA_HELP,
)
@click.option(
    "--judgments",
    metavar="FILE",
    help="The judgments behind the scores, in any format that bws-score reads.",
)
@click.option("--results", metavar="FOLDER", help="A folder that giccs-eval writes; it is watched.")
@click.option("--ledger", metavar="FILE", help="A running study's ledger, as mturk-hits keeps it.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8501,
    show_default=True,
    help="Where the page is served.",
)
@click.option("--no-browser", is_flag=True, help="Only serve; open no browser.")
def explore(
    console: Console, data: str, port: int, no_browser: bool, **files: str | None
) -> None:  # fmt: skip
    """Open the score explorer: the scores and what they rest on, the dialogues, the models."""
    if find_spec("streamlit") is None:
        raise click.ClickException("needs Streamlit; install it with: pip install 'giccs[app]'")
    _check_free(port)
    from app.explorer.uploads import MOST_MEGABYTES

    settings = SETTINGS | {"server.port": port, "server.headless": str(no_browser).lower()}
    settings["server.maxUploadSize"] = MOST_MEGABYTES
    asked = {"data": data, **{name: path for name, path in files.items() if path is not None}}
    warm_up(data, **files)
    console.note(f"http://{HOST}:{port}  (Ctrl-C ends it)")
    _serve(
        [f"--{name}={value}" for name, value in settings.items()],
        [f"--{name}={path}" for name, path in asked.items()],
    )


def warm_up(data: str, judgments: str | None, results: str | None, ledger: str | None) -> None:
    """Import and read beforehand, so that the first to look at the page need not wait for it."""
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # caches warn that nothing is served yet
    for early in ("pandas", "altair", "app.explorer.overview.page", "giccs.measures.ceiling"):
        import_module(early)
    from app.explorer.caching import study_of

    with suppress(InputError):  # the page says what is wrong
        _ = study_of(data, judgments, results, ledger).benchmark.fingerprint


def _serve(settings: list[str], asked: list[str]) -> None:
    """Run Streamlit in this process until it is told to end."""
    from streamlit.web.cli import main

    page = str(Path(__file__).with_name("streamlit_app.py"))
    main(["run", page, *settings, "--", *asked], prog_name="streamlit")


def _check_free(port: int) -> None:
    """Raise ClickException where something else listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            message = f"port {port} is taken; end what listens there, or name another with --port"
            raise click.ClickException(message) from None
