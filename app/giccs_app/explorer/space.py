"""Explorer and leaderboard with their data as a folder for a Hugging Face Space, with the report of the data.

Spaces run Streamlit with the SDK docker; their SDK streamlit is deprecated
(docs/hub/spaces-sdks-streamlit.md of github.com/huggingface/hub-docs).

The folder is meant for the public, so that it contains no names, comments or times of annotators.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from bws.files import write_judgments
from giccs.benchmark import write_benchmark
from giccs.benchmark.files import known_terms
from giccs.benchmark.front_matter import front_matter
from giccs.evaluation.interop.metadata import HUB_ID, hub_id_of_model
from giccs.measures.results import Result
from giccs_app.explorer.results import results_of
from giccs_app.explorer.study import Study, check_files, load
from giccs_app.explorer.theme import SETTINGS
from giccs_app.report.html import write_page
from giccs_app.report.inputs import Inputs
from giccs_app.report.sections import statistics_problem
from giccs_app.studies.folders import new_folder

PORT = 7860
"""Port that a Space serves by default."""
PUBLIC_COLUMNS = ("round", "purpose", "seed", "seconds")
"""Further columns of the judgments that are exported; all others are left out."""
DOCKERFILE = """\
FROM python:3.11-slim
RUN useradd --create-home --uid 1000 user
USER user
ENV PATH=/home/user/.local/bin:$PATH
WORKDIR /home/user/app
COPY --chown=user . .
RUN pip install --no-cache-dir --user -r requirements.txt
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0"]
"""
APP = '''\
"""The score explorer of giccs with the data of this folder: streamlit run app.py"""

from giccs_app.explorer.streamlit_app import main

main({arguments})
'''
REQUIREMENTS = """\
--find-links wheels
giccs[app]=={version}
"""
README = """\
---
{front_matter}
---

# {title}

The score explorer of giccs {version}: {content}.
{simulated}
- On this computer: `pip install -r requirements.txt`, then `streamlit run app.py`, which shows
  <http://127.0.0.1:{port}>. If this version of giccs is not on the package index, put its wheel into the
  folder `wheels`: `pip wheel --no-deps -w wheels FOLDER`, with the folder of its source.
- As a Space: `hf repos create OWNER/NAME --type space --space-sdk docker`, then
  `hf upload OWNER/NAME . --type space` in this folder.
{views}{page}
Annotators have pseudonyms; comments and other personal columns of the judgments are left out.

{terms}
"""
LEADERBOARD_VIEW = """\
- The leaderboard with intervals, subsets and comparisons of models is the page *Models*: `/?page=models`.
"""
PAGE = "data/report.html is the report as one file without scripts, for example for a supplement"
SIMULATED = """
**Simulated data**: the scores come from simulated annotators and must not be reported as results.
"""


def write_space(
    folder: Path, data: str, judgments: str | None = None, results: str | None = None
) -> list[str]:
    """Write the explorer with its data to a new folder; return notes on what it contains.

    The folder `data` contains the benchmark, the judgments under pseudonyms, the results on this benchmark,
    and the report of these files, ``report.html``. Raises InputError if a file is invalid, or if the folder
    exists and is not empty.
    """
    study = load(data, judgments, results)
    if study.task_data is not None:
        message = f"data of {', '.join(study.task_data.tasks)}; expected a benchmark of dialogues"
        raise InputError(Problem(data, None, message))
    check_files(study, judgments)
    found = results_of(study)
    if found.problems or study.problems:
        raise InputError([*study.problems, *found.problems])
    on_other_scale = [each.result for each in found.hidden if each.reason == "other_scale"]
    shown = [*found.results, *on_other_scale]
    with new_folder(folder) as space:
        (space / "data").mkdir()
        notes = [*_write_data(space / "data", study, shown)]
        if n_left_out := len(found.results) + len(found.hidden) - len(shown):
            notes.append(f"left out: {n_left_out} results on other data")
        problem = _write_page(space / "data", study.is_simulated)
        _write_program(space, study, shown)
        notes += [PAGE] if (space / "data" / "report.html").exists() else []
    warnings = filter(None, [problem, known_terms(study.benchmark).warning()])
    return [*notes, *(f"WARNING: {warning}" for warning in warnings)]


def _write_data(folder: Path, study: Study, results: Sequence[Result]) -> Iterator[str]:
    """Write the data; yield what is written."""
    write_benchmark(study.benchmark.items, folder / "benchmark.jsonl")
    yield f"{len(study.benchmark.items)} items"
    if study.judgments is not None:
        columns = study.judgments.columns
        public = {name: columns[name] for name in PUBLIC_COLUMNS if name in columns}
        write_judgments(replace(study.judgments, columns=public), folder / "judgments.csv")
        left_out = ", ".join(name for name in columns if name not in public)
        yield f"{len(study.judgments)} judgments, annotators under pseudonyms" + (
            f", without the columns {left_out}" if left_out else ""
        )
    if study.store is not None and results:
        (folder / "results").mkdir()
        for result in results:
            file = study.store.path(result.model, result.task, result.signature)
            for part in (file, file.with_suffix(".parquet")):
                if part.exists():
                    shutil.copyfile(part, folder / "results" / part.name)
        yield f"{len(results)} results"


def _write_page(data: Path, simulated: bool) -> str:
    """Write the report of a folder of data; return what is missing and why, or an empty string."""
    inputs = Inputs(data, simulated, metadata_file="benchmark.jsonl")
    try:
        write_page(inputs, data / "report.html")
    except ImportError as error:
        reason = f"{error.name} is not installed; pip install 'giccs[stats]'"
        return f"without data/report.html: {reason}"
    except InputError as error:
        return f"without data/report.html: {error}"
    problem = statistics_problem(inputs)
    return problem and f"data/report.html has no statistics of the dialogues: {problem}"


def _write_program(folder: Path, study: Study, results: Sequence[Result]) -> None:
    """Write what a Space runs, and its README."""
    kinds = "Explorer and leaderboard" if results else "Explorer"
    title = f"{kinds} of {Path(study.benchmark.name.partition('@')[0]).stem}"
    content = "dialogues, candidate utterances and their scores"
    readme = README.format(
        title=title,
        front_matter=_front_matter(title, study, results),
        port=PORT,
        version=version("giccs"),
        content=f"{content}, and {len(results)} results of models" if results else content,
        simulated=SIMULATED if study.is_simulated else "",
        views=LEADERBOARD_VIEW if results else "",
        page=f"- {PAGE}.\n" if (folder / "data" / "report.html").exists() else "",
        terms="\n".join(f"- {line}" for line in known_terms(study.benchmark).lines()),
    )
    data = folder / "data"
    files = {"judgments": data / "judgments.csv", "results": data / "results"}
    arguments = ["--data=data/benchmark.jsonl", "--without-uploads"]
    arguments += [f"--{name}=data/{file.name}" for name, file in files.items() if file.exists()]
    write_atomic(folder / "README.md", readme)
    write_atomic(folder / "Dockerfile", DOCKERFILE)
    write_atomic(folder / "requirements.txt", REQUIREMENTS.format(version=version("giccs")))
    write_atomic(folder / "app.py", APP.format(arguments=json.dumps(arguments)))
    (folder / ".streamlit").mkdir()
    write_atomic(folder / ".streamlit" / "config.toml", _settings())


def _front_matter(title: str, study: Study, results: Sequence[Result]) -> str:
    """Return the metadata of the Space: with its data set and models, if they are on the hub."""
    hub_id = study.benchmark.name.partition("@")[0]
    is_on_hub = HUB_ID.fullmatch(hub_id) and not Path(hub_id).exists()
    models = sorted({model for result in results if (model := hub_id_of_model(result))})
    return front_matter(
        {
            "title": title,
            "sdk": "docker",
            "app_port": PORT,
            "license": known_terms(study.benchmark).license or None,
            "models": models or None,
            "datasets": [hub_id] if is_on_hub else None,
            "tags": ["leaderboard"] if results else None,
            "emoji": "💬",
            "colorFrom": "blue",
            "colorTo": "yellow",
            "pinned": False,
        }
    )


def _settings() -> str:
    """Return the settings of Streamlit: those of giccs explore, without a browser.

    Only the container listens on all addresses (`DOCKERFILE`), because the proxy of the Space is outside.
    """
    settings = SETTINGS | {"server.port": PORT, "server.headless": True}
    return "".join(f"{name} = {_toml(value)}\n" for name, value in settings.items())


def _toml(value: object) -> str:
    """Return a value in TOML; "true" and "false" become Booleans.

    >>> _toml("false"), _toml(7860), _toml("none")
    ('false', '7860', '"none"')
    """
    is_flag = value in ("true", "false")
    return str(value) if is_flag else json.dumps(value)
