"""Which version a database's tables have, and how they come to the newest."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from mturk.service.store.schema import VERSIONS, metadata, schema_version

__all__ = ["UnknownTablesError", "create", "upgrade", "version"]


class UnknownTablesError(ValueError):
    """The database holds tables that are not the service's, or not all of them."""


def version(connection: Connection) -> str | None:
    """Return the version of the tables; None where there are none yet.

    Tables from before versions were counted are known by their columns. UnknownTablesError where
    tables have the names of ours and are others.
    """
    names = set(inspect(connection).get_table_names())
    if schema_version.name in names:
        return connection.scalar(select(schema_version.c.version_num))
    if names.isdisjoint(metadata.tables):
        return None
    if _is_first(connection):
        return VERSIONS[0]
    raise UnknownTablesError("holds tables of another program")


def _is_first(connection: Connection) -> bool:
    from mturk.service.store.migrations.versions.v0001_first import metadata as first

    there = inspect(connection)
    return all(
        there.has_table(name)
        and {column["name"] for column in there.get_columns(name)} == set(table.c.keys())
        for name, table in first.tables.items()
    )


def create(connection: Connection) -> None:
    """Make the tables of the newest version in an empty database."""
    metadata.create_all(connection)
    connection.execute(insert(schema_version).values(version_num=VERSIONS[-1]))


def upgrade(connection: Connection, found: str) -> None:
    """Bring the tables from the version `found` to the newest, a step after the other."""
    # Alembic is slow to load, and needed for this only.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(Path(__file__).parent))
    context = MigrationContext.configure(connection, opts={"version_table": schema_version.name})
    context.stamp(scripts, found)  # where versions were not counted yet
    steps = list(scripts.iterate_revisions("head", found))
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
            context.stamp(scripts, step.revision)
