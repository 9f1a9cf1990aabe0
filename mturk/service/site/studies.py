"""Studies with a recruiting link: which work, how much of it, the code at its end; and the file of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import quote, urlsplit

from bws.problems import InputError, Problem
from bws.textio import read_toml

__all__ = ["Study", "read_studies"]

PROLIFIC = "https://app.prolific.com/submissions/complete?cc={code}"
NAME = re.compile(r"[\w.-]{1,64}")
TYPES: Mapping[str, type] = {
    "completion_code": str,
    "title": str,
    "group_id": str,
    "hits": int,
    "return_url": str,
    "information": dict,
}


@dataclass(frozen=True, slots=True)
class Study:
    """A study that participants of a panel join by one link."""

    name: str
    """In the link's token; 1 to 64 letters, digits, ``.``, ``_`` or ``-``."""
    completion_code: str
    """Shown at the end, never before."""
    title: str = ""
    group_id: str | None = None
    """The HIT group (HITGroupId) that is worked on; None: whatever the worker may do."""
    hits: int | None = None
    """After how many HITs the study is done for a participant; None: when there is no work left.

    Counted in the group; without a group, since the participant entered in this browser.
    """
    return_url: str = PROLIFIC
    """Where the participant goes at the end; ``{code}`` is the completion code; empty: nowhere."""
    information: Mapping[str, str] = field(default_factory=dict)
    """Language (de, en) -> what participants are told before they consent; blank lines part paragraphs."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"study name {self.name!r}: 1 to 64 letters, digits, '.', '_' or '-' are allowed"
            )
        if not self.completion_code.strip():
            raise ValueError(f"study {self.name!r} has no completion code")
        if self.hits is not None and self.hits < 1:
            raise ValueError(f"study {self.name!r}: hits is {self.hits}; 1 or more is allowed")
        if self.return_url and urlsplit(self.return_url).scheme not in ("http", "https"):
            raise ValueError(
                f"study {self.name!r}: return_url is {self.return_url!r}; https or http is allowed"
            )

    def way_back(self) -> str:
        """Return the address at which the panel takes the participant back; empty where there is none.

        >>> Study("pilot", "C1 X").way_back()
        'https://app.prolific.com/submissions/complete?cc=C1%20X'
        """
        return self.return_url.replace("{code}", quote(self.completion_code, safe=""))

    def paragraphs(self, language: str) -> list[str]:
        """Return the information in this language, else in the other, a paragraph each."""
        text = self.information.get(language) or next(iter(self.information.values()), "")
        return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


def read_studies(path: str) -> list[Study]:
    """Read studies from TOML, a table each: ``[pilot]`` with ``completion_code = "C1"`` and so on.

    InputError names every fault.
    """
    found: list[Study] = []
    problems: list[Problem] = []
    for name, table in read_toml(path).items():
        try:
            found.append(_study(name, table))
        except ValueError as error:
            problems.append(Problem(path, None, str(error)))
    if problems:
        raise InputError(problems)
    return found


def _study(name: str, table: Any) -> Study:
    if not isinstance(table, dict):
        raise ValueError(f"{name} stands outside a study; write it below a line such as [pilot]")
    allowed = [one.name for one in fields(Study) if one.name != "name"]
    for key, value in table.items():
        if key not in allowed:
            raise ValueError(f"study {name!r}: {key} is no setting; allowed: {', '.join(allowed)}")
        if not isinstance(value, TYPES[key]) or isinstance(value, bool):
            raise ValueError(
                f"study {name!r}: {key} is {value!r}; {TYPES[key].__name__} is allowed"
            )
    return Study(name, **{"completion_code": "", **table})
