"""An empty database of the service, copied from one that is built once."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mturk.service.store.database import Database

BALANCE = 1_000_000


def new_database(path, balance=BALANCE):
    """Return an empty database at `path`; all of one process have the same secret."""
    path.write_bytes(_empty_file(balance))
    return Database(path)


@cache
def _empty_file(balance):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "hits.db"
        Database(path, balance=balance).close()
        return path.read_bytes()
