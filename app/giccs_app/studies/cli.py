"""giccs init: the folder of a new study."""

from __future__ import annotations

from pathlib import Path

import click

from bws.base.commands import Console, command
from bws.base.options import OUTPUT_FOLDER, Choice, RegisteredName
from mturk.catalogues import SOURCE_LANGUAGE, available_languages

TEMPLATES = Path(__file__).parent / "templates"
"""A folder per kind of HIT: files of all languages, and a folder per language."""
KINDS = ("tuples", "conditions")
PRESETS = ("similarity", "relatedness", "sentiment", "plausibility")
"""Questions of best-worst studies: similarity in dialogues, and of plain items (`mturk.kinds.items`)."""


@command(
    "giccs init",
    example="""
    giccs init my-study
    giccs init meine-studie --language de
    giccs init my-words --preset sentiment
    giccs init my-pairs --kind conditions
    """,
    interrupt_message="{folder} is complete or does not exist",
)
@click.argument("folder", type=OUTPUT_FOLDER, metavar="STUDY")
@click.option(
    "--language",
    type=RegisteredName(available_languages),
    default=SOURCE_LANGUAGE,
    show_default=True,
    metavar="TAG",
    help="Language of the worker page and, in en, de and es, of the example data.",
)
@click.option(
    "--kind",
    type=Choice(KINDS),
    default="tuples",
    show_default=True,
    help="Judgments of tuples, or conditions for sentence pairs (C-STS).",
)
@click.option(
    "--preset",
    type=Choice(PRESETS),
    default="similarity",
    show_default=True,
    help="Question about tuples: similarity of utterances in dialogues, relatedness of sentence pairs, "
    "sentiment of words, or plausibility of sentences. All texts of the last three can be changed.",
)
def init(console: Console, folder: str, language: str, kind: str, preset: str) -> None:
    """Write the folder of a new study: example data, settings and the next steps.

    The folder STUDY must be new or empty. Its README.md lists the commands from the example data, a
    spreadsheet that you replace by your own, to scores, a benchmark and the evaluation of models.
    """
    from giccs_app.studies.folders import write_new_folder

    if kind != "tuples" and preset != "similarity":
        raise click.UsageError(f"--preset {preset} is for --kind tuples")
    files = study_files(kind, language) if preset == "similarity" else item_files(preset, language)
    write_new_folder(Path(folder), files)
    names = sorted(files)
    if _example_folder(kind, language).name != language:
        console.note(
            f"note: the example data are in English; replace them by your own in {language}"
        )
    console.answer(
        f"{folder}: {', '.join(names)}\nNext: cd {folder}, then follow README.md",
        {"folder": folder, "language": language, "kind": kind, "preset": preset, "files": names},
    )


def _example_folder(kind: str, language: str) -> Path:
    """Return the folder of the example data in a language, or else in English."""
    folder = TEMPLATES / kind / language
    return folder if folder.is_dir() else TEMPLATES / kind / SOURCE_LANGUAGE


def study_files(kind: str, language: str) -> dict[str, bytes]:
    """Return the files of a new study by name."""
    from mturk.study.settings_file import default_toml

    files = {
        path.name: path.read_bytes()
        for source in (TEMPLATES / kind, _example_folder(kind, language))
        for path in source.iterdir()
        if path.is_file()
    }
    files["README.md"] = files["README.md"].replace(b"LANGUAGE", language.encode())
    return files | {"hits.toml": default_toml(kind, language).encode()}


def item_files(preset: str, language: str) -> dict[str, bytes]:
    """Return the files of a new study of plain items by name."""
    from mturk.kinds.texts import read_built_in_file
    from mturk.study.settings_file import default_toml

    texts = read_built_in_file("mturk.kinds.items", language, preset)
    settings = default_toml("items", language).replace('# texts = ""', 'texts = "texts.toml"')
    return {
        "README.md": (TEMPLATES / "items" / "README.md").read_bytes(),
        "items.csv": (_example_folder("items", language) / f"{preset}.csv").read_bytes(),
        "texts.toml": texts.encode(),
        "hits.toml": settings.encode(),
    }
