"""New folders, written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bws.base.problems import InputError, Problem


def check_is_new(path: Path) -> None:
    """Raise InputError if a file or a folder with content exists."""
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists() or path.is_symlink():
        message = "exists and is not overwritten; expected the name of a new file or folder"
        raise InputError(Problem(str(path), None, message))


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder that gets the name `folder` at the end; an error leaves nothing behind.

    Raises InputError if a file or a folder with content exists.
    """
    check_is_new(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
        complete = Path(temporary, folder.name)
        complete.mkdir()
        yield complete
        os.rename(complete, folder)


def write_new_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files, named by their paths in it; raise InputError if it exists and is not empty."""
    with new_folder(folder) as complete:
        for name, content in files.items():
            file = complete / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
