"""Query parameters of recruiting links, with Prolific's signature where a study requires it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mturk.service.site.links import LinkError

if TYPE_CHECKING:
    from jwt import PyJWKSet


def read_key_set(path: str) -> PyJWKSet:
    """Read public keys from a JSON Web Key Set; raise ValueError if there are none."""
    from jwt import PyJWKSet
    from jwt.exceptions import PyJWTError

    try:
        return PyJWKSet.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, PyJWTError, AttributeError, TypeError) as error:
        message = f"is {path!r} ({error}); expected a file of public keys (JSON Web Key Set)"
        raise ValueError(message) from None


def signed_parameters(token: str, keys_file: str, site_url: str) -> Mapping[str, str]:
    """Return the parameters in a ``prolific_token``.

    Raises LinkError unless Prolific signed them for this site and the token has not expired. The file is read
    per call, so that keys can be replaced while the service runs.
    """
    import jwt

    try:
        key = read_key_set(keys_file)[jwt.get_unverified_header(token).get("kid", "")]
        claims = jwt.decode(
            token, key, algorithms=["RS256"], audience=[site_url, str(urlsplit(site_url).hostname)],
            options={"require": ["exp", "aud"]},
        )  # fmt: skip
    except (jwt.PyJWTError, KeyError, ValueError) as error:
        raise LinkError(f"prolific_token is invalid ({type(error).__name__})") from None
    values = claims.get("prolific")
    if not isinstance(values, dict):
        raise LinkError("prolific_token has no claim prolific")
    return {str(name): str(value) for name, value in values.items()}
