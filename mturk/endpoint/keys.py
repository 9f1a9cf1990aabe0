"""The keys with which requesters sign: from a file that only its owner reads, or the environment."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import read_text

__all__ = ["VARIABLE", "read_keys"]

VARIABLE = "GICCS_KEYS"
"""Holds a JSON object of access keys and secrets."""
SECRET_CHARACTERS = 16


def read_keys(path: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return access key -> secret, from a TOML file (``access_key = "secret"``) or GICCS_KEYS.

    Empty where neither is given. InputError where the file can be read by others, or a secret is short.
    """
    if path is not None:
        _check_private(path)
        return _checked(path, _from_toml(path))
    if VARIABLE in environment:
        return _checked(VARIABLE, _from_json(environment[VARIABLE]))
    return {}


def _check_private(path: str) -> None:
    file = Path(path)
    if (
        os.name == "posix"
        and file.is_file()
        and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ):
        raise InputError(Problem(path, None, f"others can read the keys; chmod 600 {path}"))


def _from_toml(path: str) -> Any:
    try:
        return tomllib.loads(read_text(path))
    except (ValueError, RecursionError):  # its message would quote a secret
        raise InputError(
            Problem(path, None, 'is not TOML; access_key = "secret" is allowed')
        ) from None


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        message = 'is not JSON; {"access_key": "secret"} is allowed'
        raise InputError(Problem(VARIABLE, None, message)) from None


def _checked(place: str, values: Any) -> dict[str, str]:
    if not isinstance(values, dict) or not values:
        raise InputError(
            Problem(place, None, "holds no keys; one access key and its secret are needed")
        )
    problems = [
        Problem(
            place,
            None,
            f"the secret of {key} is not a text of {SECRET_CHARACTERS} characters or more",
        )
        for key, secret in values.items()
        if not isinstance(secret, str) or len(secret) < SECRET_CHARACTERS
    ]
    if problems:
        raise InputError(problems)
    return {str(key): secret for key, secret in values.items()}
