"""Parameters of which `make test` runs some, and `make nightly` the others."""

import pytest


def nightly(value):
    """Return a parameter, or the parameters of a tuple, with the marker `nightly`."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.nightly)


def first_in_ci(values, count=1):
    """Return all parameters; those after the first `count` are nightly."""
    values = [*values]
    return [*values[:count], *map(nightly, values[count:])]


def others_nightly(values, *representatives):
    """Return all parameters; those that are no representatives are nightly."""
    values = [*values]
    assert all(value in values for value in representatives)
    return [value if value in representatives else nightly(value) for value in values]
