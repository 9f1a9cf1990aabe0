"""Parameters of which `make test` takes the first ones, and `make nightly` the others."""

import pytest


def first_in_ci(values, count=1):
    """Return the parameters: the first `count`, then the others with the marker `nightly`."""
    values = [*values]
    rows = [value if isinstance(value, tuple) else (value,) for value in values[count:]]
    return [*values[:count], *(pytest.param(*row, marks=pytest.mark.nightly) for row in rows)]
