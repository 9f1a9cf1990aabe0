"""giccs explore: start the score explorer."""

from __future__ import annotations

import gc
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from bws.base.commands import Console, check_combinations, command
from bws.base.ids import normal_id
from bws.base.options import INPUT, OUTPUT_FOLDER
from bws.base.problems import InputError, Problem
from giccs.cli.options import DATA_HELP
from giccs_app.explorer.theme import HOST, SETTINGS

if TYPE_CHECKING:
    from giccs_app.explorer.study import Study


@command(
    "giccs explore",
    example="""
    giccs explore
    giccs explore --data benchmark.jsonl --judgments judgments.csv --results results
    giccs explore --data benchmark.jsonl --judgments judgments.csv --model-judgments model.csv
    giccs explore --data benchmark.jsonl --judgments judgments.csv --absolute anchors.csv
    giccs explore --judgments judgments.csv --items items.csv
    giccs explore --data benchmark.jsonl --ledger ledger.db --port 8600 --no-browser
    giccs explore --data benchmark.jsonl --judgments judgments.csv --results results --export-space space
    """,
    interrupt_message="all files are unchanged",
)
@click.option(
    "--data",
    default="giccs-sample",
    show_default=True,
    type=INPUT,
    metavar="DATA",
    help=DATA_HELP,
)
@click.option(
    "--judgments",
    type=INPUT,
    metavar="FILE",
    help="Judgments of the benchmark, in any format that giccs score reads.",
)
@click.option(
    "--model-judgments",
    type=INPUT,
    metavar="FILE",
    multiple=True,
    help="Judgments of language models on the tuples, as from giccs judge, beside those of people. Can be "
    "repeated.",
)
@click.option(
    "--results",
    type=INPUT,
    metavar="FOLDER",
    help="Results directory of giccs eval; new results appear automatically.",
)
@click.option(
    "--items",
    type=INPUT,
    metavar="FILE",
    help="Texts of items without dialogues (item, text), whose --judgments are shown instead of --data.",
)
@click.option(
    "--scores",
    type=INPUT,
    metavar="FILE",
    help="Scores of items without dialogues, as from giccs score.  [default: computed from --judgments]",
)
@click.option(
    "--absolute",
    type=INPUT,
    metavar="FILE",
    help="The anchors behind the absolute scores, for intervals, means of dialogues and the noise ceiling on "
    "their scale.  [default: those of the sample]",
)
@click.option(
    "--ledger",
    type=INPUT,
    metavar="FILE",
    help="Ledger of a running study, written by giccs annotate.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8501,
    show_default=True,
    help="Port of the web server.",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option(
    "--export-space",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Write the explorer with these data and results to a new folder for a Hugging Face Space, with the "
    "report of the data as one HTML file, and end. Annotators get pseudonyms.",
)
def explore(
    console: Console, data: str, port: int, no_browser: bool, export_space: str | None,
    model_judgments: tuple[str, ...], **files: str | None,
) -> None:  # fmt: skip
    """Open the score explorer: scores, dialogues, annotation, models and errors."""
    given: dict[str, object] = {f"--{name}": value for name, value in files.items()}
    given |= {"--export-space": export_space, "--model-judgments": model_judgments}
    excluded = ("--results", "--ledger", "--export-space", "--model-judgments")
    check_combinations(
        given,
        requires=dict.fromkeys(("--items", "--scores", "--absolute"), "--judgments"),
        excludes={"--items": excluded, "--scores": excluded},
    )
    if export_space is not None:
        sources = {name: files[name] for name in ("judgments", "results", "ledger", "absolute")}
        _export(console, Path(export_space), data, model_judgments, **sources)
        return
    if find_spec("streamlit") is None:
        raise click.ClickException(
            "giccs explore needs Streamlit; install it with: pip install 'giccs[app]'"
        )
    _check_free(port)
    from giccs_app.explorer.uploads import MAX_UPLOAD_MEGABYTES

    settings = SETTINGS | {"server.port": port, "server.headless": str(no_browser).lower()}
    if not no_browser:  # Streamlit would offer to install instructions for coding assistants
        settings |= {"logger.hideWelcomeMessage": "true"}
    settings["server.maxUploadSize"] = MAX_UPLOAD_MEGABYTES
    arguments = [
        ("data", data),
        *((name, path) for name, path in files.items() if path is not None),
    ]
    arguments += [("model-judgments", path) for path in model_judgments]
    warm_up()
    check_sources(data, model_judgments=model_judgments, **files)
    console.note(f"http://{HOST}:{port}  (stop with Ctrl-C)")
    all_sources = {"data": data, **files, "model_judgments": model_judgments}
    Thread(target=prepare_pages, kwargs=all_sources, daemon=True).start()
    _serve(
        [f"--{name}={value}" for name, value in settings.items()],
        [f"--{name}={path}" for name, path in arguments],
    )


def _export(
    console: Console, folder: Path, data: str, model_judgments: tuple[str, ...],
    judgments: str | None, results: str | None, ledger: str | None, absolute: str | None,
) -> None:  # fmt: skip
    """Write the folder of a Space, and print what it contains."""
    if ledger is not None:
        raise click.UsageError(
            "a ledger is not published; use --judgments FILE instead of --ledger with --export-space"
        )
    if model_judgments:
        raise click.UsageError(
            "judgments of models are not published; leave out --model-judgments with --export-space"
        )
    if absolute:
        raise click.UsageError(
            "anchors are not published; leave out --absolute with --export-space, which keeps absolute scores"
        )
    from giccs_app.explorer.space import write_space

    for note in write_space(folder, data, judgments, results):
        console.note(note)
    console.note(f"wrote {folder}; see {folder / 'README.md'}")


def warm_up() -> None:
    """Import modules in advance, so that the first page loads quickly."""
    logging.getLogger("streamlit").setLevel(
        logging.ERROR
    )  # hides warnings that caches are used before the server runs
    for module in (
        "pandas",
        "altair",
        "giccs_app.explorer.overview.page",
        "giccs.measures.ceiling",
    ):
        import_module(module)
    # Validation of each part of each chart takes a third of the time of a page; tests validate.
    import_module("altair.utils.schemapi").disable_debug_mode()


def check_sources(
    data: str, judgments: str | None, results: str | None, ledger: str | None,
    model_judgments: tuple[str, ...], items: str | None = None, scores: str | None = None,
    absolute: str | None = None,
) -> None:  # fmt: skip
    """Read all files, which the pages then find in the cache; raise InputError with all problems.

    Files of none of the items of the data are a problem. Skipped rows, damaged results and single results on
    other data are reported on the pages.
    """
    from giccs_app.explorer.caching import study_of
    from giccs_app.explorer.study import check_files

    study = study_of(data, judgments, results, ledger, model_judgments, items, scores, absolute)
    checks: list[Callable[[], object]] = [
        lambda: check_files(study, judgments, model_judgments),
        lambda: _check_results(study),
    ]
    checks += [partial(_check_ledger, study, ledger)] if ledger else []
    problems: list[Problem] = []
    for check in checks:
        try:
            check()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    _ = study.benchmark.fingerprint
    gc.collect()
    gc.freeze()  # the collection of garbage after each run of a page need not visit the study


def _check_results(study: Study) -> None:
    """Raise InputError for a folder of other files, or of results on other data only."""
    from giccs_app.explorer.results import results_of

    found = results_of(study)
    if study.store is None or found.results:
        return
    if any(each.reason == "other_scale" for each in found.hidden):
        return
    folder = study.store.folder
    if found.hidden:
        message = f"none of its {len(found.hidden)} results is on {study.benchmark.name}"
        expected = f"{message}; expected results on these data"
        raise InputError([Problem(str(folder), None, expected), *found.problems])
    if found.problems:
        raise InputError(found.problems)
    if any(path.is_file() and not path.name.startswith(".") for path in folder.iterdir()):
        message = "contains other files, but no results; expected a folder of results of giccs eval"
        raise InputError(Problem(str(folder), None, message))


def _check_ledger(study: Study, path: str) -> None:
    """Raise InputError for an unreadable ledger, and for one of none of the items of a benchmark."""
    from giccs_app.explorer.annotation.data import from_ledger

    groups_by_item: dict[str, set[str]] = {}
    for group, item in from_ledger(path).items:
        groups_by_item.setdefault(normal_id(item), set()).add(normal_id(group))
    known = (
        not {"", normal_id(item.dialogue_id)}.isdisjoint(
            groups_by_item.get(normal_id(item.utterance_id), ())
        )
        for item in study.benchmark.items
    )
    if groups_by_item and study.task_data is None and not any(known):
        message = f"a study of none of the items of {study.benchmark.name}; expected its ledger"
        raise InputError(Problem(path, None, f"{message}, or other --data"))


def prepare_pages(
    data: str,
    judgments: str | None,
    results: str | None,
    ledger: str | None,
    model_judgments: tuple[str, ...] = (),
    items: str | None = None,
    scores: str | None = None,
    absolute: str | None = None,
) -> None:
    """Import the other pages and compute what takes long on them, while the first page is shown."""
    from giccs_app.explorer.caching import study_of

    with suppress(InputError):  # reported on the page
        study = study_of(data, judgments, results, ledger, model_judgments, items, scores, absolute)
        for name in ("annotation",) if study.is_plain else ("dialogues", "annotation", "models"):
            import_module(f"giccs_app.explorer.{name}.page").prepare(study)
    for name in ("models", "errors"):
        import_module(f"giccs_app.explorer.{name}.page")


def _serve(settings: list[str], arguments: list[str]) -> None:
    """Run Streamlit in this process until it is stopped."""
    from streamlit.web.cli import main

    page = str(Path(__file__).with_name("streamlit_app.py"))
    main(["run", page, *settings, "--", *arguments], prog_name="streamlit")


def _check_free(port: int) -> None:
    """Raise ClickException if the port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            message = (
                f"port {port} is in use; stop the program that uses it, or choose another --port"
            )
            raise click.ClickException(message) from None
