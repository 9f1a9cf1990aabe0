"""Schema version of a database, and its migration to the newest version."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from mturk.service.store.schema import VERSIONS, metadata, schema_version

__all__ = ["UnknownTablesError", "create", "upgrade", "version"]


class UnknownTablesError(ValueError):
    """The database contains tables of another program, or only some of the expected tables."""


def version(connection: Connection) -> str | None:
    """Return the schema version; None for an empty database.

    Schemas without a stored version are recognised by their columns. Raises UnknownTablesError if tables have
    the expected names but other columns.
    """
    names = set(inspect(connection).get_table_names())
    if schema_version.name in names:
        return connection.scalar(select(schema_version.c.version_num))
    if names.isdisjoint(metadata.tables):
        return None
    if _is_first_version(connection):
        return VERSIONS[0]
    raise UnknownTablesError("contains tables of another program")


def _is_first_version(connection: Connection) -> bool:
    from mturk.service.store.migrations.versions.v0001_first import metadata as first_metadata

    inspector = inspect(connection)
    return all(
        inspector.has_table(name)
        and {column["name"] for column in inspector.get_columns(name)} == set(table.c.keys())
        for name, table in first_metadata.tables.items()
    )


def create(connection: Connection) -> None:
    """Create the tables of the newest version in an empty database."""
    metadata.create_all(connection)
    connection.execute(insert(schema_version).values(version_num=VERSIONS[-1]))


def upgrade(connection: Connection, old_version: str) -> None:
    """Migrate the tables from `old_version` to the newest version, step by step."""
    # Alembic is slow to import and only needed here.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(Path(__file__).parent))
    context = MigrationContext.configure(connection, opts={"version_table": schema_version.name})
    context.stamp(scripts, old_version)  # the first version is not stored in the database
    steps = list(scripts.iterate_revisions("head", old_version))
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
            context.stamp(scripts, step.revision)
