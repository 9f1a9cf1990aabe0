"""A folder that can be pushed to the Hugging Face hub as it is: card, data, metadata."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bws.problems import InputError, Problem
from bws.simulate import is_simulated
from bws.textio import write_atomic
from giccs.benchmark import SAMPLE, Benchmark, known_terms
from giccs.benchmark.languages import base_language, required_language
from giccs.description.card.croissant import croissant
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

__all__ = ["card_of", "check_folder", "check_not_the_release", "write_folder"]

README, CROISSANT, DATA = "README.md", "croissant.json", "data"


def card_of(
    benchmark: Benchmark,
    judgments: Judgments | None,
    stated: Stated,
    language: str | None = None,
    *,
    soft_targets: SoftTargets | None = None,
) -> Card:
    """Gather what the card says.

    language: BCP 47 tag of items that state none, unless card.toml states a single one; it is published with
    every item.
    soft_targets: published beside the items.

    InputError where the language is not known or is none of those of card.toml, where the judgments or
    the soft targets are not those behind the scores, where annotators do not go by pseudonyms, and where
    simulated judgments are stated to be people's.
    """
    lang = _language(benchmark, stated, language)
    if "language" not in stated.answers:
        stated = Stated({**stated.answers, "language": (base_language(lang),)})
    tables = [items_table([replace(one, language=one.language or lang) for one in benchmark.items])]
    sections = [facts_of_dialogues(benchmark, lang), facts_of_scores(benchmark)]
    if judgments is not None:
        tables.append(judgments_table(judgments))
        sections += facts_of_judgments(benchmark, judgments)
    if soft_targets is not None:
        tables.append(soft_targets_table(soft_targets, benchmark))
    return Card(
        stated=stated,
        simulated=_simulated(benchmark, judgments, stated),
        tables=tuple(tables),
        sections=tuple(sections),
        how_judged="" if judgments is None else how_judged(judgments),
        fingerprint=benchmark.fingerprint,
        version=version("giccs"),
    )


def _language(benchmark: Benchmark, stated: Stated, option: str | None) -> str:
    """Return the language of the items, which must be one of those that card.toml states."""
    of_card = stated.texts("language")
    if option is None and len(of_card) == 1 and not any(item.language for item in benchmark.items):
        option = of_card[0]
    lang = required_language(benchmark.items, benchmark.name, option, "lemmas")
    if of_card and base_language(lang) not in of_card:
        message = f"card.toml states the language {', '.join(of_card)}, but the data are in {lang}"
        raise InputError(Problem(benchmark.name, None, f"{message}; expected the same"))
    return lang


def _simulated(benchmark: Benchmark, judgments: Judgments | None, stated: Stated) -> bool | None:
    names = [] if judgments is None else judgments.annotators.tolist()
    by_name = bool(names) and all(map(is_simulated, names))
    known = by_name or known_terms(benchmark).annotators == "simulated"
    if known and stated.simulated is False:
        message = "the judgments are simulated, but card.toml states simulated = false"
        raise InputError(Problem(benchmark.name, None, message))
    return True if known else stated.simulated


def check_not_the_release(data: str) -> None:
    """Raise InputError where `data` is the published GiCCS release."""
    from giccs.benchmark.hub import data_folder
    from giccs.benchmark.release import is_release

    if data == SAMPLE or Path(data).is_file() or data == "-":
        return
    folder = Path(data) if Path(data).is_dir() else data_folder(data)
    if is_release(folder):
        message = (
            "is the published GiCCS release. Its licence, CC BY-NC-ND 3.0, does not allow to pass it on in "
            "changed form; point to sasaadi/GiCCS instead. giccs-stats and giccs-validate describe it"
        )
        raise InputError(Problem(data, None, message))


def check_folder(folder: Path) -> None:
    """Raise InputError where the folder holds what giccs-card did not write; hidden files may be there."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(Problem(str(folder), None, "is a file; a folder is expected"))
    visible = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    foreign = sorted(visible - {README, CROISSANT, DATA})
    if (folder / DATA).is_symlink():  # what lies elsewhere is not ours to remove
        raise InputError(Problem(str(folder / DATA), None, "is a link; name another folder"))
    foreign += sorted(
        str(path.relative_to(folder)) for path in _data(folder) if path.suffix != ".parquet"
    )
    card = folder / README
    if card.is_file() and MARK not in card.read_text("utf-8", errors="replace"):
        foreign.append(README)
    if foreign:
        message = f"holds {', '.join(foreign)}, which giccs-card did not write; name another folder"
        raise InputError(Problem(str(folder), None, message))


def _data(folder: Path) -> list[Path]:
    return [*(folder / DATA).iterdir()] if (folder / DATA).is_dir() else []


def write_folder(card: Card, folder: Path) -> list[str]:
    """Write the card, the tables and croissant.json, and nothing else; return their paths in the folder."""
    check_folder(folder)
    files: dict[str, str | bytes] = {one.path: one.content for one in card.tables}
    files[CROISSANT] = croissant(card.stated, card.title, card.description, card.tags, card.tables)
    files[README] = readme(card)
    for path in _data(folder):
        if str(path.relative_to(folder)) not in files:
            path.unlink()  # a table that an earlier card had
    for name, content in files.items():
        write_atomic(folder / name, content)
    return list(files)
