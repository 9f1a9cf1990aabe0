"""A format of judgments for giccs, in a package of its own: pairs, and which of both is better."""

from bws.files.rows import Format, rows_of


def rows(table):
    """Return the rows of a file with these columns."""
    return rows_of(table, "left-right", ["left", "right"], "better", "poorer")


LEFT_RIGHT = Format(
    "left-right",
    "left, right, better, poorer",  # for messages
    lambda columns: {"left", "right", "better", "poorer"} <= {*columns},
    rows,
)
