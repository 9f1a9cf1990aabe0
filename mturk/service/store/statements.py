"""Statements of frequent requests: compiled once, and executed by the driver of the database.

An execution by SQLAlchemy takes several times as long as one by the driver.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Boolean, ClauseElement, Connection, Dialect, Float, Integer, String
from sqlalchemy.exc import DBAPIError

Processor = Callable[[Any], Any]
ROW_TYPE: Any = namedtuple
DRIVER_TYPES = (String, Integer, Float, Boolean)
"""Types whose values the drivers return as Python values; SQLite returns 0 or 1 for Boolean."""


class Statement:
    """A statement with named parameters; an INSERT or UPDATE sets the columns among them.

    Rows are named tuples. Errors are those of SQLAlchemy; they contain no values.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._compiled: dict[tuple[str, ...], _CompiledStatement] = {}

    def all(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        """Return all rows."""
        return self._execute(connection, values)[0]

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Return the first row, or None."""
        rows = self._execute(connection, values)[0]
        return rows[0] if rows else None

    def scalar(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Return the first column of the first row, or None."""
        rows = self._execute(connection, values)[0]
        return rows[0][0] if rows else None

    def change(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Insert or update; return the number of rows."""
        return self._execute(connection, values)[1]

    def _execute(self, connection: Connection, values: Mapping[str, Any]) -> tuple[list[Any], int]:
        dialect = connection.dialect
        key = (dialect.name, *values)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = _CompiledStatement(self._statement, dialect, tuple(values))
            self._compiled[key] = compiled
        return compiled.execute(connection, values)


class _CompiledStatement:
    """A statement in the dialect of a database, for fixed parameters."""

    def __init__(
        self, statement: ClauseElement, dialect: Dialect, parameters: Sequence[str]
    ) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=parameters)
        if getattr(compiled, "insert_prefetch", ()) or getattr(compiled, "update_prefetch", ()):
            raise ValueError(
                "a column has a default that only SQLAlchemy computes; expected a value"
            )
        self._sql: str = compiled.string
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        self._is_positional: bool = compiled.positional
        self._names: Sequence[str] = compiled.positiontup if compiled.positional else [*binds]
        self._constants = {
            name: bind.effective_value for name, bind in binds.items() if not bind.required
        }
        columns = [*getattr(statement, "exported_columns", ())]
        self._row = ROW_TYPE("Row", [str(column.key) for column in columns], rename=True)
        self._processors = _result_processors(columns, dialect)
        self._driver_error: type[Exception] = dialect.loaded_dbapi.Error

    def execute(self, connection: Connection, values: Mapping[str, Any]) -> tuple[list[Any], int]:
        """Return all rows and the number of matched rows."""
        values = {**self._constants, **values}
        parameters = (
            [values[name] for name in self._names]
            if self._is_positional
            else {name: values[name] for name in self._names}
        )
        driver_connection: Any = connection.connection.driver_connection
        try:
            cursor = driver_connection.execute(self._sql, parameters)
            rows = cursor.fetchall() if self._row._fields else []
        except self._driver_error as error:
            hide_values(error)
            raise DBAPIError.instance(
                self._sql, None, error, self._driver_error, hide_parameters=True,
                dialect=connection.dialect,
            ) from error  # fmt: skip
        return [self._row._make(self._process(row)) for row in rows], cursor.rowcount

    def _process(self, row: Sequence[Any]) -> Sequence[Any]:
        if not self._processors:
            return row
        processed = list(row)
        for index, process in self._processors.items():
            processed[index] = process(row[index])
        return processed


def _result_processors(columns: Sequence[Any], dialect: Dialect) -> dict[int, Processor]:
    """Return index -> function for the columns whose values the driver does not convert: JSON in SQLite."""
    processors: dict[int, Processor] = {}
    for index, column in enumerate(columns):
        if isinstance(column.type, JSON):
            process = column.type.dialect_impl(dialect).result_processor(dialect, None)
            if process is not None:
                processors[index] = process
        elif not isinstance(column.type, DRIVER_TYPES):
            raise TypeError(
                f"column {column.key} is {column.type!r}; expected text, number or JSON"
            )
    return processors


def hide_values(error: BaseException) -> None:
    """Remove the details of an error, in which PostgreSQL quotes stored values."""
    error.args = tuple(str(argument).partition("\nDETAIL:")[0] for argument in error.args)
