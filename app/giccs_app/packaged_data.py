"""giccs data: sample data, recipes and settings files of the package, to list and to copy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import click

from bws.base.commands import Console, command, group
from bws.base.options import OUTPUT
from bws.base.problems import suggestion
from bws.base.tables import tabulated

COMMANDS = {
    "list": "giccs_app.packaged_data:list_data",
    "copy": "giccs_app.packaged_data:copy",
}
"""Name of a command -> ``module:function``."""


class PackagedData(NamedTuple):
    """A file, or a folder of files, that the package contains."""

    name: str
    kind: str
    """``sample``, ``recipe`` or ``settings``."""
    content: str
    """A description in one line."""
    files: dict[str, bytes]
    """Path in the folder -> content; for a single file, its name."""

    @property
    def is_folder(self) -> bool:
        """Whether a copy is a folder."""
        return self.kind == "sample"


def packaged_data() -> Iterator[PackagedData]:
    """Yield all data of the package.

    >>> [data.name for data in packaged_data() if data.kind == "sample"]
    ['giccs-sample', 'giccs-sample-en', 'csts-sample']
    """
    from bws.base.text import read_toml
    from giccs.recipes import NAMES, locate
    from mturk.kinds.registry import kind_names
    from mturk.study.settings_file import default_toml

    samples = resources.files("giccs.data")
    for name, folder, content in (
        ("giccs-sample", samples, "60 German dialogues: tuples, judgments, scores, benchmark"),
        ("giccs-sample-en", samples / "en", "60 English dialogues, with the same files"),
        ("csts-sample", samples / "csts-sample", "Sentence pairs with conditions (C-STS)"),
    ):
        yield PackagedData(name, "sample", content, _files(folder))
    for name in NAMES:
        recipe = locate(name)
        title = read_toml(recipe)["title"]
        yield PackagedData(name, "recipe", title, {recipe.name: recipe.read_bytes()})
    for kind in kind_names():
        name, file = f"hits-{kind}", default_toml(kind).encode()
        content = f"Settings of a study of {kind}, with comments"
        yield PackagedData(name, "settings", content, {f"{name}.toml": file})


def _files(folder: Traversable) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.is_file() and not file.name.endswith((".py", ".pyc"))
    }


@group(
    "giccs data",
    COMMANDS,
    """
    giccs data list
    giccs data copy giccs-sample
    giccs data copy giccs-paper my-recipe.toml
    """,
)
def data() -> None:
    """List and copy the sample data, recipes and settings files of the package."""


@command(
    "giccs data list",
    example="""
    giccs data list
    """,
)
def list_data(console: Console) -> None:
    """List the names for giccs data copy.

    Samples are also accepted by --data, and recipes by --recipe, --sweep and --against.
    """
    listed = list(packaged_data())
    rows = [(entry.name, entry.kind, shorten(entry.content, 70)) for entry in listed]
    console.answer(
        tabulated(rows, ("name", "kind", "content")),
        {
            "data": [
                {
                    "name": entry.name,
                    "kind": entry.kind,
                    "content": entry.content,
                    "files": [*entry.files],
                }
                for entry in listed
            ]
        },
    )


@command(
    "giccs data copy",
    example="""
    giccs data copy giccs-sample
    giccs data copy giccs-paper my-recipe.toml
    """,
    interrupt_message="the copy is complete or does not exist",
)
@click.argument("name")
@click.argument("destination", type=OUTPUT, metavar="[DEST]", required=False)
def copy(console: Console, name: str, destination: str | None) -> None:
    """Copy data of the package to the new file or folder DEST, or into an existing folder DEST.

    Without DEST, into the current folder. Existing files are not overwritten.
    """
    from bws.base.text import write_atomic
    from giccs_app.studies.folders import check_is_new, write_new_folder

    by_name = {entry.name: entry for entry in packaged_data()}
    if name not in by_name:
        expected = f"expected one of {', '.join(by_name)}{suggestion(name, by_name)}"
        raise click.BadParameter(f"no data {name!r}; {expected}", param_hint="'NAME'")
    entry = by_name[name]
    target = Path(destination or ".")
    if target.is_dir():
        target /= name if entry.is_folder else next(iter(entry.files))
    if entry.is_folder:
        write_new_folder(target, entry.files)
    else:
        check_is_new(target)
        write_atomic(target, entry.files[f"{name}.toml"])
    files = sorted(entry.files) if entry.is_folder else []
    text = f"{target}: {', '.join(files)}" if files else str(target)
    console.answer(text, {"name": name, "path": str(target), "files": files})
