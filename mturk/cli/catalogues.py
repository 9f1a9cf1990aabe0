"""giccs annotate check-texts: catalogues of the texts that participants read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from bws.base.commands import Console, command
from bws.base.options import UPDATED
from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from bws.cli.options import option, output_option


@command(
    "giccs annotate check-texts",
    example="""
    giccs annotate check-texts
    giccs annotate check-texts --new es -o es.po
    giccs annotate check-texts es.po
    """,
)
@click.argument("files", nargs=-1, type=UPDATED, metavar="[CATALOGUE]...")
@option("--new", "Write a catalogue to translate into a language, a BCP 47 tag, and exit.",
        metavar="TAG")  # fmt: skip
@option("--update", "Add new texts to the files; translations of changed texts become fuzzy.",
        is_flag=True, show_default=False)  # fmt: skip
@output_option
def check_texts(
    console: Console, files: Sequence[str], new: str | None, update: bool, output: str
) -> None:
    """List the languages of pages, site, consent and messages, and the texts that are missing in each.

    CATALOGUE is a file such as es.po in the folder of a study, beside hits.toml and studies.toml; its
    translations take precedence over those of the package, which are checked without CATALOGUE. Missing
    texts are shown in English.
    """
    from mturk.catalogues import installed_files, read_catalogue
    from mturk.catalogues.source import catalogue_problems, catalogue_text, update_catalogue

    if new is not None:
        write_atomic(output, _new_catalogue(new))
        return
    paths = list(files) or [*map(str, installed_files())]
    catalogues = [read_catalogue(path) for path in paths]
    if update:
        for path, catalogue in zip(paths, catalogues, strict=True):
            update_catalogue(catalogue.catalog)
            write_atomic(path, catalogue_text(catalogue.catalog))
        catalogues = [read_catalogue(path) for path in paths]
    if problems := [one for catalogue in catalogues for one in catalogue_problems(catalogue)]:
        raise InputError(problems)
    rows = [_row(catalogue) for catalogue in catalogues]
    console.answer("\n".join(map(_paragraph, rows)), {"languages": rows})


def _new_catalogue(language: str) -> str:
    from giccs.benchmark.languages import language_tag
    from mturk.catalogues.source import catalogue_text, new_catalogue

    try:
        return catalogue_text(new_catalogue(language_tag(language)))
    except ValueError as error:
        raise InputError(Problem("--new", None, str(error))) from None


def _row(catalogue: Any) -> dict[str, Any]:
    from mturk.catalogues.source import missing_texts, source_texts

    missing = missing_texts(catalogue.language, catalogue.folders)
    return {
        "language": catalogue.language,
        "file": str(catalogue.path),
        "texts": len(source_texts()),
        "missing": {key: source_texts()[key] for key in missing},
        "reviewed_by": catalogue.reviewer,
    }


def _paragraph(row: dict[str, Any]) -> str:
    n_translated = row["texts"] - len(row["missing"])
    head = (
        f"{row['language']}: {n_translated} of {row['texts']} texts, reviewed by "
        f"{row['reviewed_by'] or 'nobody'}"
    )
    return "\n".join([head, *(f"  missing {key}: {text}" for key, text in row["missing"].items())])
