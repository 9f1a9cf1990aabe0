"""A folder that can be pushed to the Hugging Face hub: card, data, metadata."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bws.base.file_uses import check_not_read
from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from giccs.benchmark import SAMPLES, Benchmark, known_terms, read_benchmark
from giccs.benchmark.hub import push_folder
from giccs.benchmark.languages import base_language, required_language
from giccs.benchmark.terms import Terms
from giccs.description.card.croissant import croissant
from giccs.description.card.eval_yaml import EVAL_MARK, EVAL_YAML, eval_yaml, task_ids_of
from giccs.description.card.facts import (
    facts_of_dialogues,
    facts_of_judgments,
    facts_of_scores,
    how_judged,
)
from giccs.description.card.readme import MARK, Card, readme
from giccs.description.card.stated import Stated
from giccs.description.card.tables import items_table, judgments_table, soft_targets_table

if TYPE_CHECKING:
    from bws.files.soft_targets import SoftTargets
    from bws.records import Judgments

README, CROISSANT, DATA = "README.md", "croissant.json", "data"
PUSHED_FILES = re.compile(
    r"README\.md|croissant\.json|eval\.yaml|data/[^/]+\.parquet|\.gitattributes"
)
"""Paths of the hub that giccs-card or the hub itself writes."""


def card_of(
    benchmark: Benchmark,
    judgments: Judgments | None,
    stated: Stated,
    language: str | None = None,
    *,
    soft_targets: SoftTargets | None = None,
    comments: bool = False,
    with_tasks: bool = False,
) -> Card:
    """Return the content of the card.

    language: BCP 47 tag of items without a language, unless card.toml states a single one; it is published
    with every item.
    soft_targets: published with the items.
    comments: whether the comments of the judgments are published.
    with_tasks: whether eval.yaml declares the tasks of the benchmark.

    Raises InputError if the language is unknown or not one of those in card.toml, if scores and judgments or
    soft targets are inconsistent, if annotators are not pseudonymous or comments contain ids, and if
    card.toml describes simulated judgments as human.
    """
    lang = _language(benchmark, stated, language)
    if "language" not in stated.answers:
        stated = Stated({**stated.answers, "language": (base_language(lang),)})
    tables = [
        items_table([replace(item, language=item.language or lang) for item in benchmark.items])
    ]
    if judgments is not None:
        tables.append(judgments_table(judgments, comments=comments))
    if soft_targets is not None:
        tables.append(soft_targets_table(soft_targets, benchmark))
    simulated = _simulated(benchmark, judgments, stated)
    sections = [facts_of_scores(benchmark)]  # The statistics take seconds.
    left_out: list[str] = []
    try:
        sections.insert(0, facts_of_dialogues(benchmark, lang))
    except ValueError as error:
        left_out.append(f"the card has no statistics of the dialogues: {error}")
    if judgments is not None:
        sections += facts_of_judgments(benchmark, judgments)
    return Card(
        stated=stated,
        simulated=simulated,
        tables=tuple(tables),
        sections=tuple(sections),
        how_judged="" if judgments is None else how_judged(judgments, benchmark),
        fingerprint=benchmark.fingerprint,
        version=version("giccs"),
        task_ids=task_ids_of(benchmark) if with_tasks else (),
        left_out=tuple(left_out),
    )


def _language(benchmark: Benchmark, stated: Stated, option: str | None) -> str:
    """Return the language of the items, which must be one of those in card.toml."""
    of_card = stated.texts("language")
    if option is None and len(of_card) == 1 and not any(item.language for item in benchmark.items):
        option = of_card[0]
    lang = required_language(benchmark.items, benchmark.name, option, "lemmas")
    if of_card and base_language(lang) not in of_card:
        message = (
            f"card.toml states the language {', '.join(of_card)}, but that of the data is {lang}"
        )
        raise InputError(Problem(benchmark.name, None, f"{message}; expected the same"))
    return lang


def _simulated(benchmark: Benchmark, judgments: Judgments | None, stated: Stated) -> bool | None:
    by_name = judgments is not None and judgments.is_simulated
    is_simulated_study = by_name or known_terms(benchmark).annotators == "simulated"
    if is_simulated_study and stated.simulated is False:
        message = "the judgments are simulated, but card.toml states simulated = false"
        raise InputError(Problem(benchmark.name, None, message))
    return True if is_simulated_study else stated.simulated


def check_not_the_release(data: str) -> None:
    """Raise InputError if `data` is the published GiCCS release."""
    from giccs.benchmark.hub import data_folder
    from giccs.benchmark.release import is_release

    if data in SAMPLES or Path(data).is_file() or data == "-":
        return
    folder = Path(data) if Path(data).is_dir() else data_folder(data)
    if is_release(folder):
        message = (
            "is the published GiCCS release. Its licence, CC BY-NC-ND 3.0, does not permit the "
            "distribution of modified versions; refer to sasaadi/GiCCS instead. Use giccs-stats and "
            "giccs-validate to describe it"
        )
        raise InputError(Problem(data, None, message))


def check_may_be_public(stated: Stated, name: str) -> None:
    """Raise InputError if the licence does not permit distribution, or is not stated.

    name: the data set of the hub, in messages.
    """
    license_id = stated.text("license")
    if not license_id:
        message = (
            "license is not stated in card.toml; without one nobody may use the data (or --private)"
        )
    elif Terms(license_id).no_derivatives:
        message = (
            f"the licence {license_id} permits no derivatives; a benchmark is one (or --private)"
        )
    else:
        return
    raise InputError(Problem(name, None, message))


def push(card: Card, folder: Path, name: str, *, private: bool) -> str:
    """Push a folder of `write_folder` to the hub, read it back, and return the commit.

    Raises InputError if the hub refuses, or if what it returns has another fingerprint.
    """
    commit = push_folder(folder, name, private=private, known_files=PUSHED_FILES)
    fingerprint = read_benchmark(f"{name}@{commit}").fingerprint
    if fingerprint != card.fingerprint:
        message = f"commit {commit} has the fingerprint {fingerprint[:12]}; expected {card.fingerprint[:12]}"
        raise InputError(Problem(name, None, message))
    return commit


def check_folder(folder: Path) -> None:
    """Raise InputError if the folder contains files not written by giccs-card, except hidden files."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(Problem(str(folder), None, "is a file; expected a folder"))
    visible = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    foreign = sorted(visible - {README, CROISSANT, EVAL_YAML, DATA})
    if (folder / DATA).is_symlink():  # Never remove files outside of the folder.
        raise InputError(Problem(str(folder / DATA), None, "is a link; choose another folder"))
    foreign += sorted(
        str(path.relative_to(folder)) for path in _data(folder) if path.suffix != ".parquet"
    )
    foreign += [
        name
        for name, mark in ((README, MARK), (EVAL_YAML, EVAL_MARK))
        if (folder / name).is_file()
        and mark not in (folder / name).read_text("utf-8", errors="replace")
    ]
    if foreign:
        message = f"contains {', '.join(foreign)}, not written by giccs-card; choose another folder"
        raise InputError(Problem(str(folder), None, message))


def _data(folder: Path) -> list[Path]:
    return [*(folder / DATA).iterdir()] if (folder / DATA).is_dir() else []


def write_folder(card: Card, folder: Path) -> list[str]:
    """Write the card, the tables, croissant.json and eval.yaml; return their paths in the folder.

    Tables and eval.yaml of an earlier card are removed.
    """
    check_folder(folder)
    files: dict[str, str | bytes] = {table.path: table.content for table in card.tables}
    files[CROISSANT] = croissant(card.stated, card.title, card.description, card.tags, card.tables)
    files[README] = readme(card)
    if card.task_ids:
        files[EVAL_YAML] = eval_yaml(card.title, card.description, card.task_ids)
    for path in [*_data(folder), folder / EVAL_YAML]:
        if str(path.relative_to(folder)) not in files:
            check_not_read(path)
            path.unlink(missing_ok=True)
    for name, content in files.items():
        write_atomic(folder / name, content)
    return list(files)
