"""Studies with a recruiting link for a panel, and their settings file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bws.problems import InputError, Problem
from bws.textio import read_toml
from mturk.service.rules.admission import StudyRules
from mturk.service.rules.ends import ENDS, FINISHED, TIMED_OUT
from mturk.service.rules.participation import Consent
from mturk.service.site.panel_signature import read_key_set, signed_parameters
from mturk.service.site.study_questions import (
    StudyQuestion,
    language_of,
    read_language,
    read_questions,
)
from mturk.service.site.texts import has_text, languages, text, use_folder

__all__ = ["PanelStudy", "read_studies"]

PROLIFIC_URL = "https://app.prolific.com/submissions/complete?cc={code}"
NAME = re.compile(r"[\w.-]{1,64}")
SETTING_TYPES: Mapping[str, type] = {
    "completion_code": str,
    "title": str,
    "group_id": str,
    "hits": int,
    "return_url": str,
    "information": dict,
    "participants": int,
    "exclude": list,
    "link_days": int,
    "prolific_keys": str,
    "version": str,
    "screened_out_code": str,
    "no_consent_code": str,
    "timed_out_code": str,
    "withdrawn_code": str,
    "minutes": int,
    "retention_days": int,
    "country": bool,
    "volunteers": bool,
    "questions": list,
}
VOLUNTEER_SETTINGS: Mapping[str, Any] = {"return_url": "", "country": False}
"""Settings of a study of volunteers unless it states others."""


@dataclass(frozen=True, slots=True)
class PanelStudy:
    """A study that participants of a panel, or volunteers, join by a recruiting link."""

    name: str
    """Name in the link's token: 1 to 64 letters, digits, ``.``, ``_`` or ``-``."""
    completion_code: str
    """Code shown at the end of the study only; volunteers need none."""
    title: str = ""
    group_id: str | None = None
    """HIT group (HITGroupId) of the study; None: all HITs available to the worker."""
    hits: int | None = None
    """Number of HITs after which the study ends for a participant; None: when no HITs are available.

    Counted over all sessions of the participant in the study. A session after a completed one begins anew.
    """
    return_url: str = PROLIFIC_URL
    """Return address at the end; ``{code}`` is replaced by the completion code; empty: none."""
    information: Mapping[str, str] = field(default_factory=dict)
    """Language -> information before the consent; blank lines separate paragraphs."""
    participants: int | None = None
    """Maximum number of participants; None: unlimited."""
    exclude: Sequence[str] = ()
    """Names of studies whose participants cannot take part in this one."""
    link_days: int = 90
    """Days until a printed recruiting link expires."""
    prolific_keys: str = ""
    """File of Prolific's public keys (JSON Web Key Set); if set, links need Prolific's signature."""

    version: str = "1"
    """Version of the information and consent; after a change, participants are asked again."""
    screened_out_code: str = ""
    """Code for participants whose answers are not accepted; empty: none."""
    no_consent_code: str = ""
    """Code for those who do not consent."""
    timed_out_code: str = ""
    """Code for those who have not finished in `minutes`; required with it."""
    withdrawn_code: str = ""
    """Code for those who withdraw; empty: the completion code, if they have submitted a task."""
    minutes: int | None = None
    """Time for the whole study from the entry in a session; None: unlimited."""
    retention_days: int | None = None
    """Days after a participant's last activity until the identity is erased; None: never."""
    country: bool = True
    """Whether participants are asked for their country; otherwise they meet no requirement of a location."""
    questions: Sequence[StudyQuestion] = ()
    """Questions after the consent."""
    volunteers: bool = False
    """Whether people take part without pay and without a panel, under ids that they choose themselves."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"study name {self.name!r}; expected 1 to 64 letters, digits, '.', '_' or '-'"
            )
        if self.volunteers and self.prolific_keys:
            raise ValueError(
                f"study {self.name!r}: volunteers have no signatures; expected no prolific_keys"
            )
        if not self.volunteers and not self.completion_code.strip():
            raise ValueError(f"study {self.name!r} has no completion code")
        if self.hits is not None and self.hits < 1:
            raise ValueError(f"study {self.name!r}: hits is {self.hits}; expected 1 or more")
        for name in ("participants", "link_days", "minutes", "retention_days"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"study {self.name!r}: {name} is {count}; expected 1 or more")
        if (
            self.minutes is not None
            and not self.volunteers
            and not self.code(TIMED_OUT, submitted=True)
        ):
            raise ValueError(
                f"study {self.name!r}: minutes without timed_out_code; expected a code for those who have "
                "submitted tasks when the time is over, which can be the completion_code"
            )
        self._check_languages()
        if self.prolific_keys:
            read_key_set(self.prolific_keys)
        for other in self.exclude:
            if not isinstance(other, str) or not NAME.fullmatch(other) or other == self.name:
                raise ValueError(
                    f"study {self.name!r}: exclude contains {other!r}; expected names of other studies"
                )
        if self.return_url and urlsplit(self.return_url).scheme not in ("http", "https"):
            raise ValueError(
                f"study {self.name!r}: return_url is {self.return_url!r}; expected an https or http address"
            )

    def _check_languages(self) -> None:
        """Raise ValueError for information in a language in which the consent cannot be shown."""
        for language, words in self.information.items():
            tag = read_language(language, f"study {self.name!r}: information")
            if tag != language or not isinstance(words, str) or not words.strip():
                raise ValueError(
                    f"study {self.name!r}: information is {language} = {words!r}; expected {tag} = a text"
                )
            if missing := [key for key in self.consent_keys if not has_text(language, key)]:
                raise ValueError(
                    f"study {self.name!r}: the information is in {language}, but the consent is not "
                    f"({', '.join(missing)}); expected these texts in {language}.po beside the file of "
                    f"studies: `mturk-hits check-texts --new {language}` prints a catalogue to translate"
                )

    def panel_parameters(self, query: Mapping[str, str], site_url: str) -> Mapping[str, str]:
        """Return the panel's parameters of a recruiting link; raise LinkError if a signature is missing."""
        if not self.prolific_keys:
            return query
        return signed_parameters(query.get("prolific_token", ""), self.prolific_keys, site_url)

    @property
    def rules(self) -> StudyRules:
        """Limits on the participants."""
        return StudyRules(self.participants, self.exclude, self.max_seconds)

    @property
    def max_seconds(self) -> int | None:
        """`minutes` in seconds."""
        return None if self.minutes is None else 60 * self.minutes

    def code(self, end: str, *, submitted: bool) -> str:
        """Return the code of an end in `ENDS`, with or without a submitted task; empty if none.

        >>> PanelStudy("pilot", "C1").code("withdrawn", submitted=True)
        'C1'
        """
        codes = [getattr(self, name).strip() for name in ENDS[end, submitted].codes]
        return next(filter(None, codes), "")

    def completion_url(self, end: str = FINISHED, *, submitted: bool = True) -> str:
        """Return the panel's address for participants at an end; empty if not set.

        >>> PanelStudy("pilot", "C1 X").completion_url()
        'https://app.prolific.com/submissions/complete?cc=C1%20X'
        """
        return self.return_url.replace(
            "{code}", quote(self.code(end, submitted=submitted), safe="")
        )

    @property
    def information_key(self) -> str:
        """Key of the text that says what is stored."""
        if self.volunteers and not self.country:
            return "start.information.volunteers"
        return "start.information" if self.country else "start.information.no_country"

    @property
    def consent_keys(self) -> tuple[str, str]:
        """Keys of the texts to which participants consent, besides the information."""
        return self.information_key, "start.consent"

    @property
    def consent_languages(self) -> Sequence[str]:
        """Languages in which the consent is complete: those of the information, if there is one."""
        return list(self.information) or [
            language
            for language in languages()
            if all(has_text(language, key) for key in self.consent_keys)
        ]

    def consent_language(self, language: str) -> str:
        """Return the language in which a reader of a language gives the consent."""
        return language_of(dict.fromkeys(self.consent_languages, ""), language)

    def consent(self, language: str) -> Consent:
        """Return the wording to which a reader of a language consents; it is in `consent_language`."""
        shown = self.consent_language(language)
        sentences = [text(shown, key) for key in self.consent_keys]
        return Consent(self.version, shown, "\n\n".join([*self.paragraphs(shown), *sentences]))

    def paragraphs(self, language: str) -> list[str]:
        """Return the paragraphs of the information for a reader of a language."""
        words = self.information.get(self.consent_language(language), "")
        return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", words) if paragraph.strip()]


def read_studies(path: str) -> list[PanelStudy]:
    """Read studies from TOML, one table per study: ``[pilot]`` with ``completion_code = "C1"`` and so on.

    The catalogues beside the file are used by the site from then on. Raises InputError with all problems.
    """
    if path != "-":
        use_folder(Path(path).absolute().parent)
    studies: list[PanelStudy] = []
    problems: list[Problem] = []
    for name, table in read_toml(path).items():
        try:
            studies.append(_parse_study(name, table))
        except ValueError as error:
            problems.append(Problem(path, None, str(error)))
    if problems:
        raise InputError(problems)
    return studies


def _parse_study(name: str, table: Any) -> PanelStudy:
    if not isinstance(table, dict):
        raise ValueError(f"{name} is outside a table; expected tables such as [pilot]")
    allowed = [setting.name for setting in fields(PanelStudy) if setting.name != "name"]
    for key, value in table.items():
        if key not in allowed:
            raise ValueError(
                f"study {name!r}: unknown setting {key}; expected one of {', '.join(allowed)}"
            )
        if type(value) is not SETTING_TYPES[key]:
            raise ValueError(
                f"study {name!r}: {key} is {value!r}; expected {SETTING_TYPES[key].__name__}"
            )
    try:
        questions = read_questions(table.get("questions", ()))
    except ValueError as error:
        raise ValueError(f"study {name!r}: {error}") from None
    preset = VOLUNTEER_SETTINGS if table.get("volunteers") else {}
    values = {"completion_code": "", **preset, **table, "questions": questions}
    return PanelStudy(name, **values)
