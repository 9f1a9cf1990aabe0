"""Package extras of optional modules."""

from __future__ import annotations

import re

import click

DISTRIBUTIONS = {
    "botocore": "boto3",
    "multipart": "python-multipart",
    "sklearn": "scikit-learn",
    "vl_convert": "vl-convert-python",
}
"""Top-level module -> distribution that installs it, if their names differ by more than ``_``."""
REQUIREMENT = re.compile(r"""(?P<name>[\w.-]+).*extra == ["'](?P<extra>\w+)["']""")
DEVELOPMENT = "dev"


def extra_of(module: str) -> str:
    """Return the extra that installs a module, or an empty string.

    >>> extra_of("sqlalchemy.orm"), extra_of("sklearn"), extra_of("numpy")
    ('study', 'csts', '')
    """
    from importlib.metadata import requires

    top = module.partition(".")[0]
    distribution = DISTRIBUTIONS.get(top, top.replace("_", "-")).lower()
    matches = filter(None, map(REQUIREMENT.match, requires("giccs") or ()))
    extras = [
        match["extra"] for match in matches if match["name"].lower() == distribution != "giccs"
    ]
    return next((extra for extra in extras if extra != DEVELOPMENT), "")


def missing_module(error: ModuleNotFoundError) -> click.ClickException | None:
    """Return the message for a missing optional module; None for other modules."""
    module = (error.name or "").partition(".")[0]
    extra = extra_of(module)
    if not extra:
        return None
    return click.ClickException(f"needs {module}; install it with: pip install 'giccs[{extra}]'")
