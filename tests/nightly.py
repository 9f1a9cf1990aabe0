"""Parameters of which `make test` runs some, and `make nightly` the others."""

import pytest
from hypothesis import settings


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


def examples(few):
    """Return settings of a test with many parameters: `few` random examples, ten times as many nightly."""
    is_nightly = settings().max_examples > settings.get_profile("few").max_examples
    return settings(max_examples=10 * few if is_nightly else few)
