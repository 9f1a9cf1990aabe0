"""Parameters of which make test runs representatives, and make nightly the others."""

import pytest


def others_nightly(values, *representatives):
    """Return all parameters; those that are no representatives have the mark ``nightly``."""
    values = list(values)
    assert all(value in values for value in representatives)
    return [value if value in representatives else nightly(value) for value in values]


def nightly(value):
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.nightly)
