"""The YAML block at the beginning of a README, as the Hugging Face hub reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

BLOCK = re.compile(r"\s*---[ \t]*(?:\r\n|\r|\n)(.*?)(?:\r\n|\r|\n)---[ \t]*(?:\r\n|\r|\n|$)", re.S)


def read_front_matter(path: Path) -> Mapping[str, Any]:
    """Return the fields of a README; nothing without a valid block.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "README.md"
    >>> _ = path.write_text("---\\nlicense: mit\\n---\\n# Title\\n")
    >>> read_front_matter(path)
    {'license': 'mit'}
    """
    try:
        match = BLOCK.match(path.read_text(encoding="utf-8-sig"))
        fields = yaml.safe_load(match[1]) if match else None
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return fields if isinstance(fields, dict) else {}


def front_matter(fields: Mapping[str, Any]) -> str:
    """Return the fields that are not None as YAML, in their order.

    >>> front_matter({"license": "mit", "language": None, "tags": ["größer"]})
    'license: mit\\ntags:\\n- größer'
    """
    stated = {name: value for name, value in fields.items() if value is not None}
    return str(yaml.safe_dump(stated, sort_keys=False, allow_unicode=True)).strip()
